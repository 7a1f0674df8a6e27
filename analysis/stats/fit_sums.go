package stats

import "math"

// LogSums are the sufficient statistics of positive numbers for the exponential,
// gamma and lognormal laws, kept in one pass. Fitting from them needs no values, and
// measures no goodness. The zero value has seen none.
type LogSums struct {
	values, logs Moments
	refused      int64
}

// Add counts x; a number not above 0 is counted as refused.
func (l *LogSums) Add(x float64) {
	if !(x > 0) || math.IsInf(x, 1) {
		l.refused++
		return
	}
	l.values.Add(x)
	l.logs.Add(math.Log(x))
}

// N returns how many numbers the sums hold.
func (l *LogSums) N() int64 { return l.values.N() }

// Refused returns how many numbers were not above 0.
func (l *LogSums) Refused() int64 { return l.refused }

// Law returns the law of the family with the largest likelihood, for exponential,
// gamma and lognormal.
func (l *LogSums) Law(family Family) (Law, error) {
	mean, _ := l.values.Mean()
	mu, _ := l.logs.Mean()
	sd, _ := l.logs.SD()
	least, most, _ := l.values.Range()
	no := func(reason string) error { return &FitError{string(family), l.N(), reason} }
	switch {
	case l.N() < fewest:
		return nil, no("there are fewer than 3 values above 0")
	case least == most:
		return nil, no("all values are equal")
	}
	var law Law
	switch family {
	case FamilyExponential:
		law = Exponential{1 / mean}
	case FamilyGamma:
		law = gammaFrom(mean, max(0, math.Log(mean)-mu))
	case FamilyLognormal:
		n := float64(l.N())
		law = Lognormal{mu, sd * math.Sqrt((n-1)/n)}
	default:
		return nil, no("it cannot be fitted from sums: its likelihood needs the values")
	}
	if CheckLaw(law) != nil {
		return nil, no("the values are too close to each other, or too far apart, for sums")
	}
	return law, nil
}
