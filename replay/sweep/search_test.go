package sweep

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/replay/mock/batch"
)

// engine is a batching engine whose capacity is known: MaxBatch answers of a number
// of tokens each, in steps of a full batch.
func engine(jitter float64, seed uint64) batch.Config {
	return batch.Config{PrefillRate: 1e9, StepBase: 10 * time.Millisecond, StepPerSequence: time.Millisecond, MaxBatch: 16, CacheTokens: -1, Jitter: jitter, Seed: seed}
}

const (
	answer   = 40               // tokens
	runTime  = 60 * time.Second // of arrivals, in virtual time
	waitGoal = time.Second      // ttft_p95 below that
)

func capacity() float64 {
	c := engine(0, 0)
	return float64(c.MaxBatch) / (answer * c.Step(c.MaxBatch, 0).Seconds())
}

// simulated measures the engine in virtual time: random runs have Poisson arrivals,
// answers of random length and steps of random time.
func simulated(t *testing.T, seed uint64, random bool) Measure {
	return func(_ context.Context, load float64, repeat int) (*Run, error) {
		rng := rand.New(rand.NewPCG(seed, math.Float64bits(load)^uint64(repeat)))
		var list []batch.Arrival
		for at, i := 0.0, 0; ; i++ {
			tokens := answer
			if random {
				at += rng.ExpFloat64() / load
				tokens = 1 + rng.IntN(2*answer-1)
			} else {
				at = float64(i) / load
			}
			if at > runTime.Seconds() {
				break
			}
			list = append(list, batch.Arrival{At: time.Duration(at * 1e9), PromptTokens: 10, OutputTokens: tokens})
		}
		jitter := 0.0
		if random {
			jitter = 0.2
		}
		lines, err := batch.Simulate(engine(jitter, rng.Uint64()), list)
		if err != nil {
			t.Fatal(err)
		}
		waits, end := make([]float64, len(lines)), 0.0
		for i, l := range lines {
			waits[i] = l.TTFT().Seconds()
			end = max(end, l.End().Seconds())
		}
		slices.Sort(waits)
		p95 := waits[int(0.95*float64(len(waits)))]
		return &Run{Met: p95 < waitGoal.Seconds(), Margin: min(MarginLimit, max(-MarginLimit, math.Log(p95/waitGoal.Seconds()))), RequestsPerS: new(float64(len(lines)) / end), E2EP50: new(waits[len(waits)/2] + 1)}, nil
	}
}

// The search finds the knee of an engine whose capacity is known: with even arrivals
// what fits is what the engine can do, less nothing and more by what the queue of one
// run hides.
func TestSearchFindsCapacity(t *testing.T) {
	for _, s := range []Search{{Low: 1, High: 1000}, {Low: 0.3, High: 1000}, {Low: 5, High: 64, Tolerance: 0.02}, {Low: 1, High: 200, Whole: true}} {
		var c Curve
		f, err := s.Run(t.Context(), &c, simulated(t, 1, false))
		if err != nil {
			t.Fatal(err)
		}
		if off := *f.Estimate/capacity() - 1; !f.Settled || math.Abs(off) > 0.05 {
			t.Errorf("%+v: estimate %.3f, capacity %.3f (%+.1f %%), settled %v: %s", s, *f.Estimate, capacity(), 100*off, f.Settled, f.Why)
		}
		if c.N > 25 {
			t.Errorf("%+v: %d runs", s, c.N)
		}
		if text := c.Overload(f); !strings.HasPrefix(text, "degrades") {
			t.Errorf("overload: %q", text)
		}
	}
}

// With noise in arrivals, lengths and steps the knee is lower; where it is, many runs
// say. A search of few runs comes within 5 % of it, whatever its seed.
func TestSearchWithNoise(t *testing.T) {
	truth := trueKnee(t)
	if truth > capacity() || truth < 0.7*capacity() {
		t.Fatalf("knee at %.3f, capacity %.3f", truth, capacity())
	}
	most, worst := 0, 0.0
	for seed := range uint64(20) {
		var c Curve
		f, err := Search{Low: 1, High: 1000, Beyond: []float64{}}.Run(t.Context(), &c, simulated(t, seed, true))
		if err != nil {
			t.Fatal(err)
		}
		off := *f.Estimate/truth - 1
		if worst = max(worst, math.Abs(off)); math.Abs(off) > 0.05 {
			t.Errorf("seed %d: estimate %.3f, knee %.3f (%+.1f %%) after %d runs", seed, *f.Estimate, truth, 100*off, c.N)
		}
		most = max(most, c.N)
	}
	t.Logf("knee %.3f/s, capacity %.3f/s; 20 searches came within %.1f %% with at most %d runs", truth, capacity(), 100*worst, most)
	if most > 40 {
		t.Errorf("%d runs", most)
	}
}

