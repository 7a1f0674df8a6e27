package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/trace"
)

func coordinator(n int) *Coordinator {
	return &Coordinator{
		Config: &replay.Config{Version: "1"}, Workers: n, Log: func(string, ...any) {}, clock: NewClock(0),
		weights: make([]int64, replay.Slots), rows: make([]int64, replay.Slots),
	}
}

func TestAdmit(t *testing.T) {
	c := coordinator(2)
	join := func(name, nonce, version string) welcome {
		return c.admit(name, &hello{Version: version, Protocol: protocolVersion, Nonce: nonce})
	}
	if w := join("a", "1", "2"); w.Plan != nil || !strings.Contains(w.Refused, "reprise 2") || w.Fix == "" {
		t.Errorf("another version: %+v", w)
	}
	if w := c.admit("a", &hello{Version: "1", Protocol: protocolVersion + 1}); w.Plan != nil || w.Refused == "" {
		t.Errorf("other messages: %+v", w)
	}
	first := join("a", "1", "1")
	if first.Plan == nil {
		t.Fatalf("the first: %+v", first)
	}
	if again := join("a", "1", "1"); again.Plan == nil || again.Plan.Index != first.Plan.Index || len(c.members) != 1 {
		t.Errorf("its hello once more: %+v", again)
	}
	if w := join("a", "2", "1"); w.Plan != nil || w.Refused == "" {
		t.Errorf("another of that name: %+v", w)
	}
	if w := join("b", "3", "1"); w.Plan == nil || w.Plan.Index != 1 {
		t.Errorf("the second: %+v", w)
	}
	if w := join("c", "4", "1"); w.Plan != nil || w.Refused != "" || w.Wait == "" {
		t.Errorf("one too many: %+v", w)
	}
	if o := c.orders("a", &beat{Nonce: "2"}); !o.Unknown {
		t.Errorf("a stranger gets orders: %+v", o)
	}
}

// TestLeases: a worker that is silent for the lease is lost, and the other takes over
// from a time in the future; a worker is fenced before that.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator(2)
		for _, name := range []string{"a", "b"} {
			c.admit(name, &hello{Version: "1", Protocol: protocolVersion, Nonce: name})
		}
		c.start = c.clock.Now()
		heard := func(name string) { c.orders(name, &beat{Nonce: name, State: stateRunning, Legs: 1}) }
		heard("a")
		for range 14 {
			time.Sleep(time.Second)
			heard("b")
		}
		if err := c.losses(); err != nil || c.members[0].lost {
			t.Fatalf("lost before its lease of %v: %v", DefaultLease, err)
		}
		time.Sleep(1001 * time.Millisecond)
		heard("b")
		if err := c.losses(); err != nil || !c.members[0].lost || c.members[1].lost {
			t.Fatalf("not lost after its lease: %v", err)
		}
		o := c.orders("b", &beat{Nonce: "b", State: stateDone, Legs: 1})
		if len(o.Takeover) != 1 || o.Takeover[0].From <= c.members[0].lostAt || !c.members[1].sends() {
			t.Errorf("orders %+v, lost at %v", o, c.members[0].lostAt)
		}
		if o := c.orders("a", &beat{Nonce: "a", State: stateFenced, Legs: 1}); !o.Stop || len(o.Takeover) > 0 {
			t.Errorf("the lost one is back, and told %+v", o)
		}
		c.OnLoss = LossFail
		time.Sleep(DefaultLease + time.Second)
		if err := c.losses(); err == nil {
			t.Error("--on-worker-loss fail goes on")
		}
	})
}

func TestWorkerFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var why error
		w := &Worker{state: stateRunning, Clock: NewClock(0), plan: plan{Lease: DefaultLease, TakeOver: true}, stop: func(err error) { why = err }, Log: func(string, ...any) {}}
		w.answered.Store(w.Clock.Now())
		time.Sleep(11 * time.Second)
		if err := w.silent(); err != nil || why != nil || w.state != stateRunning {
			t.Fatalf("a cut of 11 s disturbs the sending: %v, %v", err, why)
		}
		time.Sleep(time.Second)
		if err := w.silent(); err != nil || why != errFenced || w.state != stateFenced {
			t.Fatalf("after 12 s of a lease of 15: %v, %v, %s", err, why, w.state)
		}
		time.Sleep(orphanAfter)
		if err := w.silent(); err == nil {
			t.Error("it waits forever")
		}
	})
}

func TestBusRefusesSecrets(t *testing.T) {
	for _, url := range []string{"nats://user:hunter2@host:4222", "hunter2", "nats://a:4222,nats://u:hunter2@b:4222"} {
		b := Bus{URL: url}
		if err := b.Check(); err == nil || strings.Contains(err.Error(), "hunter2") || trace.Fix(err) == "" {
			t.Errorf("%v", err)
		}
	}
	for _, b := range []Bus{{URL: "nats://h:1", Cert: "c"}, {URL: "nats://h:1", Cluster: "a.b"}} {
		if b.Check() == nil {
			t.Errorf("%+v is taken", b)
		}
	}
	if err := (&Bus{URL: "tls://a:4222,tls://b:4222", Cluster: "load"}).Check(); err != nil {
		t.Error(err)
	}
}

// TestPiecesAreHeard: a worker that hands over a file for longer than its lease is not
// silent.
func TestPiecesAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator(1)
		c.admit("a", &hello{Version: "1", Protocol: protocolVersion, Nonce: "a"})
		for range 4 {
			time.Sleep(DefaultLease / 2)
			if !c.hears("a") || c.hears("b") {
				t.Fatal("pieces of a are not heard, or those of a stranger are")
			}
		}
		if c.silent(c.members[0]) || c.members[0].silence != DefaultLease/2 {
			t.Errorf("silent for %v, which is %v", c.members[0].silence, c.silent(c.members[0]))
		}
		time.Sleep(DefaultLease + 1)
		if !c.silent(c.members[0]) {
			t.Error("heard for ever")
		}
	})
}

// TestHeardProgress: between two words of a worker nothing is known of what it sends
// next, and nothing is waited for from one that is lost.
func TestHeardProgress(t *testing.T) {
	for name, c := range map[string]struct {
		said    replay.Progress
		lost    bool
		unheard bool
		next    time.Duration
	}{
		"nothing yet":              {said: unheard(), unheard: true, next: -1},
		"due in a while":           {said: replay.Progress{Sending: true, Elapsed: 1 * time.Second, NextDue: 5 * time.Second}, next: 5 * time.Second},
		"due since it was said":    {said: replay.Progress{Sending: true, Elapsed: 1 * time.Second, NextDue: 1200 * time.Millisecond}, unheard: true, next: -1},
		"held when it was said":    {said: replay.Progress{Sending: true, Elapsed: 1 * time.Second, NextDue: 500 * time.Millisecond}, next: 500 * time.Millisecond},
		"waits for an answer":      {said: replay.Progress{Sending: true, Elapsed: 1 * time.Second, NextDue: -1}, next: -1},
		"all sent":                 {said: replay.Progress{Elapsed: 1 * time.Second, NextDue: -1}, next: -1},
		"lost":                     {said: replay.Progress{Sending: true, Elapsed: 1 * time.Second, NextDue: 500 * time.Millisecond, InFlight: 3}, lost: true, next: -1},
		"lost before it had begun": {said: unheard(), lost: true, next: -1},
	} {
		m := &member{progress: c.said, lost: c.lost}
		p := m.heard(2 * time.Second)
		if p.Unheard != c.unheard || p.NextDue != c.next || p.Sending != (c.said.Sending && !c.lost) || c.lost && p.InFlight != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
