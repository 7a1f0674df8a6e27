package stats

import (
	"math"
	"math/rand/v2"
)

// GPD is the generalised Pareto law of the numbers above a threshold:
// S(x) = (1 + Xi (x-Threshold)/Beta)^(-1/Xi), exponential at Xi 0 and bounded
// above at Xi below 0.
type GPD struct {
	Threshold float64 // value
	Xi        float64 // tail index; the mean is finite below 1, the variance below 1/2
	Beta      float64 // value, above 0
}

func (g GPD) Name() string { return "gpd" }

func (g GPD) Params() []Param {
	return []Param{{"threshold", g.Threshold, Value}, {"xi", g.Xi, Pure}, {"beta", g.Beta, Value}}
}

func (g GPD) check() error {
	p := g.Params()
	if err := finite(p[:2]...); err != nil {
		return err
	}
	return above0(p[2])
}

// hazard returns -ln S(x): ln(1 + Xi y)/Xi at y = (x-Threshold)/Beta, +Inf from
// the upper end of the support on.
func (g GPD) hazard(x float64) float64 {
	y := (x - g.Threshold) / g.Beta
	switch {
	case y <= 0:
		return 0
	case math.IsInf(y, 1) || g.Xi*y <= -1:
		return math.Inf(1)
	case math.Abs(g.Xi*y) < 1e-8:
		return y * (1 - g.Xi*y/2)
	}
	return math.Log1p(g.Xi*y) / g.Xi
}

func (g GPD) LogDensity(x float64) float64 {
	if x < g.Threshold {
		return math.Inf(-1)
	}
	t := g.hazard(x)
	if math.IsInf(t, 1) {
		return math.Inf(-1)
	}
	return -math.Log(g.Beta) - (1+g.Xi)*t
}

func (g GPD) CDF(x float64) float64      { return -math.Expm1(-g.hazard(x)) }
func (g GPD) Survival(x float64) float64 { return math.Exp(-g.hazard(x)) }

func (g GPD) Quantile(p float64) float64 { return g.atHazard(unitExponentialQuantile(p)) }

// atHazard is the inverse of hazard.
func (g GPD) atHazard(t float64) float64 {
	if math.IsInf(t, 1) && g.Xi >= 0 {
		return t
	}
	if math.Abs(g.Xi*t) < 1e-8 {
		return g.Threshold + g.Beta*t*(1+g.Xi*t/2)
	}
	return g.Threshold + g.Beta*math.Expm1(g.Xi*t)/g.Xi
}

func (g GPD) Mean() (float64, bool) {
	if g.Xi >= 1 {
		return 0, false
	}
	return g.Threshold + g.Beta/(1-g.Xi), true
}

func (g GPD) SD() (float64, bool) {
	if g.Xi >= 0.5 {
		return 0, false
	}
	return g.Beta / (1 - g.Xi) / math.Sqrt(1-2*g.Xi), true
}

// IntegralCDF is x less the integral of S, which over the hazard t is that of
// Beta e^((Xi-1) t).
func (g GPD) IntegralCDF(x float64) float64 {
	if x <= g.Threshold {
		return 0
	}
	t, d := g.hazard(x), 1-g.Xi
	survived := t
	if math.IsInf(t, 1) {
		survived = 1 / d
	} else if math.Abs(d*t) > 1e-9 {
		survived = -math.Expm1(-d*t) / d
	}
	return x - g.Threshold - g.Beta*survived
}

func (g GPD) Rand(r *rand.Rand) float64 { return g.atHazard(r.ExpFloat64()) }

// Pareto is the Pareto law: S(x) = (Min/x)^Alpha from Min up.
type Pareto struct {
	Min   float64 // value, above 0
	Alpha float64 // above 0; the mean is finite above 1, the variance above 2
}

func (p Pareto) Name() string { return "pareto" }

func (p Pareto) Params() []Param {
	return []Param{{"min", p.Min, Value}, {"alpha", p.Alpha, Pure}}
}

func (p Pareto) check() error { return above0(p.Params()...) }

// gpd returns the same law as a GPD over Min.
func (p Pareto) gpd() GPD { return GPD{p.Min, 1 / p.Alpha, p.Min / p.Alpha} }

func (p Pareto) LogDensity(x float64) float64 {
	if x < p.Min {
		return math.Inf(-1)
	}
	return math.Log(p.Alpha/x) - p.Alpha*math.Log(x/p.Min)
}

func (p Pareto) CDF(x float64) float64 {
	if x <= p.Min {
		return 0
	}
	return -math.Expm1(-p.Alpha * math.Log(x/p.Min))
}

func (p Pareto) Survival(x float64) float64 {
	if x <= p.Min {
		return 1
	}
	return math.Exp(-p.Alpha * math.Log(x/p.Min))
}

func (p Pareto) Quantile(q float64) float64 {
	return p.Min * math.Exp(unitExponentialQuantile(q)/p.Alpha)
}

func (p Pareto) Mean() (float64, bool)         { return p.gpd().Mean() }
func (p Pareto) SD() (float64, bool)           { return p.gpd().SD() }
func (p Pareto) IntegralCDF(x float64) float64 { return p.gpd().IntegralCDF(x) }
func (p Pareto) Rand(r *rand.Rand) float64     { return p.Min * math.Exp(r.ExpFloat64()/p.Alpha) }
