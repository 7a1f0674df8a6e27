package mapper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// An Importer reads sources of one container by a mapping. Turns are those of the
// source where they are mapped, else the order of arrival within a session.
type Importer struct {
	Container string // CSV, JSONL or Parquet
	Mapping   *Mapping

	sessions.Chain
	origin sessions.Origin
}

// Containers, by the names of their formats.
const (
	CSV     = "csv"
	JSONL   = "jsonl"
	Parquet = "parquet"
)

// SessionClock implements formats.SessionClock.
func (i *Importer) SessionClock() bool { return i.Mapping.Clock == trace.ClockSession }

// Sequence implements formats.Sequencer.
func (i *Importer) Sequence(b *trace.Batch) {
	if i.SessionClock() {
		i.origin.Sequence(b)
	}
	i.Chain.Sequence(b)
}

// A clock reads calendar times, and counts what it clamps.
type clock struct {
	rows.Clock
	sink *rows.Sink
}

// Import implements formats.Importer.
func (i *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := rows.New(emit, reject)
	i.Chain.Reset(false)
	i.origin = sessions.Origin{}
	i.Chain.KeepTurns = true
	m := i.Mapping
	w := &work{mapping: m, sink: s, clocks: map[string]*clock{}}
	for _, t := range targets {
		if r, ok := m.Columns[t.name]; ok {
			w.bindings = append(w.bindings, bind(t, r))
			if t.name == "arrival" {
				s.Epoch = r.Epoch || r.Unit == "iso"
			}
		}
	}
	var err error
	switch i.Container {
	case CSV:
		err = w.csv(ctx, src)
	case JSONL:
		err = w.json(ctx, src)
	default:
		err = w.parquet(ctx, src)
	}
	if err != nil {
		return trace.Meta{}, err
	}
	for _, c := range w.clocks {
		c.Note(s, "the times name no zone")
	}
	meta, err := s.Meta(i.Container, "mapped")
	if i.SessionClock() && meta.Clock == trace.ClockTrace {
		meta.Clock, meta.EpochNS, meta.Zone = trace.ClockSession, trace.Optional[int64]{}, ""
	}
	return meta, err
}

// work is one import.
type work struct {
	mapping  *Mapping
	sink     *rows.Sink
	bindings []*binding
	clocks   map[string]*clock // by zone
}

// A record is one row of a source.
type record interface {
	// cell returns the value of the column of a binding; ok is false if the row
	// has none.
	cell(b int) (v cell, ok bool)
	// attributes returns what no rule names.
	attributes() map[string]string
}

// A cell is one value: text without the quotes of its container, or JSON.
type cell struct {
	text []byte
	null bool
}

func (c cell) unknown() bool {
	if c.null {
		return true
	}
	t := bytes.TrimSpace(c.text)
	switch string(t) {
	case "", "NaN", "nan", "NULL", "null", "None", `\N`:
		return true
	}
	return false
}

// add makes a row of a record.
func (w *work) add(f *source.Source, line int64, rec record) error {
	r := trace.Request{Operation: trace.OpOther, SourceFile: trace.Some(f.Base()), SourceRow: trace.Some(line)}
	for i, b := range w.bindings {
		var v cell
		if b.rule.Constant == nil {
			c, ok := rec.cell(i)
			if !ok {
				c = cell{null: true}
			}
			b.seen = b.seen || ok
			v = c
		}
		v, ok, err := b.value(v)
		if err == nil && ok {
			err = b.fill(&r, v, w.clock(b.rule.Zone))
		}
		if err != nil {
			return &jsonx.FieldError{Field: b.column(), Err: err, Fix: b.fix()}
		}
	}
	if err := w.tie(&r); err != nil {
		return err
	}
	if w.mapping.Others != OthersDrop {
		r.Attributes = rec.attributes()
	}
	var bad *trace.RowError
	trace.CheckRow(&r, func(e *trace.RowError) {
		if bad == nil {
			bad = e
		}
	})
	if bad != nil {
		return &jsonx.FieldError{Field: bad.Field, Err: bad.Err, Fix: "correct the mapping, or the source"}
	}
	return w.sink.Add(&r)
}

