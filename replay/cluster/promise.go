package cluster

import (
	"sync"
	"time"
)

// A promise bounds what a leg of a closed loop has begun, which has no due times that
// would say it: at a time, no request from a place on, among all that are selected, and
// from then on so many places more each second. A worker keeps the promises of its
// beats, so that the coordinator knows what is left if it hears no more of it.
type promise struct {
	At   int64   `json:"at"` // by the worker's clock
	Seq  int     `json:"seq"`
	PerS float64 `json:"per_s"`
}

// limit is the first place that is not begun at a time.
func (p *promise) limit(at int64) int {
	return p.Seq + int(p.PerS*max(0, time.Duration(at-p.At).Seconds()))
}

// A pace is how fast a leg goes through its places, and what it has promised of it.
type pace struct {
	mu       sync.Mutex
	next     int      // after the last place that was begun
	kept     *promise // the last that was answered; nil = none
	made     *promise // the last that was sent; it holds too, for it may have arrived
	was      int      // next when made was
	perS     float64
	began    int64
	answered bool // made was
}

// Of a promise: how many times faster than it was a leg may get until the next, and how
// many times the places of the whole run may be begun at once, beside half a second's.
const (
	promiseSpeed = 1.5
	promiseBurst = 4
	promiseAfter = int64(time.Second) // from the begin of a leg: until its speed is known
	speedFades   = 0.98               // of what is kept of an earlier speed, from beat to beat
)

// allows tells whether a place may be begun, and notes that it is.
func (p *pace) allows(seq int, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, bound := range []*promise{p.kept, p.made} {
		if bound != nil && seq >= bound.limit(now) {
			return false
		}
	}
	p.next = max(p.next, seq+1)
	return true
}

// promises returns what the next beat promises; nil = nothing yet.
func (p *pace) promises(now int64, places int) *promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil && !p.answered {
		return p.made // the coordinator may not have heard it
	}
	since := p.began
	if p.made != nil {
		since = p.made.At
	} else if p.began == 0 || now-p.began < promiseAfter {
		return nil
	}
	p.perS = max(speedFades*p.perS, float64(p.next-p.was)/time.Duration(max(now-since, int64(time.Millisecond))).Seconds())
	p.was, p.answered = p.next, false
	p.made = &promise{At: now, Seq: p.next + promiseBurst*places + int(p.perS/2), PerS: promiseSpeed * p.perS}
	return p.made
}

// begin notes when the leg begins.
func (p *pace) begin(at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = at
}

// heard notes that what was promised last has arrived.
func (p *pace) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil {
		p.kept, p.answered = p.made, true
	}
}

// silence is how long this worker has heard nothing.
func (w *Worker) silence() time.Duration { return time.Duration(w.Clock.Now() - w.answered.Load()) }

// pastFence tells that others may be told to send what a worker has not that has heard
// nothing for so long.
func (w *Worker) pastFence(silence time.Duration) bool {
	return w.plan.TakeOver && silence > time.Duration(fenceAfter*float64(w.plan.Lease))
}

// admit is asked before a request begins. A worker whose lease may be over sends no more,
// also if its process stood still and has not looked at it since.
func (w *Worker) admit(l *leg, closed bool) func(int) bool {
	return func(seq int) bool {
		if silence := w.silence(); w.pastFence(silence) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.fence(silence)
			return false
		}
		return !closed || l.pace.allows(seq, w.Clock.Now())
	}
}

// fence stops the sending of a worker past its fence. The caller holds mu.
func (w *Worker) fence(silence time.Duration) {
	if w.pastFence(silence) && (w.state == stateRunning || w.state == stateReady) {
		w.state = stateFenced
		w.stop(errFenced)
		w.Log("heard nothing for %v and stops sending, since others take over", silence.Round(time.Millisecond))
	}
}

// reach is what the next beat promises of each leg. The caller holds mu.
func (w *Worker) reach() (out []*promise) {
	if !w.plan.TakeOver || !w.plan.Closed {
		return nil
	}
	for _, l := range w.legs {
		out = append(out, l.pace.promises(w.Clock.Now(), w.plan.Places))
	}
	return out
}
