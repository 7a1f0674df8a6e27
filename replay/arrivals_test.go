package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// What a law accepts gives due times that a clock of nanoseconds can hold.
func TestArrivalsAtTheirBounds(t *testing.T) {
	for _, text := range []string{"constant:1e-6", "constant:1e9", "poisson:1e-6", "poisson:1e9", "gamma:1e-6,cv=1e-3", "gamma:1e9,cv=100", "gamma:1,cv=100", "gamma:1,cv=1e-3"} {
		a, err := ParseArrivals(text)
		if err != nil {
			t.Fatal(err)
		}
		next, last := a.starts(rand.NewPCG(1, 2)), time.Duration(0)
		for range 100 {
			at, ok := next()
			if at < last || !ok {
				t.Errorf("%s: %v after %v", text, at, last)
			}
			last = at
		}
	}
	for _, text := range []string{"constant:1e-300", "poisson:1e308", "gamma:1,cv=1e308", "gamma:1,cv=1e-300", "gamma:1,cv=NaN", "gamma:1,cv=0", "poisson:NaN", "poisson:Inf", "at-once:3", "poisson:1,cv=2"} {
		if a, err := ParseArrivals(text); err == nil {
			t.Errorf("%s: accepted as %v", text, a)
		}
	}
}

func TestSelectionRefusesSpeedsWithoutSense(t *testing.T) {
	for _, s := range []Selection{{Speed: math.NaN()}, {Speed: math.Inf(1)}, {Speed: 1e-300}, {Speed: 1e308}, {Speed: -1}, {From: -1}} {
		if err := s.check("trace", false); err == nil {
			t.Errorf("%+v: accepted", s)
		}
	}
}
