package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantileRank(t *testing.T) {
	for _, tt := range []struct{ q, n, want int64 }{
		{500, 1, 1}, {500, 2, 1}, {500, 3, 2}, {990, 99, 99}, {990, 100, 99}, {990, 101, 100}, {999, 999, 999}, {999, 1000, 999}, {950, 60, 57}, {900, 10, 9},
	} {
		if got := quantileRank(tt.q, tt.n); got != tt.want {
			t.Errorf("quantileRank(%d, %d) = %d, want %d", tt.q, tt.n, got, tt.want)
		}
	}
	if !restsOnOne(990, 99) || restsOnOne(990, 100) || !restsOnOne(999, 999) || restsOnOne(999, 1000) || restsOnOne(990, 0) {
		t.Error("p99 rests on one sample below 100 samples, p99.9 below 1000, none of 0")
	}
}

// TestHistogramQuantileIsWithinItsBound compares histogram quantiles with those
// of the samples themselves.
func TestHistogramQuantileIsWithinItsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := newCollector(defChunkGap)
	var samples []int64
	for range 20_000 {
		v := int64(math.Exp(rng.NormFloat64()*3 + 14)) // 1 us to minutes, in ns
		samples = append(samples, v)
		c.many(v, 1)
	}
	slices.Sort(samples)
	m := c.metric()
	for _, q := range quantiles {
		exact := float64(sortedQuantile(samples, q.q)) / 1e6
		got := m.stats[q.stat].Value
		if got < exact || got > exact*(1+HistogramError) {
			t.Errorf("%s = %v, sample %v: outside its bound", q.name, got, exact)
		}
	}
	if lo, hi := m.Stat("min").Value, m.Stat("max").Value; lo != float64(samples[0])/1e6 || hi != float64(samples[len(samples)-1])/1e6 {
		t.Errorf("min %v and max %v are not exact", lo, hi)
	}
}

// TestExtremesAreExact: a single value keeps its last digit in every stat.
func TestExtremesAreExact(t *testing.T) {
	c := newCollector(defITL)
	c.many(1_000_001_000, 1)
	m := c.metric()
	for _, stat := range []string{"min", "mean", "p50", "p99", "max"} {
		if got := m.Stat(stat).Value; got != 1000.001 {
			t.Errorf("%s = %v, want 1000.001", stat, got)
		}
	}
}

func TestMomentsDoNotOverflow(t *testing.T) {
	var m moments
	const day = int64(24 * 3600 * 1e9)
	m.add(day, 1_000_000)
	m.add(-day, 1_000_000)
	m.add(3, 0)
	if m.n != 2_000_000 || m.mean() != 0 || m.min != -day || m.max != day {
		t.Errorf("n %d, mean %v, %d to %d", m.n, m.mean(), m.min, m.max)
	}
	if want := float64(day) * math.Sqrt(2e6/(2e6-1)); !near(m.std(), want, 1) {
		t.Errorf("std %v, want %v", m.std(), want)
	}
}
