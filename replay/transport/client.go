package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Client sends exchanges to one address. It keeps connections for reuse and
// dials for every exchange that finds none, so that no exchange has to wait for
// another to end.
type Client struct {
	dial  func(ctx context.Context) (net.Conn, error)
	now   func() time.Duration
	live  sync.WaitGroup
	close context.CancelCauseFunc
	ctx   context.Context

	stages stages

	Opened, Reuses atomic.Int64
	Delays         Delays // of reads, where the kernel says when it had the bytes

	back    atomic.Pointer[conn] // idle too, but who sends has not taken note of them; linked by conn.below
	stopped atomic.Bool          // stop is set

	mu      sync.Mutex
	idle    []*conn
	conns   map[*conn]bool
	stop    error    // set by Cut
	waiting waiting  // for a connection
	dialing *dialing // the last
	hasty   bool     // the server has closed a connection right behind an answer
	looks   bool     // match comes when one has rested for that
}

// NewClient returns a client that dials with dial and reads the clock with now.
func NewClient(dial func(ctx context.Context) (net.Conn, error), now func() time.Duration) *Client {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Client{dial: dial, now: now, ctx: ctx, close: cancel, conns: map[*conn]bool{}}
}

// Send starts an exchange and returns at once. On an open connection of the
// kernel's TCP it has written by then what the socket took: a request that is
// due waits for no other goroutine.
func (c *Client) Send(x *Exchange) {
	for {
		c.mu.Lock()
		k := c.takeIdle()
		if k == nil {
			break
		}
		c.mu.Unlock()
		if k.start(x, true) {
			c.Reuses.Add(1)
			return
		}
	}
	c.await(x)
}

// Cut ends all exchanges in flight, and those to come, with cause.
func (c *Client) Cut(cause error) {
	c.close(cause)
	c.stopped.Store(true)
	c.mu.Lock()
	c.stop = cause
	c.waiting.over = true
	c.dialOn()
	conns := make([]*conn, 0, len(c.conns))
	for k := range c.conns {
		conns = append(conns, k)
	}
	c.mu.Unlock()
	for _, k := range conns {
		k.cut(cause)
	}
}

// Close closes the connections and waits for their goroutines. Exchanges in
// flight are cut.
func (c *Client) Close() {
	c.Cut(errors.New("the run is over"))
	c.mu.Lock()
	for k := range c.conns {
		k.nc.Close()
	}
	c.mu.Unlock()
	c.live.Wait()
	c.stages.close()
}

// A conn is one connection: a goroutine that always reads, so that it sees a
// close even while the connection is idle. Who sends writes.
type conn struct {
	client *Client
	nc     net.Conn
	out    *sender   // nil where writing may wait for more than the kernel
	in     *receiver // nil likewise
	buf    []byte    // unless in
	parser Parser

	idleSince time.Duration // end of the exchange before; set before the connection is offered again
	served    bool          // an exchange has ended on it
	busy      atomic.Bool   // it is offered again, but its reader still closes the account of the exchange before
	below     *conn         // see Client.back

	mu      sync.Mutex
	x       *Exchange // in flight
	stop    error     // set by cut
	dead    bool
	writing bool          // a goroutine writes what Send could not
	wakes   time.Duration // when the read deadline is, if timed
	timed   bool
	rest    sync.WaitGroup
}

// start takes x, unless the connection has closed.
func (k *conn) start(x *Exchange, reused bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return false
	}
	x.Reused = reused
	x.Connected, x.HasConnected = k.client.now(), true
	if k.x = x; k.stop != nil {
		k.giveUp()
		return true
	}
	if k.out == nil {
		k.later(x, 0)
		return true
	}
	x.sent.Store(int64(x.Connected) + 1)
	n, err := k.out.write(x.Request)
	k.deadline(x)
	switch {
	case err != nil:
		x.BytesOut += int64(n)
		k.writeFailed(x, err)
	case n < len(x.Request):
		x.BytesOut += int64(n)
		k.later(x, n)
	default:
		k.written(x, n)
	}
	return true
}

// later writes x from its n-th byte on, in a goroutine of its own. The caller
// holds mu.
func (k *conn) later(x *Exchange, n int) {
	k.writing = true
	k.rest.Add(1)
	go k.writeRest(x, n)
}

func (k *conn) writeRest(x *Exchange, n int) {
	defer k.rest.Done()
	if n == 0 && k.out == nil {
		x.sent.Store(int64(k.client.now()) + 1)
		k.mu.Lock()
		k.deadline(x)
		k.mu.Unlock()
	}
	n, err := k.nc.Write(x.Request[n:])
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writing = false
	if err != nil {
		x.BytesOut += int64(n)
		k.writeFailed(x, err)
		return
	}
	k.written(x, n)
}

