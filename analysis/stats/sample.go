package stats

import (
	"fmt"
	"math"
	"slices"
)

// A Sample is a set of numbers with repetitions: distinct values in increasing
// order, each with how often it occurs. Token counts of ten million requests
// are a few thousand distinct values, so estimators and distances over a
// Sample cost what the distinct values cost. The zero value is empty.
type Sample struct {
	values []float64
	counts []int64
	n      int64
}

// NewSample counts x, which it neither keeps nor changes. A value that is not
// finite is an error.
func NewSample(x []float64) (Sample, error) {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	var s Sample
	for _, v := range sorted {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Sample{}, fmt.Errorf("value %v is not a finite number", v)
		}
		s.add(v, 1)
	}
	return s, nil
}

// CountedSample returns the sample that holds each values[i] counts[i] times.
// Values must be finite and strictly increasing, counts positive. It keeps both
// slices.
func CountedSample(values []float64, counts []int64) (Sample, error) {
	if len(values) != len(counts) {
		return Sample{}, fmt.Errorf("%d values with %d counts", len(values), len(counts))
	}
	s := Sample{values: values, counts: counts}
	for i, v := range values {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return Sample{}, fmt.Errorf("value %v is not a finite number", v)
		case i > 0 && v <= values[i-1]:
			return Sample{}, fmt.Errorf("value %v does not come after %v", v, values[i-1])
		case counts[i] <= 0:
			return Sample{}, fmt.Errorf("value %v occurs %d times", v, counts[i])
		}
		s.n += counts[i]
	}
	return s, nil
}

// add appends v, which is not below the last value.
func (s *Sample) add(v float64, count int64) {
	if k := len(s.values); k > 0 && s.values[k-1] == v {
		s.counts[k-1] += count
	} else {
		s.values, s.counts = append(s.values, v), append(s.counts, count)
	}
	s.n += count
}

// N returns how many numbers the sample holds, repetitions included.
func (s Sample) N() int64 { return s.n }

// Distinct returns how many distinct values the sample holds.
func (s Sample) Distinct() int { return len(s.values) }

// At returns the i-th distinct value, in increasing order, and its count.
func (s Sample) At(i int) (value float64, count int64) { return s.values[i], s.counts[i] }

// Where returns the part of the sample whose values satisfy keep.
func (s Sample) Where(keep func(float64) bool) Sample {
	var part Sample
	for i, v := range s.values {
		if keep(v) {
			part.add(v, s.counts[i])
		}
	}
	return part
}
