package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"reprise/synth/model"
	"reprise/trace"
)

// TestHeldTokens: requests of 110 tokens that come every second and take 3 s are
// held three at a time, and ten that come at once for a second of a hundred are
// above the 99th percentile.
func TestHeldTokens(t *testing.T) {
	row := func(at, takes float64) trace.Request {
		return trace.Request{Operation: trace.OpChat, Arrival: trace.Some(time.Duration(at * 1e9)), InputTokens: trace.Some(int64(100)), OutputTokens: trace.Some(int64(10)), RecordedE2E: trace.Some(time.Duration(takes * 1e9))}
	}
	var rows []trace.Request
	for i := range 1000 {
		rows = append(rows, row(float64(i), 3))
	}
	mean, p99, ok := trafficOf(t, rows).raw.held.meanAndP99()
	if !ok || math.Abs(mean-330) > 1 || p99 != 330 {
		t.Errorf("mean %v, p99 %v", mean, p99)
	}
	for range 10 {
		rows = append(rows, row(500, 20)) // 2 % of the time
	}
	if _, p99, _ := trafficOf(t, rows).raw.held.meanAndP99(); p99 != 330+1100 {
		t.Errorf("p99 %v of 2 %% at 1430", p99)
	}
}

// TestHeldTokensOfCopies: copies in place hold three times as many, copies of
// another time fewer; without recorded ends there is a reason and no number.
func TestHeldTokensOfCopies(t *testing.T) {
	rows := bursty(6000, 3)
	without := trafficOf(t, rows)
	if v := verdicts(CompareFidelity(without, without, &model.Design{Factor: 1, Speed: 1}))["tokens held at once, p99"]; v != NotMeasurable {
		t.Errorf("without ends: %s", v)
	}
	for i := range rows {
		rows[i].RecordedE2E = trace.Some(time.Duration(1+i%7) * time.Second)
	}
	source := trafficOf(t, rows)
	jitter := rand.New(rand.NewPCG(4, 4))
	for want, move := range map[string]func(copy, row int) time.Duration{
		Exact:    func(int, int) time.Duration { return 0 },
		ByDesign: func(copy, _ int) time.Duration { return time.Duration((jitter.Float64() - 0.5) * 120e9) },
	} {
		made := trafficOf(t, shifted(rows, 3, move))
		if v := verdicts(CompareFidelity(source, made, &model.Design{Factor: 3, Speed: 1, JitterNS: 60e9}))["tokens held at once, p99"]; v != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
}