func (k *conn) written(x *Exchange, n int) {
	x.BytesOut += int64(n)
	x.SentEnd, x.HasSentEnd = k.client.now(), true
	x.written.Store(true)
}

// writeFailed gives the reader a second to find the reason, such as an early
// answer. The caller holds mu.
func (k *conn) writeFailed(x *Exchange, err error) {
	x.writeErr = err
	if x.stop == nil {
		k.wakeIn(time.Second)
	}
}

// deadline sees to it that the reader wakes when a limit of x may have passed.
// A wake-up that comes early, for an exchange before or for a limit that has
// moved on, is set anew then: a read costs no timer. The caller holds mu.
func (k *conn) deadline(x *Exchange) {
	if x.stop != nil || x.writeErr != nil {
		return
	}
	at, which := x.next()
	if which == noLimit || k.timed && k.wakes <= at {
		return
	}
	k.wakeIn(at - k.client.now())
}

func (k *conn) wakeIn(d time.Duration) {
	k.wakes, k.timed = k.client.now()+d, true
	k.nc.SetReadDeadline(time.Now().Add(d))
}

func (k *conn) cut(cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop = cause; k.x != nil {
		k.giveUp()
	}
}

// giveUp has the reader end the exchange. The caller holds mu.
func (k *conn) giveUp() {
	k.x.stop = k.stop
	k.nc.SetDeadline(time.Unix(1, 0))
}

// readSize is enough for what a socket holds when the reader keeps up.
const readSize = 16 << 10

// reader waits for bytes; a stage handles them.
func (k *conn) reader() {
	defer k.client.live.Done()
	for more := true; more; {
		r := k.read()
		more = k.client.stages.handle(k, &r)
		if r.stamp != 0 { // noted last, for others may have to be waited for
			k.client.Delays.add(r.delay)
		}
	}
}

func (k *conn) read() (r readBytes) {
	if k.in != nil {
		r.p, r.stamp, r.err = k.in.read()
	} else {
		n, err := k.nc.Read(k.buf)
		r.p, r.err = k.buf[:n], err
	}
	r.at = k.client.now()
	if r.stamp != 0 {
		r.delay = time.Now().UnixNano() - r.stamp
	}
	return r
}

// handle handles what was read, and takes the connection out of the client when it
// is of no more use.
func (k *conn) handle(r *readBytes) (more bool) {
	if more = k.handled(r); !more {
		k.closed()
	}
	return more
}

func (k *conn) handled(r *readBytes) (more bool) {
	x := k.current(r.at)
	switch {
	case x == nil && len(r.p) == 0 && k.overslept(r.err):
		k.done()
		return true
	case x == nil: // closed while idle, or bytes that nobody asked for
		k.done()
		if r.err != nil && k.served {
			k.client.closedIdle(k.idleSince)
		}
		return false
	case len(r.p) > 0:
		more := k.take(x, r.p, r.at)
		k.done()
		if !more {
			return false
		}
	}
	if r.err == nil {
		return true
	}
	switch x = k.current(r.at); {
	case x == nil:
		return false
	case errors.Is(r.err, os.ErrDeadlineExceeded) && k.early(x):
		return true
	}
	k.broken(x, r.err, r.at)
	return false
}

// done gives back what was read.
func (k *conn) done() {
	if k.in != nil {
		k.in.done()
	}
}

// current returns the exchange that something read then belongs to. The connection
// was idle then if an exchange has taken it since: that was not even sent.
func (k *conn) current(at time.Duration) *Exchange {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.x
	if x == nil || !x.Reused || x.stop != nil && at >= x.Connected {
		return x
	}
	if sent, ok := x.Sent(); !ok || at < sent {
		return nil
	}
	return x
}

// overslept tells whether an idle connection was woken by the deadline of an
// exchange that is over, and sleeps on.
func (k *conn) overslept(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.x == nil {
		k.timed = false
		k.nc.SetReadDeadline(time.Time{})
	}
	return true
}

// early tells whether a deadline fired before any limit was reached, and sets it
// anew if so.
func (k *conn) early(x *Exchange) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, which := x.next()
	if x.stop != nil || x.writeErr != nil || which != noLimit && k.client.now() >= at {
		return false
	}
	k.timed = false
	if k.nc.SetReadDeadline(time.Time{}); which != noLimit {
		k.deadline(x)
	}
	return true
}

// take handles bytes of the response; it returns false when the connection is
// of no more use.
func (k *conn) take(x *Exchange, p []byte, at time.Duration) bool {
	if !x.HasByte {
		x.FirstByte, x.HasByte = at, true
	}
	x.lastByte.Store(int64(at))
	x.BytesIn += int64(len(p))
	if limit := x.Limits.MaxBytes; limit > 0 && x.BytesIn > limit {
		k.finish(x, EndProtocol, fmt.Errorf("response is longer than %d bytes", limit), at, false)
		return false
	}
	used, err := k.parser.Feed(p, func(body []byte) error {
		k.head(x, at)
		return x.Sink.OnBody(body, at)
	})
	if err != nil {
		k.finish(x, EndProtocol, err, at, false)
		return false
	}
	k.head(x, at)
	if !k.parser.Done() {
		return true
	}
	head, _ := k.parser.Head()
	return k.finish(x, EndClean, nil, at, used == len(p) && !head.Close)
}

