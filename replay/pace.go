package replay

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// Pacings.
const (
	// PaceSchedule sends every request at its time, whatever became of the
	// others: open loop.
	PaceSchedule = "schedule"
	// PaceCausal also holds a request until those it comes after have ended:
	// max(due, end + delay).
	PaceCausal = "causal"
	// PaceThink has no due times after a session's start: a request follows
	// the end of the last it comes after by its recorded delay.
	PaceThink = "think"
)

// A pacer holds requests back until those they come after have ended. The
// dispatcher takes from it what is eligible; connections tell it what has
// ended.
type pacer struct {
	think  bool
	gapCap time.Duration
	wake   chan struct{} // holds one when the dispatcher should look again

	onError string

	mu      sync.Mutex
	ready   flightHeap
	waiting map[ref][]*flight // by the request they wait for
	held    int               // flights in waiting
	ended   map[ref]outcome   // of those that others come after
	failed  map[session]bool  // with ErrorFail
	counts  results.Holds
}

// A ref names a request of a run.
type ref struct {
	id   int64
	pass int32
}

// A session of a run.
type session struct {
	name string
	pass int32
}

// An outcome is what those that come after a request need to know of its end.
type outcome struct {
	at     time.Duration
	failed bool // or was left out for one that has
}

func (f *flight) ref() ref { return ref{f.res.ID, f.res.Pass} }

// links is what the survey knows of the dependencies of a selection.
type links struct {
	selected   map[int64]uint64   // bitset of ids
	referenced map[int64]struct{} // ids that others come after
}

func (l *links) has(id int64) bool { return l.selected[id>>6]&(1<<(id&63)) != 0 }

func newPacer(c *Config) *pacer {
	return &pacer{
		think: c.pace() == PaceThink, gapCap: c.GapCap, onError: c.OnError, wake: make(chan struct{}, 1),
		waiting: map[ref][]*flight{}, ended: map[ref]outcome{}, failed: map[session]bool{},
	}
}

func (p *pacer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// admit takes a request whose turn in the trace has come: it is ready at its
// due time, or waits for others.
func (p *pacer) admit(f *flight, l *links) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range f.after {
		if !l.has(d.ID) {
			p.counts.Outside++
			continue
		}
		f.depends = true
		on := ref{d.ID, f.res.Pass}
		if end, ok := p.ended[on]; ok {
			p.follow(f, d.Kind, end)
			continue
		}
		f.missing++
		p.waiting[on] = append(p.waiting[on], f)
	}
	if f.missing > 0 {
		p.held++
		return
	}
	p.release(f)
}

// follow notes the end of a request that f comes after; the latest counts. One
// that failed may take f with it: a join goes on while another branch is there.
func (p *pacer) follow(f *flight, kind string, end outcome) {
	if end.at >= f.lastEnd {
		f.lastEnd, f.cause = end.at, kind
	}
	if f.firstEnd == 0 || end.at < f.firstEnd {
		f.firstEnd = end.at
	}
	if f.followed++; !end.failed {
		f.well++
	}
}

// leftOut says why f is not sent; "" if it is. The caller holds mu.
func (p *pacer) leftOut(f *flight) string {
	switch {
	case p.onError == ErrorFail && p.failed[f.sessionOf()]:
		return "a request of its session has failed (--on-error fail-tree)"
	case p.onError == ErrorSkip && f.followed > 0 && f.well == 0:
		return "what it comes after has failed (--on-error skip)"
	}
	return ""
}

func (f *flight) sessionOf() session { return session{f.res.Session.Or(""), f.res.Pass} }

// release makes f eligible. The caller holds mu.
func (p *pacer) release(f *flight) {
	f.eligible = f.due
	if f.followed > 1 {
		p.counts.Joins++
		p.counts.JoinWaitNS += int64(f.lastEnd - f.firstEnd)
	}
	if f.depends {
		delay, known := f.delay.Get()
		switch {
		case !known && p.think:
			delay = f.gap // between the arrivals, less what the one before took
			p.counts.NoDelay++
		case !known:
			p.counts.NoDelay++
		}
		if p.gapCap > 0 && delay > p.gapCap {
			p.counts.GapsCut++
			p.counts.GapsCutNS += int64(delay - p.gapCap)
			f.res.GapCut = trace.Some(delay - p.gapCap)
			delay = p.gapCap
		}
		after := f.lastEnd + delay
		if p.think || !f.hasDue {
			f.eligible, f.hasDue = after, false
			f.res.HoldCause = trace.Some(f.cause)
		} else if after > f.due {
			f.eligible = after
			f.res.HoldCause = trace.Some(f.cause)
			p.counts.Held++
			p.counts.HeldNS += int64(after - f.due)
		}
	}
	heap.Push(&p.ready, f)
	p.signal()
}

