package synth

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// maxResidual is how many gaps, evenly spaced among all of a trace, the residual
// is fitted to.
const maxResidual = 200_000

// A residualFit is how gaps vary around their mean at their time.
type residualFit struct {
	law    *stats.LawSpec // of mean 1
	fitted *model.Fitted
	shape  float64 // of the gamma law
	se     float64 // its standard error; 0 where there is none
}

// A residualGap is a gap in ticks, at a mean rate of arrivals (1/s).
type residualGap struct {
	rate  float64
	ticks int64
}

// residual fits a gamma law of mean 1 to the gaps in units of the mean gap at
// their time (time rescaling, Brown et al. 2002), by the probability of whole
// ticks (stats.Triangular), so that gaps of 0 are data. why says in words why
// there is no shape.
func (f *fitting) residual(starts []int64, profile []model.Rate, ordinal uint64) (fit residualFit, why string) {
	n := len(starts) - 1
	if n < fewestGaps {
		return fit, fmt.Sprintf("there are %d gaps, and a shape takes %d", max(0, n), fewestGaps)
	}
	mean := float64(starts[n]-starts[0]) / 1e9 / float64(n)
	if mean == 0 {
		return fit, fmt.Sprintf("all %d gaps are 0", n)
	}
	if tick := f.clock.tickS(); tick > mean {
		return fit, fmt.Sprintf("the effective tick of %s s is longer than the mean gap of %s s: single gaps do not show their shape, only their rate", short(tick), short(mean))
	}
	step, err := stepOf(profile)
	if err != nil {
		return fit, err.Error()
	}
	gaps, equal := f.residualGaps(starts, profile, step)
	if equal {
		law := stats.SpecOf(stats.Constant{Value: 1})
		one, zero := 1.0, 0.0
		fit.law = &law
		fit.fitted = &model.Fitted{Unit: "mean gaps", N: int64(n), Mean: &one, CV: &zero, Fits: []stats.Fit{}, Best: "constant", Notes: []string{"all gaps are equal"}}
		return fit, ""
	}
	return f.fitResidual(gaps, n, ordinal)
}

// residualGaps gives each gap the mean rate over it; equal says that all gaps are
// of the same number of ticks.
func (f *fitting) residualGaps(starts []int64, profile []model.Rate, step *stats.StepRate) (gaps []residualGap, equal bool) {
	n := len(starts) - 1
	stride := max(1, n/max(maxResidual/len(f.streams), 10_000))
	equal = true
	first := f.clock.index(starts[1]+f.clock.first) - f.clock.index(starts[0]+f.clock.first)
	piece := 0
	for i := 1; i <= n; i++ {
		k := f.clock.index(starts[i]+f.clock.first) - f.clock.index(starts[i-1]+f.clock.first)
		equal = equal && k == first
		if i%stride != 0 {
			continue
		}
		a, b := float64(starts[i-1])/1e9, float64(starts[i])/1e9
		for piece < len(profile)-1 && profile[piece].ToS <= a {
			piece++
		}
		g := residualGap{profile[piece].RateHz, k}
		if b >= profile[piece].ToS && b > a {
			g.rate = (step.Lambda(b) - step.Lambda(a)) / (b - a)
		}
		if g.rate > 0 {
			gaps = append(gaps, g)
		}
	}
	return gaps, equal
}

