package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// An HTTP2 sends exchanges by HTTP/2 (RFC 9113), through the client of net/http.
// Requests of many exchanges share a connection, and so do chunks of their
// answers: one reader takes them all from the socket, and each exchange's own
// goroutine stamps its bytes when it gets them. So the stamps are less exact than
// those of a [Client], the bytes in an exchange are those of the bodies alone, and
// the kernel's stamps belong to no exchange.
type HTTP2 struct {
	conns     int
	secure    bool
	transport http.Transport
	now       func() time.Duration
	live      sync.WaitGroup
	close     context.CancelCauseFunc
	ctx       context.Context

	opened, found atomic.Int64

	mu    sync.Mutex
	links []*link
	few   int   // streams that the server takes on a connection, if it has said less than untilSettings; 0 = no such word
	stop  error // set by Cut
}

// NewHTTP2 returns a client that opens up to conns connections, and more only
// when the server takes no further stream on those. dial opens one, TLS with the
// ALPN protocol h2 included if secure; without TLS the server must know that
// HTTP/2 is spoken.
func NewHTTP2(secure bool, conns int, dial func(ctx context.Context) (net.Conn, error), now func() time.Duration) *HTTP2 {
	ctx, cancel := context.WithCancelCause(context.Background())
	h := &HTTP2{conns: max(1, conns), secure: secure, now: now, ctx: ctx, close: cancel}
	open := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	h.transport.DialContext, h.transport.DialTLSContext = open, open
	h.transport.DisableCompression = true
	h.transport.MaxResponseHeaderBytes = MaxHeader
	h.transport.Protocols = new(http.Protocols)
	h.transport.Protocols.SetHTTP2(secure)
	h.transport.Protocols.SetUnencryptedHTTP2(!secure)
	return h
}

func (h *HTTP2) scheme() string {
	if h.secure {
		return "https"
	}
	return "http"
}

// Send implements Carrier.
func (h *HTTP2) Send(x *Exchange) {
	h.mu.Lock()
	h.live.Add(1)
	h.mu.Unlock()
	go func() {
		defer h.live.Done()
		newStream(h, x).exchange()
	}()
}

// Cut implements Carrier.
func (h *HTTP2) Cut(cause error) {
	h.mu.Lock()
	if h.stop == nil {
		h.stop = cause
	}
	h.mu.Unlock()
	h.close(cause)
}

// Close implements Carrier.
func (h *HTTP2) Close() {
	h.Cut(errors.New("the run is over"))
	h.live.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		if l.cc != nil {
			l.cc.Close()
		}
	}
	h.links = nil
}

// Connections implements Carrier.
func (h *HTTP2) Connections() (opened, found int64) { return h.opened.Load(), h.found.Load() }

// Receive implements Carrier: nil.
func (h *HTTP2) Receive() *hdrhistogram.Histogram { return nil }

// A link is a connection, or one that is being opened.
type link struct {
	ready   chan struct{} // closed when cc or err is there
	cc      *http.ClientConn
	err     error
	waiting int // exchanges that were told to wait for it; with the client's mu
}

// untilSettings is how many streams wait for a connection that is being opened: a
// server should take as many (RFC 9113 section 6.5.2), and net/http counts on it
// until the server has said what it takes. Where it takes fewer, those sent before
// its first word may wait for one another.
const untilSettings = 100

// acquire returns a connection with a place for one more stream, which is reserved.
// found tells that it was open already.
func (h *HTTP2) acquire(ctx context.Context) (cc *http.ClientConn, found bool, err error) {
	var waited *link
	for {
		l, reserved := h.pick(waited)
		if reserved {
			return l.cc, waited == nil, nil
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		if l.err != nil {
			return nil, false, l.err
		}
		waited = l
	}
}

// pick reserves a place on the connection that was waited for, or the least used
// one. If fewer than conns are there or all are full, it returns one to wait for.
func (h *HTTP2) pick(waited *link) (l *link, reserved bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	best, opening := h.look()
	if waited != nil && h.room(waited) {
		best = waited
	}
	if best != nil && (best == waited || len(h.links) >= h.conns) && best.cc.Reserve() == nil {
		return best, true
	}
	if len(h.links) < h.conns || opening == nil {
		opening = &link{ready: make(chan struct{})}
		h.links = append(h.links, opening)
		h.live.Add(1)
		go h.open(opening)
	}
	opening.waiting++
	return opening, false
}

// look forgets connections that have closed and returns the least used of those
// that are open, and of those that are being opened; nil if all are full. The
// caller holds mu.
func (h *HTTP2) look() (open, opening *link) {
	kept := h.links[:0]
	for _, l := range h.links {
		switch {
		case !l.isReady():
			if l.waiting < h.streams() && (opening == nil || l.waiting < opening.waiting) {
				opening = l
			}
		case l.err != nil || l.cc.Err() != nil:
			continue
		case h.room(l) && (open == nil || l.cc.InFlight() < open.cc.InFlight()):
			open = l
		}
		kept = append(kept, l)
	}
	clear(h.links[len(kept):])
	h.links = kept
	return open, opening
}

// room tells whether l takes another stream. The caller holds mu.
func (h *HTTP2) room(l *link) bool {
	free, taken := l.cc.Available(), l.cc.InFlight()
	if free > 0 && free+taken < h.streams() {
		h.few = free + taken
	}
	return free > 0 && (h.few == 0 || taken < h.few)
}

// streams is how many streams a new connection is trusted with. The caller holds mu.
func (h *HTTP2) streams() int {
	if h.few > 0 {
		return h.few
	}
	return untilSettings
}

func (l *link) isReady() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// Open implements Carrier: exchanges share connections, and none is opened ahead.
func (h *HTTP2) Open(context.Context, int) {}

// open dials for l.
func (h *HTTP2) open(l *link) {
	defer h.live.Done()
	defer close(l.ready)
	cc, err := h.transport.NewClientConn(h.ctx, h.scheme(), "target:443") // the dialer knows where to
	if err != nil {
		l.err = err
		return
	}
	h.opened.Add(1)
	l.cc = cc
}
