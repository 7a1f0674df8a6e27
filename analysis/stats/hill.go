package stats

import "math"

// Hill returns the Hill estimate of the tail index from the k largest numbers:
// 1 / mean of ln(x_(i) / x_(k+1)), x_(1) the largest. About: P(X > x) falls as
// x^-alpha. False where k is below 1, there are not k+1 numbers, the k+1-th is
// not above 0, or the k largest all equal it.
func (s Sample) Hill(k int64) (alpha float64, ok bool) {
	if k < 1 || s.n <= k {
		return 0, false
	}
	left, i := k, len(s.values)-1
	for ; s.counts[i] <= left; i-- { // values[i] is x_(k+1) at the end
		left -= s.counts[i]
	}
	base := s.values[i]
	if base <= 0 {
		return 0, false
	}
	var sum total
	for j := i + 1; j < len(s.values); j++ {
		sum.add(float64(s.counts[j]) * math.Log(s.values[j]/base))
	}
	if sum.value() <= 0 {
		return 0, false
	}
	return float64(k) / sum.value(), true
}
