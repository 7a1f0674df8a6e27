//go:build linux && (amd64 || arm64)

package transport

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sender writes to a plain TCP connection what its socket takes at once.
type sender struct {
	raw   syscall.RawConn
	ready func(fd uintptr) bool // bound once
	p     []byte
	n     int
	errno syscall.Errno
}

// newSender returns nil where the connection is none of the kernel's TCP.
func newSender(nc net.Conn) *sender {
	raw := rawTCP(nc)
	if raw == nil {
		return nil
	}
	s := &sender{raw: raw}
	s.ready = s.send
	return s
}

// rawTCP is for the system calls of a connection of the kernel's TCP; nil of another.
func rawTCP(nc net.Conn) syscall.RawConn {
	switch nc.(type) {
	case *net.TCPConn, socket:
		if raw, err := nc.(syscall.Conn).SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

func (s *sender) send(fd uintptr) bool {
	for s.n < len(s.p) {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&s.p[s.n])), uintptr(len(s.p)-s.n), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			s.n += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return true
		default:
			s.errno = errno
			return true
		}
	}
	return true
}

// write returns how many bytes the socket took without waiting.
func (s *sender) write(p []byte) (int, error) {
	s.p, s.n, s.errno = p, 0, 0
	err := s.raw.Write(s.ready)
	s.p = nil
	if err == nil && s.errno != 0 {
		err = &net.OpError{Op: "write", Err: s.errno}
	}
	return s.n, err
}
