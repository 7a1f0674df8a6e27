// Package aiperf reads what a run of AIPerf leaves behind (ai-dynamo/aiperf,
// docs/tutorials/working-with-profile-exports.md): inputs.json, the bodies it sent
// by session, and profile_export.jsonl, a record per request with what it measured.
//
// inputs.json leaves out times and counts; profile_export.jsonl leaves out texts,
// models and prefix blocks.
package aiperf

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells the two files by the keys of their first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" {
		return "", false
	}
	if h.Inner["data[].payloads"] == "array" {
		return "inputs.json: data with payloads by session", true
	}
	if h.Inner["metadata.request_start_ns"] == "number" && h.Has("metrics") {
		return "profile_export.jsonl: first record has metadata.request_start_ns and metrics", true
	}
	return "", false
}

// An Importer reads AIPerf's files.
type Importer struct{ sessions.Chain }

// Import implements formats.Importer.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(false)
	s := &state{Sink: rows.New(emit, reject), files: map[string]bool{}}
	s.Epoch = true
	err := s.Records(ctx, src, func(r *rows.Record) error {
		if raw, ok := r.Row["data"]; ok {
			return s.inputs(r, raw)
		}
		s.Read++
		return s.record(r)
	})
	if err != nil {
		return trace.Meta{}, err
	}
	return s.Meta("aiperf", strings.Join(slices.Sorted(maps.Keys(s.files)), " and "))
}

// state is one import.
type state struct {
	*rows.Sink
	files map[string]bool
}

