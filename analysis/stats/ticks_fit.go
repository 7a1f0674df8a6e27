package stats

import "math"

// FitTicks fits a family to gaps in whole ticks by maximum likelihood. Where the
// tick is longer than the mean gap, or the likelihood flat, the fit comes back with
// Identified false and a Reason, and only its rate (1/mean) may be used. No gaps,
// too few, or gaps that are all equal are a [*FitError].
func FitTicks(family Family, ticks Ticks, form TickForm) (Fit, error) {
	start, err := tickStart(family, ticks, form)
	if err != nil {
		return Fit{}, err
	}
	if coarse := ticks.grouped(); coarse.gaps.Distinct() < ticks.gaps.Distinct() {
		start = lawAt(family, tickPeak(family, coarse, form, start).at)
	}
	top := tickPeak(family, ticks, form, start)
	n := ticks.gaps.n
	fit := Fit{
		Law: lawAt(family, top.at), Likelihood: form.likelihood(), LogLik: top.value,
		Tick: ticks.tick, LogLikDensity: top.value - float64(n)*math.Log(ticks.tick),
		Identified: true,
	}
	fit.score(len(top.at), n)
	if errs, ok := top.stdErrs(); ok {
		fit.StdErr = paramErrs(fit.Law, errs)
	}
	fit.checkTick(ticks)
	fit.KS = ticks.KS(fit.Law, form)
	fit.Grade = gradeOf(fit.KS)
	fit.QuantileRatios = tickRatios(ticks, fit.Law)
	if err := fit.sound(family, ticks.gaps); err != nil {
		return Fit{}, err
	}
	return fit, nil
}

// grouped returns nearly the same gaps, with long ones that are close to each other
// made equal: enough to begin a climb with when there are very many.
func (t Ticks) grouped() Ticks {
	if t.gaps.Distinct() <= emExact {
		return t
	}
	out := Ticks{tick: t.tick}
	means := grouped(t.gaps, emExact)
	for i, k := range means.values {
		out.gaps.add(math.Round(k), means.counts[i])
	}
	for _, k := range out.gaps.values {
		out.logs = append(out.logs, math.Log(k))
	}
	return out
}

// tickPeak climbs the likelihood from start.
func tickPeak(family Family, ticks Ticks, form TickForm, start Law) peak {
	return maximize(func(x []float64) float64 {
		law := lawAt(family, x)
		if CheckLaw(law) != nil {
			return math.Inf(-1)
		}
		return ticks.LogLik(law, form)
	}, coordinates(start))
}

// FitAllTicks fits every family that takes the gaps; the error is that of the first
// family, and comes only if none fits.
func FitAllTicks(ticks Ticks, form TickForm) (Fits, error) {
	return fitEach(Families(), func(f Family) (Fit, error) { return FitTicks(f, ticks, form) })
}

// tickStart returns the likeliest of a few laws with the mean of the gaps.
func tickStart(family Family, ticks Ticks, form TickForm) (Law, error) {
	gaps := ticks.gaps
	switch {
	case gaps.n == 0:
		return nil, refuse(family, gaps, "there are no gaps")
	case gaps.n < fewest:
		return nil, refuse(family, gaps, "too few gaps: %d, and it takes %d", gaps.n, fewest)
	case len(gaps.values) == 1:
		return nil, refuse(family, gaps, "all %d gaps are %v ticks of %v s", gaps.n, gaps.values[0], ticks.tick)
	}
	ticks = ticks.grouped()
	mean, _ := ticks.MeanGap()
	candidates := tickCandidates(family, mean)
	if len(candidates) == 0 {
		return nil, refuse(family, gaps, "it is none of %v", Families())
	}
	var best Law
	most := math.Inf(-1)
	for _, law := range candidates {
		if l := ticks.LogLik(law, form); l > most {
			best, most = law, l
		}
	}
	if best == nil {
		return nil, refuse(family, gaps, "no law with their mean of %v s is possible", mean)
	}
	return best, nil
}

// tickCandidates returns laws of the family with the given mean, from very bursty to
// nearly constant.
func tickCandidates(family Family, mean float64) []Law {
	var laws []Law
	switch family {
	case FamilyExponential:
		laws = append(laws, Exponential{1 / mean})
	case FamilyGamma:
		for _, a := range []float64{0.03, 0.1, 0.3, 0.7, 1.5, 4, 15, 60} {
			laws = append(laws, Gamma{a, mean / a})
		}
	case FamilyWeibull:
		for _, k := range []float64{0.2, 0.3, 0.5, 0.8, 1.2, 2, 4, 8} {
			laws = append(laws, Weibull{k, mean / math.Gamma(1+1/k)})
		}
	case FamilyLognormal:
		for _, s := range []float64{0.1, 0.25, 0.5, 1, 1.5, 2, 3} {
			laws = append(laws, Lognormal{math.Log(mean) - s*s/2, s})
		}
	case FamilyHyperexponential: // balanced means: each phase has half of the time
		for _, cv2 := range []float64{1.5, 3, 8, 25, 100} {
			p := (1 + math.Sqrt((cv2-1)/(cv2+1))) / 2
			laws = append(laws, Hyperexponential{p, 2 * p / mean, 2 * (1 - p) / mean})
		}
	}
	return laws
}

// checkTick doubts a shape that the ticks do not show.
func (f *Fit) checkTick(ticks Ticks) {
	if f.Free < 2 {
		return
	}
	if mean, _ := ticks.MeanGap(); ticks.tick > mean {
		f.doubt("the tick of %.6g s is longer than the mean gap of %.6g s: single gaps do not show the shape, only the rate", ticks.tick, mean)
	}
	f.checkFlat()
}

// tickRatios compares quantiles that are at least ten ticks long.
func tickRatios(ticks Ticks, law Law) []QuantileRatio {
	var out []QuantileRatio
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if float64(ticks.gaps.n)*(1-p) < 10-1e-6 {
			break
		}
		k := ticks.gaps.Quantiles1(p)[0]
		ratio := law.Quantile(p) / (k * ticks.tick)
		if k >= 10 && isFinite(ratio) {
			out = append(out, QuantileRatio{p, ratio})
		}
	}
	return out
}
