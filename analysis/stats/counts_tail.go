package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// LogChi2Tail returns ln P(X >= chi2) for X chi-squared with free degrees of
// freedom, also where the probability underflows. Both must be finite, chi2 not
// below 0 and free above 0.
func LogChi2Tail(chi2, free float64) float64 {
	a, x := free/2, chi2/2
	if x < a+1 {
		return math.Log(mathext.GammaIncRegComp(a, x)) // about 0.4 or more
	}
	return logGammaKernel(a, x) + math.Log(gammaTailFraction(a, x))
}

// logGammaKernel returns ln(x^a e^-x / Gamma(a)), without the cancellation of
// its three terms for large a.
func logGammaKernel(a, x float64) float64 {
	if a < 20 {
		lg, _ := math.Lgamma(a)
		return a*math.Log(x) - x - lg
	}
	d := (x - a) / a
	i := 1 / a
	stirling := i * (1./12 - i*i*(1./360-i*i*(1./1260-i*i/1680)))
	return -a*(d-math.Log1p(d)) + 0.5*math.Log(a/(2*math.Pi)) - stirling
}

// gammaTailFraction returns Gamma(a, x) / (x^a e^-x), x > a + 1, by Legendre's
// continued fraction in the form of Lentz (Numerical Recipes, section 6.2).
func gammaTailFraction(a, x float64) float64 {
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1.0; i < 1e6; i++ {
		n := -i * (i - a)
		b += 2
		if d = n*d + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + n/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		step := d * c
		h *= step
		if math.Abs(step-1) < 1e-15 {
			break
		}
	}
	return h
}
