package transport

import (
	"fmt"
	"sync/atomic"
	"time"
)

// An End says how the exchange ended as far as the transport can tell.
type End uint8

const (
	EndClean     End = iota // the response is complete
	EndRefused              // no connection: refused, DNS, TLS
	EndReset                // the connection broke before the response was complete
	EndTimeout              // a limit passed
	EndCut                  // stopped from outside
	EndCancelled            // given up on purpose, as Limits.Cancel said
	EndProtocol             // the server did not speak HTTP/1.1, or the sink refused what it sent
)

// Limits end an exchange; 0 means no limit. All count from Sent.
type Limits struct {
	Total time.Duration // whole exchange
	Bytes time.Duration // without a byte of response
	Token time.Duration // without a token

	MaxBytes int64 // of the response, headers included; 0 = no limit

	Cancel    time.Duration // give up on purpose after so long, if HasCancel
	HasCancel bool
}

// A Sink takes what comes of an exchange, call after call, on the goroutine of
// its connection or one that stands in for it.
type Sink interface {
	OnSent()                                 // at most once, and first: Request is written, and will not be wanted again
	OnHead(h *Head, at time.Duration)        // once, when the headers are complete
	OnBody(p []byte, at time.Duration) error // body bytes of one read, valid during the call
	Done(x *Exchange)                        // at the end; the exchange may then be used again
}

// An Exchange is one request and its response. The caller fills the first
// block; the second is set when Done is called. Instants are offsets on the
// client's clock.
type Exchange struct {
	Request []byte // head and body, written in one call
	Sink    Sink
	Limits  Limits

	Connected, SentEnd, FirstByte, Ended time.Duration
	HasConnected, HasSentEnd, HasByte    bool // HasSentEnd: see Written
	Reused                               bool // found an open connection
	Resent                               bool // the open connection turned out closed, so it was sent again on another
	BytesOut, BytesIn                    int64
	End                                  End
	Err                                  error

	sent      atomic.Int64 // offset + 1; 0 = not sent
	lastByte  atomic.Int64 // offset
	lastToken atomic.Int64 // offset
	written   atomic.Bool
	headSeen  bool

	behind *Exchange     // in the line of those that wait for a connection; with the client's mu
	ticket uint64        // likewise
	asked  time.Duration // since when it does

	stop     error // from outside; with the connection's mu
	writeErr error // the same
}

// Reset readies x for another request.
func (x *Exchange) Reset() {
	sink := x.Sink
	*x = Exchange{Request: x.Request[:0], Sink: sink}
}

// Sent returns when the first byte was written.
func (x *Exchange) Sent() (time.Duration, bool) {
	at := x.sent.Load()
	return time.Duration(at - 1), at != 0
}

// Written tells, before Done too, whether the whole request has gone out: its
// bytes are not wanted any more once the response begins.
func (x *Exchange) Written() bool { return x.written.Load() }

// Progress notes that a token came, for the limit on tokens.
func (x *Exchange) Progress(at time.Duration) { x.lastToken.Store(int64(at)) }

// A limit names one of the Limits.
type limit uint8

const (
	noLimit limit = iota
	cancelLimit
	totalLimit
	bytesLimit
	tokenLimit
)

// next returns when the first of the limits passes, and which that is.
func (x *Exchange) next() (at time.Duration, which limit) {
	sent, ok := x.Sent()
	if !ok {
		return 0, noLimit
	}
	if x.Limits.HasCancel {
		at, which = sent+x.Limits.Cancel, cancelLimit
	}
	first := func(w limit, from, after time.Duration) {
		if after > 0 && (which == noLimit || from+after < at) {
			at, which = from+after, w
		}
	}
	first(totalLimit, sent, x.Limits.Total)
	first(bytesLimit, max(sent, time.Duration(x.lastByte.Load())), x.Limits.Bytes)
	first(tokenLimit, max(sent, time.Duration(x.lastToken.Load())), x.Limits.Token)
	return at, which
}

// passed says how and why a limit that has passed ends an exchange.
func (l Limits) passed(which limit) (End, error) {
	switch which {
	case cancelLimit:
		return EndCancelled, fmt.Errorf("cancelled after %v, on purpose", l.Cancel)
	case totalLimit:
		return EndTimeout, fmt.Errorf("not complete within %v", l.Total)
	case bytesLimit:
		return EndTimeout, fmt.Errorf("no byte for %v", l.Bytes)
	}
	return EndTimeout, fmt.Errorf("no token for %v", l.Token)
}

func (x *Exchange) sentOr(def time.Duration) time.Duration {
	if at, ok := x.Sent(); ok {
		return at
	}
	return def
}
