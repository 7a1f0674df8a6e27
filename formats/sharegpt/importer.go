// Package sharegpt reads and writes ShareGPT conversations: the published dump
// (anon8231489123/ShareGPT_Vicuna_unfiltered, slices of dialogues), its
// relatives with other role names, tool calls and images (LLaMA-Factory), and
// the same with OpenAI's messages.
//
// The source leaves out: times, token counts, models, who asked. Everything is
// text; a request is the question that each recorded answer answers.
package sharegpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// An Importer reads ShareGPT conversations. Nothing is left out by length.
type Importer struct {
	SingleTurn bool                  // keep only the first request of each conversation
	Count      func(text string) int // tokens of a text; nil = token counts stay unknown
	Counter    string                // the name of what counts, for the account
}

// Import implements formats.Importer. A conversation that cannot be used is
// rejected whole and counts as one row.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := &state{im: im, emit: emit, reject: reject, batch: trace.NewBatch(), ids: map[string]int{}, layouts: map[string]bool{}, roles: map[string]bool{}}
	for _, f := range src {
		if err := s.source(ctx, f); err != nil {
			return trace.Meta{}, err
		}
	}
	if err := s.flush(); err != nil {
		return trace.Meta{}, err
	}
	return s.meta(), nil
}

// state is one import. Its memory beside one conversation grows with the number
// of conversations.
type state struct {
	im      *Importer
	emit    func(*trace.Batch) error
	reject  func(*trace.RowError) error
	batch   *trace.Batch
	bytes   int // of text in batch
	next    int64
	ids     map[string]int // session ids given: how often the name was wanted
	counts  trace.Counts
	layouts map[string]bool
	roles   map[string]bool
	made    int64 // ids made for conversations without one
	again   int64 // ids that occurred before
}

func (s *state) note(what string, n int64) {
	if n == 0 {
		return
	}
	if s.counts.Notes == nil {
		s.counts.Notes = map[string]int64{}
	}
	s.counts.Notes[what] += n
}

// batchBytes bounds the text that a batch holds.
const batchBytes = 4 << 20

func (s *state) flush() error {
	if s.batch.Len() == 0 {
		return nil
	}
	err := s.emit(s.batch)
	s.batch.Reset()
	s.bytes = 0
	return err
}

func (s *state) source(ctx context.Context, f *source.Source) error {
	h, err := f.Head()
	if err != nil {
		return err
	}
	switch h.Container {
	case "parquet", "arrow":
		return trace.WithFix(fmt.Errorf("%s: %s is not read as ShareGPT", f.Name, h.Container), "export the table as JSON lines")
	case "json array":
		s.layouts["array"] = true
	default:
		s.layouts["JSON lines"] = true
	}
	return jsonx.Objects(f, h, func(o jsonx.Object) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.object(f, o)
	})
}

// object imports one conversation.
func (s *state) object(f *source.Source, o jsonx.Object) error {
	c, err := parse(o)
	if err == nil {
		s.account(c)
		err = c.turns()
	}
	if err != nil {
		s.counts.Read++
		return s.bad(f, o, err)
	}
	session := s.session(f, o, c)
	rows := c.rows(session, f.Base(), o.Line, s.im.Count)
	if s.im.SingleTurn && len(rows) > 1 {
		s.note("requests after the first of their conversation, left out", int64(len(rows)-1))
		rows = rows[:1]
	}
	s.counts.Read += int64(len(rows))
	for i := range rows {
		r := &rows[i]
		r.ID += s.next
		for j := range r.After {
			r.After[j].ID += s.next
		}
		s.batch.Append(r)
		s.bytes += len(r.Messages.Value) + len(r.OutputText.Value) + len(r.OutputMessage.Value)
		if s.batch.Len() >= trace.BatchRows || s.bytes >= batchBytes {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	s.next += int64(len(rows))
	return nil
}

func (s *state) bad(f *source.Source, o jsonx.Object, err error) error {
	e := &trace.RowError{File: f.Name, Line: o.Line, Err: err, Raw: string(o.Raw)}
	if field, ok := errors.AsType[*jsonx.FieldError](err); ok {
		e.Field, e.Err, e.Fix = field.Field, field.Err, field.Fix
		e.Reason, _, _ = strings.Cut(field.Field, "[")
		if reason, ok := errors.AsType[*reasonError](field.Err); ok {
			e.Reason = reason.class
		}
	}
	if e.Reason == "" {
		e.Reason = "not JSON"
	}
	return s.reject(e)
}

// session names the conversation: its id, with #2 and so on where that occurred
// before, or its file and position.
func (s *state) session(f *source.Source, o jsonx.Object, c *conversation) string {
	name := c.id.Value
	if !c.id.Known {
		stem, _, _ := strings.Cut(f.Base(), ".")
		name = fmt.Sprintf("%s#%d", stem, o.Line)
		s.made++
	}
	unique := name
	for s.ids[unique] > 0 {
		s.ids[name]++
		unique = fmt.Sprintf("%s#%d", name, s.ids[name])
	}
	if unique != name {
		s.again++
	}
	s.ids[unique]++
	return unique
}

// account counts what a person would count in the source, also where nothing was
// asked.
func (s *state) account(c *conversation) {
	s.note("conversations", 1)
	s.note("messages", int64(len(c.messages)))
	before := ""
	for _, m := range c.messages {
		if m.role == roleUser && before == roleUser {
			s.note("user messages right after another, in one request", 1)
		}
		if before == roleUser && m.role == roleAssistant {
			s.note("answers right after a user message", 1)
		}
		if m.empty {
			s.note("empty texts", 1)
		}
		before = m.role
		s.roles[m.name] = true
	}
	if first := c.messages[0].role; first == roleAssistant || first == roleCall {
		s.note("conversations that start with an answer (context of the first request)", 1)
	}
	if c.badTools {
		s.note("tools that are no list, kept in attributes only", 1)
	}
}

// meta says what was found.
func (s *state) meta() trace.Meta {
	s.note("conversations without an id, named by file and position", s.made)
	s.note("ids that occurred before, made unique", s.again)
	dialect := strings.Join(slices.Sorted(maps.Keys(s.layouts)), " and ")
	if len(s.roles) > 0 {
		dialect += " with " + strings.Join(slices.Sorted(maps.Keys(s.roles)), ", ")
	}
	meta := trace.Meta{Clock: trace.ClockNone, Format: "sharegpt", Dialect: dialect, Counts: s.counts}
	if s.im.Count != nil {
		meta.Guesses = append(meta.Guesses, trace.Guess{What: "token counts", Value: "texts of the messages and tools, without the model's chat template", Evidence: "counted by " + s.im.Counter, Flag: "--tokenizer"})
	}
	return meta
}

// encode encodes what always encodes, without changing < and > to escapes.
func encode(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("sharegpt: " + err.Error()) // maps, strings and JSON that was read
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}
