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

	mu      sync.Mutex
	ready   flightHeap
	waiting map[int64][]*flight     // by the request they wait for
	held    int                     // flights in waiting
	ended   map[int64]time.Duration // of those that others come after
	counts  results.Holds
}

// links is what the survey knows of the dependencies of a selection.
type links struct {
	selected   map[int64]uint64   // bitset of ids
	referenced map[int64]struct{} // ids that others come after
}

func (l *links) has(id int64) bool { return l.selected[id>>6]&(1<<(id&63)) != 0 }

func newPacer(c *Config) *pacer {
	return &pacer{think: c.Pace == PaceThink, gapCap: c.GapCap, wake: make(chan struct{}, 1), waiting: map[int64][]*flight{}, ended: map[int64]time.Duration{}}
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
		if end, ok := p.ended[d.ID]; ok {
			f.follow(d.Kind, end)
			continue
		}
		f.missing++
		p.waiting[d.ID] = append(p.waiting[d.ID], f)
	}
	if f.missing > 0 {
		p.held++
		return
	}
	p.release(f)
}

// follow notes the end of a request that f comes after; the latest counts.
func (f *flight) follow(kind string, end time.Duration) {
	if end >= f.lastEnd {
		f.lastEnd, f.cause = end, kind
	}
}

// release makes f eligible. The caller holds mu.
func (p *pacer) release(f *flight) {
	f.eligible = f.due
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

// end tells that a request has ended, and lets go what waited for it alone,
// after render has made its text.
func (p *pacer) end(id int64, at time.Duration, l *links, render func(*flight)) {
	if _, ok := l.referenced[id]; !ok {
		return
	}
	free := p.noteEnd(id, at)
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

// noteEnd returns what waited for id alone.
func (p *pacer) noteEnd(id int64, at time.Duration) (free []*flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[id] = at
	for _, f := range p.waiting[id] {
		for _, d := range f.after {
			if d.ID == id {
				f.follow(d.Kind, at)
			}
		}
		if f.missing--; f.missing == 0 {
			free = append(free, f)
		}
	}
	delete(p.waiting, id)
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

func (p *pacer) pop() *flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return heap.Pop(&p.ready).(*flight)
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

// paced is dispatch for causal and think pacing: it acts on what is eligible,
// and takes rows of the trace in at their recorded time, or for think pacing,
// where a turn may come earlier than it was recorded, as soon as it can.
func (r *run) paced(ctx context.Context, q *queue, w waiter) error {
	row, more := q.take()
	for seq := 0; ; {
		if more && (r.pacer.think || row.due <= r.now()) {
			r.pacer.admit(row, r.survey.links)
			row, more = q.take()
			continue
		}
		at, ok, empty := r.pacer.next()
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
		if more && (!ok || row.due < at) {
			at, ok = row.due, true
		}
		if err := r.pacer.wait(ctx, w, r.now, at, ok); err != nil {
			return fmt.Errorf("replay stopped before request %d: %w", seq, err)
		}
	}
}

// exactBefore is how long before an instant the waiter takes over.
const exactBefore = 5 * time.Millisecond

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
		return w.waitUntil(ctx, at)
	}
}