// end tells that f has ended, and lets go what waited for it alone, after render
// has made its text.
func (p *pacer) end(f *flight, at time.Duration, l *links, render func(*flight)) {
	failed := f.failedItself() || f.skipped
	if failed && p.onError == ErrorFail && f.res.Session.Known {
		p.mu.Lock()
		p.failed[f.sessionOf()] = true
		p.mu.Unlock()
	}
	if _, ok := l.referenced[f.res.ID]; !ok {
		return
	}
	free := p.noteEnd(f.ref(), outcome{at: at, failed: failed})
	for _, f := range free {
		render(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range free {
		p.held--
		p.release(f)
	}
}

// noteEnd returns what waited for a request alone.
func (p *pacer) noteEnd(of ref, end outcome) (free []*flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[of] = end
	for _, f := range p.waiting[of] {
		for _, d := range f.after {
			if d.ID == of.id {
				p.follow(f, d.Kind, end)
			}
		}
		if f.missing--; f.missing == 0 {
			free = append(free, f)
		}
	}
	delete(p.waiting, of)
	return free
}

// next returns the request that is eligible first and when; ok is false if none
// is ready. empty tells that none waits either.
func (p *pacer) next() (at time.Duration, ok, empty bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) == 0 {
		return 0, false, p.held == 0
	}
	return p.ready[0].eligible, true, false
}

// pop takes what is eligible first. It is left out if what it comes after has
// failed, and the policy says so.
func (p *pacer) pop() *flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := heap.Pop(&p.ready).(*flight)
	if why := p.leftOut(f); why != "" && f.unsent == "" {
		f.skipped = true
		p.counts.LeftOut++
		f.unsent = why
	}
	return f
}

// left returns what was never sent.
func (p *pacer) left() []*flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := append([]*flight(nil), p.ready...)
	seen := map[*flight]bool{}
	for _, list := range p.waiting {
		for _, f := range list {
			if !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// flightHeap orders by the time of eligibility, then by row order.
type flightHeap []*flight

func (h flightHeap) Len() int { return len(h) }
func (h flightHeap) Less(i, j int) bool {
	if h[i].eligible != h[j].eligible {
		return h[i].eligible < h[j].eligible
	}
	return h[i].seq < h[j].seq
}
func (h flightHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *flightHeap) Push(x any)   { *h = append(*h, x.(*flight)) }
func (h *flightHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// paced is dispatch for causal and think pacing: it acts on what is eligible, and
// takes rows of the trace in when admits says so.
func (r *run) paced(ctx context.Context, q *queue, w waiter) error {
	row, more := q.take()
	for seq := 0; ; {
		if ctx.Err() != nil {
			return fmt.Errorf("replay stopped before request %d: %w", seq, context.Cause(ctx))
		}
		at, ok, empty := r.pacer.next()
		if more && r.admits(row, ok) {
			if r.forest == nil || r.forest.take(row) {
				r.pacer.admit(row, r.survey.links)
			}
			row, more = q.take()
			continue
		}
		if r.forest != nil {
			if begin := r.forest.warmed(row, more); len(begin) > 0 {
				for _, f := range begin {
					r.pacer.admit(f, r.survey.links)
				}
				continue
			}
			empty = empty && len(r.forest.held) == 0
		}
		if ok && at <= r.now() {
			f := r.pacer.pop()
			r.render(f)
			r.send(ctx, f, seq)
			seq++
			continue
		}
		if !ok && !more && empty {
			return nil
		}
		if opens, timed := r.opens(row, more); timed && (!ok || opens < at) {
			at, ok = opens, true
		}
		if r.nextDue.Store(-1); ok {
			r.nextDue.Store(int64(at))
		}
		if err := r.pacer.wait(ctx, w, r.now, at, ok); err != nil {
			return fmt.Errorf("replay stopped before request %d: %w", seq, err)
		}
	}
}

// admits tells whether a row of the trace is taken in now: at its recorded time; for
// think pacing, where a turn may come earlier than it was recorded, as soon as it can;
// in a closed loop when nothing else could be sent; and a session when it has a place.
func (r *run) admits(f *flight, ready bool) bool {
	switch {
	case r.forest != nil:
		return r.forest.admits(f)
	case r.c.Selection.Load.Kind == LoadConcurrency:
		if ready {
			return false
		}
		r.refused = r.c.Admit != nil && !r.c.Admit(f.seq)
		return !r.refused
	}
	return r.pacer.think || f.due <= r.now()
}

// opens says when admits is to be asked again, unless something ends before.
func (r *run) opens(f *flight, more bool) (at time.Duration, timed bool) {
	switch {
	case r.forest != nil:
		return r.forest.opens()
	case more && r.refused:
		return r.now() + admitEvery, true
	case !more || r.c.Selection.Load.closed():
		return 0, false
	}
	return f.due, true
}

// exactBefore is how long before an instant the waiter takes over, and exactStep how
// often it then looks whether something became eligible meanwhile.
const (
	exactBefore = 5 * time.Millisecond
	exactStep   = 200 * time.Microsecond
)

// wait waits until at, if timed, or until something became eligible meanwhile.
func (p *pacer) wait(ctx context.Context, w waiter, now func() time.Duration, at time.Duration, timed bool) error {
	var due <-chan time.Time
	if timed {
		timer := time.NewTimer(max(0, at-now()-exactBefore))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-p.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-due:
	}
	for step := now() + exactStep; step < at; step += exactStep {
		if err := w.waitUntil(ctx, step); err != nil {
			return err
		}
		select {
		case <-p.wake:
			return nil
		default:
		}
	}
	return w.waitUntil(ctx, at)
}
