package stats

import "math"

// A real is what quantiles can be taken of.
type real interface{ ~int64 | ~float64 }

// Quantile7 returns the p-quantile of sorted numbers, linear between the order
// statistics around (n-1)p: type 7 of Hyndman and Fan (1996), NumPy's default.
// False if there are none, or p is outside [0, 1].
func Quantile7[T real](sorted []T, p float64) (float64, bool) {
	n := int64(len(sorted))
	if n == 0 || !(p >= 0 && p <= 1) {
		return 0, false
	}
	lo, hi, share := span7(n, p)
	return between(float64(sorted[lo-1]), float64(sorted[hi-1]), share), true
}

// Quantile1 returns the smallest of sorted numbers that at least the share p of
// them do not exceed: type 1, the inverse of the empirical distribution. False
// if there are none, or p is outside [0, 1].
func Quantile1[T real](sorted []T, p float64) (float64, bool) {
	n := int64(len(sorted))
	if n == 0 || !(p >= 0 && p <= 1) {
		return 0, false
	}
	return float64(sorted[rank1(n, p)-1]), true
}

// Quantiles7 returns the type 7 quantiles of s, see [Quantile7]; nil if s is
// empty or a p is outside [0, 1]. It is fastest with p in increasing order.
func (s Sample) Quantiles7(p ...float64) []float64 {
	return s.quantiles(p, func(at *ranks, p float64) float64 {
		lo, hi, share := span7(s.n, p)
		v := at.rank(lo)
		return between(v, at.rank(hi), share)
	})
}

// Quantiles1 returns the type 1 quantiles of s, see [Quantile1]; nil if s is
// empty or a p is outside [0, 1]. It is fastest with p in increasing order.
func (s Sample) Quantiles1(p ...float64) []float64 {
	return s.quantiles(p, func(at *ranks, p float64) float64 { return at.rank(rank1(s.n, p)) })
}

func (s Sample) quantiles(p []float64, of func(*ranks, float64) float64) []float64 {
	if s.n == 0 {
		return nil
	}
	at := &ranks{s: s}
	out := make([]float64, len(p))
	for i, q := range p {
		if !(q >= 0 && q <= 1) {
			return nil
		}
		out[i] = of(at, q)
	}
	return out
}

// ranks walks a sample by rank, from 1.
type ranks struct {
	s     Sample
	i     int
	below int64 // how many numbers come before values[i]
}

// rank returns the r-th smallest number.
func (w *ranks) rank(r int64) float64 {
	if r <= w.below {
		w.i, w.below = 0, 0
	}
	for w.below+w.s.counts[w.i] < r {
		w.below += w.s.counts[w.i]
		w.i++
	}
	return w.s.values[w.i]
}

// span7 returns the ranks around (n-1)p, and the share of the way between them.
func span7(n int64, p float64) (lo, hi int64, share float64) {
	h := float64(n-1) * p
	whole := math.Floor(h)
	lo = int64(whole) + 1
	return lo, min(lo+1, n), h - whole
}

func between(a, b, share float64) float64 {
	if share >= 0.5 { // exact at both ends
		return b - (b-a)*(1-share)
	}
	return a + (b-a)*share
}

// rank1 returns the smallest rank r with r/n >= p.
func rank1(n int64, p float64) int64 {
	r := int64(math.Ceil(float64(n) * p))
	for r > 1 && float64(r-1)/float64(n) >= p { // n*p may have been rounded up
		r--
	}
	return min(max(r, 1), n)
}
