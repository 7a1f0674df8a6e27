package stats

import "math"

// A family's parameters as coordinates without bounds, in which a likelihood is
// close to a parabola: the logarithm of a shape, scale or rate, the logit of a
// share, mu as it is.

// lawAt returns the law of the family at coordinates x.
func lawAt(family Family, x []float64) Law {
	switch family {
	case FamilyGamma:
		return Gamma{math.Exp(x[0]), math.Exp(x[1])}
	case FamilyWeibull:
		return Weibull{math.Exp(x[0]), math.Exp(x[1])}
	case FamilyLognormal:
		return Lognormal{x[0], math.Exp(x[1])}
	case FamilyHyperexponential:
		return Hyperexponential{1 / (1 + math.Exp(-x[0])), math.Exp(x[1]), math.Exp(x[2])}.ordered()
	}
	return Exponential{math.Exp(x[0])}
}

// coordinates is the inverse of lawAt.
func coordinates(law Law) []float64 {
	switch l := law.(type) {
	case Exponential:
		return []float64{math.Log(l.Rate)}
	case Gamma:
		return []float64{math.Log(l.Shape), math.Log(l.Scale)}
	case Weibull:
		return []float64{math.Log(l.Shape), math.Log(l.Scale)}
	case Lognormal:
		return []float64{l.Mu, math.Log(l.Sigma)}
	case Hyperexponential:
		return []float64{math.Log(l.P) - math.Log1p(-l.P), math.Log(l.Rate1), math.Log(l.Rate2)}
	}
	return nil
}

// paramErrs turns standard errors of the coordinates of law into those of its
// parameters, in place.
func paramErrs(law Law, errs []float64) []float64 {
	for i, p := range law.Params() {
		switch {
		case p.Unit == LogValue:
		case law.Name() == string(FamilyHyperexponential) && i == 0:
			errs[i] *= p.Value * (1 - p.Value)
		default:
			errs[i] *= p.Value
		}
	}
	return errs
}

// ordered returns the same law with the faster phase first.
func (h Hyperexponential) ordered() Hyperexponential {
	if h.Rate1 < h.Rate2 {
		return Hyperexponential{1 - h.P, h.Rate2, h.Rate1}
	}
	return h
}
