package transport

import (
	"context"
	"fmt"
	"time"
)

// A dialing is the context of the dials that begin in a burst: one of its own for
// each would be a quarter of the garbage of a connection.
type dialing struct {
	ctx    context.Context
	cancel context.CancelFunc
	begun  time.Duration
	total  time.Duration
	users  int
}

// dialingBurst is how long after the first of a burst a dial shares its context,
// and so how much earlier its limit may pass.
const dialingBurst = time.Millisecond

// beginDial returns a context that ends total from now; dialed is to be called
// after the dial.
func (c *Client) beginDial(total time.Duration) *dialing {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if d := c.dialing; d != nil && d.users > 0 && d.total == total && now-d.begun < dialingBurst {
		d.users++
		return d
	}
	d := &dialing{ctx: c.ctx, cancel: func() {}, begun: now, total: total, users: 1}
	if total > 0 {
		d.ctx, d.cancel = context.WithTimeout(c.ctx, total)
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

// open dials; a dial needs a deep stack, so the reader is another goroutine (see stage).
func (c *Client) open(x *Exchange) {
	defer c.live.Done()
	d := c.beginDial(x.Limits.Total)
	defer c.dialed(d)
	nc, err := c.dial(d.ctx)
	if err != nil {
		x.End, x.Err = EndRefused, err
		if cause := context.Cause(c.ctx); cause != nil {
			x.End, x.Err = EndCut, cause
		} else if d.ctx.Err() != nil {
			x.End, x.Err = EndTimeout, fmt.Errorf("no connection within %v", x.Limits.Total)
		}
		x.Ended = c.now()
		x.Sink.Done(x)
		return
	}
	c.Opened.Add(1)
	k := &conn{client: c, nc: nc, out: newSender(nc), in: newReceiver(nc)}
	if k.in == nil {
		k.buf = make([]byte, readSize)
	}
	k.start(x, false) // before the reader, so that it never sees the connection idle
	if x.Written() {
		x.Sink.OnSent() // on a connection that was open, it may have to be sent again
	}
	c.mu.Lock()
	c.conns[k] = true
	c.live.Add(1)
	stop := c.stop
	c.mu.Unlock()
	go k.reader()
	if stop != nil {
		k.cut(stop)
	}
}
