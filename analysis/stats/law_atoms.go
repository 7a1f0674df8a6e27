package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// Constant is the law of a number that is always the same.
type Constant struct {
	Value float64 // finite
}

func (c Constant) Name() string    { return "constant" }
func (c Constant) Params() []Param { return []Param{{"value", c.Value, Value}} }
func (c Constant) check() error    { return finite(c.Params()...) }

func (c Constant) LogDensity(x float64) float64 {
	if x != c.Value {
		return math.Inf(-1)
	}
	return 0
}

func (c Constant) CDF(x float64) float64 {
	if x < c.Value {
		return 0
	}
	return 1
}

func (c Constant) cdfBelow(x float64) float64 {
	if x <= c.Value {
		return 0
	}
	return 1
}

func (c Constant) Survival(x float64) float64    { return 1 - c.CDF(x) }
func (c Constant) Quantile(float64) float64      { return c.Value }
func (c Constant) Mean() (float64, bool)         { return c.Value, true }
func (c Constant) SD() (float64, bool)           { return 0, true }
func (c Constant) IntegralCDF(x float64) float64 { return max(0, x-c.Value) }
func (c Constant) Rand(*rand.Rand) float64       { return c.Value }

// Capped is another law with everything above Cap moved to Cap: a length under a
// context limit.
type Capped struct {
	Of  Law // continuous, of numbers that are not negative
	Cap float64
}

func (c Capped) Name() string { return "capped" }

func (c Capped) Params() []Param {
	return append([]Param{{"cap", c.Cap, Value}}, prefixed("of", c.Of.Params())...)
}

func (c Capped) check() error {
	if err := CheckLaw(c.Of); err != nil {
		return err
	}
	return above0(Param{Name: "cap", Value: c.Cap})
}

func (c Capped) LogDensity(x float64) float64 {
	switch {
	case x < c.Cap:
		return c.Of.LogDensity(x)
	case x == c.Cap:
		return math.Log(c.Of.Survival(x))
	}
	return math.Inf(-1)
}

func (c Capped) CDF(x float64) float64 {
	if x < c.Cap {
		return c.Of.CDF(x)
	}
	return 1
}

func (c Capped) cdfBelow(x float64) float64 {
	if x <= c.Cap {
		return c.Of.CDF(x)
	}
	return 1
}

func (c Capped) Survival(x float64) float64 {
	if x < c.Cap {
		return c.Of.Survival(x)
	}
	return 0
}

func (c Capped) Quantile(p float64) float64 { return min(c.Cap, c.Of.Quantile(p)) }
func (c Capped) Mean() (float64, bool)      { return c.Cap - c.Of.IntegralCDF(c.Cap), true }
func (c Capped) Rand(r *rand.Rand) float64  { return min(c.Cap, c.Of.Rand(r)) }

// SD integrates the second moment below the cap numerically.
func (c Capped) SD() (float64, bool) {
	mean, _ := c.Mean()
	variance := squaresBelow(c.Of, c.Cap, mean) + c.Of.Survival(c.Cap)*(c.Cap-mean)*(c.Cap-mean)
	return math.Sqrt(max(0, variance)), true
}

func (c Capped) IntegralCDF(x float64) float64 {
	return c.Of.IntegralCDF(min(x, c.Cap)) + max(0, x-c.Cap)
}

// Empirical is the law of a number drawn from a Sample, each as likely as it is
// frequent there. Make it with [NewEmpirical].
type Empirical struct {
	sample Sample
	upTo   []int64   // numbers at or below the i-th distinct value
	sums   []float64 // their sum
}

// NewEmpirical returns the law of s, which must not be empty.
func NewEmpirical(s Sample) (Empirical, error) {
	if s.N() == 0 {
		return Empirical{}, errors.New("an empirical law needs at least one value")
	}
	e := Empirical{s, make([]int64, s.Distinct()), make([]float64, s.Distinct())}
	var n int64
	var sum total
	for i := range e.upTo {
		v, c := s.At(i)
		n += c
		sum.add(v * float64(c))
		e.upTo[i], e.sums[i] = n, sum.value()
	}
	return e, nil
}

// Sample returns the numbers that the law draws from.
func (e Empirical) Sample() Sample { return e.sample }

func (e Empirical) Name() string { return "empirical" }

// Params is empty: the law is its values.
func (e Empirical) Params() []Param { return nil }

func (e Empirical) check() error {
	if e.sample.N() == 0 || len(e.upTo) != e.sample.Distinct() {
		return fmt.Errorf("%d values, but at least one is needed", e.sample.N())
	}
	return nil
}

// index returns how many distinct values are at or below x.
func (e Empirical) index(x float64) int {
	return sort.Search(len(e.upTo), func(i int) bool { return e.sample.values[i] > x })
}

func (e Empirical) n() float64 { return float64(e.sample.n) }

// share returns the share of the first i distinct values.
func (e Empirical) share(i int) float64 {
	if i == 0 {
		return 0
	}
	return float64(e.upTo[i-1]) / e.n()
}

func (e Empirical) LogDensity(x float64) float64 {
	i := e.index(x)
	if i == 0 || e.sample.values[i-1] != x {
		return math.Inf(-1)
	}
	return math.Log(float64(e.sample.counts[i-1]) / e.n())
}

func (e Empirical) CDF(x float64) float64      { return e.share(e.index(x)) }
func (e Empirical) Survival(x float64) float64 { return 1 - e.CDF(x) }

func (e Empirical) cdfBelow(x float64) float64 {
	i := e.index(x)
	if i > 0 && e.sample.values[i-1] == x {
		i--
	}
	return e.share(i)
}

// Quantile is the type 1 quantile, the inverse of the step function.
func (e Empirical) Quantile(p float64) float64 {
	i := sort.Search(len(e.upTo), func(i int) bool { return float64(e.upTo[i])/e.n() >= p })
	return e.sample.values[min(i, len(e.upTo)-1)]
}

func (e Empirical) Mean() (float64, bool) { return e.sums[len(e.sums)-1] / e.n(), true }

// SD divides by n: the law is the sample, not an estimate from it.
func (e Empirical) SD() (float64, bool) {
	mean, _ := e.Mean()
	var sum total
	for i, v := range e.sample.values {
		sum.add((v - mean) * (v - mean) * float64(e.sample.counts[i]))
	}
	return math.Sqrt(sum.value() / e.n()), true
}

func (e Empirical) IntegralCDF(x float64) float64 {
	i := e.index(x)
	if i == 0 {
		return 0
	}
	return (x*float64(e.upTo[i-1]) - e.sums[i-1]) / e.n()
}

func (e Empirical) Rand(r *rand.Rand) float64 { return e.Quantile(r.Float64()) }
