// Package jsonl reads and writes canonical traces as JSON lines: a first line with
// what the trace says of itself, then a row a line with the canonical column names,
// as trace head prints them. Nothing is lost either way.
package jsonl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells canonical rows by the keys of the first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	switch {
	case h.Container != "json" && h.Container != "json array":
		return "", false
	case h.Keys["reprise"] == "object" && h.Inner["reprise.schema"] == "number":
		return "first line has the key reprise", true
	case h.Keys["id"] == "number" && h.Keys["operation"] == "string" && (h.Has("source_row") || h.Has("arrival_ns") || h.Has("origin_id")):
		return "first record has canonical columns", true
	}
	return "", false
}

// A header is the first line.
type header struct {
	Reprise *about `json:"reprise"`
}

type about struct {
	Schema   int           `json:"schema"`
	Clock    string        `json:"clock"`
	Format   string        `json:"format,omitempty"`
	Dialect  string        `json:"dialect,omitempty"`
	EpochNS  *int64        `json:"epoch_ns,omitempty"`
	OriginNS *int64        `json:"origin_ns,omitempty"`
	Zone     string        `json:"zone,omitempty"`
	TickNS   *int64        `json:"tick_ns,omitempty"`
	Guesses  []trace.Guess `json:"guesses,omitempty"`
	History  []trace.Step  `json:"history,omitempty"`
}

// An Exporter writes a header and the rows.
type Exporter struct{}

// Export implements formats.Exporter.
func (Exporter) Export(ctx context.Context, meta trace.Meta, rows iter.Seq2[trace.Request, error], w io.Writer) ([]string, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	err := e.Encode(header{&about{trace.SchemaVersion, meta.Clock, meta.Format, meta.Dialect, pointer(meta.EpochNS), pointer(meta.OriginNS), meta.Zone, pointer(meta.TickNS), meta.Guesses, meta.History}})
	if err != nil {
		return nil, err
	}
	var line []byte
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if line, err = trace.AppendJSON(line[:0], &r); err != nil {
			return nil, err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return nil, err
		}
	}
	return nil, out.Flush()
}

// An Importer reads what Exporter writes, and rows alone. Rows keep their ids, turns
// and edges; their order is made anew.
type Importer struct {
	sessions.Origin

	about *about // of the first source; nil before it is read, or if it has none
	ids   idSet
	named map[int64]int64 // ids that After named and that have not come yet, to the line
}

// SessionClock implements formats.SessionClock.
func (i *Importer) SessionClock() bool { return i.about != nil && i.about.Clock == trace.ClockSession }

// Sequence implements formats.Sequencer: sessions with clocks of their own begin at 0.
func (i *Importer) Sequence(b *trace.Batch) {
	if i.SessionClock() {
		i.Origin.Sequence(b)
	}
}

// Import implements formats.Importer. Its memory grows with the number of gaps in the
// ids.
func (i *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	*i = Importer{named: map[int64]int64{}}
	s := rows.New(emit, reject)
	for n, f := range src {
		has, err := i.head(f, n == 0)
		if err != nil {
			return trace.Meta{}, err
		}
		err = s.Records(ctx, []*source.Source{f}, func(r *rows.Record) error {
			if has {
				has = false
				return nil
			}
			s.Read++
			return i.row(s, r)
		})
		if err != nil {
			return trace.Meta{}, err
		}
	}
	for id, line := range i.named {
		return trace.Meta{}, trace.WithFix(fmt.Errorf("line %d: after names id %d, which no row has", line, id), "keep the rows that others come after, or leave out after")
	}
	return i.meta(s)
}

var errFirst = errors.New("enough")

