// Package otel reads spans of calls to models by OpenTelemetry's conventions for
// generative AI (open-telemetry/semantic-conventions, docs/gen-ai), their older
// names, OpenLLMetry's, OpenInference's, and those of vLLM's server spans; from
// OTLP JSON, as the collector's file exporter writes it, and from flat JSON.
//
// The source leaves out: prefix blocks, the time of each token, and whatever the
// instrumentation was told not to record (texts, as a rule).
package otel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells spans by the keys of the first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" {
		return "", false
	}
	inner := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := h.Inner[n]; return ok })
	}
	any := func(names ...string) bool { return slices.ContainsFunc(names, func(n string) bool { return h.Has(n) }) }
	switch {
	case h.Keys["resourceSpans"] == "array", h.Keys["resource_spans"] == "array":
		return "first record has resourceSpans (OTLP)", true
	case h.Keys["spans"] == "array" && inner("spans[].span_id", "spans[].spanId", "spans[].context"):
		return "first record has a list of spans", true
	case h.Keys["spans"] == "string" && any("session_id", "trace_id"):
		return "first record has spans as a string", true
	case any("attributes") && any("span_id", "spanId", "context") && any("startTimeUnixNano", "start_time_unix_nano", "start_time"):
		return "first record is a span", true
	}
	return "", false
}

// Values of Importer.SessionColumn beside names of attributes.
const (
	SessionNone  = "none"  // no sessions
	SessionTrace = "trace" // the trace id
)

// An Importer reads spans.
type Importer struct {
	sessions.Chain

	SessionColumn string     // attribute that names the session, SessionNone or SessionTrace; "" = by rule
	Zone          rows.Clock // of times without one
}

// Import implements formats.Importer. It reads the sources twice: which span wraps
// which is known when all are. Its memory grows with the number of spans.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(true)
	s := &state{Sink: rows.New(emit, reject), im: im, clock: im.Zone, nodes: map[string]*node{}, traces: map[string]int{}, open: map[*node]*call{}, keys: map[string]int64{}, forms: map[string]bool{}}
	s.Epoch = true
	if err := s.survey(ctx, src); err != nil {
		return trace.Meta{}, err
	}
	if err := s.Records(ctx, src, s.record); err != nil {
		return trace.Meta{}, err
	}
	if err := s.rest(); err != nil {
		return trace.Meta{}, err
	}
	s.clock.Note(s.Sink, "times without a zone")
	s.sessionGuess()
	return s.Meta("otel", strings.Join(slices.Sorted(maps.Keys(s.forms)), " and "))
}

// state is one import.
type state struct {
	*rows.Sink
	im     *Importer
	clock  rows.Clock
	nodes  map[string]*node
	traces map[string]int   // calls that are kept, by trace
	open   map[*node]*call  // calls that wait for what is within them
	keys   map[string]int64 // what named the sessions
	forms  map[string]bool
}

// record reads a record for the second time.
func (s *state) record(r *rows.Record) error {
	form := "flat spans"
	if r.Row["resourceSpans"] != nil || r.Row["resource_spans"] != nil {
		form = "OTLP"
	}
	s.forms[form] = true
	before := s.Read
	err := s.spans(r, func(sp *span, err error) error {
		if err == nil && !isCall(sp) {
			s.Note("spans that are no calls to a model", 1)
			return nil
		}
		s.Read++
		if err == nil {
			err = s.call(sp)
		}
		if err != nil && s.Err() == nil {
			return s.Reject(sp.file, sp.line, sp.raw, "span", err)
		}
		return s.Err()
	})
	if err != nil && s.Err() == nil && s.Read == before {
		s.Read++ // the record is refused as a whole
	}
	return err
}

// call reads a span that is a call.
func (s *state) call(sp *span) error {
	n := s.nodes[sp.key()]
	switch {
	case n.seen:
		return s.Merge(sp.file, sp.line, sp.raw, "span again", "a span of this id came before")
	case n.wraps:
		n.seen = true
		return s.Merge(sp.file, sp.line, sp.raw, "wraps calls", "it wraps several calls, which are kept")
	}
	n.seen = true
	req, err := s.request(sp)
	if err != nil {
		return err
	}
	top := n.top()
	if top.within == 0 {
		return s.Add(req)
	}
	c := s.open[top]
	if c == nil {
		c = &call{left: top.within + 1}
		s.open[top] = c
	}
	c.left--
	if n == top {
		c.req = req
	} else {
		c.inner = append(c.inner, inner{sp, req})
	}
	if c.left > 0 {
		return nil
	}
	delete(s.open, top)
	return s.finish(c)
}

// sessionNames are the attributes that name a session, by the conventions and by
// those who had none.
var sessionNames = []string{"gen_ai.conversation.id", "exgentic.session.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id"}

// session names the session of a call.
func (s *state) session(sp *span) trace.Optional[string] {
	named := func(key, v string) trace.Optional[string] {
		s.keys[key]++
		return trace.Some(v)
	}
	switch column := s.im.SessionColumn; column {
	case "":
	case SessionNone:
		return trace.Optional[string]{}
	case SessionTrace:
		return named("trace id", sp.trace)
	default:
		if v, err := sp.attributes.String(column); err == nil && v.Value != "" {
			return named(column, v.Value)
		}
		return trace.Optional[string]{}
	}
	for _, column := range sessionNames {
		if v, err := sp.attributes.String(column); err == nil && v.Value != "" {
			return named(column, v.Value)
		}
	}
	if column, v := s.sessionAround(s.nodes[sp.key()]); v != "" {
		return named(column+" of a span around it", v)
	}
	if sp.session != "" {
		return named("session_id", sp.session)
	}
	if s.traces[sp.trace] > 1 && sp.trace != "" {
		return named("trace id", sp.trace)
	}
	return trace.Optional[string]{}
}

func (s *state) sessionGuess() {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(s.keys)) {
		parts = append(parts, fmt.Sprintf("%s in %d spans", k, s.keys[k]))
	}
	if len(parts) == 0 {
		return
	}
	evidence := strings.Join(parts, ", ")
	if s.im.SessionColumn != "" {
		evidence += "; given"
	}
	s.Guess("session key", strings.Join(slices.Sorted(maps.Keys(s.keys)), ", "), "--session-column", "%s", evidence)
}
