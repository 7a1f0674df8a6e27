package weka

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/sessions"
	"reprise/trace"
)

// An Exporter writes WEKA sessions, one JSON object per line, each with a clock
// of its own. Of a trace that was imported from WEKA it writes what was read,
// but for rejected and merged rows; ids of a session that is not as it was
// imported keep their namespace, and its scope becomes global.
type Exporter struct{}

// Export implements formats.Exporter. It holds one session at a time; rows of
// sessions that overlap, on one clock for all, are sorted first.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) (lost []string, err error) {
	e := &export{out: bufio.NewWriterSize(w, 1<<16), ours: meta.Format == "weka", lost: map[string]int64{}}
	err = sessions.Each(meta.Clock, rows, func(r *trace.Request) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return e.add(r)
	})
	if err == nil {
		err = e.end()
	}
	if err != nil {
		return nil, err
	}
	for _, what := range slices.Sorted(maps.Keys(e.lost)) {
		lost = append(lost, fmt.Sprintf("%s of %d rows", what, e.lost[what]))
	}
	if e.totals > 0 {
		lost = append(lost, fmt.Sprintf("totals of %d sessions, which no longer match their rows", e.totals))
	}
	if meta.Clock == trace.ClockTrace {
		lost = append(lost, fmt.Sprintf("start times of %d sessions: each begins at 0 on its own clock", e.sessions))
	}
	return lost, e.out.Flush()
}

type export struct {
	out      *bufio.Writer
	ours     bool // the trace came from this format, so its attributes are fields
	lost     map[string]int64
	totals   int64
	sessions int64
	rows     []trace.Request // of the session at hand
}

func (e *export) add(r *trace.Request) error {
	if len(e.rows) > 0 && (!r.Session.Known || e.rows[0].Session != r.Session) {
		if err := e.end(); err != nil {
			return err
		}
	}
	if !e.ours {
		e.losses(r)
		if !r.InputTokens.Known {
			return nil
		}
	}
	e.rows = append(e.rows, *r)
	return nil
}

// losses counts what a row of another format has and this one cannot hold.
func (e *export) losses(r *trace.Request) {
	if !r.InputTokens.Known {
		e.lost["whole row (no input_tokens)"]++
		return
	}
	for what, has := range map[string]bool{
		"client_id": r.ClientID.Known, "choices": r.Choices.Known, "status": r.Status.Known, "source_id": r.SourceID.Known,
		"recorded answer": r.OutputText.Known || r.OutputMessage.Known, "literal content": r.Prompt.Known || r.Messages.Known || r.Body.Known || r.Extra.Known,
		"cached tokens": r.CachedTokens.Known || r.CacheWriteTokens.Known, "reasoning tokens": r.ReasoningTokens.Known,
		"max_output_tokens": r.MaxOutputTokens.Known, "attributes": len(r.Attributes) > 0, "media": len(r.Media) > 0,
		"unknown block ids (written as none)": r.Blocks == nil, "unknown streaming (written as n)": !r.Streaming.Known,
	} {
		if has {
			e.lost[what]++
		}
	}
}

// end writes the session at hand.
func (e *export) end() error {
	if len(e.rows) == 0 {
		return nil
	}
	e.sessions++
	if e.ours {
		slices.SortStableFunc(e.rows, func(a, b trace.Request) int { return cmp.Compare(a.ID, b.ID) })
	}
	s := &written{export: e, agents: map[string]*agent{}}
	if err := s.prepare(); err != nil {
		return err
	}
	for i := range e.rows {
		if err := s.entry(&e.rows[i]); err != nil {
			return err
		}
	}
	e.rows = e.rows[:0]
	line, err := s.line()
	if err != nil {
		return err
	}
	_, err = e.out.Write(append(line, '\n'))
	return err
}

// written is one session being written.
type written struct {
	*export
	fields  jsonx.Row
	about   imported
	start   time.Duration // of a trace with one clock: when the session began
	size    trace.Optional[int32]
	spaced  bool // ids are in the space that about names
	entries []any
	agents  map[string]*agent
	in, out int64
}

// agent is a marker with its requests.
type agent struct {
	fields   jsonx.Row
	base     time.Duration
	requests []json.RawMessage
}

