package replay

import (
	"fmt"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/protocol"
	"reprise/replay/transport"
	"reprise/trace"
	"reprise/trace/results"
)

// A flight is one request, from rendering to its result. Thousands may be in flight,
// so what only some need is apart.
type flight struct {
	*chain                  // nil unless there is a pacer
	run       *run          // the run that it is of
	seq       int           // see start
	due       time.Duration // by the schedule; for a row without a time, that of the row before
	eligible  time.Duration
	tree      int64 // see start
	hasDue    bool
	warm      bool // see start
	last      bool // likewise
	stream    bool
	rendered  bool
	converses bool // its answer goes into the history of its session
	choices   int32
	session   string // its conversation; another one in each pass
	res       results.Result
	unsent    string // why it cannot be sent; "" if it can

	row  *trace.Request // until it is rendered
	buf  *[]byte        // room for the head of the request, and its body; until it is sent
	said ledger.Transcript

	to       *target // nil until all is ready
	x        transport.Exchange
	response *protocol.Response
	slab     *[]results.Entry // memory of the ledger, from when all is ready until it is recorded
	encoding string
	parts    int // ledger entries seen
}

// A chain is what a pacer knows of a request.
type chain struct {
	after    []trace.Dependency
	delay    trace.Optional[time.Duration]
	gap      time.Duration // recorded since the end of the turn before, where there is no delay
	missing  int           // requests that it waits for
	depends  bool          // it comes after a request of this run
	skipped  bool          // left out for an error of one that it comes after
	lastEnd  time.Duration // of those that it comes after
	firstEnd time.Duration // likewise
	followed int           // how many of them have ended
	well     int           // of these without an error
	cause    string        // kind of the dependency that ended last
}

// reset readies f for another request.
func (f *flight) reset(r *run) {
	c := f.chain
	if *f = (flight{run: r}); r.pacer == nil {
		return
	}
	if c == nil {
		c = &chain{}
	}
	*c, f.chain = chain{}, c
}

// failedItself tells whether f has ended, and not well.
func (f *flight) failedItself() bool {
	switch f.res.Outcome {
	case results.OutcomeOK, results.OutcomeNotStreamed, results.OutcomeCancelled:
		return false
	}
	return true
}

// size is that of the rendered request, bytes.
func (f *flight) size() int64 {
	if f.buf == nil {
		return 0
	}
	return int64(len(*f.buf))
}

// maxResponse bounds what one response may hold, in bytes: some ten times what
// 100,000 tokens take.
const maxResponse = 256 << 20

// ready makes all that can be made before the request is due.
func (f *flight) ready(t *target) {
	if f.to != nil || f.unsent != "" {
		return
	}
	f.to, f.res.URL = t, t.name
	var id [requestIDLen]byte
	f.x.Request = t.request(*f.buf, f.run.room, f.run.requestID(id[:0], f.res.ID, f.res.Pass))
	l := &f.x.Limits
	l.Total, l.Bytes, l.Token, l.MaxBytes = f.run.c.timeout(), f.run.c.BytesTimeout, f.run.c.TokenTimeout, maxResponse
	f.x.Sink = f
	f.response = f.run.responses.Get(f.stream)
	f.response.Account.Choices = int(max(1, f.choices))
	f.response.Account.Tokenizer = f.run.c.Tokenizer
	f.response.Account.Transcript = nil
	if f.converses {
		f.response.Account.Transcript = &f.said
	}
	f.response.Account.Expected = int(min(f.res.PlannedOutputTokens.Or(0), 1<<20))
	f.slab = f.run.slab()
	f.response.Start(*f.slab)
}

// send starts the exchange; it returns at once.
func (f *flight) send() { f.to.client.Send(&f.x) }

// OnSent implements transport.Sink.
func (f *flight) OnSent() { f.sentAll() }

