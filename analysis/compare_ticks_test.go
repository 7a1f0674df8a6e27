package analysis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// unnamed takes the names of sessions away and gives prompts block ids that tell
// them.
func unnamed(rows []trace.Request) []trace.Request {
	for i := range rows {
		r := &rows[i]
		var key uint64
		for _, c := range r.Session.Value {
			key = key*131 + uint64(c)
		}
		for k := range 2 + uint64(r.Turn.Value) {
			r.Blocks = append(r.Blocks, key<<8|k)
		}
		r.BlockTokens, r.BlockTail = trace.Some(int32(16)), trace.Some(trace.TailPartial)
		r.Session, r.Turn = trace.Optional[string]{}, trace.Optional[int32]{}
	}
	return rows
}

// TestCompareInfersSessions: turns of a trace that names its sessions are held
// against those that prefixes tell of one that does not, and labelled.
func TestCompareInfersSessions(t *testing.T) {
	c := CompareProfiles(profileOf(t, chatting(600, 1, 1)), profileOf(t, unnamed(chatting(600, 1, 1))), 0)
	if c.B.Sessions != SessionsInferred || c.A.Sessions != SessionsRecorded || c.B.Units != 600 {
		t.Errorf("sessions %q and %q, %d", c.A.Sessions, c.B.Sessions, c.B.Units)
	}
	for _, name := range []string{"turns", "turn_gap"} {
		if q := compared(c, name); q.Verdict != Same {
			t.Errorf("%s: %s (%s)", name, q.Verdict, q.Why)
		}
	}
	if text := fmt.Sprint(c.Notes); !strings.Contains(text, "the sessions of b are inferred from prefixes") {
		t.Errorf("notes %s", text)
	}
}

// ticked is Poisson traffic of 10 requests/s with times in whole ticks.
func ticked(tick time.Duration, seed uint64) []trace.Request {
	r := rand.New(rand.NewPCG(seed, 5))
	var rows []trace.Request
	var at time.Duration
	for i := range 6000 {
		at += time.Duration(r.ExpFloat64() * 1e8)
		rows = append(rows, trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(at / tick * tick), InputTokens: trace.Some(int64(100)), OutputTokens: trace.Some(int64(10))})
	}
	return rows
}

// TestCompareKnowsTicks: bursts that only the ticks of one side make are no
// difference of the traffic.
func TestCompareKnowsTicks(t *testing.T) {
	fine, coarse := profileOf(t, ticked(1, 1)), profileOf(t, ticked(3*time.Second, 1))
	for _, s := range CompareProfiles(fine, coarse, 0).Scalars {
		want := s.Name == "gap_cv" || s.Name == "idc_0.1s" || s.Name == "idc_1s" || s.Name == "idc_10s"
		if (s.Verdict == NotMeasurable) != want || s.Verdict == Differs {
			t.Errorf("%s: %s (%s)", s.Name, s.Verdict, s.Why)
		}
	}
	both := CompareProfiles(coarse, profileOf(t, ticked(3*time.Second, 2)), 0)
	if text := fmt.Sprint(both.Notes); !strings.Contains(text, "the times of both are whole ticks of 3 s") || compared(both, "gap").Verdict == NotMeasurable {
		t.Errorf("%s; gap %s", text, compared(both, "gap").Verdict)
	}
	if notes := CompareProfiles(fine, fine, 0).Notes; len(notes) > 0 {
		t.Errorf("without ticks: %v", notes)
	}
}
