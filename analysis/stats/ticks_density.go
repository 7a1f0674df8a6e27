package stats

import "math"

// A logDensity returns ln f at x, given ln x too, with its first two derivatives in
// x. The constants of the law are worked out once.
type logDensity func(x, lnX float64) (l, d1, d2 float64)

// densityOf returns the density of a law that [FitTicks] fits, nil for other laws.
func densityOf(law Law) logDensity {
	switch l := law.(type) {
	case Exponential:
		c := math.Log(l.Rate)
		return func(x, _ float64) (float64, float64, float64) { return c - l.Rate*x, -l.Rate, 0 }
	case Gamma:
		return l.density()
	case Weibull:
		return l.density()
	case Lognormal:
		return l.density()
	case Hyperexponential:
		return l.density()
	}
	return nil
}

func (g Gamma) density() logDensity {
	lg, _ := math.Lgamma(g.Shape)
	c, a, rate := -lg-g.Shape*math.Log(g.Scale), g.Shape-1, 1/g.Scale
	return func(x, lnX float64) (float64, float64, float64) {
		inv := 1 / x
		return c + a*lnX - rate*x, a*inv - rate, -a * inv * inv
	}
}

func (w Weibull) density() logDensity {
	c, lnScale, k := math.Log(w.Shape/w.Scale), math.Log(w.Scale), w.Shape
	return func(x, lnX float64) (float64, float64, float64) {
		ln := lnX - lnScale
		y := math.Exp(k * ln)
		inv := 1 / x
		return c + (k-1)*ln - y, (k - 1 - k*y) * inv, -(k - 1) * (1 + k*y) * inv * inv
	}
}

func (l Lognormal) density() logDensity {
	c, inv2 := -lnSqrt2Pi-math.Log(l.Sigma), 1/(l.Sigma*l.Sigma)
	return func(x, lnX float64) (float64, float64, float64) {
		d, inv := lnX-l.Mu, 1/x
		return c - lnX - 0.5*d*d*inv2, -(1 + d*inv2) * inv, (1 - inv2 + d*inv2) * inv * inv
	}
}

func (h Hyperexponential) density() logDensity {
	h = h.ordered()
	q, dr := 1-h.P, h.Rate1-h.Rate2
	return func(x, _ float64) (float64, float64, float64) {
		a, b := h.P*h.Rate1*math.Exp(-dr*x), q*h.Rate2 // over e^(-Rate2 x)
		f := a + b
		d1 := -(a*h.Rate1 + b*h.Rate2) / f
		return math.Log(f) - h.Rate2*x, d1, (a*h.Rate1*h.Rate1+b*h.Rate2*h.Rate2)/f - d1*d1
	}
}
