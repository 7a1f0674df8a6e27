//go:build !linux

package replay

import "time"

// newWaiter returns the best waiter of this platform: its timers, which are up
// to a millisecond or more late. The lateness of each request says so.
func newWaiter(start time.Time) (waiter, func()) { return newTimerWaiter(start), func() {} }
