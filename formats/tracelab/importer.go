// Package tracelab reads TraceLab (uw-syfi/TraceLab, syfi_coding_trace): JSON lines,
// a row per call to a model by the coding agents Claude Code and Codex, with
// tokens, cache reads, tools, and the times of what the agent logged.
//
// The source leaves out: texts, prefix blocks, when a call was sent and when its
// first token came (only log entries have times), and which session a sub-agent
// belongs to.
package tracelab

import (
	"context"
	"encoding/json"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells TraceLab by the keys of its first row.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || !h.Has("input_tokens_total", "timing_events") {
		return "", false
	}
	return "first record has input_tokens_total and timing_events", true
}

// An Importer reads TraceLab.
type Importer struct {
	sessions.Chain

	Zone rows.Clock // of times without one
}

// Import implements formats.Importer.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(true)
	s := &state{Sink: rows.New(emit, reject), clock: im.Zone, rounds: map[round]bool{}}
	s.Epoch = true
	if err := s.Objects(ctx, src, s.visit); err != nil {
		return trace.Meta{}, err
	}
	s.clock.Note(s.Sink, "times without a zone")
	s.Guess("arrival", "latest input event", "", "the source has no time of sending; without an input event, beginning at the first output event: %s", trace.Plural(s.noInput, "row"))
	return s.Meta("tracelab", "")
}

// state is one import. Its memory grows with the number of rows.
type state struct {
	*rows.Sink
	clock   rows.Clock
	rounds  map[round]bool
	noInput int64
}

type round struct {
	session string
	index   int64
}

// An event is one entry of timing_events.
type event struct {
	Type string  `json:"event_type"`
	At   *string `json:"timestamp"`
}

func (s *state) visit(r *rows.Record) error {
	req := r.Place(trace.OpChat)
	hasInput, err := s.times(r.Row, &req)
	if err != nil {
		return err
	}
	if err := counts(r.Row, &req); err != nil {
		return err
	}
	if err := s.names(r.Row, &req); err != nil {
		return err
	}
	if !hasInput {
		s.noInput++
	}
	s.Attributes(&req, "", r.Row, "timing_events", "provider", "project", "round_index", "turn_id", "tools", "store", "trace_key", "first_input_event_type", "prefix_tokens",
		"claude_uncached_input_tokens", "current_input_event_count", "current_user_message_count", "current_tool_result_count", "current_user_message_chars", "current_tool_result_chars", "current_input_chars")
	return s.Add(&req)
}

// times finds when the call was submitted: at its latest input event, else at the
// first output event. The recorded latency ends with the last output event.
func (s *state) times(f jsonx.Row, req *trace.Request) (hasInput bool, err error) {
	var events []event
	raw := f["timing_events"]
	if err := json.Unmarshal(raw, &events); err != nil {
		return false, jsonx.Bad("timing_events", "not a list of events with times as text")
	}
	var input, first, last trace.Optional[time.Duration]
	for _, e := range events {
		if e.At == nil || *e.At == "" {
			continue
		}
		at, _, err := s.clock.Parse([]byte(*e.At))
		if err != nil {
			return false, &jsonx.FieldError{Field: "timing_events", Err: err}
		}
		if e.Type == "user_message" || e.Type == "tool_result" {
			if !input.Known || at > input.Value {
				input = trace.Some(at)
			}
			continue
		}
		if !first.Known || at < first.Value {
			first = trace.Some(at)
		}
		if !last.Known || at > last.Value {
			last = trace.Some(at)
		}
	}
	switch {
	case input.Known:
		req.Arrival = input
	case first.Known:
		req.Arrival = first
	default:
		return false, jsonx.Bad("timing_events", "no event has a time")
	}
	if last.Known && last.Value >= req.Arrival.Value {
		req.RecordedE2E = trace.Some(last.Value - req.Arrival.Value)
	} else if last.Known {
		s.Note("rows whose last output event is before the latest input event, latency unknown", 1)
	}
	return input.Known, nil
}

func counts(f jsonx.Row, req *trace.Request) (err error) {
	for _, c := range []struct {
		to    *trace.Optional[int64]
		field string
	}{
		{&req.InputTokens, "input_tokens_total"}, {&req.NewInputTokens, "newly_append_tokens"}, {&req.OutputTokens, "output_tokens"},
		{&req.ReasoningTokens, "reasoning_output_tokens"}, {&req.CachedTokens, "claude_cache_read_input_tokens"}, {&req.CacheWriteTokens, "claude_cache_creation_input_tokens"},
	} {
		if *c.to, err = f.Int(c.field); err != nil {
			return err
		}
	}
	if !req.InputTokens.Known {
		return jsonx.Bad("input_tokens_total", "missing")
	}
	if reasoning := req.ReasoningTokens; reasoning.Known && reasoning.Value > req.OutputTokens.Value {
		return jsonx.Bad("reasoning_output_tokens", "%d of %d output tokens", reasoning.Value, req.OutputTokens.Value)
	}
	// Codex logs what was cached as the prefix; Claude Code has a field of its own.
	if raw, ok := f["prefix_tokens"]; ok && !req.CachedTokens.Known && string(f["provider"]) == `"codex"` {
		n, err := jsonx.Int(raw)
		if err != nil || n < 0 {
			return jsonx.Bad("prefix_tokens", "%s is no count", raw)
		}
		req.CachedTokens = trace.Some(n)
	}
	return nil
}

func (s *state) names(f jsonx.Row, req *trace.Request) (err error) {
	if req.Session, err = f.String("session_id"); err != nil {
		return err
	}
	if req.Model, err = f.String("model"); err != nil {
		return err
	}
	if req.ClientID, err = f.String("user"); err != nil {
		return err
	}
	if req.SourceID, err = f.String("round_id"); err != nil {
		return err
	}
	if raw, ok := f["round_index"]; ok && req.Session.Known {
		n, err := jsonx.Int(raw)
		if err != nil {
			return &jsonx.FieldError{Field: "round_index", Err: err}
		}
		key := round{req.Session.Value, n}
		if s.rounds[key] {
			s.Note("rows whose session and round_index came before, kept", 1)
		}
		s.rounds[key] = true
	}
	return nil
}