// prepare finds the session's own fields; those of another format, or of a
// session that lost its first row, are made.
func (s *written) prepare() error {
	first := &s.rows[0]
	for i := range s.rows {
		r := &s.rows[i]
		if at, ok := r.Arrival.Get(); ok && (i == 0 || at < s.start) {
			s.start = at
		}
		if r.Blocks != nil && !s.size.Known {
			s.size = r.BlockTokens
		}
		if text, ok := r.Attributes[attrSession]; ok && s.ours && s.fields == nil {
			if err := json.Unmarshal([]byte(text), &s.fields); err != nil {
				return fmt.Errorf("row %d: attribute %s: %w", r.ID, attrSession, err)
			}
			if err := unmarshal(r.Attributes[attrImport], &s.about); err != nil {
				return fmt.Errorf("row %d: attribute %s: %w", r.ID, attrImport, err)
			}
		}
	}
	s.spaced = s.about.Ordinal > 0 && s.inSpace()
	id := first.Session.Or(fmt.Sprintf("request-%d", first.ID))
	if s.fields == nil {
		s.fields = jsonx.Row{"id": quote(id), "block_size": quote(s.size.Or(DefaultBlockTokens)), "hash_id_scope": quote("global"), "models": quote(s.models())}
		return nil
	}
	if !s.about.NoID {
		s.fields["id"] = quote(id)
	}
	if s.about.Ordinal > 0 && !s.spaced {
		s.fields["hash_id_scope"] = quote("global")
	}
	s.start = -s.about.Start
	return nil
}

func unmarshal(text string, to any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), to)
}

func (s *written) inSpace() bool {
	for i := range s.rows {
		for _, id := range s.rows[i].Blocks {
			if _, ok := unspaced(id, s.about.Ordinal, s.about.Permuted); !ok {
				return false
			}
		}
	}
	return true
}

func (s *written) models() []string {
	names := []string{}
	for i := range s.rows {
		if m, ok := s.rows[i].Model.Get(); ok && !slices.Contains(names, m) {
			names = append(names, m)
		}
	}
	return names
}

// quote encodes what always encodes.
func quote(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// entry adds a row to the session's list or to its sub-agent.
func (s *written) entry(r *trace.Request) error {
	if s.ours {
		if err := s.empties(r.Attributes[attrBefore]); err != nil {
			return err
		}
	}
	name, nested := r.Agent.Get()
	if !nested {
		s.entries = append(s.entries, s.request(r, 0))
	} else {
		a := s.agents[name]
		if a == nil {
			var err error
			if a, err = s.agent(name, r); err != nil {
				return err
			}
			s.agents[name] = a
			s.entries = append(s.entries, a)
		}
		a.requests = append(a.requests, s.request(r, a.base))
	}
	if s.ours {
		return s.empties(r.Attributes[attrAfter])
	}
	return nil
}

// empties adds sub-agents without requests.
func (s *written) empties(text string) error {
	var list []jsonx.Row
	if err := unmarshal(text, &list); err != nil {
		return fmt.Errorf("attribute %s: %w", attrBefore, err)
	}
	for _, f := range list {
		s.entries = append(s.entries, &agent{fields: f, requests: []json.RawMessage{}})
	}
	return nil
}

// agent begins a sub-agent with its first row.
func (s *written) agent(name string, r *trace.Request) (*agent, error) {
	a := &agent{base: r.Arrival.Value - s.start}
	if text, ok := r.Attributes[attrSubagent]; ok && s.ours {
		if err := json.Unmarshal([]byte(text), &a.fields); err != nil {
			return nil, fmt.Errorf("row %d: attribute %s: %w", r.ID, attrSubagent, err)
		}
		if t, ok, err := peek(a.fields, "t").Float("t"); ok && err == nil {
			a.base = max(toDuration(t), -s.start)
		}
	} else {
		null := json.RawMessage("null")
		a.fields = jsonx.Row{"t": quote(seconds(a.base)), "type": quote("subagent"), "agent_id": quote(name),
			"subagent_type": null, "duration_ms": null, "total_tokens": null, "tool_use_count": null, "status": null}
	}
	if s.about.Nested == Absolute {
		a.base = 0
	}
	return a, nil
}

// line encodes the session.
func (s *written) line() ([]byte, error) {
	if !s.totalsHold() {
		delete(s.fields, "totals")
		s.totals++
	}
	list := make([]json.RawMessage, len(s.entries))
	for i, e := range s.entries {
		switch e := e.(type) {
		case json.RawMessage:
			list[i] = e
		case *agent:
			e.fields["requests"] = joined(e.requests)
			list[i] = ordered(e.fields, "t", "type", "agent_id", "subagent_type", "duration_ms", "total_tokens", "tool_use_count", "status", "requests", "models", "tool_tokens", "system_tokens")
		}
	}
	s.fields["requests"] = joined(list)
	return ordered(s.fields, "id", "models", "block_size", "hash_id_scope", "tool_tokens", "system_tokens", "requests", "totals"), nil
}

// totalsHold tells whether the session's totals, if it has some, are those of
// the rows that are written.
func (s *written) totalsHold() bool {
	raw, ok := s.fields["totals"]
	if !ok {
		return true
	}
	var t struct {
		Combined *struct{ Input, Output int64 } `json:"combined_tokens"`
	}
	if json.Unmarshal(raw, &t) != nil || t.Combined == nil {
		return true
	}
	return t.Combined.Input == s.in && t.Combined.Output == s.out
}
