package replay

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock"
	"reprise/trace"
	"reprise/trace/results"
)

// TestShardsAreDisjointAndComplete: however the load is made, each request is in the
// shard of one worker, with the due time and the place that it has without workers.
func TestShardsAreDisjointAndComplete(t *testing.T) {
	var rows []trace.Request
	for i := range 300 {
		r := at(int64(i*7), 10, int64(i%20))
		if i%10 > 0 {
			r.Session, r.Turn = trace.Some(fmt.Sprint("s", i%23)), trace.Some(int32(i/23))
		}
		rows = append(rows, r)
	}
	poisson, err := ParseArrivals("poisson:50")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Selection{
		"recorded":    {},
		"window":      {From: 300 * time.Millisecond, To: time.Second, Speed: 2},
		"limit":       {Limit: 77},
		"sessions":    {Sessions: 5},
		"arrivals":    {Arrivals: poisson, Recycle: true, Limit: 700, Seed: 3},
		"placed":      {SessionArrivals: poisson, Seed: 4},
		"concurrency": {Load: Load{Kind: LoadConcurrency, N: 8}, Recycle: true, Limit: 650},
		"users":       {Load: Load{Kind: LoadUsers, N: 8, Rate: 20}, Recycle: true, Limit: 650},
	} {
		for _, sessions := range []bool{false, true} {
			c := Config{Selection: s, source: traceOf(trace.ClockTrace, rows...)}
			type key struct {
				id   int64
				pass int32
			}
			want, got := map[key]start{}, map[key]start{}
			gather := func(shard Shard, to map[key]start) {
				c.Shard = shard
				err := c.each(t.Context(), func(b *trace.Batch, row int, s start) error {
					k := key{b.ID.Values[row], s.pass}
					if _, twice := to[k]; twice {
						t.Fatalf("%s: request %v is twice", name, k)
					}
					to[k] = s
					return nil
				})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			gather(Shard{}, want)
			for worker := range uint16(4) {
				gather(Shard{Sessions: sessions, Owns: func(slot uint16) bool { return slot%4 == worker }}, got)
			}
			if len(got) != len(want) || len(want) == 0 {
				t.Fatalf("%s: %d of %d requests", name, len(got), len(want))
			}
			for k, s := range want {
				if got[k] != s {
					t.Fatalf("%s: request %v is %+v, and %+v without workers", name, k, got[k], s)
				}
			}
		}
	}
}

// TestShardFrom: what is taken over begins at a time, and leaves nothing out after it.
func TestShardFrom(t *testing.T) {
	var rows []trace.Request
	for i := range 50 {
		rows = append(rows, at(int64(i*10), 1, 1))
	}
	c := Config{source: traceOf(trace.ClockTrace, rows...), Shard: Shard{From: 200 * time.Millisecond}}
	var ids []int64
	if err := c.each(t.Context(), func(b *trace.Batch, row int, s start) error {
		ids = append(ids, b.ID.Values[row])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 30 || ids[0] != 20 {
		t.Errorf("%d requests from %d on", len(ids), ids[0])
	}
}

// TestWeigh: weights are of all requests, and sessions stay together where turns wait.
func TestWeigh(t *testing.T) {
	rows := []trace.Request{at(0, 1, 5), at(1, 1, 7), at(2, 1, 0)}
	rows[0].Session, rows[1].Session = trace.Some("a"), trace.Some("a")
	c := Config{source: traceOf(trace.ClockTrace, rows...)}
	for _, pace := range []string{PaceSchedule, PaceThink} {
		c.Pace = pace
		survey, err := Look(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		requests, weights, sessions, err := Weigh(t.Context(), &c, survey)
		if err != nil {
			t.Fatal(err)
		}
		var n, w int64
		for i := range requests {
			n, w = n+requests[i], w+weights[i]
		}
		if n != 3 || w != 3*requestWeight+12 || sessions != (pace == PaceThink) {
			t.Errorf("%s: %d requests, weight %d, sessions together %v", pace, n, w, sessions)
		}
		if slot := Slot(0, "a", true); sessions && requests[slot] != 2 {
			t.Errorf("the session's slot has %d requests", requests[slot])
		}
	}
}

func TestCheckShared(t *testing.T) {
	for name, c := range map[string]Config{
		"trees":      {Selection: Selection{Load: Load{Kind: LoadTrees, N: 5}}},
		"few places": {Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 3}}}, "few in flight": {MaxInFlight: 3},
	} {
		if err := c.CheckShared(4); err == nil || trace.Fix(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	sum := 0
	for worker := range 4 {
		c := Config{Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 10}}}
		if err := c.CheckShared(4); err != nil {
			t.Fatal(err)
		}
		c.SetPlaces(c.Places(worker, 4))
		sum += c.Selection.Load.N
	}
	if sum != 10 {
		t.Errorf("4 workers have %d of 10 places", sum)
	}
}

// TestShareWarmUp: where turns wait, workers have parts of a warm-up in requests that add
// up, and what is taken over has none; by the clock, the first of the plan are known.
func TestShareWarmUp(t *testing.T) {
	for _, test := range []struct {
		pace  string
		later bool
		want  [3]int64
	}{{PaceThink, false, [3]int64{4, 3, 3}}, {PaceCausal, true, [3]int64{}}, {PaceSchedule, false, [3]int64{10, 10, 10}}, {PaceSchedule, true, [3]int64{10, 10, 10}}} {
		for worker, want := range test.want {
			c := Config{Pace: test.pace, WarmUp: WarmUp{Requests: 10}}
			if c.ShareWarmUp(worker, 3, test.later); c.WarmUp.Requests != want {
				t.Errorf("%s, later %v: worker %d has %d, want %d", test.pace, test.later, worker, c.WarmUp.Requests, want)
			}
		}
	}
}

// TestRunWaitsForItsStart: nothing is sent before the instant that all workers have,
// and all times count from it.
func TestRunWaitsForItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		got, _, err := replayTo(t, t.Context(), mock.New(exact()), Config{
			Model: "m", source: traceOf(trace.ClockTrace, at(0, 5, 2), at(40, 5, 2)),
			Start: func(context.Context) (time.Time, error) { return time.Now().Add(3 * time.Second), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second {
			t.Errorf("it was over after %v", took)
		}
		for id, due := range map[int64]time.Duration{0: 0, 1: 40 * time.Millisecond} {
			if r := got[id]; r.Dispatched.Value != due || r.Due.Value != due {
				t.Errorf("request %d: due %v, dispatched %v", id, r.Due.Value, r.Dispatched.Value)
			}
		}
	})
}

// TestAdmit: what may not begin yet waits in a closed loop, and is not sent in an open
// one; what is taken over begins when its places are free.
func TestAdmit(t *testing.T) {
	rows := []trace.Request{at(0, 5, 2), at(10, 5, 2), at(20, 5, 2), at(30, 5, 2), at(40, 5, 2)}
	for name, c := range map[string]Config{
		"open":     {},
		"schedule": {Pace: PaceSchedule, Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 2}}},
		"think":    {Selection: Selection{Load: Load{Kind: LoadConcurrency, N: 2}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			c.Model, c.source = "m", traceOf(trace.ClockTrace, rows...)
			closed := c.Closed()
			if closed {
				c.Shard = Shard{From: 100 * time.Millisecond, FromSeq: 1, Whole: true}
			}
			c.Admit = func(seq int) bool { return seq < 3 || closed && time.Since(begin) > time.Second }
			got, _, err := replayTo(t, t.Context(), mock.New(exact()), c)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: 4, false: 3}[closed]; len(got) != want {
				t.Fatalf("%s: %d results", name, len(got))
			}
			for id, r := range got {
				late, _ := results.Lateness(&r)
				switch {
				case closed && (id < 3 && r.Dispatched.Value != c.Shard.From || id >= 3 && r.Dispatched.Value <= time.Second):
					t.Errorf("%s: request %d at %v", name, id, r.Dispatched.Value)
				case id < 3 && late != 0:
					t.Errorf("%s: request %d is %v late", name, id, late)
				}
			}
		})
	}
}

