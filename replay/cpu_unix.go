//go:build unix

package replay

import (
	"golang.org/x/sys/unix"
)

// cpuSeconds returns the user and system time of this process.
func cpuSeconds() (float64, bool) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, true
}
