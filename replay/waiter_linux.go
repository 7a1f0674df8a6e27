package replay

import (
	"context"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Timers of the runtime wake up to a millisecond late: it waits for them in
// epoll_wait, whose timeout is in whole milliseconds (golang/go#53824). So the
// last stretch before a due time is slept by the kernel's own clock, on a
// thread of our own, and its end is spun.
const (
	exactStretch = 25 * time.Millisecond // slept with clock_nanosleep; a timer costs two hand-overs of a processor
	spinMost     = 60 * time.Microsecond // spun at most; what a wake-up takes on an idle core
	spinSpare    = 4 * time.Microsecond  // spun beyond what a wake-up takes
)

// An exactWaiter waits on one locked thread. It must be used and released by
// one goroutine.
//
// It spins for as long as a wake-up of this machine takes: on a busy core that is some
// microseconds, and others have the core meanwhile. A thread of SCHED_FIFO that spins
// between one request and the next leaves nothing to them, until the kernel takes the
// core away from it for up to 50 ms (the fair server of Linux 6.8).
type exactWaiter struct {
	start  time.Time
	coarse *timerWaiter
	wakeUp time.Duration // what nearly all of the last wake-ups took, at most
}

// newWaiter returns the best waiter of this platform, whether its thread goes before all
// others, and what to call when the goroutine is done with it.
func newWaiter(start time.Time, realtime bool) (w waiter, first bool, release func()) {
	runtime.LockOSThread()
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(procs + 1)                  // one for this thread, which keeps it while it sleeps
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // 1 ns instead of 50 us; this thread only
	first = realtime && runtime.NumCPU() > 1 && schedule(unix.SCHED_FIFO, 1)
	return &exactWaiter{start: start, coarse: newTimerWaiter(start), wakeUp: spinMost}, first, func() {
		if first {
			schedule(unix.SCHED_NORMAL, 0)
		}
		unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0 = the default again
		runtime.UnlockOSThread()
		runtime.GOMAXPROCS(procs)
	}
}

// schedule sets how the kernel schedules this thread; it is false where that is not
// allowed. A thread of SCHED_FIFO runs as soon as it wakes. Any other has to wait until
// the kernel's time slice of another thread ends, a millisecond or more for one wake-up
// in a hundred, and a nice value of -20 changes nothing about that (Linux 6.18).
func schedule(policy, priority uint32) bool {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}
	return unix.SchedSetAttr(0, &a, 0) == nil
}

// sleep is clock_nanosleep without a word to the scheduler, so that the thread
// keeps its processor and need not wait for one when it wakes. The runtime's
// signals end it early, so nothing waits for the sleeper; it is asked again.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
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
		if spin := min(w.wakeUp+spinSpare, spinMost); left > spin {
			sleep(left - spin)
			w.woke(time.Since(w.start) - due + spin)
		}
	}
}

// woke learns from a wake-up that took so long: half of the way if that is more than
// thought, and a little if it is less. One that came too early was a signal's.
func (w *exactWaiter) woke(took time.Duration) {
	if took < 0 {
		return
	}
	if took > w.wakeUp {
		w.wakeUp += (min(took, spinMost) - w.wakeUp) / 2
	} else {
		w.wakeUp -= (w.wakeUp - took) / 64
	}
}
