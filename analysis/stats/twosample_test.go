package stats

import (
	"math"
	"slices"
	"testing"
)

func TestDistancesByHand(t *testing.T) {
	a, _ := NewSample([]float64{0, 1, 3})
	b, _ := NewSample([]float64{5, 6, 8})
	d, err := Distances(a, b)
	if err != nil || d.KS != 1 || math.Abs(d.Wasserstein-5) > 1e-12 { // SciPy's example
		t.Errorf("%+v %v", d, err)
	}
	same, err := Distances(a, a)
	if err != nil || same != (Distance{KSP: 1}) {
		t.Errorf("a sample is away from itself: %+v %v", same, err)
	}
	if _, err := Distances(a, Sample{}); err == nil {
		t.Error("an empty sample was compared")
	}
	if _, err := AndersonDarlingK(a, a); err != nil {
		t.Error(err)
	}
	one, _ := NewSample([]float64{4, 4, 4})
	for _, s := range [][]Sample{nil, {a}, {a, {}}, {one, one}} {
		if v, err := AndersonDarlingK(s...); err == nil {
			t.Errorf("%d samples: %v", len(s), v)
		}
	}
}

// TestKSTail: values known from tables, and the exact form meets the limit.
func TestKSTail(t *testing.T) {
	for _, c := range []struct {
		d    float64
		n    int64
		want float64
	}{
		{0.274, 10, 1 - 0.6284796154565043}, // Marsaglia, Tsang and Wang, section 3
		{0.5, 1, 1},
		{0.75, 1, 0.5},
		{0.52, 2, 2 * 0.48 * 0.48}, // 2 (1-d)^2 for d >= 1/2
		{0, 5, 1}, {1, 5, 0}, {0.3, 0, 1},
	} {
		if got := KSTail(c.d, c.n); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("KSTail(%v, %d) = %.12f, want %.12f", c.d, c.n, got, c.want)
		}
	}
	for _, x := range []float64{0.5, 0.9, 1.36, 2, 2.5} {
		a, b := KSTail(x/math.Sqrt(300), 300), KSTail(x/math.Sqrt(301), 301)
		if tolerance := max(0.003, 0.05*(x-1.36)); math.Abs(a-b) > tolerance*a {
			t.Errorf("x = %v: %v for 300, %v for 301", x, a, b)
		}
	}
}

// TestChangePointsAgainstAllPartitions compares with a plain dynamic programme.
func TestChangePointsAgainstAllPartitions(t *testing.T) {
	r := Stream(3)
	for range 300 {
		n := 1 + r.IntN(40)
		counts := make([]int64, n)
		level := 1 + r.Int64N(30)
		for i := range counts {
			if r.IntN(8) == 0 {
				level = 1 + r.Int64N(30)
			}
			counts[i] = r.Int64N(2*level) * r.Int64N(2)
		}
		o := ChangeOptions{Penalty: 0.5 + 4*r.Float64(), MinEvents: []int64{-1, 1, 20, 60}[r.IntN(4)], Silences: r.IntN(2) == 0}
		got, err := ChangePoints(counts, 2, o)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := plainPartition(counts, 2, o)
		if ok && math.Abs(got.Objective-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Fatalf("%v %+v: objective %v, want %v (%v)", counts, o, got.Objective, want, got.Changes)
		}
		if !ok && len(got.Changes) > 0 {
			t.Fatalf("%v %+v: changes %v with too few events", counts, o, got.Changes)
		}
		if !slices.IsSorted(got.Changes) || len(got.Rates) != len(got.Changes)+1 {
			t.Fatalf("%+v", got)
		}
		if rate, err := got.StepRate(2, n); err != nil {
			t.Fatal(err)
		} else {
			var all int64
			for _, c := range counts {
				all += c
			}
			if math.Abs(rate.Total()-float64(all)) > 1e-9*float64(all+1) {
				t.Fatalf("Lambda ends at %v after %d events", rate.Total(), all)
			}
		}
	}
}

func plainPartition(counts []int64, window float64, o ChangeOptions) (float64, bool) {
	best := make([]float64, len(counts)+1)
	best[0] = -o.Penalty
	for t := 1; t <= len(counts); t++ {
		best[t] = math.Inf(1)
		var sum int64
		for s := t - 1; s >= 0; s-- {
			sum += counts[s]
			if sum < o.MinEvents && (sum > 0 || !o.Silences) {
				continue
			}
			cost := 0.0
			if sum > 0 {
				cost = -(float64(sum)*math.Log(float64(sum)/(float64(t-s)*window)) - float64(sum))
			}
			best[t] = min(best[t], best[s]+cost+o.Penalty)
		}
	}
	return best[len(counts)], !math.IsInf(best[len(counts)], 1)
}

func TestRefusals(t *testing.T) {
	for name, err := range map[string]error{
		"no windows":     second(ChangePoints(nil, 1, ChangeOptions{})),
		"no width":       second(ChangePoints([]int64{1}, 0, ChangeOptions{})),
		"negative count": second(ChangePoints([]int64{1, -1}, 1, ChangeOptions{})),
		"edges":          second(NewStepRate([]float64{0, 1}, nil)),
		"order":          second(NewStepRate([]float64{0, 0}, []float64{1})),
		"rate":           second(NewStepRate([]float64{0, 1}, []float64{math.NaN()})),
		"one block":      second(BlockBootstrap(1, 10, 0.95, 1, nil)),
		"level":          second(BlockBootstrap(2, 10, 1, 1, nil)),
		"range":          second(BootstrapRanges([]float64{1}, [][2]int{{0, 2}, {0, 1}}, 9, 0.9, 1, nil)),
		"no value":       second(BlockBootstrap(2, 9, 0.9, 1, func([]int64) (float64, bool) { return 0, false })),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestBootstrapCovers: the 90 % interval of the mean covers the true mean in
// about 90 % of the data sets, where numbers within a block are equal, which an
// interval over single numbers would miss.
func TestBootstrapCovers(t *testing.T) {
	covered := 0
	const sets = 200
	for set := range uint64(sets) {
		r := Stream(set, 8)
		var x []float64
		var blocks [][2]int
		for range 60 {
			v, from := r.NormFloat64(), len(x)
			for range 1 + r.IntN(8) {
				x = append(x, v)
			}
			blocks = append(blocks, [2]int{from, len(x)})
		}
		mean := func(s Sample) (float64, bool) { m := s.Moments(); return m.Mean() }
		i, err := BootstrapRanges(x, blocks, 200, 0.9, set, mean)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := BootstrapRanges(x, blocks, 200, 0.9, set, mean)
		if i != again || !(i.Lo < i.Hi) || i.Blocks != 60 || i.Replicates != 200 {
			t.Fatalf("%+v, then %+v", i, again)
		}
		if i.Lo <= 0 && 0 <= i.Hi {
			covered++
		}
	}
	if share := float64(covered) / sets; share < 0.8 || share > 0.97 {
		t.Errorf("covered in %v of the data sets", share)
	}
}
