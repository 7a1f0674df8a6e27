package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Uniform is the law of numbers equally likely in [Low, High].
type Uniform struct {
	Low, High float64 // value, Low below High
}

func (u Uniform) Name() string { return "uniform" }

func (u Uniform) Params() []Param {
	return []Param{{"low", u.Low, Value}, {"high", u.High, Value}}
}

func (u Uniform) check() error {
	if err := finite(u.Params()...); err != nil {
		return err
	}
	if u.Low >= u.High {
		return fmt.Errorf("low is %v, but must be below high, which is %v", u.Low, u.High)
	}
	return nil
}

func (u Uniform) LogDensity(x float64) float64 {
	if x < u.Low || x > u.High {
		return math.Inf(-1)
	}
	return -math.Log(u.High - u.Low)
}

func (u Uniform) CDF(x float64) float64      { return min(1, max(0, (x-u.Low)/(u.High-u.Low))) }
func (u Uniform) Survival(x float64) float64 { return min(1, max(0, (u.High-x)/(u.High-u.Low))) }
func (u Uniform) Quantile(p float64) float64 { return u.Low + min(1, max(0, p))*(u.High-u.Low) }
func (u Uniform) Mean() (float64, bool)      { return u.Low + (u.High-u.Low)/2, true }
func (u Uniform) SD() (float64, bool)        { return (u.High - u.Low) / math.Sqrt(12), true }
func (u Uniform) Rand(r *rand.Rand) float64  { return u.Quantile(r.Float64()) }

func (u Uniform) IntegralCDF(x float64) float64 {
	inside := min(u.High, max(u.Low, x)) - u.Low
	return inside*inside/(2*(u.High-u.Low)) + max(0, x-u.High)
}