// fitResidual finds the likeliest shape.
func (f *fitting) fitResidual(gaps []residualGap, n int, ordinal uint64) (fit residualFit, why string) {
	groups, err := residualGroups(gaps, f.clock.tickS())
	if err != nil {
		return fit, err.Error()
	}
	loglik := func(lnShape float64) (sum float64) {
		a := math.Exp(lnShape)
		law := stats.Gamma{Shape: a, Scale: 1 / a}
		for _, g := range groups {
			sum += g.LogLik(law, stats.Triangular)
		}
		return sum
	}
	const lo, hi = -5, 7
	at := highest(loglik, lo, hi)
	top := loglik(at)
	const h = 0.02
	curve := (loglik(at+h) - 2*top + loglik(at-h)) / (h * h)
	if at < lo+0.01 || at > hi-0.01 || !(curve < 0) || 1/math.Sqrt(-curve) > 0.5 {
		return fit, fmt.Sprintf("the likelihood of the %d gaps is flat in the shape: they do not determine it", len(gaps))
	}
	fit.shape = math.Exp(at)
	fit.se = fit.shape / math.Sqrt(-curve)
	law := stats.Gamma{Shape: fit.shape, Scale: 1 / fit.shape}
	spec := stats.SpecOf(law)
	fit.law = &spec
	fit.fitted = describeResidual(gaps, f.clock.tickS())
	ks := f.residualKS(gaps, law, ordinal)
	count := float64(len(gaps))
	fit.fitted.Fits = []stats.Fit{{
		Law: law, N: int64(len(gaps)), Free: 1, Likelihood: stats.TriangularTick, LogLik: top, AIC: 2 - 2*top, BIC: math.Log(count) - 2*top,
		StdErr: []float64{fit.se, fit.se / (fit.shape * fit.shape)}, KS: ks, Grade: stats.GradeOf(ks), Identified: true,
	}}
	fit.fitted.Best = law.Name()
	if len(gaps) < n {
		fit.fitted.Notes = append(fit.fitted.Notes, fmt.Sprintf("of %d gaps, %d were fitted, evenly spaced among them", n, len(gaps)))
	}
	return fit, ""
}

// residualGroups are the gaps of each rate, in ticks of that many mean gaps.
func residualGroups(gaps []residualGap, tick float64) ([]stats.Ticks, error) {
	byRate := map[float64]map[int64]int64{}
	for _, g := range gaps {
		if byRate[g.rate] == nil {
			byRate[g.rate] = map[int64]int64{}
		}
		byRate[g.rate][g.ticks]++
	}
	var out []stats.Ticks
	for _, rate := range slices.Sorted(maps.Keys(byRate)) {
		t, err := stats.NewTicks(rate*tick, byRate[rate])
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// highest returns where a function with one peak is highest (golden section).
func highest(of func(float64) float64, lo, hi float64) float64 {
	const golden = 0.6180339887498949
	a, b := hi-golden*(hi-lo), lo+golden*(hi-lo)
	fa, fb := of(a), of(b)
	for hi-lo > 1e-6 {
		if fa > fb {
			hi, b, fb = b, a, fa
			a = hi - golden*(hi-lo)
			fa = of(a)
		} else {
			lo, a, fa = a, b, fb
			b = lo + golden*(hi-lo)
			fb = of(b)
		}
	}
	return (lo + hi) / 2
}

// describeResidual gives mean, CV and lag-1 autocorrelation of the gaps.
func describeResidual(gaps []residualGap, tick float64) *model.Fitted {
	m := &model.Fitted{Unit: "mean gaps", N: int64(len(gaps))}
	var moments stats.Moments
	for _, g := range gaps {
		moments.Add(g.rate * tick * float64(g.ticks))
	}
	mean, _ := moments.Mean()
	m.Mean, m.CV = number(moments.Mean()), number(moments.CV())
	var products, squares float64
	var before float64
	for i, g := range gaps {
		d := g.rate*tick*float64(g.ticks) - mean
		squares += d * d
		if i > 0 {
			products += d * before
		}
		before = d
	}
	m.Lag1 = number(products/squares, squares > 0)
	return m
}

// residualKS is the KS distance of the gaps from the law, each at a place drawn
// uniformly from what its tick leaves open (randomised quantile residuals, Dunn and
// Smyth 1996).
func (f *fitting) residualKS(gaps []residualGap, law stats.Law, ordinal uint64) float64 {
	r := stats.Stream(f.o.Seed, fitPhase, ordinal)
	u := make([]float64, len(gaps))
	for i, g := range gaps {
		tick := g.rate * f.clock.tickS()
		below, upTo := upToTick(law, g.ticks-1, tick), upToTick(law, g.ticks, tick)
		u[i] = below + r.Float64()*(upTo-below)
	}
	slices.SortFunc(u, cmp.Compare)
	d := 0.0
	for i, v := range u {
		d = max(d, float64(i+1)/float64(len(u))-v, v-float64(i)/float64(len(u)))
	}
	return d
}

// upToTick is the probability of at most k ticks, between stamps of uniform phase.
func upToTick(law stats.Law, k int64, tick float64) float64 {
	switch {
	case k < 0:
		return 0
	case k < 64:
		return min(1, max(0, (law.IntegralCDF(float64(k+1)*tick)-law.IntegralCDF(float64(k)*tick))/tick))
	}
	return law.CDF((float64(k) + 0.5) * tick)
}
