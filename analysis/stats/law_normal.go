package stats

import (
	"math"
	"math/rand/v2"
)

const lnSqrt2Pi = 0.918938533204672741780329736406

// normalCDF returns Phi(z), precise in the lower tail.
func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// normalDensity returns phi(z).
func normalDensity(z float64) float64 { return math.Exp(-0.5*z*z - lnSqrt2Pi) }

// normalQuantile returns z with Phi(z) = p: -Inf at p <= 0, +Inf at p >= 1.
func normalQuantile(p float64) float64 {
	return -math.Sqrt2 * math.Erfcinv(2*min(1, max(0, p)))
}

// Normal is the Gaussian law.
type Normal struct {
	Mu    float64 // value; the mean
	Sigma float64 // value, above 0; the standard deviation
}

func (n Normal) Name() string { return "normal" }

func (n Normal) Params() []Param {
	return []Param{{"mu", n.Mu, Value}, {"sigma", n.Sigma, Value}}
}

func (n Normal) check() error {
	p := n.Params()
	if err := finite(p[0]); err != nil {
		return err
	}
	return above0(p[1])
}

func (n Normal) z(x float64) float64        { return (x - n.Mu) / n.Sigma }
func (n Normal) CDF(x float64) float64      { return normalCDF(n.z(x)) }
func (n Normal) Survival(x float64) float64 { return normalCDF(-n.z(x)) }
func (n Normal) Quantile(p float64) float64 { return n.Mu + n.Sigma*normalQuantile(p) }
func (n Normal) Mean() (float64, bool)      { return n.Mu, true }
func (n Normal) SD() (float64, bool)        { return n.Sigma, true }
func (n Normal) Rand(r *rand.Rand) float64  { return n.Mu + n.Sigma*r.NormFloat64() }
func (n Normal) LogDensity(x float64) float64 {
	z := n.z(x)
	return -0.5*z*z - lnSqrt2Pi - math.Log(n.Sigma)
}

func (n Normal) IntegralCDF(x float64) float64 {
	z := n.z(x)
	return n.Sigma * (z*normalCDF(z) + normalDensity(z))
}

// Lognormal is the law of a positive number whose logarithm is Gaussian.
type Lognormal struct {
	Mu    float64 // ln(value); the median is e^Mu
	Sigma float64 // above 0; the standard deviation of the logarithm
}

func (l Lognormal) Name() string { return "lognormal" }

func (l Lognormal) Params() []Param {
	return []Param{{"mu", l.Mu, LogValue}, {"sigma", l.Sigma, Pure}}
}

func (l Lognormal) check() error {
	p := l.Params()
	if err := finite(p[0]); err != nil {
		return err
	}
	return above0(p[1])
}

func (l Lognormal) z(x float64) float64 { return (math.Log(x) - l.Mu) / l.Sigma }

func (l Lognormal) LogDensity(x float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	ln := math.Log(x)
	z := (ln - l.Mu) / l.Sigma
	return -0.5*z*z - lnSqrt2Pi - math.Log(l.Sigma) - ln
}

func (l Lognormal) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return normalCDF(l.z(x))
}

func (l Lognormal) Survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return normalCDF(-l.z(x))
}

func (l Lognormal) Quantile(p float64) float64 { return math.Exp(l.Mu + l.Sigma*normalQuantile(p)) }
func (l Lognormal) Rand(r *rand.Rand) float64  { return math.Exp(l.Mu + l.Sigma*r.NormFloat64()) }

// Mean is absent only where it overflows.
func (l Lognormal) Mean() (float64, bool) {
	mean := math.Exp(l.Mu + l.Sigma*l.Sigma/2)
	return mean, !math.IsInf(mean, 0)
}

// SD is absent only where it overflows.
func (l Lognormal) SD() (float64, bool) {
	mean, ok := l.Mean()
	sd := mean * math.Sqrt(math.Expm1(l.Sigma*l.Sigma))
	return sd, ok && !math.IsInf(sd, 0)
}

func (l Lognormal) IntegralCDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	z := l.z(x)
	return x*normalCDF(z) - math.Exp(l.Mu+l.Sigma*l.Sigma/2)*normalCDF(z-l.Sigma)
}
