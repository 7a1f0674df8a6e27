//go:build linux && (amd64 || arm64)

package transport

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket is a TCP connection without what package net keeps of one, which is a third
// of the memory of a stream that waits.
type socket struct{ *os.File }

// Dial opens a TCP connection to an address that needs no resolver, with the options
// that package net sets too: no delay of small writes, and a probe of a silent peer
// every 15 s. Errors are those of [net.Dialer].
func Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if to.Addr().Zone() != "" {
		return new(net.Dialer).DialContext(ctx, "tcp", to.String())
	}
	s, err := connect(ctx, to)
	for range 2 { // as package net does: a port of this host that is taken may be another's in a moment
		if err != unix.EADDRNOTAVAIL && err != errSelf {
			break
		}
		s, err = connect(ctx, to)
	}
	if err != nil {
		if errno, ok := err.(syscall.Errno); ok {
			err = os.NewSyscallError("connect", errno)
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return s, nil
}

// errSelf is when a socket has met itself, where nobody listens on a port that the
// kernel gives to clients.
var errSelf = os.NewSyscallError("connect", unix.ECONNREFUSED)

func connect(ctx context.Context, to netip.AddrPort) (socket, error) {
	family, address := sockaddr(to)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return socket{}, os.NewSyscallError("socket", err)
	}
	for _, o := range [...]struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
	} {
		unix.SetsockoptInt(fd, o.level, o.name, o.value) // it connects without them too
	}
	err = unix.Connect(fd, address)
	s := socket{os.NewFile(uintptr(fd), "tcp")}
	if err == unix.EINPROGRESS || err == unix.EINTR {
		var done bool
		if done, err = connectedNow(fd); !done { // on loopback it is
			err = s.connected(ctx)
		}
	}
	if err == nil && to.Addr().IsLoopback() {
		if port, ok := endOf(fd, unix.SYS_GETSOCKNAME); ok && port == to.Port() {
			err = errSelf
		}
	}
	if err != nil {
		s.Close()
	}
	return s, err
}

func sockaddr(to netip.AddrPort) (family int, _ unix.Sockaddr) {
	if a := to.Addr().Unmap(); a.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: a.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
}

// promptly is how long a dial waits before it asks to be told when it is not wanted any
// more: that costs more than most dials take.
const promptly = 50 * time.Millisecond

// connected waits until the connection is there.
func (s socket) connected(ctx context.Context) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	end, ends := ctx.Deadline()
	over := func() error { // the timer of ctx may come later than that of the socket
		if ctx.Err() == nil && ends && !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
		return ctx.Err()
	}
	soon := time.Now().Add(promptly)
	if ends && end.Before(soon) {
		soon = end
	}
	s.SetWriteDeadline(soon)
	defer s.SetWriteDeadline(time.Time{})
	done, err := s.wait(raw)
	if gone := over(); done || gone != nil {
		return cmp.Or(gone, err)
	}
	s.SetWriteDeadline(end) // zero = none
	stop := context.AfterFunc(ctx, func() { s.SetWriteDeadline(time.Unix(1, 0)) })
	var gone error
	for !done && gone == nil {
		done, err = s.wait(raw)
		gone = over()
	}
	if !stop() {
		return cmp.Or(context.Cause(ctx), gone, err)
	}
	return cmp.Or(gone, err)
}

// wait waits until the connect is over, or the deadline passes; then done is false.
func (s socket) wait(raw syscall.RawConn) (done bool, err error) {
	werr := raw.Write(func(fd uintptr) bool {
		done, err = connectedNow(int(fd))
		return done
	})
	if werr != nil && !os.IsTimeout(werr) {
		return true, werr
	}
	return done, err
}

// connectedNow tells whether a connect is over, and how it went.
func connectedNow(fd int) (done bool, err error) {
	state, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && state != 0 {
		err = syscall.Errno(state)
	}
	if err != nil {
		return true, err
	}
	_, ok := endOf(fd, unix.SYS_GETPEERNAME)
	return ok, nil // else it was woken for nothing
}

// endOf returns the port of an end of a connection, without the garbage that package
// unix makes of an address.
func endOf(fd int, call uintptr) (port uint16, ok bool) {
	var a unix.RawSockaddrInet6 // IPv4 has its port in the same place
	n := uint32(unsafe.Sizeof(a))
	if _, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&n))); errno != 0 {
		return 0, false
	}
	return a.Port>>8 | a.Port<<8, true
}

// Read implements net.Conn.
func (s socket) Read(p []byte) (int, error) {
	n, err := s.File.Read(p)
	return n, opError("read", err)
}

// Write implements net.Conn.
func (s socket) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	return n, opError("write", err)
}

// opError is what package net returns in the place of an error of package os.
func opError(op string, err error) error {
	path, ok := err.(*os.PathError)
	if !ok {
		return err
	}
	if path.Err == os.ErrClosed {
		path.Err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "tcp", Err: path.Err}
}

// LocalAddr implements net.Conn.
func (s socket) LocalAddr() net.Addr { return s.addr(unix.Getsockname) }

// RemoteAddr implements net.Conn.
func (s socket) RemoteAddr() net.Addr { return s.addr(unix.Getpeername) }

func (s socket) addr(of func(fd int) (unix.Sockaddr, error)) net.Addr {
	a := &net.TCPAddr{}
	raw, err := s.SyscallConn()
	if err != nil {
		return a
	}
	raw.Control(func(fd uintptr) {
		switch sa, _ := of(int(fd)); sa := sa.(type) {
		case *unix.SockaddrInet4:
			a.IP, a.Port = sa.Addr[:], sa.Port
		case *unix.SockaddrInet6:
			a.IP, a.Port = sa.Addr[:], sa.Port
		}
	})
	return a
}
