package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// CliffsDelta returns P(b > a) - P(b < a) for a number of each sample, drawn by
// chance: 1 if all of b is above all of a, 0 if neither tends to be larger
// (Cliff 1993). NaN if a sample is empty.
func CliffsDelta(a, b Sample) float64 {
	if a.n == 0 || b.n == 0 {
		return math.NaN()
	}
	var below, sum float64 // numbers of a below the value at hand
	i := 0
	for j, v := range b.values {
		for i < len(a.values) && a.values[i] < v {
			below += float64(a.counts[i])
			i++
		}
		above := float64(a.n) - below
		if i < len(a.values) && a.values[i] == v {
			above -= float64(a.counts[i])
		}
		sum += float64(b.counts[j]) * (below - above)
	}
	return sum / float64(a.n) / float64(b.n)
}

// ShiftOfPairs returns the Hodges-Lehmann shift of paired numbers, of which it
// gets the differences: the median of the means of any two of them, each with
// itself included (Hodges and Lehmann 1963; the lower one of two medians). It
// sorts d, which must hold at least one number, all below 2^61 in size.
func ShiftOfPairs(d []int64) float64 {
	slices.Sort(d)
	n := int64(len(d))
	half := (n*(n+1)/2 + 1) / 2
	twice := bisect(2*d[0], 2*d[n-1], func(x int64) bool {
		count, j := int64(0), n-1
		for i := range n { // pairs i <= j with d[i] + d[j] <= x
			for j >= i && d[i]+d[j] > x {
				j--
			}
			if j < i {
				break
			}
			count += j - i + 1
		}
		return count >= half
	})
	return float64(twice) / 2
}

// ShiftOfSamples returns the Hodges-Lehmann shift of b against a: the median of
// all differences of a number of b and one of a (the lower one of two medians).
// It sorts both, which must not be empty.
func ShiftOfSamples(a, b []int64) int64 {
	slices.Sort(a)
	slices.Sort(b)
	half := (int64(len(a))*int64(len(b)) + 1) / 2
	return bisect(b[0]-a[len(a)-1], b[len(b)-1]-a[0], func(x int64) bool {
		count, j := int64(0), 0
		for _, v := range a { // numbers of b that are at most v + x
			for j < len(b) && b[j]-v <= x {
				j++
			}
			count += int64(j)
		}
		return count >= half
	})
}

// bisect returns the smallest x in [lo, hi] for which ok holds, as it does for hi.
func bisect(lo, hi int64, ok func(int64) bool) int64 {
	for lo < hi {
		mid := lo + (hi-lo)/2
		if ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// Holm adjusts p-values for being looked at together (Holm 1979): with those at
// most alpha called differences, the chance of any false one is at most alpha,
// however they depend on one another.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(p))
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(p)-rank)))
		out[i] = highest
	}
	return out
}

// StudentT returns the two-sided p-value of t with df degrees of freedom.
func StudentT(t, df float64) float64 {
	return min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(math.Abs(t)))
}

// StudentQuantile returns the t that a Student variable with df degrees of
// freedom stays within, on both sides, with probability level.
func StudentQuantile(level, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile((1 + level) / 2)
}
