// Package dynamo reads the request trace of NVIDIA Dynamo (ai-dynamo/dynamo,
// lib/llm/src/request_trace/types.rs, schema dynamo.request.trace.v1): JSON lines
// of finished requests, their payloads and tool calls, in rotating gzip segments,
// bare as newer sinks write them or wrapped as older ones did.
//
// The source leaves out: when a client gave up, and rows that its sink dropped.
package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// schema is the beginning of the schema's name.
const schema = "dynamo.request.trace."

// Detect tells a request trace by the schema of its first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" {
		return "", false
	}
	switch {
	case strings.HasPrefix(h.Texts["schema"], schema):
		return "first record has the schema " + h.Texts["schema"], true
	case h.Keys["event"] == "object" && strings.HasPrefix(h.Texts["event.schema"], schema):
		return "first record has an event of the schema " + h.Texts["event.schema"], true
	}
	return "", false
}

// An Importer reads request traces.
type Importer struct{ sessions.Chain }

// Import implements formats.Importer. It reads the sources twice: payloads and
// parents of sessions may stand anywhere. What waits for its other half is held,
// and so are the names of requests and sessions.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(true)
	s := &state{Sink: rows.New(emit, reject), payloads: map[string]bool{}, parents: map[string]string{}, waiting: map[string]*held{}, early: map[string]*payload{}}
	s.Epoch = true
	if err := s.survey(ctx, src); err != nil {
		return trace.Meta{}, err
	}
	if err := s.Objects(ctx, src, s.visit); err != nil {
		return trace.Meta{}, err
	}
	if err := s.rest(); err != nil {
		return trace.Meta{}, err
	}
	dialect := "bare records"
	switch {
	case s.wrapped && s.bare:
		dialect = "bare and wrapped records"
	case s.wrapped:
		dialect = "wrapped records"
	}
	return s.Meta("dynamo", dialect)
}

// state is one import.
type state struct {
	*rows.Sink
	payloads map[string]bool     // request ids that have a payload somewhere
	parents  map[string]string   // session to the one that started it
	waiting  map[string]*held    // requests whose payload is still to come
	early    map[string]*payload // payloads whose request is still to come

	wrapped, bare bool
}

// held is a row that waits for its payload.
type held struct{ req trace.Request }

type payload struct {
	file *source.Source
	line int64
	raw  string
	row  jsonx.Row
}

// unwrap takes the event out of a record of an older sink.
func unwrap(r *rows.Record) (row jsonx.Row, wrapped bool, err error) {
	raw, ok := r.Row["event"]
	if _, has := r.Row["schema"]; !ok || has || len(raw) == 0 || raw[0] != '{' {
		return r.Row, false, nil
	}
	row, err = jsonx.Parse(raw)
	return row, true, err
}

// object takes an object of a row; nil if there is none.
func object(r jsonx.Row, name string) (jsonx.Row, error) {
	raw, ok := r[name]
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	delete(r, name)
	var o jsonx.Row
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, jsonx.Bad(name, "not an object")
	}
	return o, nil
}

// survey finds which requests have payloads and which sessions have parents.
func (s *state) survey(ctx context.Context, src []*source.Source) error {
	first := rows.New(func(*trace.Batch) error { return nil }, func(*trace.RowError) error { return nil })
	return first.Objects(ctx, src, func(r *rows.Record) error {
		row, _, err := unwrap(r)
		if err != nil {
			return nil
		}
		if string(row["event_type"]) == `"request_payload"` {
			p, err := object(row, "payload")
			if id, ierr := p.String("request_id"); err == nil && ierr == nil && id.Known {
				s.payloads[id.Value] = true
			}
		}
		c, err := object(row, "agent_context")
		if err != nil {
			return nil
		}
		a, err := agentOf(c)
		if err == nil && a.session.Known && a.parent.Known && a.parent.Value != "" {
			s.parents[a.session.Value] = a.parent.Value
		}
		return nil
	})
}