// inputs reads the sessions of an inputs.json; a row is a payload, and its place
// the session's in the file.
func (s *state) inputs(r *rows.Record, raw json.RawMessage) error {
	s.files["inputs.json"] = true
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		s.Read++
		return jsonx.Bad("data", "not a list of sessions")
	}
	for i, one := range list {
		var ses struct {
			ID       *string           `json:"session_id"`
			Payloads []json.RawMessage `json:"payloads"`
		}
		if err := json.Unmarshal(one, &ses); err != nil {
			s.Read++
			if err := s.Reject(r.File, int64(i+1), string(one), "data", jsonx.Bad("data", "session %d is no object with a list of payloads", i+1)); err != nil {
				return err
			}
			continue
		}
		for k, body := range ses.Payloads {
			s.Read++
			req := r.Place(trace.OpOther)
			req.SourceRow = trace.Some(int64(i + 1))
			if ses.ID != nil {
				req.Session = trace.Some(*ses.ID)
			}
			err := openai.Request(body, &req)
			if err == nil {
				err = s.Add(&req)
			} else {
				err = s.Reject(r.File, int64(i+1), string(body), "payloads", jsonx.Bad("payloads", "payload %d is no JSON object", k))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// record reads one record of a profile_export.jsonl.
func (s *state) record(r *rows.Record) error {
	s.files["profile_export.jsonl"] = true
	req := r.Place(trace.OpChat)
	meta, err := object(r.Row, "metadata")
	if err != nil {
		return err
	}
	if meta == nil {
		return jsonx.Bad("metadata", "missing")
	}
	metrics, err := object(r.Row, "metrics")
	if err != nil {
		return err
	}
	if err := s.metadata(meta, &req); err != nil {
		return err
	}
	if err := measured(metrics, &req); err != nil {
		return err
	}
	if raw, ok := r.Row["error"]; ok && string(raw) != "null" && !req.Status.Known {
		req.Status = trace.Some(trace.StatusError)
		s.Note("requests with an error (status error)", 1)
	}
	if !req.Status.Known {
		req.Status = trace.Some(trace.StatusOK)
	}
	s.Attributes(&req, "metadata.", meta, "session_num", "conversation_id", "turn_index", "request_ack_ns", "request_end_ns", "worker_id", "record_processor_id", "benchmark_phase", "credit_issued_ns", "cancellation_time_ns")
	s.Attributes(&req, "metrics.", metrics, slices.Collect(maps.Keys(metrics))...)
	s.Attributes(&req, "", r.Row, "error")
	return s.Add(&req)
}

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

// metadata reads when the request was sent, and whose it was.
func (s *state) metadata(f jsonx.Row, req *trace.Request) (err error) {
	if req.Arrival, err = rows.TakeUnits(f, time.Nanosecond, "request_start_ns"); err != nil {
		return err
	}
	if !req.Arrival.Known {
		return jsonx.Bad("request_start_ns", "missing")
	}
	if req.SourceID, err = f.String("x_request_id"); err != nil {
		return err
	}
	if req.Session, err = f.String("x_correlation_id"); err != nil {
		return err
	}
	if string(f["benchmark_phase"]) == `"warmup"` {
		s.Note("requests of the warmup, kept", 1)
	}
	end, err := rows.TakeUnits(jsonx.Row{"request_end_ns": f["request_end_ns"]}, time.Nanosecond, "request_end_ns")
	if len(f["request_end_ns"]) > 0 && err != nil {
		return err
	}
	if end.Known && end.Value >= req.Arrival.Value {
		req.RecordedE2E = trace.Some(end.Value - req.Arrival.Value)
	}
	if string(f["was_cancelled"]) == "true" {
		req.Status = trace.Some(trace.StatusCancelled)
		at, err := rows.TakeUnits(f, time.Nanosecond, "cancellation_time_ns")
		if err != nil {
			return err
		}
		if at.Known && at.Value >= req.Arrival.Value {
			req.Cancel = trace.Some(at.Value - req.Arrival.Value)
		}
	}
	delete(f, "was_cancelled")
	return nil
}

// A metric is a value with its unit.
type metric struct {
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}

// measured reads the metrics that have columns; the others stay.
func measured(f jsonx.Row, req *trace.Request) error {
	for _, c := range []struct {
		to   *trace.Optional[int64]
		name string
	}{
		{&req.InputTokens, "input_sequence_length"}, {&req.InputTokens, "error_isl"}, {&req.OutputTokens, "output_sequence_length"}, {&req.OutputTokens, "output_token_count"}, {&req.ReasoningTokens, "reasoning_token_count"},
	} {
		raw, ok := f[c.name]
		if !ok || c.to.Known {
			continue
		}
		var m metric
		err := json.Unmarshal(raw, &m)
		n, ierr := jsonx.Int(m.Value)
		if err != nil || ierr != nil || n < 0 {
			return jsonx.Bad(c.name, "%s is no count with a unit", raw)
		}
		*c.to = trace.Some(n)
		delete(f, c.name)
	}
	if req.ReasoningTokens.Value > req.OutputTokens.Value {
		return jsonx.Bad("reasoning_token_count", "%d of %d output tokens", req.ReasoningTokens.Value, req.OutputTokens.Value)
	}
	if latency, err := span(f, "request_latency"); err != nil {
		return err
	} else if latency.Known {
		req.RecordedE2E = latency
	}
	ttft, err := span(f, "time_to_first_token")
	if ttft.Known {
		req.RecordedTTFT, req.Streaming = ttft, trace.Some(true)
	}
	return err
}

// span takes a length of time with its unit.
func span(f jsonx.Row, name string) (t trace.Optional[time.Duration], err error) {
	raw, ok := f[name]
	if !ok || string(raw) == "null" {
		return t, nil
	}
	var m metric
	if err := json.Unmarshal(raw, &m); err != nil {
		return t, jsonx.Bad(name, "%s is no value with a unit", raw)
	}
	unit, ok := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "sec": time.Second, "us": time.Microsecond, "ns": time.Nanosecond}[m.Unit]
	if !ok {
		return t, &jsonx.FieldError{Field: name, Err: fmt.Errorf("unit %q is none of ns, us, ms, s", m.Unit)}
	}
	d, err := instant.Units(m.Value, unit)
	if err != nil || d < 0 {
		return t, jsonx.Bad(name, "%s is no length of time", m.Value)
	}
	delete(f, name)
	return trace.Some(d), nil
}
