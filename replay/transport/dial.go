package transport

import (
	"context"
	"fmt"
	"net"
	"time"
)

// A request that finds no open connection waits for one, and a dial begins with it.
// It takes what comes first: a connection that is ready, whoever dialled it, or one
// whose exchange has ended. Were each to wait for its own dial, a client or a server
// that is behind would open ever more connections, and be behind for opening them.
type waiting struct {
	first, last *Exchange // linked by Exchange.behind, the oldest first
	n           int
	dials       int // that are under way; at least n
}

func (w *waiting) add(x *Exchange) {
	if w.last == nil {
		w.first = x
	} else {
		w.last.behind = x
	}
	w.last = x
	w.n++
}

// take returns the oldest, which waits no more; nil if there is none.
func (w *waiting) take() *Exchange {
	x := w.first
	if x != nil {
		w.drop(x)
	}
	return x
}

// drop tells whether x was waiting; it is not any more.
func (w *waiting) drop(x *Exchange) bool {
	var before *Exchange
	for y := w.first; y != nil; before, y = y, y.behind {
		if y != x {
			continue
		}
		if before == nil {
			w.first = x.behind
		} else {
			before.behind = x.behind
		}
		if w.last == x {
			w.last = before
		}
		x.behind = nil
		w.n--
		return true
	}
	return false
}

// holds tells whether x waits.
func (w *waiting) holds(x *Exchange) bool { return x.behind != nil || w.last == x }

// await lets x wait for a connection. The caller holds mu, and has counted the
// goroutine in live.
func (c *Client) await(x *Exchange) {
	x.asked = c.now()
	c.waiting.add(x)
	c.waiting.dials++
	go c.open(x)
}

// toDial is for whom the dial that began for x goes on: for x while it waits, else for
// the oldest if there are fewer dials than exchanges that wait, else for nobody.
func (c *Client) toDial(x *Exchange) *Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch w := &c.waiting; {
	case w.holds(x):
		return x
	case w.n >= w.dials:
		return w.first
	default:
		w.dials--
		return nil
	}
}

// A dialing is the context of the dials that begin in a burst: one of its own for
// each would be a quarter of the garbage of a connection.
type dialing struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Duration // 0 = without limit
	users  int
}

// dialingBurst is how much earlier than its own limit a dial may have to end, for
// sharing the context of another.
const dialingBurst = time.Millisecond

// beginDial returns a context that ends when the limit of x passes; dialed is to be
// called after the dial.
func (c *Client) beginDial(x *Exchange) *dialing {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Duration(0)
	if x.Limits.Total > 0 {
		until = x.asked + x.Limits.Total
	}
	if d := c.dialing; d != nil && d.users > 0 && d.until <= until && until-d.until < dialingBurst && (d.until == 0) == (until == 0) {
		d.users++
		return d
	}
	d := &dialing{ctx: c.ctx, cancel: func() {}, until: until, users: 1}
	if until > 0 {
		d.ctx, d.cancel = context.WithTimeout(c.ctx, until-c.now())
	}
	c.dialing = d
	return d
}

func (c *Client) dialed(d *dialing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.users--; d.users == 0 {
		d.cancel()
	}
}

// open dials for x, or for another that waits when it is done; a dial needs a deep
// stack, so the reader is another goroutine (see stage).
func (c *Client) open(x *Exchange) {
	defer c.live.Done()
	for x = c.toDial(x); x != nil; x = c.toDial(x) {
		d := c.beginDial(x)
		nc, err := c.dial(d.ctx)
		if err == nil {
			c.dialed(d)
			c.opened(nc)
			return
		}
		end, cause := EndRefused, err
		if stop := context.Cause(c.ctx); stop != nil {
			end, cause = EndCut, stop
		} else if d.ctx.Err() != nil {
			end, cause = EndTimeout, fmt.Errorf("no connection within %v", x.Limits.Total)
		}
		c.dialed(d)
		if c.refused(x) {
			x.End, x.Err, x.Ended = end, cause, c.now()
			x.Sink.Done(x)
			return
		}
	}
}

// refused ends the wait of x for a dial that has failed; it is false if x has found
// another connection by now.
func (c *Client) refused(x *Exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.waiting.holds(x) || !c.waiting.drop(x) {
		return false
	}
	c.waiting.dials--
	return true
}

// opened gives a new connection to the exchange that has waited for the longest.
func (c *Client) opened(nc net.Conn) {
	c.Opened.Add(1)
	k := &conn{client: c, nc: nc, out: newSender(nc), in: newReceiver(nc), idleSince: c.now()}
	if k.in == nil {
		k.buf = make([]byte, readSize)
	}
	if x := c.ready(k); x != nil {
		k.start(x, false) // before the reader, so that it never sees the connection idle
		if x.Written() {
			x.Sink.OnSent() // on a connection that was open, it may have to be sent again
		}
	}
	go k.reader()
}

// ready takes in a new connection. The exchange that is returned is to be started on it.
func (c *Client) ready(k *conn) *Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting.dials--
	c.conns[k] = true
	c.live.Add(1)
	if c.stop != nil {
		k.stop = c.stop
	}
	x := c.waiting.take()
	if x == nil {
		c.idle = append(c.idle, k)
	}
	return x
}
