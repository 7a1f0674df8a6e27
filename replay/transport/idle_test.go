package transport

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What was read before a request was sent is not its answer, and a connection that was
// seen to close before has not lost it: it is sent again.
func TestReadBeforeSent(t *testing.T) {
	for name, last := range map[string]string{"closed": "", "answer": "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := serve(t, func(s net.Conn) {
					readRequest(s)
					io.WriteString(s, reply("abc"))
					time.Sleep(100 * time.Millisecond)
					io.WriteString(s, last)
				}, answering(0))
				now := c.now
				var stalls atomic.Bool
				c.now = func() time.Duration { // the reader stalls between its read and what it does about it
					at := now()
					if stalls.CompareAndSwap(true, false) {
						time.Sleep(10 * time.Millisecond)
					}
					return at
				}
				do(c, &Exchange{})
				stalls.Store(true)
				time.Sleep(105 * time.Millisecond)
				status := 0
				x, body := send(c, &Exchange{}, &listener{head: func(h *Head) { status = h.Status }})
				if sent, ok := x.Sent(); x.End != EndClean || status != 200 || body != "abc" || !x.Resent || !ok || x.FirstByte < sent {
					t.Errorf("ended with %d: %v; status %d, body %q, resent %v, sent at %v, first byte at %v", x.End, x.Err, status, body, x.Resent, sent, x.FirstByte)
				}
			})
		})
	}
}

// A request that waits for a slow dial takes a connection that has to rest as soon as it
// has, for nobody else may come back until then.
func TestWaitingTakesWhatHasRested(t *testing.T) {
	for _, back := range []time.Duration{0, 5 * time.Millisecond} { // when the other request ends, since this one waits
		synctest.Test(t, func(t *testing.T) {
			c, _ := serve(t, answering(5*time.Millisecond))
			quick := c.dial
			var dials atomic.Int32
			c.dial = func(ctx context.Context) (net.Conn, error) {
				if dials.Add(1) > 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return quick(ctx)
			}
			c.hasty = true
			first := make(chan bool)
			go func() { do(c, &Exchange{}); close(first) }()
			time.Sleep(5*time.Millisecond - back)
			synctest.Wait()
			x, _ := do(c, &Exchange{Limits: Limits{Total: time.Second}})
			if <-first; x.End != EndClean || x.Connected != 5*time.Millisecond+hastyWithin {
				t.Errorf("ended with %d: %v; connected at %v", x.End, x.Err, x.Connected)
			}
		})
	}
}
