package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The size of a parametric bootstrap: replicates for up to bootstrapExact values,
// and for more, which are then cut to a random bootstrapExact of them.
const (
	bootstrapExact = 5000
	bootstrapFull  = 999
	bootstrapCut   = 199
)

// A BootstrapTest is a goodness-of-fit test of a fitted family. It takes the values
// as independent; gaps rarely are, so P is then optimistic.
type BootstrapTest struct {
	P          float64 // (1 + replicates with a KS at least as large) / (1 + Replicates)
	KS         float64 // of the values tested
	N          int64   // values tested
	Cut        bool    // N are a random part of the values
	Replicates int     // simulated, refitted and compared
}

// BootstrapP tests whether the family can have made s: it fits, draws as many values
// from the fit, fits these again, and asks how often their KS is at least that of s
// (Stute, Manteiga and Quindimil 1993). The result depends on the seed, not on the
// number of processors.
func BootstrapP(family Family, s Sample, seed uint64) (BootstrapTest, error) {
	tested, replicates := cutForBootstrap(s, seed)
	law, err := estimate(family, tested)
	if err != nil {
		return BootstrapTest{}, err
	}
	test := BootstrapTest{KS: KSAgainst(tested, law), N: tested.n, Cut: tested.n < s.n}
	test.count(replicates, func(b int) (float64, bool) {
		r := Stream(seed, uint64(b)+1)
		drawn := make([]float64, tested.n)
		for i := range drawn {
			drawn[i] = law.Rand(r)
		}
		replicate, err := NewSample(drawn)
		if err != nil {
			return 0, false
		}
		refitted, err := estimate(family, replicate)
		if err != nil {
			return 0, false
		}
		return KSAgainst(replicate, refitted), true
	})
	return test, nil
}

// BootstrapTicksP is [BootstrapP] for gaps in whole ticks: replicates are stamps from
// a uniform phase on, floored to the same tick.
func BootstrapTicksP(family Family, ticks Ticks, form TickForm, seed uint64) (BootstrapTest, error) {
	gaps, replicates := cutForBootstrap(ticks.gaps, seed)
	tested, err := SampledTicks(ticks.tick, gaps)
	if err != nil {
		return BootstrapTest{}, err
	}
	start, err := tickStart(family, tested, form)
	if err != nil {
		return BootstrapTest{}, err
	}
	law := lawAt(family, tickPeak(family, tested, form, start).at)
	test := BootstrapTest{KS: tested.KS(law, form), N: gaps.n, Cut: gaps.n < ticks.gaps.n}
	test.count(replicates, func(b int) (float64, bool) {
		replicate, err := drawTicks(law, ticks.tick, gaps.n, Stream(seed, uint64(b)+1))
		if err != nil || replicate.gaps.Distinct() < 2 || math.IsInf(replicate.LogLik(law, form), 0) {
			return 0, false
		}
		refitted := lawAt(family, tickPeak(family, replicate, form, law).at)
		return replicate.KS(refitted, form), true
	})
	return test, nil
}

// drawTicks returns n gaps between stamps of law's gaps, floored to ticks.
func drawTicks(law Law, tick float64, n int64, r *rand.Rand) (Ticks, error) {
	gaps := map[int64]int64{}
	phase := r.Float64() // since the last whole tick, in ticks
	for range n {
		at := phase + law.Rand(r)/tick
		k := math.Floor(at)
		gaps[int64(k)]++
		phase = at - k
	}
	return NewTicks(tick, gaps)
}

// count runs the replicates, each a function of its number alone, and fills P.
func (t *BootstrapTest) count(replicates int, distance func(b int) (float64, bool)) {
	distances, done := make([]float64, replicates), make([]bool, replicates)
	inParallel(replicates, func(b int) { distances[b], done[b] = distance(b) })
	beyond := 0
	for b, d := range distances {
		if done[b] {
			t.Replicates++
			if d >= t.KS {
				beyond++
			}
		}
	}
	t.P = float64(1+beyond) / float64(1+t.Replicates)
}

// cutForBootstrap returns s, or a random part of it, and the replicates to run.
func cutForBootstrap(s Sample, seed uint64) (Sample, int) {
	if s.n <= bootstrapExact {
		return s, bootstrapFull
	}
	r := Stream(seed, 0)
	chosen := map[int64]bool{}
	for len(chosen) < bootstrapExact {
		chosen[r.Int64N(s.n)] = true
	}
	ranks := make([]int64, 0, bootstrapExact)
	for rank := range chosen {
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	var part Sample
	i, upTo := 0, s.counts[0]
	for _, rank := range ranks {
		for rank >= upTo {
			i++
			upTo += s.counts[i]
		}
		part.add(s.values[i], 1)
	}
	return part, bootstrapCut
}
