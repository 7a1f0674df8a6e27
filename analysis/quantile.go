package analysis

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// quantileRank returns the rank, from 1, of the q/1000 quantile of n samples by
// the nearest-rank definition: the smallest sample that at least q/1000 of all
// samples do not exceed, rank ceil(q*n/1000). It is always a sample, never
// between two. n must be above 0.
func quantileRank(q, n int64) int64 { return max(1, (q*n+999)/1000) }

// restsOnOne says whether the q/1000 quantile of n samples is the largest of
// them, so that one sample decides it: p99 of fewer than 100.
func restsOnOne(q, n int64) bool { return n > 0 && quantileRank(q, n) == n }

// sortedQuantile returns the q/1000 quantile of sorted samples.
func sortedQuantile[T int64 | float64](sorted []T, q int64) T {
	return sorted[quantileRank(q, int64(len(sorted)))-1]
}

// Geometry of all histograms: values from 1 to 2^53 (104 days in nanoseconds)
// to 3 significant digits. All have the same, so that any two can be merged.
const (
	histogramMax    = 1 << 53
	histogramDigits = 3
)

// HistogramError is the relative error bound of a quantile that comes from a
// histogram: it is never below the sample and above it by at most this share.
// Minimum, maximum, mean and deviation are exact.
const HistogramError = 0.001

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, histogramMax, histogramDigits)
}

// record puts v into h, n times. What lies outside its range is put at its end:
// a time below 0 counts as 0.
func record(h *hdrhistogram.Histogram, v, n int64) {
	if err := h.RecordValues(min(max(v, 0), histogramMax), n); err != nil {
		panic(err) // the value is in range
	}
}

// histogramQuantile returns the q/1000 quantile of h by nearest rank: the
// largest value of the bucket that holds the sample.
func histogramQuantile(bars []hdrhistogram.Bar, q, n int64) int64 {
	return histogramRank(bars, quantileRank(q, n))
}

// histogramRank returns the largest value of the bucket that holds the sample
// of a rank from 1.
func histogramRank(bars []hdrhistogram.Bar, rank int64) int64 {
	for _, b := range bars {
		if rank -= b.Count; rank <= 0 {
			return b.To
		}
	}
	return histogramMax
}

// moments are exact sums over integer samples.
type moments struct {
	n            int64
	sum, squares wide
	min, max     int64
}

// add counts v n times.
func (m *moments) add(v, n int64) {
	if n <= 0 {
		return
	}
	if m.n == 0 {
		m.min, m.max = v, v
	}
	m.n += n
	m.min, m.max = min(m.min, v), max(m.max, v)
	size := uint64(v)
	if v < 0 {
		size = -size
	}
	m.sum.addProduct(size, uint64(n), v < 0)
	hi, lo := bits.Mul64(size, size)
	m.squares.addProduct(lo, uint64(n), false)
	m.squares.hi += hi * uint64(n)
}

// total returns the sum, which must fit.
func (m *moments) total() int64 { return int64(m.sum.lo) }

// mean returns sum / n; n must be above 0.
func (m *moments) mean() float64 {
	f, _ := new(big.Rat).SetFrac(m.sum.big(), big.NewInt(m.n)).Float64()
	return f
}

// std returns the sample standard deviation, sqrt((squares - sum²/n) / (n - 1));
// n must be above 1.
func (m *moments) std() float64 {
	n := big.NewInt(m.n)
	sum := m.sum.big()
	top := new(big.Int).Mul(n, m.squares.big())
	top.Sub(top, sum.Mul(sum, sum))
	variance, _ := new(big.Rat).SetFrac(top, n.Mul(n, big.NewInt(m.n-1))).Float64()
	return math.Sqrt(variance)
}

// A wide is a 128-bit sum in two's complement: the squares of a million
// hour-long times do not fit into 64 bits, and floating point would make the
// deviation a difference of rounded numbers.
type wide struct{ hi, lo uint64 }

// addProduct adds a*b, or takes it off.
func (w *wide) addProduct(a, b uint64, negative bool) {
	hi, lo := bits.Mul64(a, b)
	var carry uint64
	if negative {
		w.lo, carry = bits.Sub64(w.lo, lo, 0)
		w.hi, _ = bits.Sub64(w.hi, hi, carry)
		return
	}
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

// add adds o.
func (w *wide) add(o wide) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, o.lo, 0)
	w.hi, _ = bits.Add64(w.hi, o.hi, carry)
}

func (w wide) big() *big.Int {
	b := big.NewInt(int64(w.hi))
	b.Lsh(b, 64)
	return b.Add(b, new(big.Int).SetUint64(w.lo))
}

// median returns the nearest-rank median of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return sortedQuantile(values, 500)
}
