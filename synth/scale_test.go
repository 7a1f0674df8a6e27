package synth

import (
	"bytes"
	"context"
	"math"
	"testing"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

func scale(t testing.TB, m *made, s Scaling) (*made, *model.Design) {
	t.Helper()
	var design *model.Design
	out := collect(t, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, design, err = s.Run(context.Background(), m.open, emit)
		return meta, err
	})
	return out, design
}

// counts are the counts in windows of w.
func counts(m *made, w time.Duration) stats.WindowCounts {
	c := stats.NewCounter(int64(w))
	for _, r := range m.rows {
		c.Add(int64(r.Arrival.Value))
	}
	return c.Counts()
}

func dispersion(t testing.TB, m *made, w time.Duration) (idc, rateCV float64) {
	t.Helper()
	c := counts(m, w)
	idc, ok := c.Dispersion()
	rateCV, ok2 := c.RateCV()
	if !ok || !ok2 {
		t.Fatalf("no dispersion in %d rows", len(m.rows))
	}
	return idc, rateCV
}

// TestIdentity scales by 1, with and without a jitter: the same bytes.
func TestIdentity(t *testing.T) {
	for _, file := range [][]string{{"azure", "AzureLLMInferenceTrace_code.csv"}, {"mooncake", "conversation_trace.jsonl"}, {"weka", "v8"}, {"sharegpt", "sharegpt_v3_subset.json"}} {
		m := imported(t, file...)
		for _, jitter := range []trace.Optional[time.Duration]{{}, trace.Some(time.Duration(0))} {
			out, design := scale(t, m, Scaling{Jitter: jitter})
			if !bytes.Equal(out.data, m.data) {
				t.Errorf("%v: scaled by 1 it is another file (%d rows, %+v)", file, len(out.rows), design)
			}
		}
	}
}

type pair struct{ in, out int64 }

func pairs(m *made) map[pair]int64 {
	of := map[pair]int64{}
	for _, r := range m.rows {
		of[pair{r.InputTokens.Value, r.OutputTokens.Value}]++
	}
	return of
}

// TestWholeCopiesKeepEveryPair has each pair of lengths M times.
func TestWholeCopiesKeepEveryPair(t *testing.T) {
	for _, file := range [][]string{{"azure", "AzureLLMInferenceTrace_code.csv"}, {"mooncake", "conversation_trace.jsonl"}, {"weka", "v8"}} {
		m := imported(t, file...)
		out, _ := scale(t, m, Scaling{Factor: 3, Seed: 5})
		got := pairs(out)
		for p, n := range pairs(m) {
			if got[p] != 3*n {
				t.Fatalf("%v: %v occurs %d times, want %d", file, p, got[p], 3*n)
			}
		}
		if len(out.rows) != 3*len(m.rows) {
			t.Errorf("%v: %d rows of %d", file, len(out.rows), len(m.rows))
		}
	}
}

