// Package pipe is a network in memory: a [Listener] whose connections behave
// like TCP on loopback (buffered, with deadlines, closed or reset by either
// side) without sockets, so that client and server run in one testing/synctest
// bubble and no time passes on the wire.
package pipe

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// BufferBytes is how much one direction of a connection holds before a write
// waits for the reader, like a socket's send and receive buffers.
const BufferBytes = 256 << 10

// backlog is how many connections wait to be accepted.
const backlog = 1024

// addr is the address of both ends of every connection.
type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }

// A Listener accepts what Dial connects. It is safe for concurrent use.
type Listener struct {
	conns  chan *Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns an open listener. In a synctest bubble it has to be made there.
func Listen() *Listener {
	return &Listener{conns: make(chan *Conn, backlog), closed: make(chan struct{})}
}

// Dial connects to the listener; the error after Close is ECONNREFUSED.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := New()
	select {
	case <-l.closed:
		return nil, l.refused()
	default:
	}
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, l.refused()
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: addr{}, Err: context.Cause(ctx)}
	}
}

// DialContext is Dial in the form that http.Transport takes.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.Dial(ctx)
}

func (l *Listener) refused() error {
	return &net.OpError{Op: "dial", Net: "pipe", Addr: addr{}, Err: syscall.ECONNREFUSED}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: addr{}, Err: net.ErrClosed}
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: addr{}, Err: net.ErrClosed}
	}
}

// Close refuses later dials and resets what was not accepted.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	for {
		select {
		case c := <-l.conns:
			c.Reset()
		default:
			return nil
		}
	}
}

// Addr returns the one address of this network.
func (l *Listener) Addr() net.Addr { return addr{} }

// A Conn is one end of a connection. It is safe for concurrent use.
type Conn struct {
	in, out *half
	peer    *Conn
	read    deadline
	write   deadline
}

// New returns the two ends of a connection.
func New() (a, b *Conn) {
	ab, ba := newHalf(), newHalf()
	a, b = &Conn{in: ba, out: ab}, &Conn{in: ab, out: ba}
	a.peer, b.peer = b, a
	return a, b
}

// Read takes what has arrived, and waits if that is nothing. After the peer's
// Close it ends with io.EOF once all is read, after a Reset with ECONNRESET at once.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p, &c.read)
	return n, opError("read", err)
}

// Write returns when all of p is in the buffer.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p, &c.write)
	return n, opError("write", err)
}

// Close ends both directions: the peer reads what was written and then io.EOF,
// and its writes fail with EPIPE. If linger was set to 0, it is a Reset.
func (c *Conn) Close() error {
	if c.out.lingers() {
		c.Reset()
		return nil
	}
	c.read.stop()
	c.write.stop()
	c.in.close(false)
	c.out.close(true)
	return nil
}

// CloseWrite ends this direction: the peer reads io.EOF and can still write.
func (c *Conn) CloseWrite() error {
	c.out.close(true)
	return nil
}

// Reset breaks the connection as a TCP RST does: what is on the way is lost and
// the peer sees ECONNRESET.
func (c *Conn) Reset() {
	c.read.stop()
	c.write.stop()
	c.in.reset()
	c.out.reset()
}

// SetLinger with 0 makes Close a Reset, as on a TCP connection; other values
// are the default.
func (c *Conn) SetLinger(seconds int) error {
	c.out.setLinger(seconds == 0)
	return nil
}

// LocalAddr returns the one address of this network.
func (c *Conn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr returns the one address of this network.
func (c *Conn) RemoteAddr() net.Addr { return addr{} }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets when reads, also one that waits, end with
// os.ErrDeadlineExceeded; the zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.read, t)
	return nil
}

// SetWriteDeadline is SetReadDeadline for writes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.write, t)
	return nil
}

// opError dresses err as the net package does; io.EOF stays bare.
func opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "pipe", Source: addr{}, Addr: addr{}, Err: err}
}

// A deadline is guarded by the mutex of the half that it is for, but for its timer.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer // guarded by mu
	turn    int         // counts settings, so that an old timer does nothing
	expired bool
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

// A half is one direction of a connection.
type half struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     []byte // written and not yet read
	start   int    // buf[:start] is read
	ended   bool   // the writer closed: EOF after buf
	unread  bool   // the reader closed
	broken  bool   // reset
	linger0 bool   // the writer's Close resets
}

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte, d *deadline) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.unread:
			return 0, net.ErrClosed
		case h.broken:
			return 0, syscall.ECONNRESET
		case d.expired:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.start < len(h.buf):
			n := copy(p, h.buf[h.start:])
			h.start += n
			if h.start == len(h.buf) {
				h.buf, h.start = h.buf[:0], 0
			}
			h.changed.Broadcast()
			return n, nil
		case h.ended:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte, d *deadline) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.ended:
			return n, net.ErrClosed
		case h.broken:
			return n, syscall.ECONNRESET
		case h.unread:
			return n, syscall.EPIPE
		case d.expired:
			return n, os.ErrDeadlineExceeded
		}
		if room := BufferBytes - (len(h.buf) - h.start); room > 0 {
			m := min(room, len(p)-n)
			if h.start > 0 && len(h.buf)+m > cap(h.buf) {
				h.buf, h.start = append(h.buf[:0], h.buf[h.start:]...), 0
			}
			h.buf = append(h.buf, p[n:n+m]...)
			n += m
			h.changed.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
		h.changed.Wait()
	}
}

// close marks the writer's or the reader's end as closed.
func (h *half) close(writer bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if writer {
		h.ended = true
	} else {
		h.unread = true
	}
	h.changed.Broadcast()
}

func (h *half) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken, h.buf, h.start = true, nil, 0
	h.changed.Broadcast()
}

func (h *half) setLinger(zero bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linger0 = zero
}

func (h *half) lingers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.linger0
}

func (h *half) setDeadline(d *deadline, t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	d.turn++
	turn := d.turn
	d.expired = !t.IsZero() && !t.After(time.Now())
	if d.expired {
		h.changed.Broadcast()
		return
	}
	if t.IsZero() {
		return
	}
	d.timer = time.AfterFunc(time.Until(t), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if d.turn == turn {
			d.expired = true
			h.changed.Broadcast()
		}
	})
}
