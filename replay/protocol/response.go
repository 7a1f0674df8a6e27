package protocol

import (
	"errors"
	"strings"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace/results"
)

// A Response takes the bytes of one response's body as the network delivers
// them and books them: it frames events, decodes them, and keeps the account.
// It is used for one response after the other, and does not allocate per
// event.
//
//	r := protocol.NewResponse(protocol.Chat{}, true, 0)
//	r.Start(slab)
//	r.Head(200, "text/event-stream")
//	err := r.Feed(bytes, at)  // for each read
//	summary := r.Close(ledger.Ending{At: at})
type Response struct {
	Account ledger.Account

	protocol Protocol
	decoder  Decoder
	emit     func(sse.Event) error // bound once
	stream   bool                  // a stream is asked for

	framing framing
	status  int32
	content string
	events  sse.Reader
	lines   *sse.Lines // nil where the protocol has none
	body    []byte
	last    time.Duration // of the last read
}

// framing is how a body is cut into payloads.
type framing uint8

const (
	framingUnknown framing = iota // nothing but line ends has been read
	framingEvents                 // server-sent events
	framingLines                  // lines of JSON
	framingBody                   // one text
)

// errorBody bounds what is kept of the body of an error response, bytes.
const errorBody = 64 << 10

// NewResponse returns a response reader. limit bounds the bytes of one event,
// line or body; 0 means [sse.DefaultLimit].
func NewResponse(p Protocol, stream bool, limit int) *Response {
	if limit <= 0 {
		limit = sse.DefaultLimit
	}
	r := &Response{protocol: p, decoder: p.NewDecoder(stream), stream: stream}
	if r.events.Limit = limit; p.Lines() {
		r.lines = &sse.Lines{Limit: limit}
	}
	r.emit = func(e sse.Event) error {
		r.decoder.Event(e, &r.Account)
		return nil
	}
	if d, ok := r.decoder.(*openAI); ok {
		r.events.Known = d.known(&r.Account)
	}
	return r
}

// Start begins the next response. slab, which may be nil, is memory for the
// ledger's entries.
func (r *Response) Start(slab []results.Entry) {
	r.Account.Reset(slab)
	r.decoder.Reset()
	r.events.Reset()
	if r.lines != nil {
		r.lines.Reset()
	}
	r.status, r.content, r.framing, r.last = 0, "", framingUnknown, 0
	if r.body = r.body[:0]; cap(r.body) > errorBody {
		r.body = nil
	}
}

// Head takes the status and the Content-Type of the response.
func (r *Response) Head(status int, contentType string) {
	r.status, r.content = int32(status), contentType
}

// Feed takes the bytes of one network read of the body, made at at (since
// sent). An error means that the response has failed and reading should stop;
// the connection cannot be used again.
func (r *Response) Feed(p []byte, at time.Duration) error {
	r.last = at
	if r.framing == framingUnknown {
		if p = skipLead(p); len(p) == 0 {
			return nil
		}
		r.framing = r.detect(p[0])
	}
	var err error
	if r.framing == framingEvents {
		err = r.events.Feed(p, at, r.emit)
	} else {
		err = r.feed(p, at)
	}
	if err != nil {
		r.Account.Error(err.Error())
	}
	return err
}

// skipLead drops line ends, and the bytes of a byte order mark, before the
// first byte that matters. They mean nothing in any framing.
func skipLead(p []byte) []byte {
	for len(p) > 0 && strings.IndexByte("\r\n\xEF\xBB\xBF", p[0]) >= 0 {
		p = p[1:]
	}
	return p
}

// detect tells the framing by the first byte rather than by the header alone:
// servers send JSON errors as event streams, and event streams as JSON.
func (r *Response) detect(first byte) framing {
	switch {
	case r.status != 0 && (r.status < 200 || r.status > 299):
		return framingBody
	case first == '{' || first == '[':
		if r.stream && r.protocol.Lines() {
			return framingLines
		}
		return framingBody
	case first == '<' || first == '"':
		return framingBody
	case r.stream || strings.Contains(r.content, "event-stream"):
		return framingEvents
	}
	return framingBody
}

func (r *Response) feed(p []byte, at time.Duration) error {
	if r.framing == framingLines {
		return r.lines.Feed(p, at, r.emit)
	}
	if r.status > 299 {
		p = p[:min(len(p), errorBody-len(r.body))]
	}
	if len(r.body)+len(p) > r.events.Limit {
		return &sse.LimitError{Limit: r.events.Limit}
	}
	r.body = append(r.body, p...)
	return nil
}

// Close ends the response and returns what it was. Status and Body of e are
// taken from the response if e has none.
func (r *Response) Close(e ledger.Ending) (s ledger.Summary) {
	r.End(&e, &s)
	return s
}

// End is Close into s, an empty summary.
func (r *Response) End(e *ledger.Ending, s *ledger.Summary) {
	if e.Status == 0 {
		e.Status = int(r.status)
	}
	if e.Kind == ledger.EndClean || r.framing == framingEvents {
		r.finish(e)
	}
	r.Account.End(e, s)
}

// finish reads what stood open at the end.
func (r *Response) finish(e *ledger.Ending) {
	switch r.framing {
	case framingEvents:
		note, err := r.events.Finish(e.At, r.emit)
		if note != "" && err == nil {
			r.Account.Note(note)
		}
		if unknown := r.events.FirstUnknown(); unknown != "" && r.events.Counts().Events == 0 {
			r.Account.Malformed(ledger.Stamp{}, []byte(unknown))
		}
	case framingLines:
		if err := r.lines.Finish(e.At, r.emit); errors.As(err, new(*sse.LimitError)) {
			r.Account.Error(err.Error())
		}
	case framingBody:
		if e.Status > 299 || e.Status != 0 && e.Status < 200 {
			r.errorBody(e)
			return
		}
		r.decoder.Body(r.body, r.last, &r.Account)
	}
}

// errorBody takes the error object from the body of an error response, or else
// its first bytes.
func (r *Response) errorBody(e *ledger.Ending) {
	c := cursor{b: r.body}
	if c.skip(); c.ended() {
		r.Account.Error(errorCause(r.body))
		return
	}
	if e.Body == nil {
		e.Body = r.body
	}
}
