package transport

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
)

// listen serves one connection after the other on loopback.
func listen(t *testing.T, network, address string, serve func(net.Conn)) netip.AddrPort {
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return netip.MustParseAddrPort(l.Addr().String())
}

// A connection does what one of package net does, errors included.
func TestDial(t *testing.T) {
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			to := listen(t, network, address, func(c net.Conn) {
				buf := make([]byte, 16)
				n, _ := c.Read(buf)
				c.Write(buf[:n])
				c.Read(buf) // until the peer closes
			})
			c, err := Dial(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			if c.RemoteAddr().String() != to.String() || c.LocalAddr().(*net.TCPAddr).Port == 0 {
				t.Errorf("from %v to %v, want %v", c.LocalAddr(), c.RemoteAddr(), to)
			}
			buf := make([]byte, 16)
			if _, err := c.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(buf); string(buf[:n]) != "hello" || err != nil {
				t.Errorf("%q, %v", buf[:n], err)
			}
			c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err = c.Read(buf)
			if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "read" || !op.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after the deadline: %#v", err)
			}
			c.Close()
			if _, err := c.Write(buf); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after the close: %v", err)
			}
		})
	}
}

func TestDialEnds(t *testing.T) {
	to := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {})
	c, err := Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

// TestDialFails dials the near port of a connection: nobody listens there, and nobody
// else gets it meanwhile.
func TestDialFails(t *testing.T) {
	held, err := Dial(t.Context(), listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { c.Read(make([]byte, 1)) }))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	free := netip.MustParseAddrPort(held.LocalAddr().String())
	_, err = Dial(t.Context(), free)
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || op.Addr.String() != free.String() || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %#v", err)
	}
}
