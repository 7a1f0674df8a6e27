package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// FitLaw fits one family to the values by maximum likelihood of their density.
// Values are real numbers at or above 0, without correction for whole tokens or
// ticks; see [FitTicks] for the latter. A sample that the family cannot take (fewer
// than three values, all equal, negative, zeros where its density has none) is a
// [*FitError].
func FitLaw(family Family, s Sample) (Fit, error) {
	law, err := estimate(family, s)
	if err != nil {
		return Fit{}, err
	}
	fit := Fit{Law: law, Likelihood: Density, Identified: true, LogLik: LogLik(s, law)}
	fit.score(len(law.Params()), s.N())
	fit.StdErr = densityErrs(law, s)
	fit.checkIdentified(s)
	fit.measure(s)
	if err := fit.sound(family, s); err != nil {
		return Fit{}, err
	}
	return fit, nil
}

// FitAll fits every family that takes the values; the error is that of the first
// family, and comes only if none fits.
func FitAll(s Sample) (Fits, error) {
	return fitEach(Families(), func(f Family) (Fit, error) { return FitLaw(f, s) })
}

// FitExponential, FitGamma, FitWeibull, FitLognormal and FitHyperexponential are
// [FitLaw] of one family.
func FitExponential(s Sample) (Fit, error)      { return FitLaw(FamilyExponential, s) }
func FitGamma(s Sample) (Fit, error)            { return FitLaw(FamilyGamma, s) }
func FitWeibull(s Sample) (Fit, error)          { return FitLaw(FamilyWeibull, s) }
func FitLognormal(s Sample) (Fit, error)        { return FitLaw(FamilyLognormal, s) }
func FitHyperexponential(s Sample) (Fit, error) { return FitLaw(FamilyHyperexponential, s) }

// estimate returns the law of the family with the largest likelihood.
func estimate(family Family, s Sample) (Law, error) {
	if err := checkPositive(family, s); err != nil {
		return nil, err
	}
	var law Law
	switch family {
	case FamilyExponential:
		m := s.Moments()
		mean, _ := m.Mean()
		law = Exponential{1 / mean}
	case FamilyGamma:
		m := s.Moments()
		mean, _ := m.Mean()
		law = gammaFrom(mean, meanLogExcess(s, mean))
	case FamilyWeibull:
		law = weibullOf(s)
	case FamilyLognormal:
		mu, sigma := logMoments(s)
		law = Lognormal{mu, sigma}
	case FamilyHyperexponential:
		law = hyperexponentialOf(s)
	default:
		return nil, refuse(family, s, "it is none of %v", Families())
	}
	if CheckLaw(law) != nil {
		return nil, refuse(family, s, "the values from %v to %v are beyond its arithmetic", s.values[0], s.values[len(s.values)-1])
	}
	return law, nil
}

// meanLogExcess returns ln mean - mean ln x, at least 0, precise where the values
// are nearly equal: deviations d from the mean add up to 0, so each term may be
// d - ln(1+d) instead of -ln(1+d).
func meanLogExcess(s Sample, mean float64) float64 {
	var sum total
	for i, v := range s.values {
		d := (v - mean) / mean
		term := d - math.Log(v/mean)
		if math.Abs(d) < 0.5 {
			term = excessOverLog(d)
		}
		sum.add(float64(s.counts[i]) * term)
	}
	return max(0, sum.value()/float64(s.n))
}

// gammaFrom returns the gamma law with the given mean and c = ln mean - mean ln x:
// the root in a of ln a - psi(a) = c, from Minka's start by his Newton step in 1/a
// ("Estimating a Gamma distribution", 2002).
func gammaFrom(mean, c float64) Gamma {
	a := (3 - c + math.Sqrt((c-3)*(c-3)+24*c)) / (12 * c)
	for range 50 {
		gap, slope := digammaGap(a)
		next := 1 / (1/a + (gap-c)/slope)
		if !(next > 0) {
			next = a / 2
		}
		done := math.Abs(next-a) <= 1e-15*a
		a = next
		if done {
			break
		}
	}
	return Gamma{a, mean / a}
}

// digammaGap returns ln a - psi(a), and a^2 (1/a - psi'(a)), which is the derivative
// of the former over a times a^2. Both cancel for large a, where their asymptotic
// series take over.
func digammaGap(a float64) (gap, slope float64) {
	if a > 60 {
		a2 := a * a
		gap = (0.5 + (1.0/12-(1.0/120-1.0/252/a2)/a2)/a) / a
		return gap, -(0.5 + (1.0/6-(1.0/30-1.0/42/a2)/a2)/a)
	}
	return math.Log(a) - mathext.Digamma(a), a * a * (1/a - mathext.Zeta(2, a))
}

