package stats

import (
	"math"
	"math/rand/v2"
)

// Exponential is the law of the gaps of a Poisson process, from 0 up.
type Exponential struct {
	Rate float64 // per value, above 0; 1/mean
}

func (e Exponential) Name() string    { return "exponential" }
func (e Exponential) Params() []Param { return []Param{{"rate", e.Rate, PerValue}} }
func (e Exponential) check() error    { return above0(e.Params()...) }

func (e Exponential) LogDensity(x float64) float64 {
	if x < 0 {
		return math.Inf(-1)
	}
	return math.Log(e.Rate) - e.Rate*x
}

func (e Exponential) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return -math.Expm1(-e.Rate * x)
}

func (e Exponential) Survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return math.Exp(-e.Rate * x)
}

func (e Exponential) Quantile(p float64) float64 { return unitExponentialQuantile(p) / e.Rate }
func (e Exponential) Mean() (float64, bool)      { return 1 / e.Rate, true }
func (e Exponential) SD() (float64, bool)        { return 1 / e.Rate, true }

func (e Exponential) IntegralCDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * meanExpCDF(e.Rate*x)
}

func (e Exponential) Rand(r *rand.Rand) float64 { return r.ExpFloat64() / e.Rate }

// unitExponentialQuantile returns -ln(1-p), with p brought into [0, 1].
func unitExponentialQuantile(p float64) float64 {
	return -math.Log1p(-min(1, max(0, p)))
}

// meanExpCDF returns 1 - (1-e^-y)/y, the mean of the unit exponential's CDF over
// [0, y]. Near 0 the difference cancels and the series takes over.
func meanExpCDF(y float64) float64 {
	if y < 1e-2 {
		return y / 2 * (1 - y/3*(1-y/4*(1-y/5*(1-y/6*(1-y/7)))))
	}
	return 1 + math.Expm1(-y)/y
}

// Hyperexponential is a mixture of two exponentials: with probability P a number
// of the first rate, else of the second. Its CV is at least 1.
type Hyperexponential struct {
	P            float64 // share of the first phase, 0 to 1
	Rate1, Rate2 float64 // per value, above 0
}

func (h Hyperexponential) Name() string { return "hyperexponential" }

func (h Hyperexponential) Params() []Param {
	return []Param{{"p", h.P, Pure}, {"rate1", h.Rate1, PerValue}, {"rate2", h.Rate2, PerValue}}
}

func (h Hyperexponential) check() error {
	p := h.Params()
	if err := share(p[0]); err != nil {
		return err
	}
	return above0(p[1:]...)
}

func (h Hyperexponential) LogDensity(x float64) float64 {
	if x < 0 {
		return math.Inf(-1)
	}
	a, b := -h.Rate1*x, -h.Rate2*x
	top := max(a, b)
	return top + math.Log(h.P*h.Rate1*math.Exp(a-top)+(1-h.P)*h.Rate2*math.Exp(b-top))
}

func (h Hyperexponential) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return -h.P*math.Expm1(-h.Rate1*x) - (1-h.P)*math.Expm1(-h.Rate2*x)
}

func (h Hyperexponential) Survival(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return h.P*math.Exp(-h.Rate1*x) + (1-h.P)*math.Exp(-h.Rate2*x)
}

// Quantile solves ln S(x) = ln(1-p) by Newton. ln S is convex and falls, so from
// the quantile of the fast phase the steps grow towards the root and never pass it.
func (h Hyperexponential) Quantile(p float64) float64 {
	y := unitExponentialQuantile(p)
	if y == 0 || math.IsInf(y, 1) {
		return y
	}
	x := y / max(h.Rate1, h.Rate2)
	for range 200 {
		a, b := h.P*math.Exp(-h.Rate1*x), (1-h.P)*math.Exp(-h.Rate2*x)
		if a+b == 0 {
			return x
		}
		step := (math.Log(a+b) + y) * (a + b) / (a*h.Rate1 + b*h.Rate2)
		x += step
		if math.Abs(step) <= 1e-15*x {
			break
		}
	}
	return x
}

func (h Hyperexponential) Mean() (float64, bool) { return h.P/h.Rate1 + (1-h.P)/h.Rate2, true }

func (h Hyperexponential) SD() (float64, bool) {
	mean, _ := h.Mean()
	second := 2 * (h.P/(h.Rate1*h.Rate1) + (1-h.P)/(h.Rate2*h.Rate2))
	return math.Sqrt(max(0, second-mean*mean)), true
}

func (h Hyperexponential) IntegralCDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * (h.P*meanExpCDF(h.Rate1*x) + (1-h.P)*meanExpCDF(h.Rate2*x))
}

func (h Hyperexponential) Rand(r *rand.Rand) float64 {
	if r.Float64() < h.P {
		return r.ExpFloat64() / h.Rate1
	}
	return r.ExpFloat64() / h.Rate2
}
