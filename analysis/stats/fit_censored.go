package stats

import "math"

// A Spike is a value that occurs far more often than the values around it.
type Spike struct {
	Value float64
	Count int64   // of a cap: with what lies above it
	Share float64 // Count over all values
	Usual float64 // mean count of its neighbours
}

// DetectCap returns the value at which the numbers seem to be cut off, such as a
// context limit, with all that lie at or above it: more than 0.2 % of the values, at
// least 5, and more than three times what the ten distinct values below it have on
// average. It is the largest value, or one up to 0.1 % smaller: a limit on two lengths
// together leaves some tokens of slack, as in the Azure code trace, which ends in 15,
// 103, 201 and 18 prompts of 7434 to 7437 tokens.
func DetectCap(s Sample) (Spike, bool) {
	var best Spike
	var above int64
	for i := s.Distinct() - 1; i > 0 && s.values[i] >= 0.999*s.values[len(s.values)-1]; i-- {
		above += s.counts[i]
		spike := Spike{Value: s.values[i], Count: above, Share: float64(above) / float64(s.n), Usual: s.meanCount(i-10, i)}
		if spike.Share > 0.002 && above >= 5 && float64(s.counts[i]) > 3*spike.Usual && s.counts[i] >= 5 {
			best = spike
		}
	}
	return best, best.Count > 0
}

// meanCount returns the mean count of the distinct values from the from-th up to the
// to-th, which is not among them; 0 without any.
func (s Sample) meanCount(from, to int) float64 {
	from, to = max(0, from), min(len(s.counts), to)
	if from >= to {
		return 0
	}
	var sum int64
	for _, c := range s.counts[from:to] {
		sum += c
	}
	return float64(sum) / float64(to-from)
}

// Spikes returns the values that hold at least 0.2 % of all and more than ten times
// the mean count of the ten distinct values on either side, in increasing order:
// default lengths, limits, fixed prompts. No two-parameter law follows them.
func Spikes(s Sample) []Spike {
	var out []Spike
	for i, c := range s.counts {
		if c < 5 || float64(c) < 0.002*float64(s.n) || s.Distinct() < 3 {
			continue
		}
		lo, hi := max(0, i-10), min(len(s.counts), i+11)
		usual := (s.meanCount(lo, hi)*float64(hi-lo) - float64(c)) / float64(hi-lo-1)
		if float64(c) > 10*usual {
			out = append(out, Spike{s.values[i], c, float64(c) / float64(s.n), usual})
		}
	}
	return out
}

// FitCensored fits a family to values of which those at or above limit are only known
// to be at least limit, as lengths at a context limit are: each adds ln P(X >= limit)
// to the likelihood. The law of the fit is a [Capped] one, whose part Of is the law
// without the limit. It takes exponential, gamma, Weibull and lognormal.
func FitCensored(family Family, s Sample, limit float64) (Fit, error) {
	if !(limit > 0) || math.IsInf(limit, 0) {
		return Fit{}, refuse(family, s, "the cap is %v, but must be above 0", limit)
	}
	below := s.Where(func(x float64) bool { return x < limit })
	at := s.N() - below.N()
	if at == 0 {
		return Fit{}, refuse(family, s, "no value is at the cap %v", limit)
	}
	start, err := estimate(family, below)
	if err != nil {
		return Fit{}, err
	}
	law, errs, err := censoredPeak(family, below, limit, at, start)
	if err != nil {
		return Fit{}, err
	}
	capped := Capped{law, limit}
	held := below // and the values at the cap as the law has them
	held.values, held.counts = append([]float64(nil), below.values...), append([]int64(nil), below.counts...)
	held.add(limit, at)
	fit := Fit{Law: capped, Likelihood: Censored, Identified: true, LogLik: LogLik(held, capped)}
	fit.score(len(law.Params()), s.N())
	if errs == nil {
		fit.doubt("the likelihood is flat: %d of %d values are at the cap %v", at, s.N(), limit)
	} else {
		fit.StdErr = append([]float64{0}, errs...)
	}
	fit.measure(held)
	return fit, fit.sound(family, held)
}

// FitAllCensored fits the four families of [FitCensored]; the error is that of the
// first family, and comes only if none fits.
func FitAllCensored(s Sample, limit float64) (Fits, error) {
	return fitEach(Families()[:4], func(f Family) (Fit, error) { return FitCensored(f, s, limit) })
}

// censoredPeak maximises the likelihood of below and at values known to be at least
// limit, by the sufficient statistics of below where there are any.
func censoredPeak(family Family, below Sample, limit float64, at int64, start Law) (Law, []float64, error) {
	m := below.Moments()
	if family == FamilyExponential {
		rate := float64(below.n) / (m.Sum() + float64(at)*limit)
		return Exponential{rate}, []float64{rate / math.Sqrt(float64(below.n))}, nil
	}
	n, sum := float64(below.n), m.Sum()
	var mu, sigma float64
	if family == FamilyGamma || family == FamilyLognormal {
		mu, sigma = logMoments(below)
	}
	inside := func(law Law) float64 {
		switch l := law.(type) {
		case Gamma:
			lg, _ := math.Lgamma(l.Shape)
			return n*((l.Shape-1)*mu-lg-l.Shape*math.Log(l.Scale)) - sum/l.Scale
		case Lognormal:
			d, r := (mu-l.Mu)/l.Sigma, sigma/l.Sigma
			return -n * (0.5*(d*d+r*r) + math.Log(l.Sigma))
		}
		return LogLik(below, law)
	}
	loglik := func(x []float64) float64 {
		law := lawAt(family, x)
		return inside(law) + float64(at)*math.Log(law.Survival(limit))
	}
	if family != FamilyGamma && family != FamilyLognormal && family != FamilyWeibull {
		return nil, nil, refuse(family, below, "it has no censored form")
	}
	from := coordinates(start)
	for range 40 { // widen until the cap is within reach of the law
		if v := loglik(from); !math.IsInf(v, 0) && !math.IsNaN(v) {
			break
		}
		from[len(from)-1] += 0.5
	}
	top := maximize(loglik, from)
	law := lawAt(family, top.at)
	errs, ok := top.stdErrs()
	if CheckLaw(law) != nil || math.IsNaN(top.value) {
		return nil, nil, refuse(family, below, "the likelihood has no maximum: %d values are at the cap %v", at, limit)
	}
	if !ok {
		return law, nil, nil
	}
	return law, paramErrs(law, errs), nil
}
