package cluster

import (
	"context"
	"errors"
	"time"

	"reprise/trace"
)

// beats tells the coordinator how this worker is, and does what it says, until the
// results are to be handed over. Sending goes on beside it.
func (w *Worker) beats(ctx context.Context) (*orders, error) {
	for range clockBurst {
		w.beat(ctx, false)
	}
	w.mu.Lock()
	w.clock.close()
	w.mu.Unlock()
	tick := time.NewTicker(max(beatEvery, w.plan.Every))
	defer tick.Stop()
	stopped := ctx.Done()
	parent := w.Parent
	kept := time.Now()
	for {
		select {
		case <-tick.C:
		case <-stopped:
			stopped = nil
			w.stop(context.Cause(ctx))
		case <-parent:
			return nil, w.orphaned(errors.New("the coordinator is gone"))
		}
		o, err := w.beat(context.WithoutCancel(ctx), false)
		if err != nil {
			if over := w.silent(); over != nil {
				return nil, w.orphaned(over)
			}
			continue
		}
		if done, err := w.obey(ctx, o); done || err != nil {
			return o, err
		}
		if time.Since(kept) > time.Duration(estimateEvery) {
			kept = time.Now()
			w.keep() // for a recovery; the end writes it anew
		}
	}
}

// beat makes one exchange, and takes its sample of the clocks.
func (w *Worker) beat(ctx context.Context, delivered bool) (*orders, error) {
	b := w.report()
	b.Delivered = delivered
	at := w.Clock.Now()
	b.Sent = at
	var o orders
	if err := w.call(ctx, "beat", b, &o); err != nil {
		return nil, err
	}
	back := w.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered.Store(at)
	w.told = w.told || b.Error != "" || o.Fail != ""
	for _, l := range w.legs[:b.Legs] {
		l.pace.heard()
	}
	if o.There != 0 {
		w.clock.add(Sample{b.Sent, o.There, o.Answered, back})
	}
	return &o, nil
}

// report is what a beat says.
func (w *Worker) report() beat {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := beat{Nonce: w.nonce, State: w.state, Legs: len(w.legs), Want: w.wanted(), Reach: w.reach()}
	if w.err != nil {
		b.Error, b.Fix = w.err.Error(), trace.Fix(w.err)
	}
	b.Progress.NextDue = -1
	for _, l := range w.legs {
		b.Progress.Planned += l.progress.Planned
		b.Progress.Elapsed = max(b.Progress.Elapsed, l.progress.Elapsed)
		b.Progress.Add(&l.progress)
		l.progress.Lateness = 0
	}
	if b.Progress.Whole(); !w.fresh {
		b.Progress.Light()
	}
	w.fresh = false
	if e, ok := w.clock.now(); ok {
		b.Clock = &e
	}
	return b
}

// obey does what the coordinator says; done when results are to be handed over.
func (w *Worker) obey(ctx context.Context, o *orders) (done bool, err error) {
	switch {
	case o.Unknown:
		return false, w.orphaned(errors.New("the coordinator does not know this worker: another run has begun"))
	case o.Fail != "":
		return false, w.orphaned(errors.New("the run was called off: " + o.Fail))
	case o.Stop:
		w.stop(errors.New("the coordinator has stopped the run"))
	}
	w.mu.Lock()
	w.hasShares(o.Shares)
	if o.Start != 0 && w.start == 0 {
		w.first, _ = w.clock.now()
		w.start = o.Start - w.first.Offset
		close(w.started)
		w.mu.Unlock()
		w.keep()
		w.mu.Lock()
	}
	var more []takeover
	if w.state == stateRunning || w.state == stateDone {
		if more = o.Takeover; len(more) > 0 { // only this goroutine adds to the legs that the beat has counted
			w.state = stateRunning
		}
	}
	done = o.Collect && (w.state == stateDone || w.state == stateFenced && w.allOver())
	w.mu.Unlock()
	for _, t := range more {
		w.Log("takes over a part of a lost worker's shard, from %v on", t.From.Round(time.Millisecond))
		w.begin(ctx, t.shard(w.plan.Sessions), t.Places)
	}
	return done, nil
}

// silent does what a worker does that hears nothing: it sends on, until others may
// be told to send what it has not. The error ends it.
func (w *Worker) silent() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	silence := w.silence()
	w.fence(silence)
	if silence < max(orphanAfter, 2*w.plan.Lease) || w.state == stateRunning {
		return nil
	}
	return errors.New("the coordinator is silent")
}

// orphaned stops sending, lets requests in flight end within their grace, and
// returns why.
func (w *Worker) orphaned(why error) error {
	w.stop(why)
	w.sending.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return why
}