// weibullOf solves sum(x^k ln x)/sum(x^k) - 1/k - mean ln x = 0 for k by Newton,
// over the logarithms of x/max, in which nothing overflows. The left side grows
// with k.
func weibullOf(s Sample) Weibull {
	top := math.Log(s.values[len(s.values)-1])
	logs := make([]float64, len(s.values))
	var sum, squares total
	for i, v := range s.values {
		logs[i] = math.Log(v) - top
		sum.add(float64(s.counts[i]) * logs[i])
	}
	mean := sum.value() / float64(s.n)
	for i, l := range logs {
		squares.add(float64(s.counts[i]) * (l - mean) * (l - mean))
	}
	k := math.Pi / math.Sqrt(6*squares.value()/float64(s.n)) // of the moments of ln x
	lo, hi, s0 := 0.0, math.Inf(1), 0.0
	for range 100 {
		var w0, w1, w2 total
		for i, l := range logs {
			w := float64(s.counts[i]) * math.Exp(k*l)
			w0.add(w)
			w1.add(w * l)
			w2.add(w * l * l)
		}
		s0 = w0.value()
		m1 := w1.value() / s0
		g := m1 - 1/k - mean
		if g > 0 {
			hi = k
		} else {
			lo = k
		}
		next := k - g/(w2.value()/s0-m1*m1+1/(k*k))
		if !(next > lo && next < hi) {
			next = min(2*k, (lo+hi)/2)
		}
		if math.Abs(next-k) <= 1e-15*k {
			break
		}
		k = next
	}
	return Weibull{k, math.Exp(top + math.Log(s0/float64(s.n))/k)}
}

// logMoments returns the mean and the standard deviation, over n, of ln x.
func logMoments(s Sample) (mu, sigma float64) {
	var sum, squares total
	for i, v := range s.values {
		sum.add(float64(s.counts[i]) * math.Log(v))
	}
	mu = sum.value() / float64(s.n)
	for i, v := range s.values {
		d := math.Log(v) - mu
		squares.add(float64(s.counts[i]) * d * d)
	}
	return mu, math.Sqrt(squares.value() / float64(s.n))
}

// densityErrs returns the standard errors of the parameters of law fitted to s, from
// the information of n values; nil if there are none.
func densityErrs(law Law, s Sample) []float64 {
	root := math.Sqrt(float64(s.n))
	switch l := law.(type) {
	case Exponential:
		return []float64{l.Rate / root}
	case Gamma:
		// The information of one value is [psi'(a), 1/s; 1/s, a/s^2].
		_, slope := digammaGap(l.Shape) // a^2 (1/a - psi'), so a psi' - 1 is -slope/a
		det := -slope / l.Shape
		return []float64{math.Sqrt(l.Shape/det) / root, l.Scale * math.Sqrt((1+det)/l.Shape/det) / root}
	case Weibull:
		// The information of (ln k, ln scale) is constant but for k; its inverse
		// has 6/pi^2 and (1 + 6 (1-gamma)^2/pi^2)/k^2 on the diagonal.
		const euler = 0.577215664901532860606512090082
		v := 6 / (math.Pi * math.Pi)
		return []float64{l.Shape * math.Sqrt(v) / root, l.Scale / l.Shape * math.Sqrt(1+v*(1-euler)*(1-euler)) / root}
	case Lognormal:
		return []float64{l.Sigma / root, l.Sigma / math.Sqrt2 / root}
	case Hyperexponential:
		return numericErrs(FamilyHyperexponential, law, func(x []float64) float64 {
			return LogLik(s, lawAt(FamilyHyperexponential, x))
		})
	}
	return nil
}

// numericErrs returns standard errors from the curvature of loglik at law; nil where
// it is flat.
func numericErrs(family Family, law Law, loglik func([]float64) float64) []float64 {
	at := coordinates(law)
	_, curve := derivatives(loglik, at, loglik(at))
	errs, ok := peak{at: at, curve: curve}.stdErrs()
	if !ok {
		return nil
	}
	return paramErrs(law, errs)
}

// flatError is the standard error of a coordinate (of the logarithm of a shape,
// say) above which the likelihood is called flat.
const flatError = 1

// checkIdentified doubts parameters that the values do not determine.
func (f *Fit) checkIdentified(s Sample) {
	if f.Free < 2 {
		return
	}
	m := s.Moments()
	if cv, ok := m.CV(); ok && cv < 1e-3 {
		mean, _ := m.Mean()
		f.doubt("the values are all within about %.2g of %.6g (CV %.2g): the shape is that of their rounding", cv*mean, mean, cv)
	}
	f.checkFlat()
}

// checkFlat doubts parameters whose standard errors are missing or huge.
func (f *Fit) checkFlat() {
	if f.StdErr == nil {
		f.doubt("the likelihood is flat: other parameters are as likely")
		return
	}
	scale := make([]float64, len(f.StdErr))
	for i := range scale {
		scale[i] = 1
	}
	paramErrs(f.Law, scale)
	for i, p := range f.Law.Params() {
		if !(f.StdErr[i] < flatError*scale[i]) {
			f.doubt("the likelihood is flat in %s: the values do not determine it", p.Name)
			return
		}
	}
}
