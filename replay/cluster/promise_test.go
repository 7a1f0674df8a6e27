package cluster

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/trace"
)

// TestPromisesAreKept: whichever beats and answers are lost, a leg has begun nothing
// from the place on that the coordinator works out of the last beat that arrived; and a
// leg of a steady speed is held up neither by that nor by a cut.
func TestPromisesAreKept(t *testing.T) {
	const places = 8
	ms := int64(time.Millisecond)
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var p pace
		var heard *promise // by the coordinator
		p.begin(1)
		seq, refused, steady := 0, 0, seed%2 == 0
		speed := 1 + random.IntN(3) // places a ms
		for now := int64(0); now < 20_000*ms; now += ms {
			if !steady && random.IntN(300) == 0 {
				speed = random.IntN(8)
			}
			for range speed {
				if !p.allows(seq, now) {
					refused++
					break
				}
				seq += 1 + random.IntN(2)
			}
			if now%(200*ms) == 0 {
				made := p.promises(now, places)
				cut := now > 8_000*ms && now < 14_000*ms
				if arrives := !cut && random.IntN(5) > 0; arrives {
					heard = made
					if random.IntN(5) > 0 {
						p.heard()
					}
				}
			}
			if heard != nil && p.next > heard.limit(now) {
				t.Fatalf("seed %d, %d ms: begun up to %d, the coordinator believes %d", seed, now/ms, p.next, heard.limit(now))
			}
		}
		if steady && refused > 0 {
			t.Errorf("seed %d: held up %d times", seed, refused)
		}
		if heard == nil || heard.Seq > p.next+4*places+int(heard.PerS) {
			t.Errorf("seed %d: promised %+v, at %d", seed, heard, p.next)
		}
	}
}

// TestFenceStopsAStandstill: a worker whose process stood still for longer than its lease
// begins nothing when it goes on.
func TestFenceStopsAStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var why error
		w := &Worker{state: stateRunning, Clock: NewClock(0), plan: plan{Lease: DefaultLease, TakeOver: true}, stop: func(err error) { why = err }, Log: func(string, ...any) {}}
		w.answered.Store(w.Clock.Now())
		may := w.admit(&leg{}, false)
		if !may(1) || why != nil {
			t.Fatal("it does not begin")
		}
		time.Sleep(DefaultLease)
		if may(2) || why != errFenced || w.state != stateFenced {
			t.Errorf("it goes on after its lease: %v, %s", why, w.state)
		}
	})
}

// TestTakeOverOfClosedLoops: what is left is known from the last promise; its places go
// along, to no more workers than there are.
func TestTakeOverOfClosedLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator(5)
		c.Config.Selection.Load = replay.Load{Kind: replay.LoadConcurrency, N: 12}
		for i := range 5 {
			m := &member{name: string(rune('a' + i)), index: i}
			c.members = append(c.members, m)
			c.give(m)
		}
		c.start = c.clock.Now()
		time.Sleep(10 * time.Second)
		first, second := c.members[0], c.members[1]
		first.lost = true
		c.takeOver(first)
		if len(second.takeover) > 0 {
			t.Fatalf("taken over without a promise: %+v", second.takeover)
		}
		second.lost, second.clock = true, &Estimate{Offset: int64(time.Hour), Bound: int64(time.Second)}
		second.reach = []*promise{{At: c.clock.Now() - int64(time.Hour), Seq: 1000, PerS: 50}}
		time.Sleep(2 * time.Second)
		c.takeOver(second)
		places, slots := 0, 0
		for _, m := range c.members[2:] {
			for _, order := range m.takeover {
				places += order.Places
				if order.FromSeq != 1150 || order.From != 12*time.Second+takeOverIn || order.Places != 1 {
					t.Errorf("%s: %+v", m.name, order)
				}
			}
			if len(m.owned) > 1 {
				slots += len(m.owned[1])
			}
		}
		if want := c.Config.Places(1, 5); places != want || want != 3 || slots != len(Assign(c.weights, 5))/5+1 && slots != len(Assign(c.weights, 5))/5 {
			t.Errorf("%d places and %d slots are taken over", places, slots)
		}
	})
}

// TestAbort: the rate over all workers ends the run.
func TestAbort(t *testing.T) {
	c := coordinator(2)
	c.Config.AbortErrorRate = 0.2
	for _, name := range []string{"a", "b"} {
		c.members = append(c.members, &member{name: name, progress: replay.Progress{Done: 40, Errors: 8, Failed: 20}})
	}
	if c.abort(); c.stop || c.aborted != nil {
		t.Fatalf("16 of 80 are not more than 20 %%: %v", c.aborted)
	}
	c.members[1].progress.Errors++
	if c.abort(); !c.stop || c.aborted == nil || c.aborted.Error() != "aborted: 17 of 80 requests that ended have failed, more than 20 %" {
		t.Errorf("it goes on: %v", c.aborted)
	}
	c.cool = trace.Some(7 * time.Second)
	c.give(c.members[0])
	if p := c.planFor(c.members[0]); p.CoolFrom == nil || *p.CoolFrom != 7*time.Second {
		t.Errorf("the plan's cool-down begins at %v", p.CoolFrom)
	}
}
