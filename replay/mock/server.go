package mock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"reprise/replay/mock/batch"
	"reprise/replay/mock/wire"
)

// A Server is one simulated inference server. Its clock starts with New. It has
// no goroutine of its own while nothing is in flight.
type Server struct {
	config   Config
	template wire.Template
	start    time.Time
	handler  http.Handler
	account  account
	metrics  metrics

	mu      sync.Mutex
	quiet   *sync.Cond // no handler, no driver
	batch   *batch.Batch
	driving bool   // a goroutine runs drive
	serving int    // requests in a handler
	ordinal uint64 // of the next arrival
}

// New returns a server that is ready to handle requests.
func New(c Config) *Server {
	c = c.withDefaults()
	s := &Server{config: c, start: time.Now(), metrics: newMetrics(), batch: batch.New(c.Engine)}
	s.quiet = sync.NewCond(&s.mu)
	s.config.Engine = s.batch.Config()
	s.template = wire.Template{
		BlockTokens: s.config.Engine.BlockTokens,
		Prefix:      c.TemplatePrefix, Suffix: c.TemplateSuffix, PerMessage: c.TemplatePerMessage,
	}
	s.handler = s.routes()
	return s
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.generate(wire.Chat))
	mux.HandleFunc("POST /v1/completions", s.generate(wire.Completion))
	mux.HandleFunc("POST /v1/responses", s.generate(wire.Responses))
	mux.HandleFunc("POST /v1/messages", s.generate(wire.Messages))
	mux.HandleFunc("GET /v1/models", s.serveModels)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /mock/account", s.serveAccount)
	return mux
}

// Start returns when the server's clock began, with its monotonic reading.
func (s *Server) Start() time.Time { return s.start }

// Load returns the state of the engine now.
func (s *Server) Load() batch.Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batch.Load()
}

// Handler returns the endpoints.
func (s *Server) Handler() http.Handler { return s.handler }

// errStopped is why an answer ends when Serve does.
var errStopped = errors.New("the server stopped")

// Serve answers what ln accepts, by HTTP/1.1 and by HTTP/2 whose client knows
// that (h2c), until ctx ends; then it closes ln and all
// connections, waits until every request is booked and the engine has stopped
// (at most one step), and returns nil. Any other error is the listener's.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:     s.handler,
		Protocols:   &protocols,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		cancel(errStopped)
		server.Close()
	})
	err := server.Serve(ln)
	if stop() { // ctx goes on, so the listener failed
		cancel(errStopped)
		server.Close()
	} else {
		<-ended
	}
	s.wait()
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("mock server: %w", err)
}

// wait returns when no request is in a handler and the engine has stopped.
func (s *Server) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.serving > 0 || s.driving {
		s.quiet.Wait()
	}
}

// now returns the time on the server's clock.
func (s *Server) now() time.Duration { return time.Since(s.start) }

// arrive books a request: its place in the order of arrivals, its fault, its
// record, and, unless it is refused or fails at once, its sequences in the
// engine, which is woken. All under one lock, so that account, faults and cache
// hits follow one order.
func (s *Server) arrive(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ordinal := s.ordinal
	s.ordinal++
	x.record.Ordinal = int64(ordinal)
	x.pickFault(ordinal)
	if x.refusal == nil && !x.fault.is(FaultStatus) && !x.fault.is(FaultReset) {
		s.enqueue(x)
	}
	x.place = s.account.open(&s.config, &x.record)
}

// enqueue hands an answer's sequences to the engine.
func (s *Server) enqueue(x *exchange) {
	for i := range x.choices {
		c := &x.choices[i]
		sequence, err := s.batch.Arrive(x.record.Arrival, batch.Request{
			PromptTokens: x.request.Prompt.Tokens,
			Blocks:       x.request.Prompt.Blocks,
			OutputTokens: c.planned,
			Seed:         x.seed + uint64(i),
			Sink:         c,
		})
		if err != nil { // the first choice's: all are of one size
			x.refusal = x.tooLong()
			return
		}
		c.sequence = sequence
	}
	first := x.choices[0].sequence
	x.record.PlannedTokens = len(x.choices) * x.choices[0].planned
	x.record.HitBlocks = first.HitBlocks
	x.record.HitTokens = first.HitBlocks * s.config.Engine.BlockTokens
	x.record.CachedTokens = first.CachedTokens
	if !s.driving {
		s.driving = true
		go s.drive()
	}
}

// abandon takes an answer's unfinished sequences out of the engine.
func (s *Server) abandon(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := 0
	for i := range x.choices {
		if c := &x.choices[i]; c.sequence != nil && !c.ended {
			s.batch.Cancel(c.sequence)
			c.ended = true
			gone++
		}
	}
	if gone > 0 {
		s.metrics.aborted(gone)
	}
}

// drive runs the engine until it is idle. It waits for each step's absolute
// end, so that lateness does not add up.
func (s *Server) drive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		end, ok := s.batch.Next()
		if !ok {
			s.driving = false
			s.quiet.Broadcast()
			return
		}
		s.mu.Unlock()
		time.Sleep(time.Until(s.start.Add(end)))
		s.mu.Lock()
		s.batch.Finish()
	}
}

// serveModels lists the served names, in vLLM's form.
func (s *Server) serveModels(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
		Root    string `json:"root"`
		MaxLen  int64  `json:"max_model_len"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, name := range s.config.Models {
		list.Data = append(list.Data, model{name, "model", s.start.Unix(), "reprise", s.config.Models[0], s.config.Engine.KVTokens})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(list) // the client alone can be at fault, and it is gone then
}
