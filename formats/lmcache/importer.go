// Package lmcache reads the agent traces of LMCache (LMCache/lmcache-agent-trace):
// JSON lines, a file per session, with the whole prompt so far and the answer as
// text; and their relatives (lmcache-agentic-traces) with messages, output length
// and the gap before each turn.
//
// The source leaves out: token counts (but for output_length), models, latencies.
package lmcache

import (
	"context"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells LMCache's traces by the keys of their first row.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || !h.Has("input", "session_id") {
		return "", false
	}
	switch {
	case h.Keys["input"] == "string" && h.Has("timestamp", "output"):
		return "first record has timestamp, input, output and session_id", true
	case h.Keys["input"] == "array" && h.Has("output_length"):
		return "first record has messages as input, output_length and session_id", true
	}
	return "", false
}

// An Importer reads LMCache's traces.
type Importer struct {
	sessions.Chain

	TimeUnit time.Duration         // of timestamp; 0 = microseconds
	Count    func(text string) int // tokens of a text; nil = counts stay unknown
	Counter  string                // the name of what counts, for the account
}

// Import implements formats.Importer.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(false)
	s := &state{Sink: rows.New(emit, reject), im: im, unit: im.TimeUnit, dialects: map[string]bool{}}
	why := "given"
	if s.unit == 0 {
		s.unit, why = time.Microsecond, "the format says so: Unix time in microseconds"
	}
	s.Epoch = true
	if err := s.Objects(ctx, src, s.visit); err != nil {
		return trace.Meta{}, err
	}
	if s.times {
		s.Guess("unit of timestamp", rows.Unit(s.unit), "--time-unit", "%s", why)
	}
	if im.Count != nil {
		s.Guess("token counts", "texts of prompts and answers", "--tokenizer", "counted by %s", im.Counter)
	}
	switch {
	case s.dialects["text"] && s.dialects["messages"]:
		return s.Meta("lmcache", "text and messages")
	case s.dialects["messages"]:
		return s.Meta("lmcache", "messages")
	}
	return s.Meta("lmcache", "text")
}

// state is one import.
type state struct {
	*rows.Sink
	im       *Importer
	unit     time.Duration
	times    bool
	dialects map[string]bool
}

func (s *state) visit(r *rows.Record) error {
	req := r.Place(trace.OpCompletion)
	if err := s.content(r.Row, &req); err != nil {
		return err
	}
	var err error
	if req.Session, err = r.Row.String("session_id"); err != nil {
		return err
	}
	if req.Arrival, err = rows.TakeUnits(r.Row, s.unit, "timestamp"); err != nil {
		return err
	}
	if req.Delay, err = rows.TakeSpan(r.Row, time.Second, "pre_gap"); err != nil {
		return err
	}
	if req.OutputTokens, err = r.Row.Int("output_length"); err != nil {
		return err
	}
	if req.Model, err = r.Row.String("model"); err != nil {
		return err
	}
	s.count(&req)
	if req.Messages.Known {
		s.dialects["messages"] = true
	} else {
		s.dialects["text"] = true
	}
	s.times = s.times || req.Arrival.Known
	s.Attributes(&req, "", r.Row)
	return s.Add(&req)
}

// content reads the prompt, which is text or a list of messages, and the answer.
func (s *state) content(f jsonx.Row, req *trace.Request) (err error) {
	raw, ok := f["input"]
	switch {
	case !ok || string(raw) == "null":
		return jsonx.Bad("input", "missing")
	case raw[0] == '[':
		req.Operation = trace.OpChat
		req.MessagesMode = trace.Some(trace.MessagesFull)
		req.Messages, err = f.Array("input")
	default:
		req.Prompt, err = f.String("input")
	}
	if err != nil {
		return err
	}
	if raw, ok := f["output"]; ok && strings.HasPrefix(string(raw), "{") {
		req.OutputMessage, err = f.Object("output")
		return err
	}
	if req.OutputText, err = f.String("output"); err != nil {
		return err
	}
	if req.OutputText.Known && req.OutputText.Value == "" {
		s.Note("answers that are empty, kept", 1)
	}
	return nil
}

// count counts the tokens of texts where the source does not. Messages are not
// counted: their template is not known.
func (s *state) count(req *trace.Request) {
	if s.im.Count == nil {
		return
	}
	if req.Prompt.Known {
		req.InputTokens = trace.Some(int64(s.im.Count(req.Prompt.Value)))
	}
	if req.OutputText.Known && !req.OutputTokens.Known {
		req.OutputTokens = trace.Some(int64(s.im.Count(req.OutputText.Value)))
	}
}
