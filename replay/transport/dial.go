package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A request that finds no open connection waits for one, and a dial begins for it.
// It takes what comes first: a connection that is ready, whoever it was dialled for, or
// one whose exchange has ended. Were each to wait for its own dial, a client or a server
// that is behind would open ever more connections, and be behind for opening them.
type waiting struct {
	first, last *Exchange     // linked by Exchange.behind, the oldest first
	undialed    *Exchange     // the first for which no dial has begun
	n           atomic.Int32  // how many they are
	ticket      uint64        // the last that was given
	dials       int           // under way
	young       int           // of these, begun since the last beat
	beat        int           // counts beats
	beatAt      time.Duration // when the last began
	beats       bool          // another beat comes
	over        bool          // dials only fail
}

// A dial costs processor time when it begins, some 0.1 ms, and waits for the network
// then. At most youngDials begin in a dialBeat unless others end: so many that hardly
// anybody waits for that, and so few that what is to be read is read in between.
const (
	youngDials = 32
	dialBeat   = time.Millisecond
)

func (w *waiting) add(x *Exchange) {
	if w.last == nil {
		w.first = x
	} else {
		w.last.behind = x
	}
	if w.last = x; w.undialed == nil {
		w.undialed = x
	}
	w.n.Add(1)
	w.ticket++
	x.ticket = w.ticket
}

// take returns the oldest, which waits no more; nil if there is none.
func (w *waiting) take() *Exchange {
	if w.first == nil {
		return nil
	}
	return w.drop(w.first.ticket)
}

// drop returns who waits with a ticket, and waits no more; nil if nobody does. Exchanges
// are used again, tickets are not.
func (w *waiting) drop(ticket uint64) *Exchange {
	var before *Exchange
	for x := w.first; x != nil; before, x = x, x.behind {
		if x.ticket != ticket {
			continue
		}
		if before == nil {
			w.first = x.behind
		} else {
			before.behind = x.behind
		}
		if w.undialed == x {
			w.undialed = x.behind
		}
		if w.last == x {
			w.last = before
		}
		x.behind = nil
		w.n.Add(-1)
		return x
	}
	return nil
}

// again has x wait on, as the first of all.
func (w *waiting) again(x *Exchange) {
	if x.behind = w.first; w.first == nil {
		w.last = x
	}
	w.first = x
	w.n.Add(1)
}

// begin begins a beat.
func (w *waiting) begin(now time.Duration) {
	w.beatAt, w.young = now, 0
	w.beat++
}

// next returns for whom a dial is to begin now; nil for nobody.
func (w *waiting) next() *Exchange {
	if w.dials >= int(w.n.Load()) || w.young >= youngDials && !w.over {
		return nil
	}
	x := w.undialed
	if x == nil {
		return w.first // what was dialled for it has gone to another
	}
	w.undialed = x.behind
	return x
}

// await lets x wait for a connection. The caller holds mu, which it gives back.
func (c *Client) await(x *Exchange) {
	x.asked = c.now()
	c.waiting.add(x)
	c.dialOn()
	c.whenRested()
	c.mu.Unlock()
	if c.back.Load() != nil { // since the caller looked
		c.match()
	}
}

// dialOn begins the dials that are wanted. The caller holds mu.
func (c *Client) dialOn() {
	w := &c.waiting
	if now := c.now(); now-w.beatAt >= dialBeat {
		w.begin(now)
	}
	for x := w.next(); x != nil; x = w.next() {
		w.dials++
		w.young++
		c.live.Add(1)
		go c.open(dial{x.ticket, x.asked, x.Limits.Total, w.beat})
	}
	if w.dials < int(w.n.Load()) && !w.beats {
		w.beats = true
		time.AfterFunc(dialBeat, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			w.beats = false
			w.begin(c.now())
			c.dialOn()
		})
	}
}

// dialEnded notes that a dial of some beat has ended. The caller holds mu.
func (c *Client) dialEnded(beat int) {
	w := &c.waiting
	if w.dials--; beat == w.beat && w.young > 0 {
		w.young--
	}
	c.dialOn()
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

// beginDial returns a context that ends when the limit passes; dialed is to be called
// after the dial.
func (c *Client) beginDial(of *dial) *dialing {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Duration(0)
	if of.total > 0 {
		until = of.asked + of.total
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

// A dial is what there is to know of one. The exchange that it began for may have ended
// by another connection, and may be another request's by now.
type dial struct {
	ticket uint64
	asked  time.Duration
	total  time.Duration // limit
	beat   int           // in which it began
}

// open dials; that needs a deep stack, so the reader is another goroutine (see stage).
func (c *Client) open(d dial) {
	defer c.live.Done()
	in := c.beginDial(&d)
	nc, err := c.dial(in.ctx)
	late := in.ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)
	c.dialed(in)
	if err == nil {
		c.opened(nc, d.beat)
		return
	}
	end, cause := EndRefused, err
	if stop := context.Cause(c.ctx); stop != nil {
		end, cause = EndCut, fmt.Errorf("not sent, for no connection was there: %w", stop)
	} else if late {
		end, cause = EndTimeout, fmt.Errorf("no connection within %v", d.total)
	}
	c.mu.Lock()
	x := c.waiting.drop(d.ticket)
	c.dialEnded(d.beat)
	c.mu.Unlock()
	if x != nil {
		x.End, x.Err, x.Ended = end, cause, c.now()
		x.Sink.Done(x)
	}
}

// openAtOnce is how many connections are opened at a time ahead of the requests.
const openAtOnce = 32

// Open opens n connections ahead of requests that will need them at once, so that those
// do not wait for one another's handshakes. It returns when they are open, or at the
// first that fails: a request that needs it will say why.
func (c *Client) Open(ctx context.Context, n int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var opening sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(n))
	for range min(n, openAtOnce) {
		opening.Go(func() {
			for left.Add(-1) >= 0 {
				nc, err := c.dial(ctx)
				if err != nil {
					cancel()
					return
				}
				c.mu.Lock()
				c.waiting.dials++
				c.mu.Unlock()
				c.opened(nc, -1)
			}
		})
	}
	opening.Wait()
}

// opened gives a new connection to the exchange that has waited for the longest.
func (c *Client) opened(nc net.Conn, beat int) {
	c.Opened.Add(1)
	k := &conn{client: c, nc: nc, out: newSender(nc), in: newReceiver(nc), idleSince: c.now()}
	if k.in == nil {
		k.buf = make([]byte, readSize)
	}
	x, wanted := c.ready(k, beat)
	if !wanted {
		nc.Close()
		return
	}
	if x != nil {
		k.start(x, false) // before the reader, so that it never sees the connection idle
		if x.Written() {
			x.Sink.OnSent() // on a connection that was open, it may have to be sent again
		}
	}
	go k.reader()
}

// ready takes in a new connection. The exchange that is returned is to be started on it;
// nil if none waits. After Cut an idle one is not wanted, for nobody would close it.
func (c *Client) ready(k *conn, beat int) (x *Exchange, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.dialEnded(beat)
	k.stop = c.stop
	if x = c.waiting.take(); x == nil {
		if c.stop != nil {
			return nil, false
		}
		c.idle = append(c.idle, k)
	}
	c.conns[k] = true
	c.live.Add(1)
	return x, true
}
