package synth

import (
	"errors"
	"math"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// maxValues is how many distinct values an empirical law of a model has as they
// are; of more, groups of neighbours are replaced by their means.
const maxValues = 2000

// empiricalOf returns the law of the values counted, in units; nil without any.
func empiricalOf(t *stats.Tally, unit float64) *stats.LawSpec {
	if t.N() == 0 {
		return nil
	}
	spec := empiricalSpec(t.Sample(1))
	for i := range spec.Values {
		spec.Values[i] = inUnits(spec.Values[i], unit)
	}
	return spec
}

// inUnits multiplies by a unit below 1 as a division, which keeps 3 s a 3.
func inUnits(v, unit float64) float64 {
	if unit < 1 {
		return v / math.Round(1/unit)
	}
	return v * unit
}

// empiricalSpec keeps at most about maxValues values. Groups are a thousandth of
// the sample each, and a tenth of that in the outer hundredths; the mean stays.
func empiricalSpec(s stats.Sample) *stats.LawSpec {
	spec := &stats.LawSpec{Family: "empirical"}
	if s.Distinct() <= maxValues {
		for i := range s.Distinct() {
			v, n := s.At(i)
			spec.Values, spec.Counts = append(spec.Values, v), append(spec.Counts, n)
		}
		return spec
	}
	var below, n int64
	var sum float64
	for i := range s.Distinct() {
		v, c := s.At(i)
		n += c
		sum += v * float64(c)
		p := float64(below+n) / float64(s.N())
		step := 1e-3
		if p < 0.01 || p > 0.99 {
			step = 1e-4
		}
		if float64(n) >= step*float64(s.N()) || i == s.Distinct()-1 {
			spec.Values, spec.Counts = append(spec.Values, sum/float64(n)), append(spec.Counts, n)
			below, n, sum = below+n, 0, 0
		}
	}
	return spec
}

// number returns a pointer to v, or nil where it is missing or no number.
func number(v float64, ok bool) *float64 {
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// ticksOf returns gaps in ns as whole ticks.
func ticksOf(gaps stats.Sample, tick int64) (stats.Ticks, error) {
	counts := map[int64]int64{}
	for i := range gaps.Distinct() {
		v, n := gaps.At(i)
		counts[int64(math.Round(v/float64(tick)))] += n
	}
	return stats.NewTicks(float64(tick)/1e9, counts)
}

// fitTicks fits every family to gaps in ticks, or says why a shape cannot be told.
func fitTicks(m *model.Fitted, ticks stats.Ticks) {
	fits, err := stats.FitAllTicks(ticks, stats.Triangular)
	if err != nil {
		m.Refuse = reasonOf(err)
		return
	}
	m.Fits = fits
	tickDistances(fits, ticks)
	for _, f := range fits { // all of them, where the tick is too long
		if mean, _ := ticks.MeanGap(); ticks.Tick() > mean && !f.Identified {
			m.Refuse = f.Reason
			return
		}
	}
	if best, ok := fits.Best(); ok {
		m.Best = best.Law.Name()
	}
}

// reasonOf says why no family fits, without the name of the first that was tried.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*stats.FitError](err); ok {
		return e.Reason
	}
	return err.Error()
}

// tickDistances fills in the Wasserstein-1 distance of fits to ticks, which moves
// by less than a tick whatever the phase.
func tickDistances(fits stats.Fits, ticks stats.Ticks) {
	var values []float64
	var counts []int64
	for i := range ticks.Sample().Distinct() {
		k, n := ticks.Sample().At(i)
		values, counts = append(values, k*ticks.Tick()), append(counts, n)
	}
	s, err := stats.CountedSample(values, counts)
	mean, ok := ticks.MeanGap()
	if err != nil || !ok || ticks.Tick() > mean/10 {
		return
	}
	for i := range fits {
		if w1, ok := stats.W1Against(s, fits[i].Law); ok && fits[i].Identified {
			fits[i].W1OverMean = number(w1/mean, true)
		}
	}
}