// TestThinkIsTakenOverWhole: a session that began before, or may have, is not taken over
// in its midst.
func TestThinkIsTakenOverWhole(t *testing.T) {
	rows := []trace.Request{at(0, 1, 1), at(10, 1, 1), at(20, 1, 1), at(30, 1, 1), at(40, 1, 1), at(50, 1, 1)}
	for i, name := range []string{"begun", "", "begun", "later", "", "later"} {
		if name != "" {
			rows[i].Session = trace.Some(name)
		}
	}
	rows[4].After = []trace.Dependency{{ID: 0, Kind: trace.AfterTurn}} // which may be over at once
	c := Config{Pace: PaceThink, source: traceOf(trace.ClockTrace, rows...), Shard: Shard{From: 15 * time.Millisecond, Whole: true, Sessions: true}}
	var ids []int64
	if err := c.each(t.Context(), func(b *trace.Batch, row int, s start) error {
		ids = append(ids, b.ID.Values[row])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(ids) != "[3 5]" {
		t.Errorf("taken over: %v", ids)
	}
}

// TestCoolFrom: a shard does not know when the whole run ends, and takes it as it is told.
func TestCoolFrom(t *testing.T) {
	whole := Config{CoolDown: 10 * time.Millisecond, source: traceOf(trace.ClockTrace, at(0, 1, 1), at(5, 1, 1), at(100, 1, 1))}
	survey, err := Look(t.Context(), &whole)
	if err != nil {
		t.Fatal(err)
	}
	shard := whole
	shard.Shard.Owns = func(slot uint16) bool { return slot != Slot(2, "", false) }
	if _, err := Look(t.Context(), &shard); err == nil {
		t.Fatal("a shard of 5 ms has a cool-down of 10 ms by itself")
	}
	shard.CoolFrom = survey.CoolFrom(&whole)
	if part, err := Look(t.Context(), &shard); err != nil || part.cool != 90*time.Millisecond {
		t.Errorf("cool-down of the shard: %v", err)
	}
}
