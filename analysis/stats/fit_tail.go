package stats

import (
	"fmt"
	"math"
)

// FitGPD fits a generalised Pareto law to the values above threshold.
func FitGPD(s Sample, threshold float64) (Fit, error) {
	const family Family = "gpd"
	if math.IsNaN(threshold) || math.IsInf(threshold, 0) {
		return Fit{}, refuse(family, s, "the threshold is %v", threshold)
	}
	over := s.Where(func(x float64) bool { return x > threshold })
	if over.N() < fewest || over.Distinct() < 2 {
		return Fit{}, refuse(family, s, "%d values lie above the threshold %v, with %d distinct values", over.N(), threshold, over.Distinct())
	}
	start, ok := gpdStart(grouped(over, 2000), threshold)
	if !ok {
		return Fit{}, refuse(family, s, "the likelihood of the %d values above %v has no maximum with xi above -1", over.N(), threshold)
	}
	top := maximize(func(x []float64) float64 {
		return LogLik(over, GPD{threshold, x[0], math.Exp(x[1])})
	}, []float64{start.Xi, math.Log(start.Beta)})
	law := GPD{threshold, top.at[0], math.Exp(top.at[1])}
	fit := Fit{Law: law, Likelihood: Tail, Identified: true, LogLik: top.value}
	fit.score(2, over.N())
	if errs, ok := top.stdErrs(); ok {
		fit.StdErr = []float64{0, errs[0], errs[1] * law.Beta}
	}
	if fit.StdErr == nil || fit.StdErr[1] > flatError {
		fit.doubt("the likelihood is flat in xi: the %d values above %v do not determine it", over.N(), threshold)
	}
	fit.measure(over)
	return fit, fit.sound(family, over)
}

// gpdStart searches the likelihood along theta = xi/beta, where xi = mean
// ln(1 + theta y) is the best for each (Grimshaw, "Computing maximum likelihood
// estimates for the generalized Pareto distribution", 1993); false if it is
// largest at the edge of the search.
func gpdStart(over Sample, threshold float64) (GPD, bool) {
	top := over.values[len(over.values)-1] - threshold
	best, bestLik, edge := GPD{}, math.Inf(-1), true
	for i := range 180 {
		u := -12 + 0.25*float64(i) // ln(1 + theta top), away from 0 so that theta is not 0
		if i == 48 {
			u = 0.01
		}
		theta := math.Expm1(u) / top
		var sum total
		for j, v := range over.values {
			sum.add(float64(over.counts[j]) * math.Log1p(theta*(v-threshold)))
		}
		xi := sum.value() / float64(over.n)
		loglik := -float64(over.n) * (math.Log(xi/theta) + xi + 1)
		if xi > -1 && loglik > bestLik {
			best, bestLik, edge = GPD{threshold, xi, xi / theta}, loglik, math.IsInf(bestLik, -1) || i == 179
		}
	}
	return best, !edge
}

// FitPareto fits a Pareto law to the values at or above least, which must be above 0.
func FitPareto(s Sample, least float64) (Fit, error) {
	const family Family = "pareto"
	if !(least > 0) || math.IsInf(least, 0) {
		return Fit{}, refuse(family, s, "its minimum is %v, but must be above 0", least)
	}
	over := s.Where(func(x float64) bool { return x >= least })
	if over.N() < fewest || over.Distinct() < 2 {
		return Fit{}, refuse(family, s, "%d values lie at or above %v, with %d distinct values", over.N(), least, over.Distinct())
	}
	var sum total
	for i, v := range over.values {
		sum.add(float64(over.counts[i]) * math.Log(v/least))
	}
	law := Pareto{least, float64(over.n) / sum.value()}
	fit := Fit{Law: law, Likelihood: Tail, Identified: true, LogLik: LogLik(over, law)}
	fit.score(1, over.N())
	fit.StdErr = []float64{0, law.Alpha / math.Sqrt(float64(over.n))}
	fit.measure(over)
	return fit, fit.sound(family, over)
}

