package replay

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Timers of the runtime wake up to a millisecond late: it waits for them in
// epoll_wait, whose timeout is in whole milliseconds (golang/go#53824). So the
// last stretch before a due time is slept by the kernel's own clock, on a
// thread of our own, and its end is spun.
const (
	exactStretch = 3 * time.Millisecond  // slept with clock_nanosleep
	spinStretch  = 60 * time.Microsecond // spun; what a wake-up takes on an idle core
)

// An exactWaiter waits on one locked thread. It must be used and released by
// one goroutine.
type exactWaiter struct {
	start  time.Time
	coarse *timerWaiter
}

// newWaiter returns the best waiter of this platform, and what to call when the
// goroutine is done with it.
func newWaiter(start time.Time) (waiter, func()) {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // 1 ns instead of 50 us; this thread only
	return &exactWaiter{start: start, coarse: newTimerWaiter(start)}, func() {
		unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0 = the default again
		runtime.UnlockOSThread()
	}
}

func (w *exactWaiter) waitUntil(ctx context.Context, due time.Duration) error {
	if err := w.coarse.waitUntil(ctx, due-exactStretch); err != nil {
		return err
	}
	for {
		left := due - time.Since(w.start)
		if left <= 0 {
			return nil
		}
		if left > spinStretch {
			t := unix.NsecToTimespec(int64(left - spinStretch))
			unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil) // woken early by a signal, it is asked again
		}
	}
}
