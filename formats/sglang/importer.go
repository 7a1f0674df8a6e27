// Package sglang reads the request metrics that an SGLang server writes with
// --export-metrics-to-file (sgl-project/sglang,
// python/sglang/srt/managers/request_metrics_exporter.py): JSON lines in files
// sglang-request-metrics-YYYYMMDD_HH.log, each with the parameters of a request as
// a string of JSON, and the engine's meta_info beside it.
//
// The source leaves out: the answer, sessions (but for session_params), prefix
// blocks, and in older versions every time but durations.
package sglang

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells request metrics by the keys of their first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || h.Keys["request_parameters"] != "string" || !h.Has("prompt_tokens") && !h.Has("e2e_latency") && !h.Has("finish_reason") {
		return "", false
	}
	return "first record has request_parameters as a string, and meta_info beside it", true
}

// An Importer reads request metrics.
type Importer struct{}

// Import implements formats.Importer.
func (*Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := &state{Sink: rows.New(emit, reject)}
	s.Epoch = true
	if err := s.Objects(ctx, src, s.visit); err != nil {
		return trace.Meta{}, err
	}
	dialect := "without request_received_ts"
	switch {
	case s.timed > 0 && s.untimed > 0:
		dialect = "with request_received_ts in some rows"
	case s.timed > 0:
		dialect = "with request_received_ts"
	}
	if s.timed == 0 {
		s.Guess("clock", "none", "", "no row has request_received_ts; the file has one hour's name and rows in the order of their ends")
	}
	return s.Meta("sglang", dialect)
}

// state is one import.
type state struct {
	*rows.Sink
	timed, untimed int64
}

// fields known beside those with columns.
var known = []string{"weight_version", "total_retractions", "queue_time", "prefill_launch_delay", "prefill_launch_latency", "api_server_dispatch_finish_ts", "response_sent_to_client_ts",
	"request_finished_ts", "prefill_finished_ts", "prefill_finished_time", "forward_entry_time", "decode_throughput", "inference_time", "decode_finished_ts", "finish_reason", "cached_tokens_details",
	"spec_verify_ct", "spec_accept_rate", "spec_accept_length"}

func (s *state) visit(r *rows.Record) error {
	req := r.Place(trace.OpCompletion)
	f := r.Row
	if err := s.times(f, &req); err != nil {
		return err
	}
	var err error
	for _, c := range []struct {
		to    *trace.Optional[int64]
		field string
	}{{&req.InputTokens, "prompt_tokens"}, {&req.OutputTokens, "completion_tokens"}, {&req.CachedTokens, "cached_tokens"}} {
		if *c.to, err = f.Int(c.field); err != nil {
			return err
		}
	}
	if req.SourceID, err = f.String("id"); err != nil {
		return err
	}
	if err := finish(f, &req); err != nil {
		return err
	}
	if err := s.parameters(f, &req); err != nil {
		return err
	}
	s.Attributes(&req, "", f, known...)
	if req.Arrival.Known {
		s.timed++
	} else {
		s.untimed++
	}
	return s.Add(&req)
}

// times reads arrival, whole latency and the end of the prefill, which gives the
// first token. Times are Unix seconds.
func (s *state) times(f jsonx.Row, req *trace.Request) (err error) {
	if req.Arrival, err = rows.TakeUnits(f, time.Second, "request_received_ts"); err != nil {
		return err
	}
	if req.RecordedE2E, err = rows.TakeSpan(f, time.Second, "e2e_latency"); err != nil {
		return err
	}
	for _, name := range []string{"prefill_finished_ts", "prefill_finished_time"} {
		raw, ok := f[name]
		if !ok || !req.Arrival.Known || req.RecordedTTFT.Known || string(raw) == "null" {
			continue
		}
		at, err := rows.TakeUnits(jsonx.Row{name: raw}, time.Second, name)
		if err != nil {
			return err
		}
		if took := at.Value - req.Arrival.Value; took >= 0 && took < 24*time.Hour { // else it is on another clock
			req.RecordedTTFT = trace.Some(took)
			s.Guess("recorded TTFT", "end of the prefill", "", "%s less request_received_ts, as seen by the server", name)
		}
	}
	return nil
}

// finish reads finish_reason, an object with a type, or in some versions a string.
func finish(f jsonx.Row, req *trace.Request) error {
	raw, ok := f["finish_reason"]
	if !ok || string(raw) == "null" {
		return nil
	}
	var o struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &o.Type) != nil {
		if err := json.Unmarshal(raw, &o); err != nil {
			return jsonx.Bad("finish_reason", "neither an object with a type nor a string")
		}
	}
	if o.Type == "" {
		return nil
	}
	req.FinishReason = trace.Some(o.Type)
	req.Status = openai.Status(o.Type)
	return nil
}

// parameters reads request_parameters, a string of JSON. Prompts that are text
// become the prompt; ids of tokens stay in attributes.
func (s *state) parameters(f jsonx.Row, req *trace.Request) error {
	text, err := f.StringOnly("request_parameters")
	if err != nil {
		return err
	}
	if !text.Known {
		return nil
	}
	p, err := jsonx.Parse([]byte(text.Value))
	if err != nil {
		return &jsonx.FieldError{Field: "request_parameters", Err: err}
	}
	if prompt, err := p.StringOnly("text"); err == nil { // a batch's list of texts stays
		req.Prompt = prompt
	}
	if rid, err := p.StringOnly("rid"); err == nil && !req.SourceID.Known {
		req.SourceID = rid
	} else if err == nil && rid.Known && rid != req.SourceID {
		p["rid"] = json.RawMessage(jsonx.Quote(rid.Value))
	}
	if raw := p["stream"]; string(raw) == "true" || string(raw) == "false" {
		req.Streaming = trace.Some(string(raw) == "true")
		delete(p, "stream")
	}
	if raw, ok := p["sampling_params"]; ok {
		sampling(raw, req)
	}
	if raw, ok := p["session_params"]; ok {
		var o struct {
			ID *string `json:"id"`
		}
		if json.Unmarshal(raw, &o) == nil && o.ID != nil {
			req.Session = trace.Some(*o.ID)
		}
	}
	names := make([]string, 0, len(p))
	for k := range p {
		names = append(names, k)
	}
	s.Attributes(req, "request_parameters.", p, names...)
	return nil
}

// sampling reads the limit and the number of answers; the rest stays.
func sampling(raw json.RawMessage, req *trace.Request) {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return
	}
	if n, err := jsonx.Int(o["max_new_tokens"]); err == nil && n >= 0 {
		req.MaxOutputTokens = trace.Some(n)
	}
	if n, err := jsonx.Int(o["n"]); err == nil && n > 1 && n <= math.MaxInt32 {
		req.Choices = trace.Some(int32(n))
	}
}
