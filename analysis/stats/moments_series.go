package stats

import (
	"math"
	"math/big"
	"math/bits"
)

// A Series sums up integers in their order: gaps in ticks, counts per window.
// Its sums are exact integers of 128 bits, so the variance and the lag-1
// autocorrelation of ten million gaps are no difference of rounded numbers. n
// times the largest square must fit into 127 bits. The zero value has seen none.
type Series struct {
	n           int64
	sum         int128
	zeros       int64
	least, most int64
	squares     int128
	products    int128 // of neighbours
	first, last int64
}

// Add appends v.
func (s *Series) Add(v int64) {
	if s.n == 0 {
		s.first, s.least, s.most = v, v, v
	}
	s.products.addProduct(s.last, v) // last is 0 before the first
	s.squares.addProduct(v, v)
	s.least, s.most = min(s.least, v), max(s.most, v)
	s.sum.addProduct(v, 1)
	s.last = v
	if v == 0 {
		s.zeros++
	}
	s.n++
}

// AddN appends v n times; n below 1 appends nothing.
func (s *Series) AddN(v, n int64) {
	if n < 1 {
		return
	}
	s.Add(v)
	if n--; n == 0 {
		return
	}
	var square int128
	square.addProduct(v, v)
	s.squares.addTimes(square, uint64(n))
	s.products.addTimes(square, uint64(n))
	s.sum.addProduct(v, n)
	s.n += n
	if v == 0 {
		s.zeros += n
	}
}

// N returns how many numbers were counted, Sum their sum, Zeros how many were 0.
func (s *Series) N() int64     { return s.n }
func (s *Series) Sum() float64 { return ratio(s.sum.big(), big.NewInt(1)) }
func (s *Series) Zeros() int64 { return s.zeros }

// Range returns the smallest and the largest number; false without numbers.
func (s *Series) Range() (least, most int64, ok bool) { return s.least, s.most, s.n > 0 }

// Mean is false without numbers.
func (s *Series) Mean() (float64, bool) {
	if s.n == 0 {
		return 0, false
	}
	return ratio(s.sum.big(), big.NewInt(s.n)), true
}

// centred returns n² times the sum of squared deviations from the mean, over n.
func (s *Series) centred() *big.Int {
	top := s.squares.big()
	top.Mul(top, big.NewInt(s.n))
	sum := s.sum.big()
	return top.Sub(top, sum.Mul(sum, sum))
}

// Variance returns the sample variance, over n - 1; false below two numbers.
func (s *Series) Variance() (float64, bool) {
	if s.n < 2 {
		return 0, false
	}
	bottom := big.NewInt(s.n)
	return ratio(s.centred(), bottom.Mul(bottom, big.NewInt(s.n-1))), true
}

// SD returns the root of Variance.
func (s *Series) SD() (float64, bool) {
	v, ok := s.Variance()
	return math.Sqrt(v), ok
}

// CV returns SD / mean; false where there is no SD or the mean is not above 0.
func (s *Series) CV() (float64, bool) {
	sd, ok := s.SD()
	mean, _ := s.Mean()
	if !ok || !(mean > 0) {
		return 0, false
	}
	return sd / mean, true
}

// Lag1 returns the lag-1 autocorrelation, the sum of products of neighbouring
// deviations from the overall mean over the sum of squared deviations; false
// below two numbers, or where all are equal.
func (s *Series) Lag1() (float64, bool) {
	bottom := s.centred()
	if s.n < 2 || bottom.Sign() == 0 {
		return 0, false
	}
	// n² (P - m (2S - first - last) + (n-1) m²) over n² (Q - n m²), m = S/n, both
	// over n: n P - S (2S - first - last) + (n-1) S²/n, so both times n.
	n, sum := big.NewInt(s.n), s.sum.big()
	top := s.products.big()
	top.Mul(top, n)
	ends := new(big.Int).Lsh(sum, 1)
	ends.Sub(ends, big.NewInt(s.first))
	ends.Sub(ends, big.NewInt(s.last))
	top.Sub(top, ends.Mul(ends, sum))
	top.Mul(top, n)
	square := new(big.Int).Mul(sum, sum)
	top.Add(top, square.Mul(square, big.NewInt(s.n-1)))
	return ratio(top, bottom.Mul(bottom, n)), true
}

func ratio(a, b *big.Int) float64 {
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	return f
}

// An int128 is a sum in two's complement.
type int128 struct{ hi, lo uint64 }

func (w *int128) addProduct(a, b int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

// addTimes adds n times p, which is not negative.
func (w *int128) addTimes(p int128, n uint64) {
	hi, lo := bits.Mul64(p.lo, n)
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi += hi + p.hi*n + carry
}

func (w int128) big() *big.Int {
	b := big.NewInt(int64(w.hi))
	b.Lsh(b, 64)
	return b.Add(b, new(big.Int).SetUint64(w.lo))
}