// trueKnee is the load whose runs have the mean margin 0, by bisection with 60 runs
// each.
func trueKnee(t *testing.T) float64 {
	measure := simulated(t, 1<<40, true)
	low, high := 0.5*capacity(), 1.2*capacity()
	for range 6 {
		mid := (low + high) / 2
		sum := 0.0
		for i := range 60 {
			r, _ := measure(t.Context(), mid, i)
			sum += r.Margin
		}
		if sum < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// made answers as margin says, and throughput rises up to top, then falls to it.
func made(margin func(load float64) float64, rate func(load float64) float64) Measure {
	return func(_ context.Context, load float64, _ int) (*Run, error) {
		m := min(MarginLimit, max(-MarginLimit, margin(load)))
		return &Run{Met: m < 0, Margin: m, RequestsPerS: new(rate(load)), E2EP50: new(100 / max(0.01, 1-load/100)), ErrorRate: new(0.0)}, nil
	}
}

func TestSearchWithoutAnEdge(t *testing.T) {
	even := func(load float64) float64 { return load }
	var c Curve
	f, err := Search{Low: 1, High: 50}.Run(t.Context(), &c, made(func(float64) float64 { return -1 }, even))
	if err != nil || f.Met == nil || *f.Met != 50 || f.Broken != nil || f.Estimate != nil || f.Settled || !strings.Contains(f.Why, "holds at all loads up to 50") {
		t.Errorf("%+v, %v", f, err)
	}
	c = Curve{}
	f, err = Search{Low: 2, High: 50}.Run(t.Context(), &c, made(func(float64) float64 { return 1 }, even))
	if err != nil || f.Met != nil || f.Broken == nil || *f.Broken != 2 || f.Settled || c.N != DefaultRepeats || !strings.Contains(f.Why, "does not hold at 2") {
		t.Errorf("%+v, %v after %d runs", f, err, c.N)
	}
	c = Curve{}
	f, err = Search{Low: 1, High: 1000, MostRuns: 8}.Run(t.Context(), &c, made(func(l float64) float64 { return math.Log(l / 37) }, even))
	if err != nil || f.Settled || c.N != 10 || !strings.Contains(f.Why, "8 runs did not suffice") {
		t.Errorf("%+v, %v after %d runs", f, err, c.N)
	}
}

func TestSearchStopsAtAnInvalidRun(t *testing.T) {
	var c Curve
	_, err := Search{Low: 1, High: 50}.Run(t.Context(), &c, func(_ context.Context, load float64, _ int) (*Run, error) {
		return &Run{Met: true, Margin: -1, Verdict: map[bool]string{true: "valid", false: "invalid"}[load < 8]}, nil
	})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "at 8:") || c.N != 4 {
		t.Errorf("%v after %d runs", err, c.N)
	}
}

// A load at which nothing is answered any more is beyond the edge; where nothing was
// ever answered, it is no measurement.
func TestSearchWhereNothingIsAnswered(t *testing.T) {
	rejects := func(above float64) Measure {
		return func(_ context.Context, load float64, _ int) (*Run, error) {
			if load <= above {
				return &Run{Met: true, Margin: -1, Verdict: analysis.Valid, RequestsPerS: new(load), E2EP50: new(100.0)}, nil
			}
			return &Run{Margin: MarginLimit, Verdict: analysis.Invalid, Silent: true, Why: "no request was successful", RequestsPerS: new(0.0), ErrorRate: new(1.0)}, nil
		}
	}
	var c Curve
	f, err := Search{Low: 1, High: 1000}.Run(t.Context(), &c, rejects(30))
	if err != nil {
		t.Fatal(err)
	}
	if !f.Settled || *f.Met > 30 || *f.Broken <= 30 || *f.Broken > 32 {
		t.Errorf("met %v, broken %v, settled %v: %s", *f.Met, *f.Broken, f.Settled, f.Why)
	}
	if text := c.Overload(f); !strings.HasPrefix(text, "collapses") {
		t.Errorf("overload: %q", text)
	}
	c = Curve{}
	if _, err := (Search{Low: 1, High: 1000}).Run(t.Context(), &c, rejects(0)); !errors.Is(err, ErrInvalid) || c.N != 1 {
		t.Errorf("%v after %d runs", err, c.N)
	}
}

func TestOverload(t *testing.T) {
	for want, rate := range map[string]func(float64) float64{
		"degrades":  func(l float64) float64 { return min(l, 30) },
		"collapses": func(l float64) float64 { return max(1, min(l, 60-l)) },
	} {
		var c Curve
		f, err := Search{Low: 1, High: 1000}.Run(t.Context(), &c, made(func(l float64) float64 { return math.Log(l / 30) }, rate))
		if err != nil {
			t.Fatal(err)
		}
		if text := c.Overload(f); !strings.HasPrefix(text, want) || !f.Settled || math.Abs(*f.Estimate/30-1) > 0.03 {
			t.Errorf("%q, want %s; estimate %v", text, want, *f.Estimate)
		}
	}
}

func TestKnee(t *testing.T) {
	var c Curve
	m := made(func(float64) float64 { return -1 }, func(l float64) float64 { return l })
	if err := Grid(t.Context(), &c, []float64{10, 30, 50, 70, 90}, 2, m); err != nil {
		t.Fatal(err)
	}
	if knee, ok := c.Knee(); !ok || knee != 50 || c.N != 10 { // power is load (1 - load/100), largest at 50
		t.Errorf("knee %v %v after %d runs", knee, ok, c.N)
	}
	c = Curve{}
	if err := Grid(t.Context(), &c, []float64{10, 20, 30}, 1, m); err != nil {
		t.Fatal(err)
	}
	if knee, ok := c.Knee(); ok {
		t.Errorf("knee %v where power still grows", knee)
	}
}