// fewestTail is the least number of values in a tail that is fitted for a splice.
const fewestTail = 50

// FitSpliced fits a lognormal body and a GPD tail. The threshold is the lowest of
// the quantiles at .90, .925, .95 and .975 from which on xi is stable: the fits over
// the higher ones stay within two of their standard errors. Without such a
// threshold, or with a spike at a cap, it is refused.
func FitSpliced(s Sample) (Fit, error) {
	const family Family = "spliced"
	if err := checkPositive(FamilyLognormal, s); err != nil {
		return Fit{}, err
	}
	if c, ok := DetectCap(s); ok {
		return Fit{}, refuse(family, s, "%.2g %% of the values are the largest one, %v: fit with that as a cap instead", 100*c.Share, c.Value)
	}
	tail, err := stableTail(family, s)
	if err != nil {
		return Fit{}, err
	}
	gpd := tail.Law.(GPD)
	body := s.Where(func(x float64) bool { return x <= gpd.Threshold })
	if body.Distinct() < fewest {
		return Fit{}, refuse(family, s, "the body has %d distinct values", body.Distinct())
	}
	law := Spliced{
		Threshold: gpd.Threshold, TailShare: float64(tail.N) / float64(s.n),
		Body: truncatedLognormal(body, gpd.Threshold), Tail: gpd,
	}
	if CheckLaw(law) != nil {
		return Fit{}, refuse(family, s, "the body up to %v is not lognormal", gpd.Threshold)
	}
	fit := Fit{Law: law, Likelihood: Density, Identified: true, LogLik: LogLik(s, law)}
	fit.score(5, s.N())
	if sigma := law.Body.(Lognormal).Sigma; sigma > 10 {
		fit.doubt("the body rises up to the threshold %v: a lognormal law does not describe it (sigma %.3g)", gpd.Threshold, sigma)
	}
	fit.measure(s)
	return fit, fit.sound(family, s)
}

// stableTail returns the GPD fit over the lowest threshold with a stable xi.
func stableTail(family Family, s Sample) (Fit, error) {
	var tails []Fit
	said := ""
	for i, u := range s.Quantiles1(0.9, 0.925, 0.95, 0.975) {
		if len(tails) > 0 && tails[len(tails)-1].Law.(GPD).Threshold == u {
			continue
		}
		fit, err := FitGPD(s, u)
		if err != nil || fit.N < fewestTail || fit.StdErr == nil {
			continue
		}
		tails = append(tails, fit)
		said += fmt.Sprintf(", %.3g over the quantile at %v", fit.Law.(GPD).Xi, []string{".9", ".925", ".95", ".975"}[i])
	}
	if len(tails) < 2 {
		return Fit{}, refuse(family, s, "two thresholds with at least %d values above them and a GPD fit are needed, there are %d", fewestTail, len(tails))
	}
	for i, fit := range tails[:len(tails)-1] {
		stable := true
		for _, higher := range tails[i+1:] {
			stable = stable && math.Abs(higher.Law.(GPD).Xi-fit.Law.(GPD).Xi) <= 2*higher.StdErr[1]
		}
		if stable {
			return fit, nil
		}
	}
	return Fit{}, refuse(family, s, "no tail is stable: xi is %s", said[2:])
}

// truncatedLognormal returns the lognormal law whose part at or below top fits
// body best.
func truncatedLognormal(body Sample, top float64) Lognormal {
	mu, sigma := logMoments(body)
	loglik := func(x []float64) float64 {
		l := Lognormal{x[0], math.Exp(x[1])}
		d := (mu - l.Mu) / l.Sigma
		r := sigma / l.Sigma
		return -float64(body.n) * (0.5*(d*d+r*r) + x[1] + math.Log(l.CDF(top)))
	}
	at := maximize(loglik, []float64{mu, math.Log(sigma)}).at
	return Lognormal{at[0], math.Exp(at[1])}
}
