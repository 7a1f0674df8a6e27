package replay

import (
	"context"
	"fmt"
	"time"
)

// A Schedule says when each request is due.
type Schedule interface {
	// Next returns the due time of the next request, as an offset from the
	// start of the replay, and false after the last one. Due times never
	// decrease. Next does not read the clock; it waits only while the request
	// itself is still being prepared, which then shows as lateness.
	Next() (due time.Duration, ok bool)
}

// A waiter is one of two seams, so that timing tests stay exact: portable
// timers, and what a platform has that is better. All pass the same ordering
// tests.
type waiter interface {
	// waitUntil returns at due, or early with the cause when ctx ends.
	waitUntil(ctx context.Context, due time.Duration) error
}

// A timerWaiter waits with the timers of package time, which are exact under
// testing/synctest and within about a millisecond in life.
type timerWaiter struct {
	start time.Time
	timer *time.Timer
}

func newTimerWaiter(start time.Time) *timerWaiter {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &timerWaiter{start: start, timer: t}
}

func (w *timerWaiter) waitUntil(ctx context.Context, due time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	left := due - time.Since(w.start)
	if left <= 0 {
		return nil
	}
	w.timer.Reset(left)
	select {
	case <-w.timer.C:
		return nil
	case <-ctx.Done():
		w.timer.Stop()
		return context.Cause(ctx)
	}
}

// dispatch calls send for each request when it is due, whatever became of the
// earlier ones. send returns at once: it does not dial, and it writes only what a
// socket takes without waiting.
func dispatch(ctx context.Context, s Schedule, w waiter, send func(seq int, due time.Duration)) error {
	for seq := 0; ; seq++ {
		due, ok := s.Next()
		if !ok {
			return nil
		}
		if err := w.waitUntil(ctx, due); err != nil { // from the start of the run: lateness must not add up
			return fmt.Errorf("replay stopped before request %d: %w", seq, err)
		}
		send(seq, due)
	}
}
