package replay

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock"
	"reprise/trace"
	"reprise/trace/results"
)

// TestProgress: what is said each second of a run is what is so then.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Prefill 1 ms a token, a token each 10 ms: the first ends after 100 + 100 ms, the
		// second, sent at 1.5 s, after 200 + 1000 ms, the third is due at 20 s.
		var seen []Progress
		server := mock.New(exact())
		_, _, err := replayTo(t, t.Context(), server, Config{
			source: traceOf(trace.ClockTrace, at(0, 100, 10), at(1500, 200, 100), at(20_000, 100, 10)), Progress: func(p Progress) { seen = append(seen, p) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 21 {
			t.Fatalf("said %d times", len(seen))
		}
		first, second := seen[0], seen[1]
		if first.Elapsed != time.Second || first.Planned != 3 || first.Length != 20*time.Second || !first.Sending || first.Sent != 1 || first.Done != 1 || first.NextDue != 1500*time.Millisecond || first.Output != 10 || first.TTFT.N != 1 || first.ITL.N != 9 {
			t.Errorf("after 1 s: %+v", first)
		}
		if !near(first.TTFT.P50, 110*time.Millisecond) || !near(first.ITL.P99, 10*time.Millisecond) || first.OutputPerS != 10 {
			t.Errorf("after 1 s: %+v", first)
		}
		if second.InFlight != 1 || second.NextDue != 20*time.Second || second.Output != 10 {
			t.Errorf("after 2 s: %+v", second)
		}
		// What ended long ago is in the totals, and no longer in the recent numbers.
		if p := seen[18]; p.TTFT.N != 2 || p.RecentTTFT.N != 0 || p.OutputPerS != 0 || p.Output != 110 || p.Late.N != 2 {
			t.Errorf("after 19 s: %+v", p)
		}
		if p := seen[20]; p.Sending || p.Stopped || p.Done != 3 || p.NextDue >= 0 || p.Outcomes[results.OutcomeOK] != 3 {
			t.Errorf("at the end: %+v", p)
		}
	})
}

func near(got, want time.Duration) bool { return got >= want && got <= want+want/50 }

// TestLiveCauses: causes are told apart up to a bound, the most frequent first, and
// the warm-up is in nothing.
func TestLiveCauses(t *testing.T) {
	l := newLive(func() time.Duration { return time.Second })
	warm := results.Result{Outcome: results.OutcomeFailed, Phase: trace.Some(results.PhaseWarmUp)}
	l.add(&warm)
	for i := range 100 {
		for range 1 + i%7 {
			l.add(&results.Result{Outcome: results.OutcomeFailed, Cause: trace.Some(fmt.Sprintf("HTTP 5%02d", i))})
		}
	}
	var p Progress
	l.fill(&p)
	sum := p.OtherFailed
	for _, c := range p.Causes {
		sum += c.N
	}
	if len(p.Causes) != topCauses || p.Causes[0].Name != "other causes" || p.Causes[1].N != 7 || p.OtherCauses != liveCauses-topCauses || sum != p.Outcomes[results.OutcomeFailed] || sum != 395 {
		t.Errorf("%+v, %d in all", p, sum)
	}
}
