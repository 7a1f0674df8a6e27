//go:build !linux

package replay

import "time"

// newWaiter returns the best waiter of this platform: its timers, which are up
// to a millisecond or more late. The lateness of each request says so.
func newWaiter(start time.Time, _ bool) (w waiter, first bool, release func()) {
	return newTimerWaiter(start), false, func() {}
}
