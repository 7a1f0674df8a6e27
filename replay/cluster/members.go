package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"reprise/replay"
	"reprise/trace/results"
)

// A member is a worker as the coordinator knows it.
type member struct {
	name, nonce string
	host        results.Host
	index       int
	local       bool // its directory is on this machine
	slots       slotSet
	owned       [][]uint16 // slots of each leg, unless others took them over
	places      []int      // likewise; 0 where there are none
	planned     int64

	state    string
	err, fix string
	legs     int
	reach    []*promise
	progress replay.Progress
	late     time.Duration // largest since it was last shown
	clock    *Estimate
	seen     time.Time
	silence  time.Duration // longest

	takeover  []takeover
	shares    []share // of its legs, those that it has asked for
	lost      bool
	lostAt    time.Duration
	lostWhy   string
	over      bool // its process has ended
	delivered bool
}

// sends tells whether a worker has not sent all, or waits for answers.
func (m *member) sends() bool {
	done := m.state == stateDone && m.legs == 1+len(m.takeover)
	return !m.lost && !done
}

// unheard is the progress of what has not said how far it is.
func unheard() replay.Progress { return replay.Progress{Sending: true, Unheard: true, NextDue: -1} }

// heard is how far a worker is at an instant of the run, by what it has said last. What
// was to be sent since then is not held: the worker has not said yet what comes after it.
func (m *member) heard(now time.Duration) replay.Progress {
	p := m.progress
	switch passed := p.NextDue < now && p.NextDue >= p.Elapsed-replay.HeldAfter; {
	case m.lost:
		p.Sending, p.Unheard, p.NextDue, p.InFlight = false, false, -1, 0
	case p.Sending && p.NextDue >= 0 && passed:
		p.Unheard, p.NextDue = true, -1
	}
	return p
}

// here tells that results can be expected of it.
func (m *member) here() bool { return !m.over && (!m.lost || m.state == stateFenced) }

// silent tells that a member has not been heard for longer than its lease. The
// caller holds mu.
func (c *Coordinator) silent(m *member) bool { return m.over || time.Since(m.seen) > c.lease() }

// onHello takes a worker in.
func (c *Coordinator) onHello(msg *nats.Msg) {
	var h hello
	if json.Unmarshal(msg.Data, &h) != nil {
		return
	}
	answer, err := json.Marshal(c.admit(workerOf(msg.Subject), &h))
	if err == nil {
		msg.Respond(answer)
	}
}

// workerOf is the name in a subject.
func workerOf(subject string) string {
	parts := splitSubject(subject)
	if len(parts) != 4 {
		return ""
	}
	return parts[2]
}

// admit decides on a worker.
func (c *Coordinator) admit(name string, h *hello) welcome {
	if h.Version != c.Config.Version || h.Protocol != protocolVersion {
		return welcome{
			Refused: fmt.Sprintf("the coordinator is reprise %s (messages %d), this worker is reprise %s (messages %d)", c.Config.Version, protocolVersion, h.Version, h.Protocol),
			Fix:     "use one version on all hosts",
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.name == name })
	switch {
	case at >= 0 && c.members[at].nonce != h.Nonce:
		return welcome{Refused: fmt.Sprintf("a worker named %s has joined already", name), Fix: "give each a name of its own with --name"}
	case at >= 0: // its first hello, or our answer, was lost
		return welcome{Plan: c.planFor(c.members[at])}
	case len(c.members) == c.Workers || c.start != 0:
		return welcome{Wait: fmt.Sprintf("the run has all its workers (%d); this one waits for another", c.Workers)}
	}
	m := &member{name: name, nonce: h.Nonce, host: h.Host, index: len(c.members), state: statePreparing, progress: unheard(), seen: time.Now(), local: c.Start != nil}
	c.members = append(c.members, m)
	c.give(m)
	return welcome{Plan: c.planFor(m)}
}

// give gives a new member its slots. The caller holds mu.
func (c *Coordinator) give(m *member) {
	m.slots = newSlotSet()
	var owned []uint16
	for slot, to := range c.owners() {
		if to == m.index {
			m.slots.add(uint16(slot))
			owned = append(owned, uint16(slot))
			m.planned += c.rows[slot]
		}
	}
	m.owned, m.places = [][]uint16{owned}, []int{c.Config.Places(m.index, c.Workers)}
}

// owners is who has each slot at the start. The caller holds mu.
func (c *Coordinator) owners() []int {
	if c.table == nil {
		c.table = Assign(c.weights, c.Workers)
	}
	return c.table
}

