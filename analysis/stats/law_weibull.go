package stats

import (
	"math"
	"math/rand/v2"
)

// Weibull is the Weibull law from 0 up; shape 1 is exponential.
type Weibull struct {
	Shape float64 // above 0
	Scale float64 // value, above 0; the quantile at 1-1/e
}

func (w Weibull) Name() string { return "weibull" }

func (w Weibull) Params() []Param {
	return []Param{{"shape", w.Shape, Pure}, {"scale", w.Scale, Value}}
}

func (w Weibull) check() error { return above0(w.Params()...) }

func (w Weibull) LogDensity(x float64) float64 {
	if x < 0 || x == 0 && w.Shape > 1 {
		return math.Inf(-1)
	}
	if x == 0 && w.Shape == 1 {
		return -math.Log(w.Scale)
	}
	ln := math.Log(x / w.Scale)
	return math.Log(w.Shape/w.Scale) + (w.Shape-1)*ln - math.Exp(w.Shape*ln)
}

func (w Weibull) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return -math.Expm1(-math.Pow(x/w.Scale, w.Shape))
}

func (w Weibull) Survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return math.Exp(-math.Pow(x/w.Scale, w.Shape))
}

func (w Weibull) Quantile(p float64) float64 {
	return w.Scale * math.Pow(unitExponentialQuantile(p), 1/w.Shape)
}

// Mean is absent only where the Gamma function overflows, below shape 0.006.
func (w Weibull) Mean() (float64, bool) {
	mean := w.Scale * math.Gamma(1+1/w.Shape)
	return mean, !math.IsInf(mean, 0)
}

// SD uses the ratio of Gamma functions, which stays precise for large shapes.
func (w Weibull) SD() (float64, bool) {
	mean, ok := w.Mean()
	second, _ := math.Lgamma(1 + 2/w.Shape)
	first, _ := math.Lgamma(1 + 1/w.Shape)
	sd := mean * math.Sqrt(math.Expm1(second-2*first))
	if !ok || math.IsNaN(sd) || math.IsInf(sd, 0) {
		return 0, false
	}
	return sd, true
}

func (w Weibull) IntegralCDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	inv := 1 / w.Shape
	y := math.Pow(x/w.Scale, w.Shape)
	if math.IsInf(y, 1) {
		return x - w.Scale*math.Gamma(1+inv)
	}
	if y == 0 {
		return 0
	}
	p, _ := gammaTails(1+inv, y)
	return -x*math.Expm1(-y) - w.Scale*math.Gamma(1+inv)*p
}

func (w Weibull) Rand(r *rand.Rand) float64 {
	return w.Scale * math.Pow(r.ExpFloat64(), 1/w.Shape)
}
