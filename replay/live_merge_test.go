package replay

import (
	"encoding/json"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// TestProgressAddsUp: what two workers say, over JSON, is what one says of all.
func TestProgressAddsUp(t *testing.T) {
	now := func() time.Duration { return time.Second }
	one, parts := newLive(now), []*live{newLive(now), newLive(now)}
	one.whole, parts[0].whole, parts[1].whole = true, true, true
	for i := range 300 {
		at := func(d int) trace.Optional[time.Duration] { return trace.Some(time.Duration(d) * time.Millisecond) }
		r := results.Result{Outcome: results.OutcomeOK, Eligible: at(0), Dispatched: at(i % 7), Sent: at(i % 7), Ledger: []results.Entry{{At: int64(10+i) * 1000, Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage}}, End: at(20 + i), OutputTokens: trace.Some(int64(i))}
		if i%50 == 0 {
			r.Outcome, r.Cause = results.OutcomeFailed, trace.Some("503")
		}
		one.add(&r)
		parts[i%3/2].add(&r)
	}
	want, got := Progress{NextDue: -1}, Progress{NextDue: -1}
	one.fill(&want)
	for _, l := range parts {
		var p, over Progress
		l.fill(&p)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &over); err != nil {
			t.Fatal(err)
		}
		light := over
		light.Light()
		if light.Late.Values != nil {
			t.Error("it is not light")
		}
		light.Keep(&over)
		got.Add(&light)
	}
	same := func(a, b Quantiles) bool {
		return a.N == b.N && a.Sum == b.Sum && a.P50 == b.P50 && a.P95 == b.P95 && a.P99 == b.P99
	}
	if !same(got.TTFT, want.TTFT) || !same(got.Late, want.Late) || !same(got.RecentTTFT, want.RecentTTFT) || want.TTFT.N == 0 {
		t.Errorf("two: %+v\none: %+v", got.TTFT, want.TTFT)
	}
	if got.Output != want.Output || got.Outcomes[results.OutcomeFailed] != 6 || len(got.Causes) != 1 || got.Causes[0] != want.Causes[0] {
		t.Errorf("two: %+v\none: %+v", got, want)
	}
}