func (c *Coordinator) planFor(m *member) *plan {
	p := &plan{
		Run: c.run, Index: m.index, Of: c.Workers, Args: c.Args, Path: c.Config.Trace, Sessions: c.keep, Slots: m.slots, Mine: m.planned,
		Lease: c.lease(), Every: c.beatEvery(), TakeOver: c.takesOver(), Base: c.base,
		Closed: c.Config.Closed(), Places: c.Config.Places(0, 1),
	}
	if !m.local {
		p.Stream = c.streamEvery()
	}
	if at, ok := c.cool.Get(); ok {
		p.CoolFrom = &at
	}
	return p
}

// takesOver tells whether others send what a lost worker has not.
func (c *Coordinator) takesOver() bool {
	return c.OnLoss != LossFail && c.Workers > 1
}

// onBeat answers a worker.
func (c *Coordinator) onBeat(msg *nats.Msg) {
	there := c.clock.Now()
	var b beat
	if json.Unmarshal(msg.Data, &b) != nil {
		return
	}
	o := c.orders(workerOf(msg.Subject), &b)
	o.There = there
	o.Answered = c.clock.Now()
	if answer, err := json.Marshal(o); err == nil {
		msg.Respond(answer)
	}
}

// orders notes how a worker is and says what it is to do.
func (c *Coordinator) orders(name string, b *beat) orders {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.name == name && m.nonce == b.Nonce })
	if at < 0 {
		return orders{Unknown: true}
	}
	m := c.members[at]
	m.silence = max(m.silence, time.Since(m.seen))
	m.seen = time.Now()
	b.Progress.Keep(&m.progress)
	m.state, m.err, m.fix, m.legs, m.reach, m.progress, m.clock = b.State, b.Error, b.Fix, b.Legs, b.Reach, b.Progress, b.Clock
	m.late = max(m.late, b.Progress.Lateness)
	m.delivered = m.delivered || b.Delivered
	o := orders{Start: c.start, Stop: c.stop, Fail: c.fail, Collect: c.collect, Upload: !m.local, Shares: c.wishFor(m, b.Want), Bye: m.delivered}
	if m.lost {
		o.Stop = true
	} else if b.Legs > 0 {
		o.Takeover = m.takeover[min(b.Legs-1, len(m.takeover)):]
	}
	return o
}

// watch notes that a process has ended.
func (c *Coordinator) watch(p Process) {
	err := <-p.Over
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.name != p.Name {
			continue
		}
		if m.over = true; m.lostWhy == "" {
			m.lostWhy = "its process ended"
			if err != nil {
				m.lostWhy = "its process ended: " + err.Error()
			}
		}
		return
	}
	if c.start == 0 { // before it has joined
		c.members = append(c.members, &member{name: p.Name, over: true, lostWhy: fmt.Sprint(cmp.Or(err, errEnded))})
	}
}

// losses looks for members that are lost, and has the others take over.
func (c *Coordinator) losses() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		failed := m.state == stateFailed || m.state == stateFenced
		if m.lost || m.delivered || !failed && !c.silent(m) {
			continue
		}
		if m.state == stateDone && m.legs == 1+len(m.takeover) && c.collect {
			continue
		}
		m.lost, m.lostAt = true, c.now()
		switch {
		case m.state == stateFailed:
			m.lostWhy = m.err
		case m.lostWhy == "":
			m.lostWhy = fmt.Sprintf("silent for more than %v", c.lease())
		}
		c.Log("worker %s is lost, %v after the start: %s", m.name, m.lostAt.Round(time.Millisecond), m.lostWhy)
		if c.OnLoss == LossFail {
			return fmt.Errorf("worker %s is lost, %v after the start: %s (--on-worker-loss fail)", m.name, m.lostAt.Round(time.Millisecond), m.lostWhy)
		}
		c.takeOver(m)
	}
	if len(c.members) > 0 && c.count(func(m *member) bool { return !m.lost }) == 0 && !c.stop {
		c.Log("all workers are lost")
	}
	return nil
}

// farewell waits until the processes have ended, for a while.
func (c *Coordinator) farewell(processes []Process) {
	limit := time.After(5 * time.Second)
	for {
		c.mu.Lock()
		left := c.count(func(m *member) bool { return m.local && !m.over && m.here() })
		c.mu.Unlock()
		if len(processes) == 0 || left == 0 {
			break
		}
		select {
		case <-limit:
			return
		case <-time.After(tick):
		}
	}
	if len(processes) == 0 { // the last answers have to leave
		time.Sleep(c.beats(2 * beatEvery))
	}
}
