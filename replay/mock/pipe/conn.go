package pipe

import (
	"errors"
	"io"
	"net"
	"time"
)

// A Conn is one end of a connection. It is safe for concurrent use.
type Conn struct {
	in, out *half
	read    deadline
	write   deadline
}

// New returns the two ends of a connection.
func New() (a, b *Conn) {
	ab, ba := newHalf(), newHalf()
	a, b = &Conn{in: ba, out: ab}, &Conn{in: ab, out: ba}
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
