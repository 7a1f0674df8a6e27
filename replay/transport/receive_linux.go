//go:build linux && (amd64 || arm64)

package transport

import (
	"io"
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A receiver reads from a plain TCP connection: into a buffer that it borrows
// only while bytes are there, so that a connection that waits holds none, and
// with the time at which the kernel took the last segment of the read
// (SO_TIMESTAMPNS, CLOCK_REALTIME; Linux, Documentation/networking/timestamping).
type receiver struct {
	raw   syscall.RawConn
	ready func(fd uintptr) bool // bound once
	buf   *readBuffer
	n     int
	errno syscall.Errno
	stamp int64
}

// A readBuffer is what one read needs.
type readBuffer struct {
	header unix.Msghdr
	vector unix.Iovec
	oob    [64]byte
	bytes  [readSize - 256]byte // all of it fits into readSize
}

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// newReceiver returns nil where the connection is none of the kernel's TCP.
func newReceiver(nc net.Conn) *receiver {
	raw := rawTCP(nc)
	if raw == nil {
		return nil
	}
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }) // without it there are no stamps
	r := &receiver{raw: raw}
	r.ready = r.receive
	return r
}

// receive is called while the connection may be readable; false waits on.
func (r *receiver) receive(fd uintptr) bool {
	buf := readBuffers.Get().(*readBuffer)
	buf.vector.Base = &buf.bytes[0]
	buf.vector.SetLen(len(buf.bytes))
	buf.header.Iov = &buf.vector
	buf.header.Iovlen = 1
	buf.header.Control = &buf.oob[0]
	buf.header.SetControllen(len(buf.oob))
	n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&buf.header)), 0)
	if errno == syscall.EAGAIN || errno == syscall.EINTR {
		readBuffers.Put(buf)
		return false
	}
	r.n, r.errno, r.stamp = int(n), errno, 0
	if errno != 0 || r.n == 0 {
		readBuffers.Put(buf)
		return true
	}
	r.buf, r.stamp = buf, buf.kernelTime()
	return true
}

// kernelTime reads the stamp of the message; 0 if it has none.
func (b *readBuffer) kernelTime() int64 {
	if b.header.Controllen < uint64(unix.CmsgSpace(16)) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b.oob[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	ts := (*unix.Timespec)(unsafe.Pointer(&b.oob[unix.CmsgLen(0)]))
	return ts.Sec*1e9 + ts.Nsec
}

// read returns bytes that are valid until done, and the kernel's time of their
// last segment in Unix ns, 0 if it is not known.
func (r *receiver) read() (p []byte, stamp int64, err error) {
	r.n, r.errno, r.buf = 0, 0, nil
	if err := r.raw.Read(r.ready); err != nil {
		return nil, 0, err
	}
	switch {
	case r.errno != 0:
		return nil, 0, &net.OpError{Op: "read", Err: r.errno}
	case r.n == 0:
		return nil, 0, io.EOF
	}
	return r.buf.bytes[:r.n], r.stamp, nil
}

// done gives the buffer back.
func (r *receiver) done() {
	if r.buf != nil {
		readBuffers.Put(r.buf)
		r.buf = nil
	}
}
