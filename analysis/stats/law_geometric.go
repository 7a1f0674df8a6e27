package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Geometric is the law of counts from 1 on of which each next one is P times
// rarer to stop at: P(X = k) = P (1-P)^(k-1), of mean 1/P. Turns of sessions that
// go on with the same chance after each are of this law.
type Geometric struct {
	P float64 // share that ends at each count, above 0 and at most 1
}

func (g Geometric) Name() string { return "geometric" }

func (g Geometric) Params() []Param { return []Param{{"p", g.P, Pure}} }

func (g Geometric) check() error {
	if err := above0(g.Params()...); err != nil {
		return err
	}
	return share(g.Params()[0])
}

// above is P(X > n) for a whole number n.
func (g Geometric) above(n float64) float64 {
	if n <= 0 {
		return 1
	}
	return math.Exp(n * math.Log1p(-g.P))
}

func (g Geometric) LogDensity(x float64) float64 {
	if x < 1 || x != math.Trunc(x) {
		return math.Inf(-1)
	}
	if x == 1 {
		return math.Log(g.P)
	}
	return math.Log(g.P) + (x-1)*math.Log1p(-g.P)
}

func (g Geometric) CDF(x float64) float64      { return 1 - g.Survival(x) }
func (g Geometric) Survival(x float64) float64 { return g.above(math.Floor(x)) }
func (g Geometric) cdfBelow(x float64) float64 { return 1 - g.above(math.Ceil(x)-1) }
func (g Geometric) Mean() (float64, bool)      { return 1 / g.P, true }
func (g Geometric) SD() (float64, bool)        { return math.Sqrt(1-g.P) / g.P, true }
func (g Geometric) Rand(r *rand.Rand) float64  { return g.Quantile(r.Float64()) }

func (g Geometric) Quantile(p float64) float64 {
	if p >= 1 && g.P < 1 {
		return math.Inf(1)
	}
	k := max(1, math.Ceil(math.Log1p(-max(0, p))/math.Log1p(-g.P)))
	if math.IsNaN(k) {
		return 1
	}
	for k > 1 && g.CDF(k-1) >= p { // but for rounding
		k--
	}
	return k
}

func (g Geometric) IntegralCDF(x float64) float64 {
	n := math.Floor(x)
	if n < 1 {
		return 0
	}
	return (n - 1) - (1-g.P)*(1-g.above(n-1))/g.P + (x-n)*g.CDF(n)
}

// FitGeometric fits the geometric law to counts from 1 on, by maximum likelihood:
// P is 1 over their mean.
func FitGeometric(s Sample) (Fit, error) {
	var sum float64
	for i, v := range s.values {
		if v < 1 || v != math.Trunc(v) {
			return Fit{}, fmt.Errorf("%v is no count from 1 on", v)
		}
		sum += v * float64(s.counts[i])
	}
	if s.n == 0 {
		return Fit{}, errors.New("there are no counts")
	}
	n := float64(s.n)
	law := Geometric{n / sum}
	f := Fit{Law: law, N: s.n, Free: 1, Likelihood: Counts, Identified: true, LogLik: n * math.Log(law.P)}
	if law.P < 1 {
		f.LogLik += (sum - n) * math.Log1p(-law.P)
		f.StdErr = []float64{law.P * math.Sqrt((1-law.P)/n)}
	}
	f.score(1, s.n)
	f.measure(s)
	return f, nil
}
