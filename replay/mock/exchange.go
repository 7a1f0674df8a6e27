package mock

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"reprise/replay/mock/batch"
	"reprise/replay/mock/wire"
)

// maxChoices is the most answers to one request, as the OpenAI API has it.
const maxChoices = 128

// An exchange is one request and its answer.
type exchange struct {
	server  *Server
	op      wire.Operation
	request *wire.Request
	refusal *refusal // why it is answered with an error; nil if it is not
	fault   *Fault   // to inject; nil if none
	chunks  int      // events with tokens sent
	struck  bool     // a fault in mid-stream was injected
	seed    uint64   // of the answer: of seed and prompt, whatever the order of requests
	choices []choice
	out     outbox
	record  Record
	place   int // of the record in the account
}

// A choice is one of the answers to a request: one sequence in the engine.
type choice struct {
	x         *exchange
	index     int32
	planned   int    // tokens
	reasoning int    // of planned, the first so many
	finish    string // why it ends

	// Guarded by Server.mu.
	sequence *batch.Sequence // nil before it is in the engine
	ended    bool
	previous time.Duration // its last step
	begun    bool

	// Of the handler alone.
	pending int // tokens made and not sent
	sent    int // tokens sent
	content voice
	thought voice
}

// Emit takes a step's tokens from the engine.
func (c *choice) Emit(at time.Duration, tokens int, last bool) {
	x := c.x
	x.server.metrics.emitted(at, c.sequence.Arrival, c.previous, tokens, x.request.Prompt.Tokens, !c.begun, last, c.finish)
	c.previous, c.begun, c.ended = at, true, last
	x.out.put(emission{choice: c.index, tokens: int32(tokens), last: last})
}

// bodies has buffers for request bodies.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// generate returns the handler of an endpoint.
func (s *Server) generate(op wire.Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.enter()
		defer s.leave()
		body := bodies.Get().(*bytes.Buffer)
		defer bodies.Put(body)
		body.Reset()
		if r.ContentLength > 0 && r.ContentLength <= s.config.MaxBodyBytes {
			body.Grow(int(r.ContentLength) + bytes.MinRead)
		}
		if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, s.config.MaxBodyBytes)); err != nil {
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				(&refusal{http.StatusRequestEntityTooLarge, "body", "body of more than " + strconv.FormatInt(s.config.MaxBodyBytes, 10) + " bytes"}).write(w, op)
			}
			return // the client left before its request was complete: no arrival
		}
		x := s.accept(r.Header, op, body.Bytes())
		x.serve(r.Context(), w)
	}
}

func (s *Server) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving++
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving--; s.serving == 0 {
		s.quiet.Broadcast()
	}
}

// accept reads a complete request and books its arrival.
func (s *Server) accept(h http.Header, op wire.Operation, body []byte) *exchange {
	x := &exchange{server: s, op: op}
	x.out.wake = make(chan struct{}, 1)
	x.record = Record{
		RequestID: h.Get("X-Request-Id"), Operation: op, Outcome: OutcomeOpen,
		Arrival: s.now(), BodyBytes: int64(len(body)),
	}
	r, err := wire.Parse(body, op, s.template)
	if r == nil {
		r = &wire.Request{Choices: 1}
	}
	x.request = r
	if asked := h.Get(FaultHeader); asked != "" {
		r.Fault = asked
	}
	x.record.Model, x.record.Stream, x.record.PromptTokens = r.Model, r.Stream, r.Prompt.Tokens
	if err != nil {
		x.refusal = badRequest("", err.Error())
	} else if x.refusal = s.config.check(r, op); x.refusal == nil {
		x.plan()
	}
	s.arrive(x)
	return x
}

// plan decides what the answer will be.
func (x *exchange) plan() {
	c := &x.server.config
	x.seed = mixed(c.Seed ^ x.request.Prompt.Hash)
	n, finish := c.outputTokens(x.request)
	reasoning := 0
	if x.op != wire.Completion {
		reasoning = int(c.ReasoningShare*float64(n) + 0.5)
	}
	x.choices = make([]choice, x.request.Choices)
	for i := range x.choices {
		x.choices[i] = choice{
			x: x, index: int32(i), planned: n, reasoning: reasoning, finish: finish,
			content: x.voice(i, false), thought: x.voice(i, true),
		}
	}
}