// An agent is what agent_context says, under the names of three generations.
type agent struct{ session, parent trace.Optional[string] }

func agentOf(c jsonx.Row) (a agent, err error) {
	if a.session, err = c.String("session_id", "trajectory_id", "program_id"); err != nil {
		return a, err
	}
	a.parent, err = c.String("parent_session_id", "parent_trajectory_id", "parent_program_id")
	return a, err
}

// maxDepth is how many parents are followed, for those that go round.
const maxDepth = 1000

// rootOf follows parents to the first session; where they go round, to where the
// circle closes.
func (s *state) rootOf(session string) string {
	seen := map[string]bool{}
	for range maxDepth {
		seen[session] = true
		parent, ok := s.parents[session]
		if !ok || seen[parent] {
			break
		}
		session = parent
	}
	return session
}

func (s *state) visit(r *rows.Record) error {
	row, wrapped, err := unwrap(r)
	if err != nil {
		return &jsonx.FieldError{Field: "event", Err: err}
	}
	if wrapped {
		s.wrapped = true
		if at, ok := r.Row["timestamp"]; ok {
			row["sink_timestamp"] = at
		}
	} else {
		s.bare = true
	}
	kind, err := row.String("event_type")
	if err != nil {
		return err
	}
	switch kind.Value {
	case "request_end":
		return s.request(r, row)
	case "request_payload":
		return s.payload(r, row)
	case "tool_start", "tool_end", "tool_error":
		return s.Merge(r.File, r.Line, string(r.Raw), "tool event", "a tool's event; the wait for tools is the delay of the request after it")
	case "":
		return jsonx.Bad("event_type", "missing")
	}
	return jsonx.Bad("event_type", "%q is no event of the request trace", kind.Value)
}

// request reads a request_end.
func (s *state) request(r *rows.Record, row jsonx.Row) error {
	req := r.Place(trace.OpChat)
	f, err := object(row, "request")
	if err != nil {
		return err
	}
	if f == nil {
		return jsonx.Bad("request", "missing")
	}
	if err := times(row, f, &req); err != nil {
		return err
	}
	if err := counts(f, &req); err != nil {
		return err
	}
	if err := s.replay(f, &req); err != nil {
		return err
	}
	if err := finish(f, &req); err != nil {
		return err
	}
	if err := s.agent(row, &req); err != nil {
		return err
	}
	s.Attributes(&req, "request.", f, "x_request_id", "prefill_wait_time_ms", "prefill_time_ms", "avg_itl_ms", "kv_hit_rate", "kv_transfer_estimated_latency_ms", "queue_depth", "worker", "finish_reason_metadata")
	delete(row, "schema")
	s.Attributes(&req, "", row, "event_time_unix_ms", "event_source", "sink_timestamp")
	id, known := req.SourceID.Get()
	if !known || !s.payloads[id] {
		return s.Add(&req)
	}
	if p := s.early[id]; p != nil {
		delete(s.early, id)
		return s.join(&req, p)
	}
	before := s.waiting[id]
	s.waiting[id] = &held{req}
	if before != nil {
		s.Note("requests whose id comes again before their payload", 1)
		return s.Add(&before.req)
	}
	return nil
}

// times reads when the request came and what was measured. Where its arrival is
// not there, it is the time of the event less the whole time.
func times(row, f jsonx.Row, req *trace.Request) (err error) {
	if req.Arrival, err = rows.TakeUnits(f, time.Millisecond, "request_received_ms"); err != nil {
		return err
	}
	if req.RecordedE2E, err = rows.TakeSpan(f, time.Millisecond, "total_time_ms"); err != nil {
		return err
	}
	if req.RecordedTTFT, err = rows.TakeSpan(f, time.Millisecond, "ttft_ms"); err != nil {
		return err
	}
	if req.Arrival.Known {
		return nil
	}
	raw, ok := row["event_time_unix_ms"]
	if !ok || !req.RecordedE2E.Known {
		return jsonx.Bad("request_received_ms", "missing, and no event_time_unix_ms with total_time_ms instead")
	}
	at, err := rows.TakeUnits(jsonx.Row{"event_time_unix_ms": raw}, time.Millisecond, "event_time_unix_ms")
	if err != nil {
		return err
	}
	req.Arrival = trace.Some(at.Value - req.RecordedE2E.Value)
	return nil
}

