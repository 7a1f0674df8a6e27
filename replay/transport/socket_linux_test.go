package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// full listens with a queue of one that nobody serves: the kernel lets further
// connections wait.
func full(t *testing.T) netip.AddrPort {
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
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
	for range 4 {
		d := net.Dialer{Timeout: 50 * time.Millisecond}
		c, err := d.Dial("tcp", to.String())
		if err != nil {
			return to
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("the kernel's queue takes all")
	return to
}

// A dial that hangs ends with its context: at the deadline, and soon after a cancel.
func TestDialHangs(t *testing.T) {
	to := full(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if c, err := Dial(ctx, to); err == nil || !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		t.Errorf("%v, %v, context %v", c, err, ctx.Err())
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if c, err := Dial(ctx, to); err == nil || !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		t.Errorf("%v, %v, context %v", c, err, ctx.Err())
	}
}