func (k *conn) head(x *Exchange, at time.Duration) {
	if head, ok := k.parser.Head(); ok && !x.headSeen {
		x.headSeen = true
		x.Sink.OnHead(head, at)
	}
}

// broken ends x after a failed read.
func (k *conn) broken(x *Exchange, err error, at time.Duration) {
	k.mu.Lock()
	stop, writeErr := x.stop, x.writeErr
	k.mu.Unlock()
	limit, which := x.next()
	if x.Reused && !x.HasByte && isClosed(err) && at-x.sentOr(at) < hastyWithin {
		k.client.closedIdle(k.idleSince)
	}
	switch {
	case stop != nil:
		k.finish(x, EndCut, stop, at, false)
	case errors.Is(err, os.ErrDeadlineExceeded) && writeErr != nil && (which == noLimit || at < limit):
		k.finish(x, EndReset, plain(writeErr), at, false)
	case errors.Is(err, os.ErrDeadlineExceeded):
		end, cause := x.Limits.passed(which)
		k.finish(x, end, cause, at, false)
	case x.Reused && !x.HasByte && !x.Resent && isClosed(err) && at-x.sentOr(at) < staleWithin && x.sentOr(at)-k.idleSince >= staleIdle:
		k.resend(x)
	case err == io.EOF:
		if cerr := k.parser.CloseRead(); cerr != nil {
			k.finish(x, EndReset, cerr, at, false)
		} else {
			k.finish(x, EndClean, nil, at, false)
		}
	default:
		k.finish(x, EndReset, plain(err), at, false)
	}
}

// A close means that the server had given up an idle connection, and never saw
// the request, if it comes this soon after the send, on a connection that had
// been idle for this long. A server that resets what it has received is not
// given a second chance.
const (
	staleWithin = 100 * time.Millisecond
	staleIdle   = time.Second
)

func isClosed(err error) bool {
	return err == io.EOF || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// plain drops the addresses that net puts before an error.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if sys, ok := errors.AsType[syscall.Errno](op.Err); ok {
			return fmt.Errorf("connection broke: %w", sys)
		}
		return fmt.Errorf("connection broke: %w", op.Err)
	}
	return fmt.Errorf("connection broke: %w", err)
}

// resend sends x again on another connection and says so in the exchange.
func (k *conn) resend(x *Exchange) {
	k.release(x)
	x.Resent = true
	x.BytesOut, x.HasSentEnd, x.HasConnected = 0, false, false
	x.sent.Store(0)
	x.written.Store(false)
	x.writeErr = nil
	c := k.client
	c.mu.Lock()
	c.await(x)
}

// release waits for the write of x, ending it if it still hangs, and returns
// whether the connection can be used again.
func (k *conn) release(x *Exchange) bool {
	k.mu.Lock()
	hangs := k.writing
	if hangs {
		k.nc.SetWriteDeadline(time.Unix(1, 0))
	}
	k.mu.Unlock()
	k.rest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.x = nil
	if hangs {
		k.nc.SetWriteDeadline(time.Time{})
	}
	return x.HasSentEnd
}

// finish ends x and, if the connection can be used again, puts it back.
func (k *conn) finish(x *Exchange, end End, err error, at time.Duration, reusable bool) bool {
	x.End, x.Err, x.Ended = end, err, at
	again := k.release(x) && reusable && x.stop == nil && !k.client.stopped.Load()
	if again {
		k.parser.Reset()
		k.idleSince, k.served = at, true
		k.busy.Store(true)
		k.client.offer(k)
	}
	x.Sink.Done(x)
	k.busy.Store(false)
	return again
}

// closed takes the connection out of the client.
func (k *conn) closed() {
	k.mu.Lock()
	k.dead = true
	x, stop := k.x, k.stop
	k.mu.Unlock()
	k.nc.Close()
	c := k.client
	c.mu.Lock()
	delete(c.conns, k)
	c.gather()
	for i, other := range c.idle {
		if other == k {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			break
		}
	}
	c.mu.Unlock()
	switch { // an exchange may have begun when the reader had seen the close already
	case x == nil:
	case stop != nil:
		k.finish(x, EndCut, stop, c.now(), false)
	case x.Resent:
		k.finish(x, EndReset, errors.New("connection closed before the response"), c.now(), false)
	default:
		k.resend(x)
	}
}