func counts(f jsonx.Row, req *trace.Request) (err error) {
	for _, c := range []struct {
		to    *trace.Optional[int64]
		field string
	}{{&req.InputTokens, "input_tokens"}, {&req.OutputTokens, "output_tokens"}, {&req.CachedTokens, "cached_tokens"}} {
		if *c.to, err = f.Int(c.field); err != nil {
			return err
		}
	}
	if req.SourceID, err = f.String("request_id"); err != nil {
		return err
	}
	req.Model, err = f.String("model")
	return err
}

// replay reads the prefix blocks. Their hashes chain: equal ones have equal
// prefixes.
func (s *state) replay(f jsonx.Row, req *trace.Request) error {
	p, err := object(f, "replay")
	if err != nil || p == nil {
		return err
	}
	length, err := p.Int("input_length")
	if err != nil {
		return err
	}
	if !req.InputTokens.Known {
		req.InputTokens = length
	}
	size, err := p.Int("trace_block_size")
	if err != nil {
		return err
	}
	if req.Blocks, err = p.IDs("input_sequence_hashes"); err != nil {
		return err
	}
	s.Attributes(req, "request.replay.", p, "kv_hints")
	if req.Blocks == nil {
		return nil
	}
	if size.Value < 1 || size.Value > math.MaxInt32 {
		return jsonx.Bad("trace_block_size", "%d with %d hashes", size.Value, len(req.Blocks))
	}
	whole := *req
	if length.Known {
		whole.InputTokens = length // what the hashes cover
	}
	if err := rows.SetBlocks(&whole, "input_sequence_hashes", size.Value); err != nil {
		s.Note("rows with more hashes than the prompt has room for, kept", 1)
	}
	req.BlockTokens, req.BlockTail = whole.BlockTokens, whole.BlockTail
	if length.Known && length.Value != req.InputTokens.Value {
		s.Note("rows whose replay.input_length is not input_tokens, kept in attributes", 1)
		req.Attributes = with(req.Attributes, "request.replay.input_length", fmt.Sprint(length.Value))
		req.BlockTail = trace.Some(trace.TailOther)
	}
	return nil
}

func with(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// finish reads how the request ended.
func finish(f jsonx.Row, req *trace.Request) error {
	var meta struct {
		Finish *string `json:"finish_reason"`
	}
	if raw, ok := f["finish_reason_metadata"]; ok && string(raw) != "null" {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return jsonx.Bad("finish_reason_metadata", "not an object with a finish_reason")
		}
	}
	if meta.Finish != nil {
		req.FinishReason = trace.Some(*meta.Finish)
		req.Status = openai.Status(*meta.Finish)
	}
	return nil
}

// agent reads the session: the one at the root of the parents, with the request's
// own session as the agent in it.
func (s *state) agent(row jsonx.Row, req *trace.Request) error {
	c, err := object(row, "agent_context")
	if err != nil || c == nil {
		return err
	}
	a, err := agentOf(c)
	if err != nil {
		return err
	}
	if a.session.Known {
		root := s.rootOf(a.session.Value)
		req.Session = trace.Some(root)
		if root != a.session.Value {
			req.Agent = a.session
		}
	}
	if a.parent.Known {
		req.Attributes = with(req.Attributes, "agent_context.parent", jsonx.Quote(a.parent.Value))
	}
	s.Attributes(req, "agent_context.", c, "session_final", "kv_hints", "session_type_id", "trajectory_final", "workflow_type_id", "workflow_id")
	return nil
}
