package replay

import (
	"context"
	"fmt"
	"time"

	"reprise/trace/results"
)

// ended takes the result of a flight whose exchange is over.
func (r *run) ended(f *flight) {
	if r.places != nil {
		r.places.give(f.res.End.Value)
	}
	raise(&r.last, int64(f.res.End.Value))
	if f.res.Session.Known {
		r.inFlight.ends(f.sessionOf())
	}
	r.told(f, f.res.End.Value)
	done := r.done.Add(1)
	switch f.res.Outcome {
	case results.OutcomeOK, results.OutcomeNotStreamed:
	case results.OutcomeCancelled, results.OutcomeCut:
		r.failed.Add(1)
	default:
		r.failed.Add(1)
		r.errors.Add(1)
	}
	r.finish(f)
	if err := r.c.Abort(r.errors.Load(), done); err != nil {
		r.abort(err)
	}
}

// Abort returns why a run is to be ended of which so many requests have ended, and so
// many of them failed; nil if it goes on.
func (c *Config) Abort(failed, ended int64) error {
	if limit := c.AbortErrorRate; limit > 0 && ended >= AbortAfter && float64(failed) > limit*float64(ended) {
		return &AbortError{Failed: failed, Ended: ended, Limit: limit}
	}
	return nil
}

// An AbortError ends a run that fails too much.
type AbortError struct {
	Failed, Ended int64
	Limit         float64 // share of the requests that ended
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("aborted: %d of %d requests that ended have failed, more than %g %%", e.Failed, e.Ended, 100*e.Limit)
}

func (r *run) finish(f *flight) {
	f.res.Cause.Value, f.res.Note.Value = r.c.hide(f.res.Cause.Value), r.c.hide(f.res.Note.Value)
	r.recorder.add(f) // which may use it again at once
	r.flights.Done()
}

// recorded takes back a flight whose result is kept. The memory of its ledger goes
// to the next that is sent: those that are rendered ahead need none yet.
func (r *run) recorded(f *flight) {
	if f.slab != nil {
		r.slabs.Put(f.slab)
	}
	r.spare.Put(f)
}

// slab returns memory for a ledger, empty when there is none to be used again.
func (r *run) slab() *[]results.Entry {
	if s, ok := r.slabs.Get().(*[]results.Entry); ok {
		return s
	}
	return new([]results.Entry)
}

// wait lets requests in flight end, as long as the grace allows.
func (r *run) wait(ctx context.Context) {
	over := make(chan struct{})
	go r.cutLate(ctx, over)
	r.flights.Wait()
	close(over)
}

// cutLate ends what is in flight after the grace, unless all is over before. An
// interrupt may come while the last requests are waited for; without a grace of
// its own, the default begins then.
func (r *run) cutLate(ctx context.Context, over <-chan struct{}) {
	grace := r.c.Grace
	if grace == 0 {
		select {
		case <-ctx.Done():
			grace = DefaultGrace
		case <-over:
			return
		}
	}
	select {
	case <-time.After(grace):
	case <-over:
		return
	}
	for _, t := range r.targets {
		t.client.Cut(fmt.Errorf("in flight when the run ended, after a grace of %v", max(0, grace)))
	}
}

// told tells those that wait for f, or for a place, that it has ended.
func (r *run) told(f *flight, at time.Duration) {
	if r.pacer != nil {
		r.pacer.end(f, at, r.survey.links, r.render)
	}
	if r.forest != nil {
		r.forest.ended(f, at)
	}
}
