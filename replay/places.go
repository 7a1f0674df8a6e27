package replay

import (
	"context"
	"time"
)

// places are what a closed loop or a cap has: a request, or a session, begins when
// it gets one, and gives it back when it ends.
type places struct {
	free  chan time.Duration // since when each is free; the first to be free goes first
	opens []time.Duration    // when those that are to come do, in order
}

// newPlaces has n places, which open evenly over ramp, the first at once; none is free
// before from.
func newPlaces(n int, ramp, from time.Duration) *places {
	p := &places{free: make(chan time.Duration, n)}
	for i := range n {
		if at := time.Duration(float64(ramp) * float64(i) / float64(n)); at > from {
			p.opens = append(p.opens, at)
		} else {
			p.free <- from
		}
	}
	return p
}

// give gives a place back that is free since at.
func (p *places) give(at time.Duration) { p.free <- at }

// try takes a place if one is free, and says since when it has been.
func (p *places) try(now time.Duration) (since time.Duration, ok bool) {
	if len(p.opens) > 0 && p.opens[0] <= now {
		since, p.opens = p.opens[0], p.opens[1:]
		return since, true
	}
	select {
	case since = <-p.free:
		return since, true
	default:
		return 0, false
	}
}

// wait takes the next place that is free.
func (p *places) wait(ctx context.Context, now func() time.Duration) (since time.Duration, err error) {
	var opens <-chan time.Time
	if len(p.opens) > 0 {
		timer := time.NewTimer(p.opens[0] - now())
		defer timer.Stop()
		opens = timer.C
	}
	select {
	case since = <-p.free:
		return since, nil
	case <-opens:
		since, p.opens = p.opens[0], p.opens[1:]
		return since, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
