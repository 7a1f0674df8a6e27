package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestCounterAgainstDirectCount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 50 {
		width := 1 + random.Int64N(50)
		var at []int64
		now := random.Int64N(100)
		for range 1 + random.IntN(60) {
			now += random.Int64N(40)
			at = append(at, now)
		}
		c := NewCounter(width)
		for _, v := range at {
			c.Add(v)
		}
		direct := make([]int64, (at[len(at)-1]-at[0])/width)
		for _, v := range at {
			if k := (v - at[0]) / width; k < int64(len(direct)) {
				direct[k]++
			}
		}
		want, err := CountsOf(direct)
		if err != nil {
			t.Fatal(err)
		}
		got := c.Counts()
		if got.Series != want.Series || fmt.Sprint(got.Sample()) != fmt.Sprint(want.Sample()) {
			t.Fatalf("round %d: %+v, want %+v", round, got, want)
		}
	}
}

// TestPoissonDispersion: for Poisson arrivals the dispersion test's p is
// uniform over seeds, and its tail at both ends is where it should be.
func TestPoissonDispersion(t *testing.T) {
	var below, n float64
	for seed := range uint64(400) {
		r := Stream(seed, 77)
		c := NewCounter(1000)
		var at float64
		for range 4000 {
			at += r.ExpFloat64() * 100
			c.Add(int64(at))
		}
		counts := c.Counts()
		_, log10P, ok := counts.PoissonTest()
		if !ok {
			t.Fatal("no test")
		}
		n++
		if log10P < -1 {
			below++
		}
	}
	if share := below / n; math.Abs(share-0.1) > 4*math.Sqrt(0.09/n) {
		t.Errorf("p < 0.1 in the share %v of Poisson samples", share)
	}
}

func TestCountsWithoutEvents(t *testing.T) {
	for _, counts := range [][]int64{nil, {0}, {5}, {0, 0, 0}} {
		c, err := CountsOf(counts)
		if err != nil {
			t.Fatal(err)
		}
		_, d := c.Dispersion()
		_, cv := c.RateCV()
		_, _, p := c.PoissonTest()
		_, nb := c.FitNegBinomial()
		if d || cv || p || nb {
			t.Errorf("%v: a value of nothing", counts)
		}
	}
	if c, _ := CountsOf([]int64{3, 3, 3}); true {
		if d, ok := c.Dispersion(); !ok || d != 0 {
			t.Errorf("dispersion of equal counts: %v %v", d, ok)
		}
		if _, ok := c.Lag1(); ok {
			t.Error("autocorrelation of equal counts")
		}
	}
	if _, err := CountsOf([]int64{-1}); err == nil {
		t.Error("a negative count passed")
	}
}

// TestNegBinomialRecovers: counts of gamma-mixed Poisson windows give the shape
// back, on both forms of the score.
func TestNegBinomialRecovers(t *testing.T) {
	for _, shape := range []float64{1, 4} { // gamma of whole shape: a sum of exponentials
		r := Stream(5, uint64(shape))
		counts := make([]int64, 40000)
		for i := range counts {
			var rate float64
			for range int(shape) {
				rate += r.ExpFloat64()
			}
			rate *= 6 / shape
			for at := r.ExpFloat64(); at < rate; at += r.ExpFloat64() {
				counts[i]++
			}
		}
		c, err := CountsOf(counts)
		if err != nil {
			t.Fatal(err)
		}
		fit, ok := c.FitNegBinomial()
		if !ok || math.Abs(fit.R/shape-1) > 0.06 {
			t.Errorf("shape %v: fitted %+v", shape, fit)
		}
		mean, _ := c.Mean()
		tails := c.negBinomialScore(mean)
		c.most = tailCounts + 1
		if a, b := tails(fit.R), c.negBinomialScore(mean)(fit.R); math.Abs(a-b) > 1e-9 {
			t.Errorf("two forms of the score: %v and %v", a, b)
		}
	}
}

func TestLogChi2Tail(t *testing.T) {
	for _, c := range []struct{ chi2, free, want float64 }{
		{2 * 700, 2, -700},             // exp(-x/2) for two degrees of freedom
		{3, 2, -1.5},                   //
		{2e6, 2, -1e6},                 // underflows as a probability
		{0, 5, 0},                      //
		{4, 4, math.Log(3) - 2},        // e^-x (1 + x) for four
		{200, 4, math.Log(101) - 100},  //
		{1e7, 1e7, math.Log(0.499941)}, // nearly normal
	} {
		got := LogChi2Tail(c.chi2, c.free)
		if math.Abs(got-c.want) > 2e-6*max(1, math.Abs(c.want)) {
			t.Errorf("LogChi2Tail(%v, %v) = %v, want %v", c.chi2, c.free, got, c.want)
		}
	}
	for _, a := range []float64{0.5, 5, 19.9, 20.1, 500, 1e6} { // both ways to the tail meet
		x := 2 * (a + 1)
		if lo, hi := LogChi2Tail(x*(1-1e-12), 2*a), LogChi2Tail(x*(1+1e-12), 2*a); math.Abs(lo-hi) > 1e-8 {
			t.Errorf("a = %v: %v and %v on two sides", a, lo, hi)
		}
	}
}

func ExampleCounter() {
	c := NewCounter(10) // windows of 10 ticks
	for _, at := range []int64{0, 1, 2, 3, 25, 26, 31} {
		c.Add(at)
	}
	counts := c.Counts()
	d, _ := counts.Dispersion()
	fmt.Println(counts.N(), "complete windows, dispersion", d)
	// Output: 3 complete windows, dispersion 2
}
