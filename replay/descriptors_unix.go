//go:build unix

package replay

import "golang.org/x/sys/unix"

// descriptorLimit is how many descriptors this process may have open; 0 if that
// is not known. Go raises the soft limit to the hard one when a program begins
// (syscall/rlimit.go), so it is what ulimit -Hn says.
func descriptorLimit() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || uint64(limit.Cur) > 1<<40 {
		return 0
	}
	return int64(limit.Cur)
}
