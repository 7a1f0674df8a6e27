package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestIsotonic(t *testing.T) {
	for _, c := range []struct{ y, w, want []float64 }{
		{nil, nil, []float64{}},
		{[]float64{1, 2, 3}, []float64{1, 1, 1}, []float64{1, 2, 3}},
		{[]float64{3, 1}, []float64{1, 3}, []float64{1.5, 1.5}},
		{[]float64{1, 5, 3, 4, 9}, []float64{1, 1, 1, 1, 1}, []float64{1, 4, 4, 4, 9}},
		{[]float64{4, 3, 2, 1}, []float64{1, 1, 1, 1}, []float64{2.5, 2.5, 2.5, 2.5}},
	} {
		if got := Isotonic(c.y, c.w); !slices.Equal(got, c.want) {
			t.Errorf("Isotonic(%v, %v) = %v, want %v", c.y, c.w, got, c.want)
		}
	}
}

// The fit does not decrease, keeps the weighted mean, and no other sequence that
// does not decrease is nearer.
func TestIsotonicIsNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + rng.IntN(12)
		y, w := make([]float64, n), make([]float64, n)
		for i := range y {
			y[i], w[i] = rng.NormFloat64()+0.1*float64(i), 0.5+rng.Float64()
		}
		fit := Isotonic(y, w)
		cost := func(x []float64) (sum float64) {
			for i := range x {
				sum += w[i] * (x[i] - y[i]) * (x[i] - y[i])
			}
			return sum
		}
		var mean float64
		for i := range y {
			mean += w[i] * (fit[i] - y[i])
		}
		if !slices.IsSorted(fit) || math.Abs(mean) > 1e-9 {
			t.Fatalf("fit %v of %v, weighted mean differs by %v", fit, y, mean)
		}
		for range 50 {
			other := slices.Clone(fit)
			for i := range other {
				other[i] += 0.1 * rng.NormFloat64()
			}
			slices.Sort(other)
			if cost(other) < cost(fit)-1e-9 {
				t.Fatalf("%v is nearer to %v than %v", other, y, fit)
			}
		}
	}
}
