package stats

import (
	"fmt"
	"slices"
)

// An Interval is a percentile interval of a bootstrap.
type Interval struct {
	Lo, Hi     float64
	Level      float64 // share of replicates inside, such as 0.95
	Blocks     int     // resampled, with replacement
	Replicates int     // that gave a value
}

// BlockBootstrap draws blocks with replacement, as many as there are, and
// returns the percentile interval of statistic over the replicates. statistic
// gets how often each block was drawn, in a slice that is used again, and may
// decline with false. Blocks are what is independent: sessions, or minutes;
// never single requests. Equal seeds give equal intervals.
func BlockBootstrap(blocks, replicates int, level float64, seed uint64, statistic func(drawn []int64) (float64, bool)) (Interval, error) {
	switch {
	case blocks < 2:
		return Interval{}, fmt.Errorf("an interval needs at least 2 blocks, got %d", blocks)
	case replicates < 1 || !(level > 0 && level < 1):
		return Interval{}, fmt.Errorf("no interval of level %v from %d replicates", level, replicates)
	}
	drawn := make([]int64, blocks)
	values := make([]float64, 0, replicates)
	for r := range replicates {
		clear(drawn)
		random := Stream(seed, uint64(r))
		for range blocks {
			drawn[random.IntN(blocks)]++
		}
		if v, ok := statistic(drawn); ok {
			values = append(values, v)
		}
	}
	if len(values) < 2 {
		return Interval{}, fmt.Errorf("the statistic has a value in %d of %d replicates", len(values), replicates)
	}
	slices.Sort(values)
	i := Interval{Level: level, Blocks: blocks, Replicates: len(values)}
	i.Lo, _ = Quantile7(values, (1-level)/2)
	i.Hi, _ = Quantile7(values, (1+level)/2)
	return i, nil
}

// BootstrapSamples is [BlockBootstrap] for a statistic of all numbers, given
// block by block.
func BootstrapSamples(blocks []Sample, replicates int, level float64, seed uint64, statistic func(Sample) (float64, bool)) (Interval, error) {
	m := NewMerger(blocks)
	return BlockBootstrap(len(blocks), replicates, level, seed, func(drawn []int64) (float64, bool) {
		return statistic(m.Merge(drawn))
	})
}

// Merge returns the numbers of samples[i] times[i] times, all in one sample.
func Merge(samples []Sample, times []int64) Sample { return NewMerger(samples).Merge(times) }

// A Merger adds up samples over the distinct values that any of them has.
type Merger struct {
	samples []Sample
	values  []float64
	index   [][]int // of each sample's values in values
	counts  []int64
}

// NewMerger prepares samples, which it keeps, for many merges.
func NewMerger(samples []Sample) *Merger {
	m := &Merger{samples: samples}
	for _, s := range samples {
		m.values = append(m.values, s.values...)
	}
	slices.Sort(m.values)
	m.values = slices.Compact(m.values)
	m.counts = make([]int64, len(m.values))
	for _, s := range samples {
		index := make([]int, len(s.values))
		for i, v := range s.values {
			index[i], _ = slices.BinarySearch(m.values, v)
		}
		m.index = append(m.index, index)
	}
	return m
}

// Merge returns the numbers of samples[i] times[i] times, all in one sample.
func (m *Merger) Merge(times []int64) Sample {
	clear(m.counts)
	for i, index := range m.index {
		if times[i] > 0 {
			for j, at := range index {
				m.counts[at] += times[i] * m.samples[i].counts[j]
			}
		}
	}
	var s Sample
	for i, n := range m.counts {
		if n > 0 {
			s.add(m.values[i], n)
		}
	}
	return s
}

// BootstrapRanges is [BootstrapSamples] for blocks that are ranges [from, to)
// of x.
func BootstrapRanges(x []float64, ranges [][2]int, replicates int, level float64, seed uint64, statistic func(Sample) (float64, bool)) (Interval, error) {
	blocks := make([]Sample, len(ranges))
	for i, r := range ranges {
		if r[0] < 0 || r[0] > r[1] || r[1] > len(x) {
			return Interval{}, fmt.Errorf("block %d is [%d, %d) of %d numbers", i, r[0], r[1], len(x))
		}
		var err error
		if blocks[i], err = NewSample(x[r[0]:r[1]]); err != nil {
			return Interval{}, err
		}
	}
	return BootstrapSamples(blocks, replicates, level, seed, statistic)
}