// TestLargerFractionContainsSmaller has every row of x2 in x2.5, and of x2.5 in
// x2.7, as it is.
func TestLargerFractionContainsSmaller(t *testing.T) {
	m := imported(t, "mooncake", "conversation_trace.jsonl")
	key := func(m *made, i int) string {
		r := m.rows[i]
		r.Arrival.Value += time.Duration(m.meta.OriginNS.Or(0)) // its own begin is 0
		return string(must(trace.AppendJSON(nil, &r)))
	}
	var before map[string]bool
	for _, factor := range []float64{0.4, 1, 2, 2.5, 2.7} {
		out, d := scale(t, m, Scaling{Factor: factor, Seed: 3})
		now := map[string]bool{}
		for i := range out.rows {
			now[key(out, i)] = true
		}
		for k := range before {
			if !now[k] {
				t.Fatalf("x%v lacks %s", factor, k)
			}
		}
		if got := float64(len(out.rows)) / float64(len(m.rows)); math.Abs(got-factor) > 0.03 {
			t.Errorf("x%v has %.3f times the rows (%+v)", factor, got, d)
		}
		before = now
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestLawsOfScaling holds the dispersion of counts against the exact laws: a
// common rate (copies without a shift move together), independent copies,
// compression, and thinning.
func TestLawsOfScaling(t *testing.T) {
	conversation := spread(t, imported(t, "mooncake", "conversation_trace.jsonl"), Spreading{Tick: 3 * time.Second, Seed: 1})
	code := imported(t, "azure", "AzureLLMInferenceTrace_code.csv")
	for name, m := range map[string]*made{"azure code": code, "mooncake conversation": conversation} {
		for _, w := range []time.Duration{time.Second, 10 * time.Second, 60 * time.Second} {
			idc, c := dispersion(t, m, w)

			// The common cause: all copies in the rhythm of the source.
			still, _ := scale(t, m, Scaling{Factor: 3, Jitter: trace.Some(time.Duration(0))})
			got, gotC := dispersion(t, still, w)
			exact(t, name, "duplicates, IDC", w, got, 3*idc) // Var(3N)/E(3N)
			_ = gotC

			// Time compression: IDC'(w) = IDC(M w), where windows align.
			fast, d := scale(t, m, Scaling{Speed: 3})
			wide, _ := dispersion(t, m, 3*w)
			got, _ = dispersion(t, fast, w)
			near(t, name, "compressed, IDC", w, got, wide, 0.02)
			if d.Speed != 3 {
				t.Errorf("design %+v", d)
			}

			// Thinning by chance: IDC_p = 1 + p (IDC - 1), c stays; mean of 5 seeds.
			var sum, sumC float64
			for seed := range uint64(5) {
				thin, _ := scale(t, m, Scaling{Factor: 0.5, Thin: ThinRequests, Seed: seed})
				i, c := dispersion(t, thin, w)
				sum, sumC = sum+i/5, sumC+c/5
			}
			near(t, name, "thinned, IDC", w, sum, 1+0.5*(idc-1), 0.12)
			if c > 0.5 {
				near(t, name, "thinned, c", w, sumC, c, 0.06)
			}
		}
		// Session copies: above the jitter the copies have a common cause,
		// c_m = c; the mean rate is exact.
		jitter := trace.Some(10 * time.Second)
		_, c := dispersion(t, m, 60*time.Second)
		if c > 0.5 { // else the noise of counts is larger
			out, _ := scale(t, m, Scaling{Factor: 3, Jitter: jitter, Seed: 2})
			_, gotC := dispersion(t, out, 60*time.Second)
			near(t, name, "jittered copies, c", 60*time.Second, gotC, c, 0.12)
		}
	}
}

func exact(t *testing.T, name, what string, w time.Duration, got, want float64) {
	t.Helper()
	near(t, name, what, w, got, want, 1e-9)
}

func near(t *testing.T, name, what string, w time.Duration, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %s at %v: %.4g, want %.4g", name, what, w, got, want)
	}
}

// TestSixIsTwoThenThree: scaling in two steps keeps what scaling in one keeps:
// every pair of lengths, the rate, the dispersion, and reuse.
func TestSixIsTwoThenThree(t *testing.T) {
	whole := spread(t, imported(t, "mooncake", "conversation_trace.jsonl"), Spreading{Tick: 3 * time.Second, Seed: 1})
	m, _ := scale(t, whole, Scaling{To: 20 * time.Minute})
	six, _ := scale(t, m, Scaling{Factor: 6, Seed: 1})
	two, _ := scale(t, m, Scaling{Factor: 2, Seed: 2})
	steps, _ := scale(t, two, Scaling{Factor: 3, Seed: 3})
	if len(six.rows) != len(steps.rows) {
		t.Errorf("%d rows in one step, %d in two", len(six.rows), len(steps.rows))
	}
	a, b := pairs(six), pairs(steps)
	for p, n := range a {
		if b[p] != n {
			t.Fatalf("%v occurs %d times in one step, %d in two", p, n, b[p])
		}
	}
	near(t, "x6", "hit rate", 0, hits(steps), hits(six), 0.01)
	for _, w := range []time.Duration{time.Second, 10 * time.Second, 60 * time.Second} {
		one, _ := dispersion(t, six, w)
		twice, _ := dispersion(t, steps, w)
		near(t, "x6", "IDC", w, twice, one, 0.45) // 20 windows of a minute
	}
}