// head reads the header of a file, if it has one.
func (i *Importer) head(f *source.Source, first bool) (has bool, err error) {
	h, err := f.Head()
	if err != nil || h.Container == "parquet" || h.Container == "arrow" {
		return false, err // Records says more
	}
	var raw json.RawMessage
	err = jsonx.Objects(f, h, func(o jsonx.Object) error {
		if row, err := jsonx.Parse(o.Raw); o.Err == nil && err == nil {
			raw, has = row["reprise"]
		}
		return errFirst
	})
	if err != nil && err != errFirst {
		return false, err
	}
	if !has {
		return false, nil
	}
	if err := i.parseHead(raw, first); err != nil {
		return false, trace.WithFix(fmt.Errorf("%s: first line: reprise: %w", f.Name, err), "take the line as trace export wrote it, or leave it out")
	}
	return true, nil
}

func (i *Importer) parseHead(raw json.RawMessage, first bool) error {
	var a about
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return err
	}
	switch {
	case a.Schema < 1 || a.Schema > trace.SchemaVersion:
		return fmt.Errorf("schema version %d, this program reads 1 to %d", a.Schema, trace.SchemaVersion)
	case a.Clock != trace.ClockTrace && a.Clock != trace.ClockSession && a.Clock != trace.ClockNone:
		return fmt.Errorf("clock %q is none of trace, session, none", a.Clock)
	case first:
		i.about = &a
	case i.about == nil || i.about.Clock != a.Clock:
		return errors.New("another clock than that of the first file")
	}
	return nil
}

func (i *Importer) row(s *rows.Sink, rec *rows.Record) error {
	r, err := trace.ParseJSON(rec.Raw)
	if err != nil {
		return err
	}
	trace.CheckRow(&r, func(e *trace.RowError) {
		if err == nil {
			err = e
		}
	})
	if err != nil {
		if e, ok := errors.AsType[*trace.RowError](err); ok {
			return &jsonx.FieldError{Field: e.Field, Err: e.Err}
		}
		return err
	}
	if r.Arrival.Known && i.about != nil && i.about.Clock == trace.ClockNone {
		return jsonx.Bad("arrival_ns", "the header says that the trace has no clock")
	}
	for _, d := range r.After {
		if d.ID == r.ID || d.Kind != trace.AfterTurn && d.Kind != trace.AfterSpawn && d.Kind != trace.AfterJoin {
			return jsonx.Bad("after", "id %d, kind %q: no edge to another row", d.ID, d.Kind)
		}
	}
	if !i.ids.add(r.ID) {
		return jsonx.Bad("id", "%d occurs twice", r.ID)
	}
	delete(i.named, r.ID)
	for _, d := range r.After {
		if _, known := i.named[d.ID]; !known && !i.ids.has(d.ID) {
			i.named[d.ID] = rec.Line
		}
	}
	return s.Keep(&r)
}

func (i *Importer) meta(s *rows.Sink) (trace.Meta, error) {
	meta, err := s.Meta("", "")
	a := i.about
	if err != nil {
		return meta, err
	}
	if a == nil {
		evidence := "no header; arrivals are taken for those of one clock"
		if meta.Clock == trace.ClockNone {
			evidence = "no header, and no row has an arrival"
		}
		meta.Guesses = append(meta.Guesses, trace.Guess{What: "clock", Value: meta.Clock, Evidence: evidence})
		return meta, nil
	}
	if meta.Clock == trace.ClockTrace { // rows have times
		meta.Clock = a.Clock
	}
	meta.Format, meta.Dialect, meta.Zone, meta.Guesses, meta.History = a.Format, a.Dialect, a.Zone, a.Guesses, a.History
	meta.EpochNS, meta.OriginNS, meta.TickNS = optional(a.EpochNS), optional(a.OriginNS), optional(a.TickNS)
	return meta, nil
}

func pointer(v trace.Optional[int64]) *int64 {
	if !v.Known {
		return nil
	}
	return &v.Value
}

func optional(v *int64) trace.Optional[int64] {
	if v == nil {
		return trace.Optional[int64]{}
	}
	return trace.Some(*v)
}
