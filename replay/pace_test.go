package replay

import (
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock"
	"reprise/trace"
	"reprise/trace/results"
)

// turn is a row of a session that comes after others.
func turn(ms int64, in int64, delay time.Duration, after ...int64) trace.Request {
	r := at(ms, in, 1)
	r.Session = trace.Some("s")
	if delay >= 0 {
		r.Delay = trace.Some(delay)
	}
	for _, id := range after {
		r.After = append(r.After, trace.Dependency{ID: id, Kind: trace.AfterTurn})
	}
	return r
}

// The mock takes 1 ms a prompt token and 10 ms a step: 1.01 s for 1000 tokens.
func TestPacings(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	slow := []trace.Request{turn(0, 5000, -1), turn(2000, 990, s, 0), turn(3000, 10, -1, 1)}
	quick := []trace.Request{turn(0, 990, -1), turn(6000, 990, s, 0)}
	forked := []trace.Request{turn(0, 990, -1), turn(100, 1990, 0, 0), turn(200, 90, 0, 0), turn(300, 10, 500*ms, 1, 2)}
	for name, c := range map[string]struct {
		rows   []trace.Request
		config Config
		sent   []time.Duration
		holds  results.Holds
		labels string
	}{
		"open loop does not wait": {slow, Config{}, []time.Duration{0, 2 * s, 3 * s}, results.Holds{}, "open loop"},
		"causal waits":            {slow, Config{Pace: PaceCausal}, []time.Duration{0, 5010*ms + s, 7010 * ms}, results.Holds{Held: 2, HeldNS: int64(4010*ms + 4010*ms), NoDelay: 1}, ""},
		"causal keeps due times":  {quick, Config{Pace: PaceCausal}, []time.Duration{0, 6 * s}, results.Holds{}, ""},
		"think has none":          {quick, Config{Pace: PaceThink}, []time.Duration{0, s + s}, results.Holds{}, ""},
		"think without a delay":   {slow, Config{Pace: PaceThink}, []time.Duration{0, 6010 * ms, 6010*ms + s + s}, results.Holds{NoDelay: 1}, ""},
		"gap cap":                 {quick, Config{Pace: PaceThink, GapCap: 100 * ms}, []time.Duration{0, 1100 * ms}, results.Holds{GapsCut: 1, GapsCutNS: int64(900 * ms)}, ""},
		"joins wait for all":      {forked, Config{Pace: PaceCausal}, []time.Duration{0, s, s, 0}, results.Holds{}, "skip"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := c.config
				config.source = traceOf(trace.ClockTrace, c.rows...)
				got, run, err := replayTo(t, t.Context(), mock.New(exact()), config)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(c.rows) {
					t.Fatalf("%d of %d requests", len(got), len(c.rows))
				}
				if c.labels == "skip" { // whatever the batch does, the join follows the later branch
					if r, end := got[3], max(got[1].End.Value, got[2].End.Value); r.Sent.Value != end+500*ms || r.HoldCause.Value != trace.AfterTurn {
						t.Errorf("joined at %v (%s), the branches ended at %v", r.Sent.Value, r.HoldCause.Value, end)
					}
					return
				}
				for id, want := range c.sent {
					if r := got[int64(id)]; r.Sent.Value != want {
						t.Errorf("id %d sent at %v, want %v", id, r.Sent.Value, want)
					}
				}
				var cut time.Duration
				for _, r := range got {
					cut += r.GapCut.Value
				}
				if int64(cut) != c.holds.GapsCutNS {
					t.Errorf("records say that %v were cut, want %v", cut, time.Duration(c.holds.GapsCutNS))
				}
				if run.Ended.Holds != nil && *run.Ended.Holds != c.holds {
					t.Errorf("holds %+v, want %+v", *run.Ended.Holds, c.holds)
				}
			})
		})
	}
}

// A trace without a clock is replayed by its conversations.
func TestThinkPacingWithoutAClock(t *testing.T) {
	row := func(session string, after ...int64) trace.Request {
		r := turn(0, 990, 0, after...)
		r.Arrival, r.Session, r.Delay = trace.Optional[time.Duration]{}, trace.Some(session), trace.Optional[time.Duration]{}
		return r
	}
	rows := traceOf(trace.ClockNone, row("a"), row("a", 0), row("b"), row("b", 2))
	synctest.Test(t, func(t *testing.T) {
		got, run, err := replayTo(t, t.Context(), mock.New(exact()), Config{source: rows, Pace: PaceThink, Selection: Selection{SessionArrivals: Arrivals{Kind: "constant", Rate: 0.1}}})
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range []time.Duration{0, time.Second, 10 * time.Second, 11 * time.Second} {
			if r := got[int64(id)]; r.Sent.Value != want {
				t.Errorf("id %d sent at %v, want %v", id, r.Sent.Value, want)
			}
		}
		if r := got[1]; r.Due.Known || run.Ended.Sent != 4 {
			t.Errorf("a turn without a time is due at %v; sent %d", r.Due.Value, run.Ended.Sent)
		}
	})
}

func TestDependenciesOutsideTheSelection(t *testing.T) {
	rows := traceOf(trace.ClockTrace, turn(0, 10, -1), turn(1000, 10, 0, 0), turn(2000, 10, 0, 1))
	synctest.Test(t, func(t *testing.T) {
		got, run, err := replayTo(t, t.Context(), mock.New(exact()), Config{source: rows, Pace: PaceCausal, Selection: Selection{From: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || run.Ended.Holds.Outside != 1 {
			t.Errorf("%d requests, holds %+v", len(got), run.Ended.Holds)
		}
	})
}
