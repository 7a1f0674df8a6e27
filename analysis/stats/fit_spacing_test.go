package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestModalSpacingOfTicks finds the grid that stamps were made on, in whole units of
// their clock, with jitter that alternates or is random, and none where there is
// none.
func TestModalSpacingOfTicks(t *testing.T) {
	alternating := func(_ *rand.Rand, i int, by float64) float64 { return by * float64(1-2*(i%2)) }
	uniform := func(r *rand.Rand, _ int, by float64) float64 { return by * (2*r.Float64() - 1) }
	for _, c := range []struct {
		name   string
		grid   float64 // ms
		unit   float64 // of the clock, ms
		jitter float64 // ms
		of     func(*rand.Rand, int, float64) float64
	}{
		{"1 ms", 1, 1, 0, nil},
		{"1 s", 1000, 1, 0, nil},
		{"3 s", 3000, 1, 0, nil},
		{"3 s, alternating by 1 ms", 3000, 1, 1, alternating},
		{"1 s, alternating by 1 ms", 1000, 1, 1, alternating},
		{"3 s, within 1 ms", 3000, 1, 1, uniform},
		{"1 s, within 0.5 ms, in ns", 1000, 1e-6, 0.5, uniform},
		{"3 s, within 2 ms, in ns", 3000, 1e-6, 2, uniform},
		{"1 ms, within 0.3 us, in ns", 1, 1e-6, 3e-4, uniform},
		{"0.25 s, within 0.1 ms, in us", 250, 1e-3, 0.1, uniform},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(c.grid)))
			var gaps []float64
			before := 0.0
			tick := 0.0
			for i := range 2000 {
				tick += float64(1 + r.IntN(2)*r.IntN(3)) // most ticks hold something
				at := tick * c.grid
				if c.of != nil {
					at += c.of(r, i, c.jitter)
				}
				at = math.Round(at / c.unit)
				if i > 0 {
					gaps = append(gaps, at-before, 0)
				}
				before = at
			}
			s, err := NewSample(gaps)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := ModalSpacing(s)
			if want := c.grid / c.unit; !ok || math.Abs(got-want) > 1e-9*want {
				t.Errorf("found %v (%v), want %v", got, ok, want)
			}
		})
	}
	r := rand.New(rand.NewPCG(2, 2))
	var gaps []float64
	for range 2000 {
		gaps = append(gaps, math.Round(1e6*r.ExpFloat64()))
	}
	s, err := NewSample(gaps)
	if err != nil {
		t.Fatal(err)
	}
	if grid, ok := ModalSpacing(s); ok {
		t.Errorf("Poisson stamps are on a grid of %v", grid)
	}
}
