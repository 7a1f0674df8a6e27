package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// A NegBinomial is a law of counts x with probability
// Gamma(x+R)/(x! Gamma(R)) P^R (1-P)^x: a Poisson law whose rate varies by a
// gamma law of shape R from window to window. R to infinity is Poisson.
type NegBinomial struct {
	R, P   float64
	LogLik float64 // of the counts it was fitted to
}

// FitNegBinomial returns the maximum likelihood fit, with P = R/(R+mean). False
// where the likelihood has no maximum: the population variance (over n) does not
// exceed the mean, so Poisson fits better.
func (c *WindowCounts) FitNegBinomial() (NegBinomial, bool) {
	mean, ok := c.Mean()
	if !ok || c.n < 2 || mean == 0 {
		return NegBinomial{}, false
	}
	v, _ := c.Variance()
	if v*float64(c.n-1)/float64(c.n) <= mean {
		return NegBinomial{}, false
	}
	score := c.negBinomialScore(mean)
	// The score falls through 0 once, from above: bracket in ln r, then bisect
	// and interpolate (Illinois).
	lo, hi := -1.0, 1.0
	for score(math.Exp(lo)) < 0 {
		if lo -= 2; lo < -60 {
			return NegBinomial{}, false
		}
	}
	for score(math.Exp(hi)) > 0 {
		if hi += 2; hi > 40 {
			return NegBinomial{}, false
		}
	}
	r := math.Exp(illinois(func(x float64) float64 { return score(math.Exp(x)) }, lo, hi))
	fit := NegBinomial{R: r, P: r / (r + mean)}
	fit.LogLik = c.negBinomialLogLik(r, mean)
	return fit, true
}

// tailCounts is how large the largest count may be for the score to be summed
// over tails.
const tailCounts = 1 << 16

// negBinomialScore returns the derivative of the mean log-likelihood by r: the
// mean of psi(x+r) - psi(r), plus ln(r/(r+mean)).
func (c *WindowCounts) negBinomialScore(mean float64) func(r float64) float64 {
	n := float64(c.n)
	if c.most > tailCounts {
		return func(r float64) float64 {
			base := mathext.Digamma(r)
			var t total
			for i, x := range c.sample.values {
				t.add(float64(c.sample.counts[i]) * (mathext.Digamma(x+r) - base))
			}
			return t.value()/n - math.Log1p(mean/r)
		}
	}
	// psi(x+r) - psi(r) = sum over j < x of 1/(r+j): each j counts as often as
	// there are windows above it.
	above := make([]float64, c.most)
	for i, x := range c.sample.values {
		if x > 0 {
			above[int64(x)-1] = float64(c.sample.counts[i])
		}
	}
	for j := len(above) - 2; j >= 0; j-- {
		above[j] += above[j+1]
	}
	return func(r float64) float64 {
		var t total
		for j, k := range above {
			t.add(k / (r + float64(j)))
		}
		return t.value()/n - math.Log1p(mean/r)
	}
}

func (c *WindowCounts) negBinomialLogLik(r, mean float64) float64 {
	base, _ := math.Lgamma(r)
	var t total
	for i, x := range c.sample.values {
		a, _ := math.Lgamma(x + r)
		b, _ := math.Lgamma(x + 1)
		t.add(float64(c.sample.counts[i]) * (a - b - base))
	}
	t.add(-float64(c.n) * r * math.Log1p(mean/r))
	t.add(-c.Sum() * math.Log1p(r/mean))
	return t.value()
}

// illinois finds the root of f between lo and hi, where its signs differ.
func illinois(f func(float64) float64, lo, hi float64) float64 {
	a, b := f(lo), f(hi)
	side, before := 0, math.Inf(1)
	for range 200 {
		x := (a*hi - b*lo) / (a - b)
		if !(x > lo && x < hi) {
			x = (lo + hi) / 2
		}
		if math.Abs(x-before) <= 1e-14*max(1, math.Abs(x)) {
			return x
		}
		before = x
		y := f(x)
		switch {
		case y == 0:
			return x
		case y > 0 == (a > 0):
			lo, a = x, y
			if side == -1 {
				b /= 2
			}
			side = -1
		default:
			hi, b = x, y
			if side == 1 {
				a /= 2
			}
			side = 1
		}
	}
	return before
}
