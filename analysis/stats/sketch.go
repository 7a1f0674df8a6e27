package stats

import (
	"math/bits"
	"slices"
)

// TallyLimit is how many distinct values a [Tally] keeps exactly where nothing
// else is asked for.
const TallyLimit = 1 << 18

// TallyError bounds the relative error of the values of a Tally that is no
// longer exact.
const TallyError = 1.0 / (2 << tallyBits)

// tallyBits are the bits of a value below its leading one that a bucket keeps.
const tallyBits = 10

// A Tally counts integers in bounded memory: exactly while there are few
// distinct ones, then in buckets of equal relative width, 2^-tallyBits, that
// stand for their middle. The zero value is empty and has the limit TallyLimit.
type Tally struct {
	Limit int // distinct values kept exactly

	exact   map[int64]int64
	buckets map[int32]int64 // nil while exact
	series  Series
}

// Add counts v. Its moments stay exact, and know the order of the numbers.
func (t *Tally) Add(v int64) { t.AddN(v, 1) }

// AddN counts v n times; n below 1 counts nothing.
func (t *Tally) AddN(v, n int64) {
	if n < 1 {
		return
	}
	t.series.AddN(v, n)
	if t.buckets != nil {
		t.buckets[bucketOf(v)] += n
		return
	}
	if t.exact == nil {
		t.exact = map[int64]int64{}
	}
	t.exact[v] += n
	limit := t.Limit
	if limit == 0 {
		limit = TallyLimit
	}
	if len(t.exact) > limit {
		t.buckets = map[int32]int64{}
		for v, n := range t.exact {
			t.buckets[bucketOf(v)] += n
		}
		t.exact = nil
	}
}

// Series returns the exact sums of all values, in the order of Add.
func (t *Tally) Series() *Series { return &t.series }

// N returns how many values were counted.
func (t *Tally) N() int64 { return t.series.n }

// Exact tells whether Sample holds the values themselves; if not, each is off
// by at most the share TallyError.
func (t *Tally) Exact() bool { return t.buckets == nil }

// Sample returns the values with their counts, each multiplied by unit, which
// must be above 0 and finite.
func (t *Tally) Sample(unit float64) Sample {
	type pair struct{ v, n int64 }
	pairs := make([]pair, 0, len(t.exact)+len(t.buckets))
	for v, n := range t.exact {
		pairs = append(pairs, pair{v, n})
	}
	for b, n := range t.buckets {
		v := min(max(middleOf(b), t.series.least), t.series.most)
		pairs = append(pairs, pair{v, n})
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		}
		return 0
	})
	var s Sample
	s.values, s.counts = make([]float64, 0, len(pairs)), make([]int64, 0, len(pairs))
	for _, p := range pairs {
		s.add(float64(p.v)*unit, p.n)
	}
	return s
}

// bucketOf keeps the leading tallyBits+1 bits of |v|; smaller values have their
// own bucket.
func bucketOf(v int64) int32 {
	size, sign := uint64(v), int32(1)
	if v < 0 {
		size, sign = -size, -1
	}
	shift := max(bits.Len64(size)-tallyBits-1, 0)
	return sign * (int32(shift)<<tallyBits + int32(size>>shift))
}

// middleOf returns the middle of a bucket.
func middleOf(b int32) int64 {
	sign := int64(1)
	if b < 0 {
		b, sign = -b, -1
	}
	if b < 2<<tallyBits {
		return sign * int64(b)
	}
	shift := b>>tallyBits - 1
	low := uint64(b-shift<<tallyBits) << shift
	return sign * int64(low+1<<shift>>1)
}
