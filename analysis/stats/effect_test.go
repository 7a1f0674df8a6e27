package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEffectSizes holds the fast forms against their definitions.
func TestEffectSizes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a, b := make([]int64, 1+random.IntN(40)), make([]int64, 1+random.IntN(40))
		for _, x := range [][]int64{a, b} {
			for i := range x {
				x[i] = random.Int64N(30) - 10
			}
		}
		var sum float64
		var between, walsh []float64
		for _, x := range a {
			for _, y := range b {
				between = append(between, float64(y-x))
				switch {
				case y > x:
					sum++
				case y < x:
					sum--
				}
			}
		}
		for i := range a {
			for j := i; j < len(a); j++ {
				walsh = append(walsh, float64(a[i]+a[j])/2)
			}
		}
		lower := func(x []float64) float64 {
			slices.Sort(x)
			return x[(len(x)+1)/2-1]
		}
		sample := func(x []int64) Sample {
			f := make([]float64, len(x))
			for i := range x {
				f[i] = float64(x[i])
			}
			s, err := NewSample(f)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if got, want := CliffsDelta(sample(a), sample(b)), sum/float64(len(between)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("delta %v, want %v of %v and %v", got, want, a, b)
		}
		if got, want := ShiftOfSamples(slices.Clone(a), slices.Clone(b)), lower(between); float64(got) != want {
			t.Fatalf("shift %v, want %v of %v and %v", got, want, a, b)
		}
		if got, want := ShiftOfPairs(slices.Clone(a)), lower(walsh); got != want {
			t.Fatalf("shift of pairs %v, want %v of %v", got, want, a)
		}
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.04, 0.01, 0.03, 0.5})
	for i, want := range []float64{0.09, 0.04, 0.09, 0.5} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("adjusted %v", got)
			break
		}
	}
}

func TestStudent(t *testing.T) {
	if q := StudentQuantile(0.95, 19); math.Abs(q-2.0930) > 1e-4 || math.Abs(StudentT(q, 19)-0.05) > 1e-9 {
		t.Errorf("t of 19 degrees of freedom is %v with p %v", q, StudentT(q, 19))
	}
}