// voice returns the voice of a choice, at its first word.
func (x *exchange) voice(choice int, thought bool) voice {
	id := uint64(choice) << 1
	if thought {
		id |= 1
	}
	return voice{state: mixed(x.seed ^ mixed(id))}
}

// pickFault decides whether the request with this ordinal fails.
func (x *exchange) pickFault(ordinal uint64) {
	if x.refusal != nil {
		return
	}
	var err error
	if x.fault, err = x.server.config.fault(ordinal, x.request.Fault); err != nil {
		x.refusal = badRequest("mock_fault", err.Error())
	}
	if x.fault != nil {
		x.record.Fault = string(x.fault.Kind)
	}
}

// serve answers, and books what became of it.
func (x *exchange) serve(ctx context.Context, w http.ResponseWriter) {
	s := x.server
	if id := x.record.RequestID; id != "" {
		w.Header().Set("X-Request-Id", id)
	}
	x.record.Outcome = x.respond(ctx, w)
	broken := x.record.Outcome == OutcomeClientGone
	if broken && context.Cause(ctx) == errStopped {
		x.record.Outcome = OutcomeStopped
	}
	s.abandon(x)
	x.record.End = s.now()
	s.account.close(&s.config, x.place, &x.record)
	if x.record.Outcome == OutcomeFault && (x.fault.is(FaultReset) || x.fault.is(FaultCut)) {
		reset(w) // after the books are closed, since the client may look at once
	}
	if broken {
		panic(http.ErrAbortHandler) // so that nobody takes it for a clean end
	}
}

// respond answers and returns the outcome.
func (x *exchange) respond(ctx context.Context, w http.ResponseWriter) string {
	switch {
	case x.refusal != nil:
		x.head(x.refusal.status)
		x.refusal.write(w, x.op)
		return OutcomeRefused
	case x.fault.is(FaultReset):
		return OutcomeFault
	case x.fault.is(FaultStatus):
		if after := x.fault.RetryAfter; after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
		}
		x.head(x.fault.Status)
		(&refusal{status: x.fault.Status, message: "injected fault"}).write(w, x.op)
		return OutcomeFault
	case x.fault.is(FaultSlowHeaders):
		if !pause(ctx, x.fault.Delay) {
			return OutcomeClientGone
		}
	}
	if x.request.Stream {
		return x.stream(ctx, w)
	}
	return x.whole(ctx, w)
}

// head books that headers are about to be written.
func (x *exchange) head(status int) {
	x.record.Headers, x.record.Status = x.server.now(), status
}

// pause waits, and returns false if the client left meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reset breaks the connection: with a TCP RST where the connection can, else by
// closing it before the response is complete.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: resets the stream
	}
	if l, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		l.SetLinger(0) // if it fails the close is a plain one
	}
	conn.Close()
}

// check returns why a request is refused, as vLLM would, or nil.
func (c *Config) check(r *wire.Request, op wire.Operation) *refusal {
	for _, name := range r.Fields {
		if slices.Contains(c.Refuse, name) {
			return badRequest(name, "unrecognized request argument supplied: "+name)
		}
	}
	limit, limited := r.MaxTokens.Get()
	switch {
	case r.Model != "" && !slices.Contains(c.Models, r.Model):
		return &refusal{http.StatusNotFound, "model", "The model `" + r.Model + "` does not exist."}
	case op == wire.Messages && !limited:
		return badRequest("max_tokens", "max_tokens: field required")
	case limited && limit < 1:
		return badRequest("max_tokens", "max_tokens must be at least 1, got "+strconv.FormatInt(limit, 10)+".")
	case limited && r.MinTokens > limit:
		return badRequest("min_tokens", "min_tokens must be less than or equal to max_tokens="+strconv.FormatInt(limit, 10)+", got "+strconv.FormatInt(r.MinTokens, 10)+".")
	case r.MinTokens < 0:
		return badRequest("min_tokens", "min_tokens must be at least 0")
	case r.StreamOptions && !r.Stream:
		return badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	case r.Choices < 1 || r.Choices > maxChoices || r.Choices > 1 && op != wire.Chat && op != wire.Completion:
		return badRequest("n", "n: want 1 to "+strconv.Itoa(maxChoices)+" for chat and completions, else 1")
	}
	return nil
}
