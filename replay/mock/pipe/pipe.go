// Package pipe is a network in memory: a [Listener] whose connections behave
// like TCP on loopback (buffered, with deadlines, closed or reset by either
// side) without sockets, so that client and server run in one testing/synctest
// bubble and no time passes on the wire.
package pipe

import (
	"context"
	"net"
	"sync"
	"syscall"
)

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
