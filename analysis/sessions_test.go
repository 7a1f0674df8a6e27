package analysis

import (
	"bytes"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/results"
)

// TestSessionRollup states by hand what two sessions come to: one with a
// sub-agent that a turn waits for, one that fails in its second turn.
func TestSessionRollup(t *testing.T) {
	turn := func(id int64, session string, n int32, sentAt, ttft, end float64, outcome string) results.Result {
		r := sent(id, sentAt, sentAt, sentAt, end, outcome)
		r.Session, r.Turn = trace.Some(session), trace.Some(n)
		if ttft > 0 {
			r.Ledger = []results.Entry{chunk(0, ttft, 1, results.KindContent, false)}
		}
		return r
	}
	agent := turn(1, "a", 0, 110, 20, 400, results.OutcomeOK)
	agent.Agent = trace.Some("explore")
	joined := turn(2, "a", 1, 450, 30, 500, results.OutcomeOK)
	joined.HoldCause = trace.Some("join")
	rows := []results.Result{
		turn(0, "a", 0, 0, 10, 100, results.OutcomeOK), agent, joined,
		turn(3, "b", 0, 50, 40, 250, results.OutcomeOK),
		turn(4, "b", 9, 300, 0, 310, results.OutcomeFailed),
		sent(5, 0, 0, 0, 10, results.OutcomeOK), // of no session
	}
	s := summarize(t, baseRun(), rows)
	u := s.Sessions
	if u.Sessions != 2 || u.Complete != 1 || u.Agents != 1 {
		t.Errorf("%d sessions, %d complete, %d agents; want 2, 1, 1", u.Sessions, u.Complete, u.Agents)
	}
	for _, want := range []struct {
		metric, stat string
		n            int64
		value        float64
	}{
		{"turns", "max", 2, 3}, {"turns", "min", 2, 2},
		{"makespan", "max", 2, 500}, {"makespan", "min", 2, 260},
		{"agent_makespan", "max", 1, 290},
		{"join_wait", "max", 1, 350}, // own turn ended at 100, eligible at 450
	} {
		m := u.Metrics.Get(want.metric)
		if m == nil {
			t.Fatalf("no metric %s", want.metric)
		}
		if v := m.Stat(want.stat); m.N != want.n || v.Value != want.value {
			t.Errorf("%s %s: %v of %d, want %v of %d", want.metric, want.stat, v.Value, m.N, want.value, want.n)
		}
	}
	if len(u.TTFTByTurn) != 2 || u.TTFTByTurn[0].Turns != "0" || u.TTFTByTurn[0].TTFT.N != 3 || u.TTFTByTurn[1].TTFT.Stat("p50").Value != 30 {
		t.Errorf("TTFT by turn: %+v", u.TTFTByTurn)
	}
	var text bytes.Buffer
	if err := WriteText(&text, s); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"sessions     2, all requests successful in 1; 1 sub-agent\n", "makespan", "join_wait", "ttft by turn, ms"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, text.String())
		}
	}
}

// TestTurnBuckets names the rows of TTFT by turn.
func TestTurnBuckets(t *testing.T) {
	for turn, want := range map[int32]string{0: "0", 3: "3", 4: "4-7", 7: "4-7", 8: "8-15", 31: "16-31", 32: "32+", 5000: "32+"} {
		if got := turnsText(turnBucket(turn)); got != want {
			t.Errorf("turn %d is in %s, want %s", turn, got, want)
		}
	}
}
