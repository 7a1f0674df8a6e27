package stats

import (
	"fmt"
	"math"
)

// A Distance says how far two samples are apart.
type Distance struct {
	KS          float64 // largest difference of the distribution functions
	KSP         float64 // its two-sided p-value if both were drawn one by one from one law; see [KSTail]
	Wasserstein float64 // area between the distribution functions, in units of the values
	Energy      float64 // sqrt(2 E|X-Y| - E|X-X'| - E|Y-Y'|), SciPy's energy distance
}

// Distances compares a and b. An empty sample is an error.
func Distances(a, b Sample) (Distance, error) {
	if a.n == 0 || b.n == 0 {
		return Distance{}, fmt.Errorf("a comparison needs two samples, got %d and %d numbers", a.n, b.n)
	}
	var d Distance
	var area, squares total
	na, nb := float64(a.n), float64(b.n)
	var i, j int
	var ca, cb int64
	for i < len(a.values) || j < len(b.values) {
		x := nextOf(a, i, b, j)
		if i < len(a.values) && a.values[i] == x {
			ca += a.counts[i]
			i++
		}
		if j < len(b.values) && b.values[j] == x {
			cb += b.counts[j]
			j++
		}
		gap := math.Abs(float64(ca)/na - float64(cb)/nb)
		d.KS = max(d.KS, gap)
		if i < len(a.values) || j < len(b.values) {
			width := nextOf(a, i, b, j) - x
			area.add(gap * width)
			squares.add(gap * gap * width)
		}
	}
	d.Wasserstein = area.value()
	d.Energy = math.Sqrt(2 * squares.value())
	d.KSP = KSTail(d.KS, int64(math.RoundToEven(na*nb/(na+nb))))
	return d, nil
}

// nextOf returns the smaller of a's i-th and b's j-th value; one must exist.
func nextOf(a Sample, i int, b Sample, j int) float64 {
	switch {
	case i == len(a.values):
		return b.values[j]
	case j == len(b.values):
		return a.values[i]
	}
	return min(a.values[i], b.values[j])
}

// AndersonDarlingK returns the normalised k-sample statistic of Scholz and
// Stephens (1987) with mid-ranks for ties: mean 0 and variance 1 if all samples
// come from one law. At least two samples, none of them empty, and two distinct
// values are needed.
func AndersonDarlingK(samples ...Sample) (float64, error) {
	if len(samples) < 2 {
		return 0, fmt.Errorf("a comparison needs two samples, got %d", len(samples))
	}
	pooled := map[float64]int64{}
	var n int64
	for i, s := range samples {
		if s.n == 0 {
			return 0, fmt.Errorf("sample %d is empty", i+1)
		}
		n += s.n
		for j, v := range s.values {
			pooled[v] += s.counts[j]
		}
	}
	if len(pooled) < 2 || n < 4 {
		return 0, fmt.Errorf("%d numbers with %d distinct values are too few to compare", n, len(pooled))
	}
	values := sortedKeys(pooled)
	var sum total
	for _, s := range samples {
		sum.add(s.adMidrank(values, pooled, float64(n)) / float64(s.n))
	}
	big := float64(n)
	k := float64(len(samples))
	return ((big-1)/big*sum.value() - (k - 1)) / math.Sqrt(adVariance(samples, n)), nil
}

// adMidrank is the inner sum of equation 7 of Scholz and Stephens.
func (s Sample) adMidrank(values []float64, pooled map[float64]int64, n float64) float64 {
	var sum total
	var before, own float64
	i := 0
	for _, v := range values {
		l := float64(pooled[v])
		b := before + l/2
		var f float64
		if i < len(s.values) && s.values[i] == v {
			f = float64(s.counts[i])
			i++
		}
		m := own + f/2
		d := n*m - b*float64(s.n)
		sum.add(l / n * d * d / (b*(n-b) - n*l/4))
		before, own = before+l, own+f
	}
	return sum.value()
}

// adVariance is equation 4 of Scholz and Stephens.
func adVariance(samples []Sample, n int64) float64 {
	var H float64
	for _, s := range samples {
		H += 1 / float64(s.n)
	}
	var h, g float64
	for i := n - 1; i >= 2; i-- {
		h += 1 / float64(i)
		g += h / float64(n-i+1) // 1/(i j) over all i < j below n
	}
	h++
	k, N := float64(len(samples)), float64(n)
	a := (4*g-6)*(k-1) + (10-6*g)*H
	b := (2*g-4)*k*k + 8*h*k + (2*g-14*h-4)*H - 8*h + 4*g - 6
	c := (6*h+2*g-2)*k*k + (4*h-4*g+6)*k + (2*h-6)*H + 4*h
	d := (2*h+6)*k*k - 4*h*k
	return (a*N*N*N + b*N*N + c*N + d) / ((N - 1) * (N - 2) * (N - 3))
}