// OnHead implements transport.Sink.
func (f *flight) OnHead(h *transport.Head, _ time.Duration) {
	if f.x.Written() {
		f.sentAll() // an answer may last
	}
	f.response.Head(h.Status, h.Type)
	if h.Encoding != "identity" {
		f.encoding = h.Encoding
	}
	if h.RetryAfter != "" {
		f.response.Account.Note("Retry-After: " + h.RetryAfter)
	}
	if h.Status/100 == 3 && h.Location != "" {
		f.response.Account.Note("redirected to " + h.Location)
	}
}

// sentAll gives the memory of the request back.
func (f *flight) sentAll() {
	if f.buf != nil {
		f.run.buffers.Put(f.buf)
		f.buf, f.x.Request = nil, nil
	}
}

// OnBody implements transport.Sink.
func (f *flight) OnBody(p []byte, at time.Duration) error {
	if f.encoding != "" {
		return fmt.Errorf("body is compressed (%s), though identity was asked for", f.encoding)
	}
	sent, _ := f.x.Sent()
	err := f.response.Feed(p, at-sent)
	if f.x.Limits.Token == 0 {
		return err
	}
	entries := f.response.Account.Entries()
	for _, e := range entries[min(f.parts, len(entries)):] {
		if e.Kind != results.KindNone {
			f.x.Progress(at)
		}
	}
	f.parts = len(entries)
	return err
}

// Done implements transport.Sink: it closes the account and hands the result on.
func (f *flight) Done(x *transport.Exchange) {
	f.times(x)
	end := ledger.Ending{Kind: endKind(x.End), At: x.Ended - f.res.Sent.Value}
	if x.Err != nil {
		end.Cause = x.Err.Error()
		f.run.short(x.Err)
	}
	if x.Resent {
		f.response.Account.Note("sent again: the server had closed the open connection")
	}
	var s ledger.Summary
	f.response.End(&end, &s)
	f.book(&s)
	f.response.Account.Transcript = nil
	if f.converses {
		f.run.renderer.answered(f.session, &f.said)
	}
	f.run.responses.Put(f.stream, f.response)
	f.response = nil
	f.sentAll()
	f.run.ended(f)
}

func (f *flight) times(x *transport.Exchange) {
	r := &f.res
	if x.HasConnected {
		r.Connected = trace.Some(x.Connected)
		r.ConnReused = trace.Some(x.Reused)
	}
	if sent, ok := x.Sent(); ok {
		r.Sent = trace.Some(sent)
		r.BytesOut = trace.Some(x.BytesOut)
		r.BytesIn = trace.Some(x.BytesIn)
	}
	if x.HasSentEnd {
		r.SentEnd = trace.Some(x.SentEnd)
	}
	if x.HasByte {
		r.FirstByte = trace.Some(x.FirstByte)
	}
	r.End = trace.Some(x.Ended)
}

func (f *flight) book(s *ledger.Summary) {
	r := &f.res
	at := func(o trace.Optional[time.Duration]) trace.Optional[time.Duration] {
		if !o.Known {
			return o
		}
		return trace.Some(r.Sent.Value + o.Value)
	}
	r.Outcome, r.HTTPStatus, r.Cause, r.FinishReason, r.Note = s.Outcome, s.Status, s.Cause, s.FinishReason, s.Note
	r.FirstToken, r.FirstOutput, r.LastToken = at(s.FirstToken), at(s.FirstOutput), at(s.LastToken)
	r.CountedInputTokens, r.CachedTokens = s.Input, s.Cached
	r.OutputTokens, r.OutputSource, r.ReasoningTokens = s.Output, s.OutputSource, s.Reasoning
	r.Ledger, *f.slab = s.Ledger, s.Ledger // which may have moved
	if !r.Sent.Known {
		r.Ledger = r.Ledger[:0]
	}
	r.LedgerDifference = s.Difference
}

func endKind(e transport.End) ledger.End {
	switch e {
	case transport.EndRefused:
		return ledger.EndRefused
	case transport.EndReset:
		return ledger.EndReset
	case transport.EndTimeout:
		return ledger.EndTimeout
	case transport.EndCancelled:
		return ledger.EndCancelled
	case transport.EndCut:
		return ledger.EndCut
	case transport.EndProtocol:
		return ledger.EndInvalid
	}
	return ledger.EndClean
}
