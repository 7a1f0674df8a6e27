package otlp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"reprise/analysis"
	"reprise/trace/results"
)

// Spans sends the requests of a run, some at a time, as they are added. A
// conversation is one trace, and so is a request without one. Ids are made from the
// run's, so that sending a run again gives the same spans.
type Spans struct {
	ctx    context.Context
	client *Client
	run    *results.Run
	begin  int64 // Unix ns of the run's 0
	list   []span
	N      int64 // sent
	err    error
}

// NewSpans begins to send the requests of a run.
func (c *Client) NewSpans(ctx context.Context, run *results.Run) (*Spans, error) {
	at, err := time.Parse(time.RFC3339Nano, run.Started)
	if err != nil {
		return nil, fmt.Errorf("run.json does not say when the run started, and spans need a time: %w", err)
	}
	return &Spans{ctx: ctx, client: c, run: run, begin: at.UnixNano()}, nil
}

type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
	Events     []event     `json:"events,omitempty"`
	Status     status      `json:"status"`
}

type event struct {
	Time string `json:"timeUnixNano"`
	Name string `json:"name"`
}

type status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Values of the protocol.
const (
	kindClient  = 3
	statusError = 2
)

// Add takes a result; one that was never sent is no span.
func (s *Spans) Add(r *results.Result) {
	if s.err != nil || !r.Sent.Known || !r.End.Known {
		return
	}
	s.list = append(s.list, s.span(r))
	if len(s.list) == batchSpans {
		s.err = s.flush()
	}
}

// Close sends the rest, and returns the first error.
func (s *Spans) Close() error {
	if s.err == nil && len(s.list) > 0 {
		s.err = s.flush()
	}
	return s.err
}

func (s *Spans) flush() error {
	err := s.client.post(s.ctx, "/v1/traces", map[string]any{"resourceSpans": []any{map[string]any{
		"resource": resourceOf(s.run), "scopeSpans": []any{map[string]any{"scope": scope{"reprise", s.run.Version}, "spans": s.list}},
	}}})
	if err == nil {
		s.N += int64(len(s.list))
	}
	s.list = s.list[:0]
	return err
}

func resourceOf(run *results.Run) resource {
	r := resource{[]attribute{text("service.name", "reprise"), text("service.version", run.Version), text("reprise.load", run.Label)}}
	if run.Trace != nil {
		r.Attributes = append(r.Attributes, text("reprise.trace.sha256", run.Trace.SHA256))
	}
	for _, key := range slices.Sorted(maps.Keys(run.Labels)) {
		r.Attributes = append(r.Attributes, text("reprise.label."+key, run.Labels[key]))
	}
	return r
}

func (s *Spans) span(r *results.Result) span {
	request := strconv.FormatInt(r.ID, 10) + "/" + strconv.Itoa(int(r.Pass))
	conversation := "request " + request
	if r.Session.Known {
		conversation = "session " + r.Session.Value + "/" + strconv.Itoa(int(r.Pass))
	}
	at := func(d time.Duration) string { return nano(s.begin + int64(d)) }
	p := span{
		TraceID: s.id(conversation, 16), SpanID: s.id("span "+request, 8), Name: operation(r.Protocol), Kind: kindClient,
		Start: at(r.Sent.Value), End: at(max(r.End.Value, r.Sent.Value)), Attributes: attributes(r, request),
	}
	if r.Model.Known {
		p.Name += " " + r.Model.Value
	}
	for _, e := range []struct {
		name string
		of   func(*results.Result) (time.Duration, bool)
	}{{"first token", results.TTFT}, {"last token", results.LastToken}} {
		if d, ok := e.of(r); ok {
			p.Events = append(p.Events, event{at(r.Sent.Value + d), e.name})
		}
	}
	if !analysis.Successful(r) {
		p.Status = status{statusError, r.Outcome + ": " + r.Cause.Or("no cause recorded")}
	}
	return p
}

// id makes an id of n bytes.
func (s *Spans) id(name string, n int) string {
	sum := sha256.Sum256([]byte(s.run.Started + "\x00" + name))
	return hex.EncodeToString(sum[:n])
}

// operation is the name of the GenAI conventions for a protocol.
func operation(protocol string) string {
	switch protocol {
	case "completions":
		return "text_completion"
	case "embeddings":
		return "embeddings"
	}
	return "chat"
}

func attributes(r *results.Result, request string) []attribute {
	list := []attribute{text("gen_ai.operation.name", operation(r.Protocol)), text("reprise.request", request), text("reprise.outcome", r.Outcome)}
	if u, err := url.Parse(r.URL); err == nil {
		list = append(list, text("url.path", u.Path), text("server.address", u.Hostname()))
		if port, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
			list = append(list, number("server.port", port))
		}
	}
	if r.Model.Known {
		list = append(list, text("gen_ai.request.model", r.Model.Value))
	}
	if r.Session.Known {
		list = append(list, text("gen_ai.conversation.id", r.Session.Value))
	}
	if r.FinishReason.Known {
		list = append(list, texts("gen_ai.response.finish_reasons", r.FinishReason.Value))
	}
	if r.HTTPStatus.Known {
		list = append(list, number("http.response.status_code", int64(r.HTTPStatus.Value)))
	}
	if !analysis.Successful(r) {
		list = append(list, text("error.type", r.Outcome))
	}
	for _, n := range []struct {
		key   string
		value int64
		known bool
	}{
		{"gen_ai.usage.input_tokens", r.CountedInputTokens.Value, r.CountedInputTokens.Known}, {"gen_ai.usage.output_tokens", r.OutputTokens.Value, r.OutputTokens.Known},
		{"gen_ai.usage.cache_read.input_tokens", r.CachedTokens.Value, r.CachedTokens.Known}, {"gen_ai.usage.reasoning.output_tokens", r.ReasoningTokens.Value, r.ReasoningTokens.Known},
		{"reprise.turn", int64(r.Turn.Value), r.Turn.Known},
	} {
		if n.known {
			list = append(list, number(n.key, n.value))
		}
	}
	for _, m := range []struct {
		key string
		of  func(*results.Result) (time.Duration, bool)
	}{{"reprise.lateness", results.Lateness}, {"reprise.ttft", results.TTFT}, {"reprise.ttfo", results.TTFO}, {"reprise.tpot", results.TPOT}, {"reprise.e2e", results.E2E}, {"reprise.response_time", results.ResponseTime}} {
		if d, ok := m.of(r); ok {
			list = append(list, seconds(m.key, d))
		}
	}
	if r.Phase.Known {
		list = append(list, text("reprise.phase", r.Phase.Value))
	}
	if r.ConnReused.Known {
		list = append(list, truth("reprise.connection_reused", r.ConnReused.Value))
	}
	return list
}
