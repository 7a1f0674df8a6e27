package transport

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deaf listens with a queue of one that nobody serves: the kernel lets connections
// that are one too many wait.
func deaf(t *testing.T) netip.AddrPort {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Skip(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Skip(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Skip(err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
}

// A dial that hangs ends with its context: at the deadline, and soon after a cancel.
func TestDialHangs(t *testing.T) {
	to := deaf(t)
	for name, limited := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 20*time.Millisecond)
		},
		"cancel": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		for taken := 0; ; taken++ { // until the queue is full
			if taken == 8 {
				t.Skip("the kernel's queue takes all")
			}
			ctx, cancel := limited()
			c, err := Dial(ctx, to)
			if err == nil {
				t.Cleanup(func() { c.Close() })
				cancel()
				continue
			}
			if !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				t.Errorf("%s: %v, context %v", name, err, ctx.Err())
			}
			cancel()
			break
		}
	}
}
