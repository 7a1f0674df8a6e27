package stats

import (
	"math"
	"testing"
)

// TestFitGeometric recovers p within four standard errors, and tells other counts
// by their distance.
func TestFitGeometric(t *testing.T) {
	for _, p := range []float64{0.05, 0.4, 0.9} {
		r := rng(7)
		var values []float64
		for range 20_000 {
			values = append(values, Geometric{p}.Rand(r))
		}
		s, err := NewSample(values)
		if err != nil {
			t.Fatal(err)
		}
		fit, err := FitGeometric(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := fit.Law.(Geometric).P; math.Abs(got-p) > 4*fit.StdErr[0] || fit.Grade != Good {
			t.Errorf("p %v +- %v, want %v; KS %v", got, fit.StdErr[0], p, fit.KS)
		}
		if math.Abs(fit.LogLik-LogLik(s, fit.Law)) > 1e-6*math.Abs(fit.LogLik) {
			t.Errorf("log-likelihood %v, and %v by the densities", fit.LogLik, LogLik(s, fit.Law))
		}
	}
	same, err := CountedSample([]float64{7}, []int64{100})
	if err != nil {
		t.Fatal(err)
	}
	if fit, err := FitGeometric(same); err != nil || fit.Grade != EmpiricalOnly {
		t.Errorf("equal counts: %+v, %v", fit, err)
	}
	for _, values := range [][]float64{{0, 1}, {1.5}} {
		s, err := NewSample(values)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FitGeometric(s); err == nil {
			t.Errorf("%v are taken for counts", values)
		}
	}
}

// TestGeometricByHand: P = 1/2 halves at each count.
func TestGeometricByHand(t *testing.T) {
	g := Geometric{0.5}
	for x, want := range map[float64]float64{0.9: 0, 1: 0.5, 1.9: 0.5, 2: 0.75, 3: 0.875} {
		if got := g.CDF(x); math.Abs(got-want) > 1e-15 {
			t.Errorf("CDF(%v) = %v, want %v", x, got, want)
		}
	}
	for p, want := range map[float64]float64{0: 1, 0.5: 1, 0.51: 2, 0.75: 2, 0.8: 3} {
		if got := g.Quantile(p); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", p, got, want)
		}
	}
	if got := g.IntegralCDF(3.5); math.Abs(got-(0.5+0.75+0.5*0.875)) > 1e-14 {
		t.Errorf("IntegralCDF(3.5) = %v", got)
	}
}
