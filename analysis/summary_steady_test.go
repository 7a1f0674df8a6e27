package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// ramped are requests of 2 s each that arrive every gap, so that the first 2 s rise and
// the last 2 s fall; of late ones TTFT is as the function says.
func ramped(n int, gap time.Duration, ttft func(i int) time.Duration) []results.Result {
	rows := make([]results.Result, n)
	for i := range rows {
		sent := time.Duration(i) * gap
		rows[i] = results.Result{
			ID: int64(i), Outcome: results.OutcomeOK, Dispatched: trace.Some(sent), Eligible: trace.Some(sent), Sent: trace.Some(sent), End: trace.Some(sent + 2*time.Second),
			Ledger: []results.Entry{{At: ttft(i).Microseconds(), Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage}},
		}
	}
	return rows
}

func steadySummary(t *testing.T, rows []results.Result) *Summary {
	t.Helper()
	s, err := Summarize(t.Context(), results.InMemory(results.Run{Label: "open loop", Ended: &results.Ended{Sent: int64(len(rows))}}, rows))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The window leaves the rise and the fall out, and its numbers are those of the
// requests in it.
func TestSteadyWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	rows := ramped(1000, 20*time.Millisecond, func(i int) time.Duration {
		if i < 100 { // the first 2 s are not as the rest
			return time.Second
		}
		return 100*time.Millisecond + time.Duration(random.IntN(1000))*time.Microsecond
	})
	w := steadySummary(t, rows).Steady
	if w == nil || w.NotFound != "" {
		t.Fatalf("%+v", w)
	}
	if *w.FromMS < 1800 || *w.FromMS > 2600 || *w.ToMS < 19_000 || *w.ToMS > 20_800 {
		t.Errorf("window %v to %v ms, the rise ends at 2,000 and the fall begins at 20,000", *w.FromMS, *w.ToMS)
	}
	if math.Abs(*w.InFlight-100) > 1 || math.Abs(*w.PerS-50) > 1 {
		t.Errorf("%v in flight and %v/s, want 100 and 50", *w.InFlight, *w.PerS)
	}
	if *w.TTFTP95MS > 102 || *w.E2EP50MS != 2000 || w.TPOTP50MS != nil {
		t.Errorf("TTFT p95 %v, E2E p50 %v, TPOT %v", *w.TTFTP95MS, *w.E2EP50MS, w.TPOTP50MS)
	}
}

func TestNoSteadyWindow(t *testing.T) {
	if w := steadySummary(t, ramped(leastSteady-1, time.Millisecond, func(int) time.Duration { return time.Millisecond })).Steady; w.FromMS != nil || w.NotFound == "" || w.Requests != 0 {
		t.Errorf("%+v", w)
	}
	if w := steadySummary(t, nil).Steady; w.NotFound == "" {
		t.Errorf("%+v of nothing", w)
	}
	// all at one instant, ended at one instant
	rows := ramped(60, 0, func(int) time.Duration { return time.Millisecond })
	if w := steadySummary(t, rows).Steady; w.NotFound != "" || *w.InFlight != 60 {
		t.Errorf("%+v", w)
	}
}
