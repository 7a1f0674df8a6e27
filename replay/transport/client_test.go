package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock/pipe"
)

// A script is what a server does with one connection.
type script func(c net.Conn)

// serve runs the scripts, one per accepted connection in turn.
func serve(t *testing.T, scripts ...script) (*Client, func() int) {
	l := pipe.Listen()
	var accepted atomic.Int32
	var running sync.WaitGroup
	running.Go(func() {
		for _, s := range scripts {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			running.Go(func() { defer c.Close(); s(c) })
		}
	})
	start := time.Now()
	c := NewClient(l.Dial, func() time.Duration { return time.Since(start) })
	t.Cleanup(func() { c.Close(); l.Close(); running.Wait() })
	return c, func() int { return int(accepted.Load()) }
}

func readRequest(c net.Conn) string {
	buf := make([]byte, 1<<16)
	n, _ := c.Read(buf)
	return string(buf[:n])
}

// A listener is a sink of functions; those that are nil are not called.
type listener struct {
	head func(h *Head)
	body func(p []byte)
	text strings.Builder
	done chan bool
}

func (l *listener) OnSent() {}

func (l *listener) OnHead(h *Head, _ time.Duration) {
	if l.head != nil {
		l.head(h)
	}
}

func (l *listener) OnBody(p []byte, _ time.Duration) error {
	if l.text.Write(p); l.body != nil {
		l.body(p)
	}
	return nil
}

func (l *listener) Done(*Exchange) { close(l.done) }

// do sends one exchange and waits for its end.
func do(c *Client, x *Exchange) (*Exchange, string) {
	return send(c, x, &listener{})
}

func send(c *Client, x *Exchange, l *listener) (*Exchange, string) {
	if l.done = make(chan bool); x.Request == nil {
		x.Request = []byte("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
	}
	x.Sink = l
	c.Send(x)
	<-l.done
	return x, l.text.String()
}

func reply(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Length: " + string(rune('0'+len(body))) + "\r\n\r\n" + body
}

func TestExchangeTimesAndReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, accepted := serve(t, func(s net.Conn) {
			for range 2 {
				readRequest(s)
				time.Sleep(30 * time.Millisecond)
				io.WriteString(s, reply("abc")[:20])
				time.Sleep(5 * time.Millisecond)
				io.WriteString(s, reply("abc")[20:])
			}
		})
		for i := range 2 {
			begin := c.now()
			x, body := do(c, &Exchange{})
			sent, _ := x.Sent()
			if x.End != EndClean || x.Err != nil || body != "abc" || x.Reused != (i == 1) || !x.HasSentEnd {
				t.Fatalf("exchange %d: end %d, error %v, body %q, reused %v", i, x.End, x.Err, body, x.Reused)
			}
			if sent != begin || x.FirstByte != begin+30*time.Millisecond || x.Ended != begin+35*time.Millisecond {
				t.Errorf("exchange %d: sent %v, first byte %v, end %v after %v", i, sent, x.FirstByte, x.Ended, begin)
			}
			synctest.Wait()
		}
		if accepted() != 1 {
			t.Errorf("%d connections", accepted())
		}
	})
}

func TestLimits(t *testing.T) {
	drip := func(s net.Conn) { // a byte every 40 ms, never a token
		readRequest(s)
		io.WriteString(s, "HTTP/1.1 200 OK\r\n\r\n")
		for {
			time.Sleep(40 * time.Millisecond)
			if _, err := io.WriteString(s, "x"); err != nil {
				return
			}
		}
	}
	silent := func(s net.Conn) { readRequest(s); io.Copy(io.Discard, s) }
	for name, c := range map[string]struct {
		server script
		limits Limits
		at     time.Duration
		cause  string
	}{
		"total":           {drip, Limits{Total: 100 * time.Millisecond, Bytes: 50 * time.Millisecond}, 100 * time.Millisecond, "not complete within 100ms"},
		"bytes":           {silent, Limits{Total: time.Second, Bytes: 50 * time.Millisecond}, 50 * time.Millisecond, "no byte for 50ms"},
		"token":           {drip, Limits{Total: time.Second, Token: 90 * time.Millisecond}, 90 * time.Millisecond, "no token for 90ms"},
		"bytes, extended": {drip, Limits{Total: 500 * time.Millisecond, Bytes: 41 * time.Millisecond}, 500 * time.Millisecond, "not complete within 500ms"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := serve(t, c.server)
				x, _ := do(client, &Exchange{Limits: c.limits})
				if x.End != EndTimeout || x.Err == nil || x.Err.Error() != c.cause || x.Ended != c.at {
					t.Errorf("end %d at %v: %v; want timeout at %v: %s", x.End, x.Ended, x.Err, c.at, c.cause)
				}
			})
		})
	}
}

func TestEndings(t *testing.T) {
	for name, c := range map[string]struct {
		servers []script
		end     End
		cause   string
		resent  bool
	}{
		"reset before headers": {[]script{func(s net.Conn) { readRequest(s); s.Close() }}, EndReset, "closed before the response", false},
		"cut in mid-body": {[]script{func(s net.Conn) {
			readRequest(s)
			io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
			s.Close()
		}}, EndReset, "mid-response", false},
		"ends with the connection": {[]script{func(s net.Conn) { readRequest(s); io.WriteString(s, "HTTP/1.1 200 OK\r\n\r\nabc"); s.Close() }}, EndClean, "", false},
		"no http":                  {[]script{func(s net.Conn) { readRequest(s); io.WriteString(s, "hello\r\n") }}, EndProtocol, "not an HTTP/1 response", false},
		"stale":                    {[]script{func(s net.Conn) { readRequest(s); io.WriteString(s, reply("a")); readRequest(s); s.Close() }, func(s net.Conn) { readRequest(s); io.WriteString(s, reply("b")) }}, EndClean, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := serve(t, c.servers...)
				x, _ := do(client, &Exchange{})
				if len(c.servers) == 2 {
					time.Sleep(2 * time.Second)
					var body string
					x, body = do(client, &Exchange{})
					if body != "b" {
						t.Errorf("body %q after sending again", body)
					}
				}
				if x.End != c.end || x.Resent != c.resent || (c.cause == "") != (x.Err == nil) || (x.Err != nil && !strings.Contains(x.Err.Error(), c.cause)) {
					t.Errorf("end %d, error %v, resent %v", x.End, x.Err, x.Resent)
				}
			})
		})
	}
}

func TestRefusedAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := errors.New("connection refused")
		c := NewClient(func(context.Context) (net.Conn, error) { return nil, refuse }, func() time.Duration { return 0 })
		if x, _ := do(c, &Exchange{}); x.End != EndRefused || !errors.Is(x.Err, refuse) {
			t.Errorf("end %d, error %v", x.End, x.Err)
		}
		c.Close()

		hang, _ := serve(t, func(s net.Conn) { readRequest(s); io.Copy(io.Discard, s) })
		time.AfterFunc(time.Second, func() { hang.Cut(errors.New("the grace is over")) })
		x, _ := do(hang, &Exchange{})
		if x.End != EndCut || x.Err.Error() != "the grace is over" || x.Ended != time.Second {
			t.Errorf("end %d at %v, error %v", x.End, x.Ended, x.Err)
		}
		if x, _ := do(hang, &Exchange{}); x.End != EndCut {
			t.Errorf("after the cut: end %d, error %v", x.End, x.Err)
		}
	})
}

// An early answer while the request is still being written is an answer.
func TestAnswerBeforeTheRequestIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := serve(t, func(s net.Conn) {
			io.WriteString(s, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			time.Sleep(time.Second)
			s.Close()
		})
		x := &Exchange{Request: []byte(strings.Repeat("x", 8<<20))} // more than the pipe holds
		send(c, x, &listener{head: func(h *Head) {
			if h.Status != 413 {
				t.Errorf("status %d", h.Status)
			}
		}})
		if x.End != EndClean || x.HasSentEnd {
			t.Errorf("end %d, error %v, write complete %v", x.End, x.Err, x.HasSentEnd)
		}
	})
}

// TestHastyClose sends the next request right behind each answer to a server
// that closes a millisecond later, against its promise: after the first loss, or
// the first close that is seen, none is lost any more.
func TestHastyClose(t *testing.T) {
	hasty := func(s net.Conn) {
		readRequest(s)
		io.WriteString(s, reply("abc"))
		time.Sleep(time.Millisecond)
	}
	for name, c := range map[string]struct {
		pause time.Duration
		lost  int // of 6 requests
	}{"at once": {0, 1}, "after the first close": {2 * time.Millisecond, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := serve(t, hasty, hasty, hasty, hasty, hasty, hasty)
				lost := 0
				for range 6 {
					if x, _ := do(client, &Exchange{}); x.End != EndClean {
						lost++
					}
					time.Sleep(c.pause)
				}
				if lost != c.lost {
					t.Errorf("%d requests lost, want %d", lost, c.lost)
				}
			})
		})
	}
}

// TestPatientServerKeepsItsConnection closes an idle connection after a second:
// others are still used again at once.
func TestPatientServerKeepsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := func(s net.Conn) { readRequest(s); io.WriteString(s, reply("abc")); time.Sleep(time.Second) }
		twice := func(s net.Conn) {
			for range 2 {
				readRequest(s)
				io.WriteString(s, reply("abc"))
			}
		}
		client, accepted := serve(t, once, twice)
		do(client, &Exchange{})
		time.Sleep(2 * time.Second)
		do(client, &Exchange{})
		if x, _ := do(client, &Exchange{}); !x.Reused || accepted() != 2 {
			t.Errorf("reused %v after %d connections", x.Reused, accepted())
		}
	})
}

// TestReceiveDelay stalls the client while bytes wait: the kernel's stamp shows
// it. The kernel's clock cannot be had in a bubble, so this sleeps in life.
func TestReceiveDelay(t *testing.T) {
	if newReceiver(&net.TCPConn{}) == nil && runtime.GOOS != "linux" {
		t.Skip("the kernel's stamps need Linux")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	defer l.Close()
	stalls, waits := make(chan bool), make(chan bool)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		s, err := l.Accept()
		if err != nil {
			return
		}
		defer s.Close()
		readRequest(s)
		io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
		<-stalls
		io.WriteString(s, "def") // on loopback the kernel has it for the client when this returns
		close(waits)
	})
	start := time.Now()
	c := NewClient(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}, func() time.Duration { return time.Since(start) })
	defer c.Close()
	const stall = 20 * time.Millisecond
	var got []byte
	x, _ := send(c, &Exchange{}, &listener{body: func(p []byte) {
		if got = append(got, p...); string(got) == "abc" {
			close(stalls)
			<-waits
			time.Sleep(stall)
		}
	}})
	if x.End != EndClean || string(got) != "abcdef" {
		t.Fatalf("end %d (%v), body %q", x.End, x.Err, got)
	}
	c.Close() // waits for the reader, which notes a read after the exchange that it ended
	h := c.Delays.Histogram()
	if h == nil {
		t.Skip("this kernel does not stamp")
	}
	if n := h.TotalCount(); n < 1 || n > 2 || time.Duration(h.Max()) < stall/2 { // the first bytes may come before the kernel stamps
		t.Errorf("%d reads, the longest delay %v; the client was stalled for %v", h.TotalCount(), time.Duration(h.Max()), stall)
	}
}
