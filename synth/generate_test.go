package synth

import (
	"bytes"
	"math"
	"testing"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

func generate(t testing.TB, w *model.Workload, g Generation) *made {
	t.Helper()
	return collect(t, func(emit func(*trace.Batch) error) (trace.Meta, error) { return g.Run(t.Context(), w, emit) })
}

func spec(law stats.Law) *stats.LawSpec {
	s := stats.SpecOf(law)
	return &s
}

// flat is a workload of constant rate.
func flat(rate float64, gaps stats.Law) *model.Workload {
	return &model.Workload{Streams: []model.Stream{{
		Name: "all", Arrivals: &model.Arrivals{Of: "request", RateHz: rate, Profile: []model.Rate{{ToS: 3600, RateHz: rate}}, Gaps: spec(gaps)},
		Lengths: model.Lengths{Pairs: []model.Pair{{Input: 100, Output: 10, N: 3}, {Input: 2000, Output: 50, N: 1}}},
	}}}
}

func gapsOf(m *made) []float64 {
	var gaps []float64
	for i := 1; i < len(m.rows); i++ {
		gaps = append(gaps, (m.rows[i].Arrival.Value - m.rows[i-1].Arrival.Value).Seconds())
	}
	return gaps
}

// TestGeneratedGammaIsFoundAgain fits what was generated: the shape inside four
// standard errors, and the Poisson test where the shape is 1.
func TestGeneratedGammaIsFoundAgain(t *testing.T) {
	for _, shape := range []float64{0.5, 1, 4} {
		m := generate(t, flat(10, stats.Gamma{Shape: shape, Scale: 1 / shape}), Generation{Requests: 20_000, Seed: 7})
		sample, err := stats.NewSample(gapsOf(m))
		if err != nil {
			t.Fatal(err)
		}
		positive := sample.Where(func(x float64) bool { return x > 0 })
		fit, err := stats.FitGamma(positive)
		if err != nil {
			t.Fatal(err)
		}
		got := fit.Law.(stats.Gamma)
		if math.Abs(got.Shape-shape) > 4*fit.StdErr[0] {
			t.Errorf("shape %v: fitted %v +- %v", shape, got.Shape, fit.StdErr[0])
		}
		near(t, "gamma", "rate", 0, float64(len(m.rows))/last600(m), 10, 0.05)
		if shape == 1 {
			c := counts(m, time.Second)
			if _, log10p, ok := c.PoissonTest(); !ok || log10p < -3 {
				t.Errorf("Poisson arrivals disperse too much: log10 p %v", log10p)
			}
		}
	}
}

// TestProfile follows a rate that changes, repeats it, and scales it.
func TestProfile(t *testing.T) {
	w := flat(0, stats.Constant{Value: 1})
	w.Streams[0].Arrivals.RateHz = 4
	w.Streams[0].Arrivals.Profile = []model.Rate{{FromS: 0, ToS: 100, RateHz: 1}, {FromS: 100, ToS: 150, RateHz: 0}, {FromS: 150, ToS: 250, RateHz: 9}}
	m := generate(t, w, Generation{Duration: 500 * time.Second, Rate: 8})
	within := func(from, to float64) (n int) {
		for _, r := range m.rows {
			if at := (r.Arrival.Value + time.Duration(m.meta.OriginNS.Or(0))).Seconds(); at >= from && at < to {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		from, to float64
		want     int
	}{{0, 100, 200}, {100, 149, 0}, {151, 250, 1782}, {250, 350, 200}, {401, 500, 1782}} {
		if n := within(c.from, c.to); math.Abs(float64(n-c.want)) > 4 {
			t.Errorf("%v to %v s: %d arrivals, want %d", c.from, c.to, n, c.want)
		}
	}
}

// conversing has sessions, think times, growth and shared roots.
func conversing() *model.Workload {
	w := flat(2, stats.Exponential{Rate: 1})
	s := &w.Streams[0]
	s.Arrivals.Of = "session"
	s.Models = []model.Share{{Name: "big", Share: 0.25}, {Name: "small", Share: 0.75}}
	s.Sessions = &model.Sessions{
		How: "explicit", Turns: *spec(must2(stats.NewEmpirical(must2(stats.NewSample([]float64{1, 2, 5}))))), Think: spec(stats.Constant{Value: 3}), Gap: spec(stats.Constant{Value: 4}),
		Growth: spec(stats.Constant{Value: 300}), Outputs: *spec(stats.Constant{Value: 7}),
	}
	s.Prefix = &model.Prefix{BlockTokens: 64, Tail: trace.TailPartial, Roots: []model.Root{{Blocks: 1, Share: 0.6}, {Blocks: 2, Share: 0.3}}}
	return w
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestSessions holds generated conversations against their model.
func TestSessions(t *testing.T) {
	m := generate(t, conversing(), Generation{Duration: 1000 * time.Second, Seed: 1, Warm: true})
	turns, models := map[int32]int{}, map[string]int{}
	byID := map[int64]trace.Request{}
	first := map[uint64]int{}
	for _, r := range m.rows {
		byID[r.ID] = r
		turns[r.Turn.Value]++
		models[r.Model.Value]++
		if r.Turn.Value == 0 {
			first[r.Blocks[0]]++
			continue
		}
		for _, d := range r.After {
			before := byID[d.ID]
			if before.Session != r.Session || before.Turn.Value != r.Turn.Value-1 || r.Delay.Value != 3*time.Second || math.Abs((r.Arrival.Value-before.Arrival.Value).Seconds()-4) > 1e-6 || r.InputTokens.Value != before.InputTokens.Value+300 || r.OutputTokens.Value != 7 {
				t.Fatalf("turn %+v after %+v", r, before)
			}
			for i, id := range before.Blocks[:len(before.Blocks)-1] {
				if r.Blocks[i] != id {
					t.Fatalf("turn %d of %s does not keep block %d", r.Turn.Value, r.Session.Value, i)
				}
			}
		}
	}
	near(t, "sessions", "rate", 0, float64(len(m.rows))/1000, 2*8.0/3, 0.1)
	near(t, "sessions", "turn 1 of turn 0", 0, float64(turns[1])/float64(turns[0]), 2.0/3, 0.05)
	near(t, "sessions", "turn 4 of turn 0", 0, float64(turns[4])/float64(turns[0]), 1.0/3, 0.05)
	near(t, "sessions", "share of big", 0, float64(models["big"])/float64(len(m.rows)), 0.25, 0.06)
	var shared []int
	for _, n := range first {
		if n > 1 {
			shared = append(shared, n)
		}
	}
	if len(shared) != 2 {
		t.Errorf("%d roots are shared, want 2", len(shared))
	}
}

// TestGenerationIsCounterBased: the same seed gives the same bytes, another
// others; a longer trace begins with the shorter one; another stream changes
// nothing in the first.
func TestGenerationIsCounterBased(t *testing.T) {
	w := conversing()
	short, again := generate(t, w, Generation{Requests: 500, Seed: 3}), generate(t, w, Generation{Requests: 500, Seed: 3})
	if !bytes.Equal(short.data, again.data) {
		t.Error("the same seed gives other bytes")
	}
	if other := generate(t, w, Generation{Requests: 500, Seed: 4}); bytes.Equal(short.data, other.data) {
		t.Error("another seed gives the same bytes")
	}
	long := generate(t, w, Generation{Requests: 900, Seed: 3})
	for i := range short.rows {
		a, b := must(trace.AppendJSON(nil, &short.rows[i])), must(trace.AppendJSON(nil, &long.rows[i]))
		if !bytes.Equal(a, b) {
			t.Fatalf("row %d is\n%s in the longer trace\n%s", i, b, a)
		}
	}
	two := conversing()
	two.Streams = append(two.Streams, conversing().Streams[0])
	two.Streams[1].Client = "another"
	both := generate(t, two, Generation{Duration: 100 * time.Second, Seed: 3})
	k := 0
	for _, r := range both.rows {
		if r.ClientID.Known {
			continue
		}
		if k < len(short.rows) && (r.Session != short.rows[k].Session || r.InputTokens != short.rows[k].InputTokens || r.Blocks[0] != short.rows[k].Blocks[0]) {
			t.Fatalf("row %d of the first stream changes with a second: %+v, %+v", k, r, short.rows[k])
		}
		k++
	}
}

// TestCopulaJoinsMarginals has the rank correlation asked for, or that of bins.
func TestCopulaJoinsMarginals(t *testing.T) {
	w := flat(10, stats.Exponential{Rate: 1})
	w.Streams[0].Lengths = model.Lengths{InputLaw: spec(stats.Lognormal{Mu: 6, Sigma: 1}), OutputLaw: spec(stats.Exponential{Rate: 0.01}), Copula: &model.Copula{Rho: 0.6, Monotone: true}}
	m := generate(t, w, Generation{Requests: 20_000})
	d := dependence(t, m)
	near(t, "copula", "Spearman", 0, d, 6/math.Pi*math.Asin(0.3), 0.03)
	w.Streams[0].Lengths.Copula = &model.Copula{Rho: 0.6, Bins: []model.Bin{{InputTo: 400, N: 1, Output: *spec(stats.Constant{Value: 9})}, {InputFrom: 400, InputTo: 1e9, N: 1, Output: *spec(stats.Constant{Value: 2})}}}
	for _, r := range generate(t, w, Generation{Requests: 1000}).rows {
		if want := int64(9); r.InputTokens.Value > 401 && r.OutputTokens.Value != 2 || r.InputTokens.Value < 400 && r.OutputTokens.Value != want {
			t.Fatalf("lengths %v and %v", r.InputTokens, r.OutputTokens)
		}
	}
}

func dependence(t *testing.T, m *made) float64 {
	t.Helper()
	p := stats.NewPairs(int64(len(m.rows)))
	for _, r := range m.rows {
		if err := p.Add(r.InputTokens.Value, r.OutputTokens.Value); err != nil {
			t.Fatal(err)
		}
	}
	d, ok := p.Dependence()
	if !ok {
		t.Fatal("no dependence")
	}
	return d.Spearman
}
