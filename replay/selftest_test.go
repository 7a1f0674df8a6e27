package replay

import (
	"strings"
	"testing"
	"time"

	"reprise/trace/results"
)

// TestSelfTest measures with the engine itself; what it finds is the machine's, but
// however slow that is, nothing is missing where there is time for all of it.
func TestSelfTest(t *testing.T) {
	got, err := selfTest(t.Context(), 100*time.Millisecond, time.Minute, []float64{1500}, []float64{5000})
	if err != nil {
		t.Fatal(err)
	}
	d := got.Dispatch
	if d.PerS != SelfTestRate || d.N != 100 || d.P50NS < 0 || d.P50NS > d.P99NS || d.P99NS > d.MaxNS {
		t.Errorf("dispatch %+v", d)
	}
	if d.KeptUp && (len(got.Rates) != 1 || got.Rates[0].N != 75) {
		t.Errorf("rates %+v", got.Rates)
	}
	if len(got.Reading) != 1 || got.Reading[0].N != 400 || got.Reading[0].ChunksPerRead < 1 {
		t.Errorf("reading %+v", got.Reading)
	}
	if f := got.Flood; f.N != floodStreams*floodTokens || f.ChunksPerS <= 0 || f.ChunksPerRead < 1 || got.TookNS <= 0 {
		t.Errorf("flood %+v, took %d ns", f, got.TookNS)
	}
}

// TestSelfTestDoubts: what the plan asks for beyond the machine is said.
func TestSelfTestDoubts(t *testing.T) {
	plan := func(rate float64, tokens int64) *Survey {
		return &Survey{PeakRate: rate, Planned: results.Planned{Requests: 100, OutputTokens: &tokens, DurationNS: 1e9}}
	}
	good := Rate{PerS: 1000, N: 500, P99NS: 200_000, OnTime: true, KeptUp: true}
	fast := Rate{PerS: 3000, N: 750, P99NS: 900_000, OnTime: true, KeptUp: true}
	slow := Rate{PerS: 3000, N: 750, P99NS: 7_000_000, KeptUp: true}
	read := Reading{ChunksPerS: 5000, N: 1200, ChunksPerRead: 1, KeptUp: true}
	behind := Reading{ChunksPerS: 40_000, N: 9000, ChunksPerRead: 3.2}
	for _, c := range []struct {
		test SelfTest
		plan *Survey
		want string // "" = none
	}{
		{SelfTest{Dispatch: good, RequestsPerS: 1000, Reading: []Reading{read}, ChunksPerS: 5000}, plan(900, 4000), ""},
		{SelfTest{Dispatch: good, Rates: []Rate{fast}, RequestsPerS: 3000, Reading: []Reading{read}, ChunksPerS: 5000}, plan(3000, 4000), ""},
		{SelfTest{Dispatch: Rate{PerS: 1000, N: 500, P99NS: 2_500_000}, Reading: []Reading{read}, ChunksPerS: 5000}, plan(9, 4000), "at 1000 requests/s this machine dispatches with a p99 error of 2.500 ms (n 500)"},
		{SelfTest{Dispatch: good, Rates: []Rate{slow}, RequestsPerS: 1000, Reading: []Reading{read}, ChunksPerS: 5000}, plan(3000, 4000), "3000 requests are due in the busiest second, and at 3000 requests/s this machine was late: p99 7.000 ms (n 750)"},
		{SelfTest{Dispatch: good, Rates: []Rate{fast}, RequestsPerS: 3000, Reading: []Reading{read}, ChunksPerS: 5000}, plan(90_000, 4000), "no more than 3000 requests/s were tried"},
		{SelfTest{Dispatch: good, RequestsPerS: 1000, Reading: []Reading{behind}}, plan(9, 40_000), "some 40000 chunks/s are expected on average, at a token a chunk; this machine did not keep up with 40000 (n 9000, 3.2 chunks a read)"},
		{SelfTest{Dispatch: good, RequestsPerS: 1000, Reading: []Reading{read}, ChunksPerS: 5000}, plan(9, 400_000), "no more than 5000 were tried"},
	} {
		got := strings.Join(c.test.Doubts(c.plan), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
