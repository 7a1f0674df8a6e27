package mock

import (
	"context"
	"net/http"
	"sync"

	"reprise/replay/mock/wire"
)

// An emission is one step's tokens for one choice.
type emission struct {
	choice int32
	tokens int32
	last   bool
}

// An outbox takes the tokens of an answer from the engine, which never waits for
// a slow client, and hands them to the answer's handler.
type outbox struct {
	wake  chan struct{} // of size 1
	spare []emission    // of the handler: what it took last

	mu    sync.Mutex
	queue []emission
}

func (o *outbox) put(e emission) {
	o.mu.Lock()
	o.queue = append(o.queue, e)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take waits for tokens, and returns false if the client left. What it returned
// before is overwritten.
func (o *outbox) take(ctx context.Context) ([]emission, bool) {
	for {
		o.mu.Lock()
		queue := o.queue
		if len(queue) > 0 {
			o.queue, o.spare = o.spare[:0], queue
		}
		o.mu.Unlock()
		if len(queue) > 0 {
			return queue, ctx.Err() == nil
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// An event is what one event with tokens says.
type event struct {
	choice    *choice
	reasoning int  // tokens of each kind
	content   int  //
	last      bool // with the choice's last tokens
}

// A dialect writes the answer of one protocol. Each method appends to b.
type dialect interface {
	open(b []byte) []byte           // the events before the first token; may be none
	event(b []byte, e event) []byte // tokens; e.choice.sent has them already
	close(b []byte) []byte          // the events after the last token, to the end marker
	fail(b []byte, object []byte) []byte
	whole(b []byte) []byte // the body of an answer that is not streamed
}

func (x *exchange) dialect() dialect {
	switch x.op {
	case wire.Responses:
		return newResponses(x)
	case wire.Messages:
		return newMessages(x)
	}
	return newOpenAI(x)
}

// A link writes one response.
type link struct {
	w   http.ResponseWriter
	buf []byte
}

// send writes b in one piece and flushes it; false means that the client is gone.
func (l *link) send(b []byte) bool {
	l.buf = b[:0]
	if _, err := l.w.Write(b); err != nil {
		return false
	}
	l.w.(http.Flusher).Flush()
	return true
}

// stream writes the answer as events, each when the engine has made its tokens.
func (x *exchange) stream(ctx context.Context, w http.ResponseWriter) string {
	d, l := x.dialect(), &link{w: w}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	x.head(http.StatusOK)
	w.WriteHeader(http.StatusOK)
	if !l.send(d.open(l.buf)) {
		return OutcomeClientGone
	}
	for left := len(x.choices); left > 0; {
		queue, ok := x.out.take(ctx)
		if !ok {
			return OutcomeClientGone
		}
		for _, e := range queue {
			c := &x.choices[e.choice]
			c.pending += int(e.tokens)
			if e.last {
				left--
			} else if c.pending < x.server.config.TokensPerChunk {
				continue
			}
			if outcome := x.strike(ctx, d, l, false); outcome != "" {
				return outcome
			}
			if !x.chunk(d, l, c, e.last) {
				return OutcomeClientGone
			}
		}
	}
	if outcome := x.strike(ctx, d, l, true); outcome != "" {
		return outcome
	}
	if !l.send(d.close(l.buf)) {
		return OutcomeClientGone
	}
	return OutcomeCompleted
}

// chunk sends a choice's pending tokens as one event.
func (x *exchange) chunk(d dialect, l *link, c *choice, last bool) bool {
	e := event{choice: c, last: last}
	e.reasoning = min(max(c.reasoning-c.sent, 0), c.pending)
	e.content = c.pending - e.reasoning
	tokens := c.pending
	c.pending, c.sent = 0, c.sent+tokens
	b := d.event(l.buf, e)
	at := x.server.now()
	if !l.send(b) {
		return false
	}
	r := &x.record
	if x.place >= 0 {
		if r.Chunks == nil {
			r.Chunks = make([]ChunkSent, 0, min(r.PlannedTokens/x.server.config.TokensPerChunk+len(x.choices), 4096))
		}
		r.Chunks = append(r.Chunks, ChunkSent{At: at, Tokens: int32(tokens), Choice: c.index})
	}
	r.SentTokens += tokens
	r.ReasoningTokens += e.reasoning
	x.chunks++
	return true
}

// strike injects a fault in mid-stream when its time has come, at the latest at
// the end. It returns the outcome if that ends the stream, else "".
func (x *exchange) strike(ctx context.Context, d dialect, l *link, end bool) string {
	if x.struck || !x.fault.midStream() || x.chunks < x.fault.After && !end {
		return ""
	}
	x.struck = true
	ok := true
	switch x.fault.Kind {
	case FaultStall:
		ok = pause(ctx, x.fault.Delay)
	case FaultMalformed:
		ok = l.send(append(l.buf, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\n\n"...))
	case FaultError:
		object := (&refusal{status: http.StatusInternalServerError, message: "injected fault"}).object(x.op)
		if l.send(d.fail(l.buf, object)) {
			return OutcomeFault
		}
		return OutcomeClientGone
	default: // FaultTruncate ends here, FaultCut too, and serve resets the connection
		return OutcomeFault
	}
	if !ok {
		return OutcomeClientGone
	}
	return ""
}

// whole writes the answer as one body when the engine has made all of it.
func (x *exchange) whole(ctx context.Context, w http.ResponseWriter) string {
	for left := len(x.choices); left > 0; {
		queue, ok := x.out.take(ctx)
		if !ok {
			return OutcomeClientGone
		}
		for _, e := range queue {
			x.choices[e.choice].sent += int(e.tokens)
			if e.last {
				left--
			}
		}
	}
	body := append(x.dialect().whole(nil), '\n')
	l := &link{w: w}
	w.Header().Set("Content-Type", "application/json")
	x.head(http.StatusOK)
	if x.fault.midStream() {
		return x.wholeFault(ctx, l, body)
	}
	if _, err := w.Write(body); err != nil {
		return OutcomeClientGone
	}
	x.sentWhole()
	return OutcomeCompleted
}

func (x *exchange) sentWhole() {
	for i := range x.choices {
		x.record.SentTokens += x.choices[i].planned
		x.record.ReasoningTokens += x.choices[i].reasoning
	}
}

// wholeFault injects a fault in the middle of a body.
func (x *exchange) wholeFault(ctx context.Context, l *link, body []byte) string {
	half := body[:len(body)/2]
	outcome := OutcomeFault
	switch x.fault.Kind {
	case FaultError:
		half = append((&refusal{status: http.StatusInternalServerError, message: "injected fault"}).object(x.op), '\n')
	case FaultMalformed:
		outcome = OutcomeCompleted // as the server sees it
	case FaultStall:
		if !l.send(append([]byte(nil), half...)) || !pause(ctx, x.fault.Delay) || !l.send(append([]byte(nil), body[len(half):]...)) {
			return OutcomeClientGone
		}
		x.sentWhole()
		return OutcomeCompleted
	}
	if !l.send(half) {
		return OutcomeClientGone
	}
	return outcome
}