// tie sets what follows from several columns.
func (w *work) tie(r *trace.Request) error {
	if _, mapped := w.mapping.Columns["operation"]; !mapped {
		switch {
		case r.Messages.Known:
			r.Operation = trace.OpChat
		case r.Prompt.Known, r.InputTokens.Known:
			r.Operation = trace.OpCompletion
		}
	}
	if r.Blocks == nil {
		return nil
	}
	rule := w.mapping.Columns["block_ids"]
	err := rows.SetBlocks(r, rule.Column, int64(rule.Tokens))
	if field, ok := errors.AsType[*jsonx.FieldError](err); ok {
		field.Fix = fmt.Sprintf("correct tokens, the size of a block, in line %d of the mapping", rule.line)
	}
	return err
}

func (w *work) clock(zone string) *clock {
	c := w.clocks[zone]
	if c == nil {
		z, _ := rows.ParseZone(zone) // checked with the mapping
		z.Flag = "zone in the mapping"
		c = &clock{Clock: z, sink: w.sink}
		w.clocks[zone] = c
	}
	return c
}

// column is what the user calls the source of the values.
func (b *binding) column() string {
	if b.rule.Column != "" {
		return b.rule.Column
	}
	return b.name
}

func (b *binding) fix() string {
	return fmt.Sprintf("it is mapped to %s in line %d of the mapping", b.name, b.rule.line)
}

// missing returns an error that names a mapped column that no row of f had.
func (w *work) missing(f *source.Source, has []string) error {
	for _, b := range w.bindings {
		if b.rule.Constant == nil && !b.seen && !b.rule.Optional {
			return &trace.RowError{File: w.mapping.name, Line: int64(b.rule.line), Field: b.name, Err: fmt.Errorf("%s has no column %q; it has: %s", f.Name, b.rule.Column, names(has)),
				Fix: "correct the name, or say optional: true if some sources lack it"}
		}
	}
	return nil
}

func names(has []string) string {
	const most = 30
	if len(has) > most {
		return strings.Join(has[:most], ", ") + ", ..."
	}
	return strings.Join(has, ", ")
}

// time sets a moment or a length of time.
func (b *binding) time(r *trace.Request, v cell, c *clock) error {
	t := bytes.TrimSpace(v.text)
	var d time.Duration
	var err error
	if b.rule.Unit == "iso" {
		d, _, err = c.Parse(t)
	} else {
		d, err = instant.Units(t, b.rule.unit())
	}
	if err != nil {
		return err
	}
	if b.kind == moment {
		r.Arrival = trace.Some(d)
		return nil
	}
	if b.rule.Since != "" {
		at, ok := r.Arrival.Get()
		if !ok {
			return errors.New("is since arrival, which this row has not")
		}
		d -= at
	}
	if d < 0 && b.rule.Since != "" {
		c.sink.Note(b.name+" below 0 (it ended before it began), set to 0", 1)
		d = 0
	}
	if d < 0 {
		return fmt.Errorf("%s is below 0", clip(v.text))
	}
	switch b.name {
	case "delay":
		r.Delay = trace.Some(d)
	case "recorded_ttft":
		r.RecordedTTFT = trace.Some(d)
	case "recorded_e2e":
		r.RecordedE2E = trace.Some(d)
	case "cancel":
		r.Cancel = trace.Some(d)
	}
	return nil
}

// blockIDs reads a JSON array of ids, or a text of ids apart by blanks or commas.
func (b *binding) blockIDs(r *trace.Request, v cell) error {
	t := bytes.TrimSpace(v.text)
	r.Blocks = []uint64{}
	if len(t) > 0 && t[0] == '[' {
		var ids []json.Number
		if err := json.Unmarshal(t, &ids); err != nil {
			return fmt.Errorf("%s is no array of ids", clip(t))
		}
		for _, id := range ids {
			if err := appendID(r, string(id)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, id := range strings.FieldsFunc(string(t), func(c rune) bool { return c == ' ' || c == ',' || c == ';' }) {
		if err := appendID(r, id); err != nil {
			return err
		}
	}
	return nil
}

func appendID(r *trace.Request, text string) error {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is no id from 0 to 2^64-1", clip([]byte(text)))
	}
	r.Blocks = append(r.Blocks, id)
	return nil
}
