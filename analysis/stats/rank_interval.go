package stats

import (
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// RankInterval returns the ranks, from 1, of the order statistics of n samples
// between which the q-quantile of what they are drawn from lies with at least the
// given level of confidence, whatever its law: the sample below it are binomial
// (n, q), and half of the error is left at either end (David and Nagaraja, Order
// Statistics, 3rd ed., section 7.1). The samples must be independent. False where n
// is too small for such an interval: no sample lies beyond the quantile often
// enough.
func RankInterval(n int64, q, level float64) (low, high int64, ok bool) {
	if n < 1 || !(q > 0 && q < 1) || !(level > 0 && level < 1) {
		return 0, 0, false
	}
	tail := (1 - level) / 2
	// P(X(low) > quantile) = P(B < low), so low is the last rank with that within
	// the tail; P(X(high) < quantile) = P(B >= high).
	low = int64(sort.Search(int(n), func(k int) bool { return binomialCDF(n, int64(k), q) > tail }))
	high = int64(sort.Search(int(n), func(k int) bool { return 1-binomialCDF(n, int64(k), q) <= tail })) + 1
	if low < 1 || high > n {
		return 0, 0, false
	}
	return low, high, true
}

// binomialCDF returns P(B <= k) for B of n trials that each succeed with q.
func binomialCDF(n, k int64, q float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-q)
}
