package transport

import (
	"slices"
	"time"
)

// Some servers promise to keep a connection and close it right behind the
// answer (llama.cpp's does, with a queue of one); what is sent in between is
// lost. Once a server has been seen to close one within hastyWithin, its
// connections rest for as long before they are used again.
const hastyWithin = 10 * time.Millisecond

// busyLook is how many of the connections that were used last are looked at for
// one whose reader is free.
const busyLook = 8

// takeIdle returns an open connection, or nil: the one that was used last, so
// that the fewest are kept open, unless its reader still closes the account of
// the request before. The caller holds mu.
func (c *Client) takeIdle() *conn {
	c.gather()
	n := len(c.idle)
	if n == 0 || c.stop != nil {
		return nil
	}
	if !c.hasty {
		i := n - 1
		for look := 0; look < busyLook && i > 0 && c.idle[i].busy.Load(); look++ {
			i--
		}
		if c.idle[i].busy.Load() {
			i = n - 1
		}
		k := c.idle[i]
		c.idle = append(c.idle[:i], c.idle[i+1:]...)
		return k
	}
	k := c.idle[0] // idle for the longest
	if c.now()-k.idleSince < hastyWithin {
		return nil
	}
	c.idle = c.idle[1:]
	return k
}

// closedIdle notes that the server closed a connection that had been idle since
// then.
func (c *Client) closedIdle(since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasty = c.hasty || c.stop == nil && c.now()-since < hastyWithin
}

// offer puts a connection where exchanges find it. Thousands of readers do that, and the
// one who sends must not wait in line behind them, who on a busy machine may each wait for
// a processor: so they take no lock, unless an exchange waits for a connection.
func (c *Client) offer(k *conn) {
	for {
		k.below = c.back.Load()
		if c.back.CompareAndSwap(k.below, k) {
			break
		}
	}
	if c.waiting.n.Load() > 0 {
		c.match()
	}
}

// gather takes note of the connections that have come back. The caller holds mu.
func (c *Client) gather() {
	n := len(c.idle)
	for k := c.back.Swap(nil); k != nil; k, k.below = k.below, nil {
		c.idle = append(c.idle, k)
	}
	slices.Reverse(c.idle[n:]) // the last to come back is the last
}

// match starts exchanges that wait on connections that are idle. One begins to wait
// before it looks for such a connection, and a connection comes back before its reader
// looks for one that waits: so one of them sees the other.
func (c *Client) match() {
	for {
		c.mu.Lock()
		var k *conn
		if c.waiting.first != nil {
			k = c.takeIdle()
		}
		if k == nil {
			c.whenRested()
			c.mu.Unlock()
			return
		}
		x := c.waiting.take()
		c.mu.Unlock()
		if k.start(x, true) {
			c.Reuses.Add(1)
			continue
		}
		c.mu.Lock() // it has closed
		c.waiting.again(x)
		c.dialOn()
		c.mu.Unlock()
	}
}

// whenRested sees to it that who waits gets a connection that rests, once it has rested:
// nobody else may look by then. The caller holds mu.
func (c *Client) whenRested() {
	if !c.hasty || c.looks || c.stop != nil || c.waiting.first == nil || len(c.idle) == 0 {
		return
	}
	c.looks = true
	time.AfterFunc(c.idle[0].idleSince+hastyWithin-c.now(), func() {
		c.mu.Lock()
		c.looks = false
		c.mu.Unlock()
		c.match()
	})
}
