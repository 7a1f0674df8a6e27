// Package rows gathers what an importer of one row per record makes: batches with
// running ids, rejected rows, and the account of an import.
package rows

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// batchBytes bounds the text that a batch holds.
const batchBytes = 4 << 20

// A Sink takes the rows of one import. An error of emit or reject stays: all calls
// after it return it.
type Sink struct {
	Read  int64 // rows of the source, as a person counts them
	Epoch bool  // arrivals are Unix times
	Zone  string

	emit    func(*trace.Batch) error
	reject  func(*trace.RowError) error
	err     error
	batch   *trace.Batch
	bytes   int
	next    int64
	times   int64
	tick    trace.Tick
	notes   map[string]int64
	guesses []trace.Guess
	unknown map[string]int64
}

// New returns a sink for the two functions that an importer is called with.
func New(emit func(*trace.Batch) error, reject func(*trace.RowError) error) *Sink {
	return &Sink{emit: emit, reject: reject, batch: trace.NewBatch(), notes: map[string]int64{}, unknown: map[string]int64{}}
}

// Next returns the id that the next row gets.
func (s *Sink) Next() int64 { return s.next }

// Add gives a row its id and keeps a copy of it.
func (s *Sink) Add(r *trace.Request) error {
	if s.err == nil {
		r.ID = s.next
		s.next++
	}
	return s.Keep(r)
}

// Keep keeps a copy of a row with the id that it has.
func (s *Sink) Keep(r *trace.Request) error {
	if s.err != nil {
		return s.err
	}
	if at, ok := r.Arrival.Get(); ok {
		s.times++
		s.tick.Add(at)
	}
	s.batch.Append(r)
	s.bytes += len(r.Prompt.Value) + len(r.Messages.Value) + len(r.Body.Value) + len(r.OutputText.Value) + len(r.OutputMessage.Value) + 8*len(r.Blocks)
	for k, v := range r.Attributes {
		s.bytes += len(k) + len(v)
	}
	if s.batch.Len() >= trace.BatchRows || s.bytes >= batchBytes {
		s.flush()
	}
	return s.err
}

func (s *Sink) flush() {
	if s.err == nil && s.batch.Len() > 0 {
		s.err = s.emit(s.batch)
	}
	s.batch.Reset()
	s.bytes = 0
}

// Err returns the error that ended the import.
func (s *Sink) Err() error { return s.err }

// Reject refuses a row. A *jsonx.FieldError in err says which field is to blame;
// else the reason is counted under reason.
func (s *Sink) Reject(f *source.Source, line int64, raw, reason string, err error) error {
	e := &trace.RowError{File: f.Name, Line: line, Err: err, Raw: raw}
	if field, ok := errors.AsType[*jsonx.FieldError](err); ok {
		e.Field, e.Err, e.Fix = field.Field, field.Err, field.Fix
		e.Reason, _, _ = strings.Cut(field.Field, "[")
	}
	if e.Reason == "" {
		e.Reason = reason
	}
	return s.refuse(e)
}

// Merge accounts for a row that is not kept as one of its own; why says where it
// went. Raw is "" where the row that is kept holds all of it.
func (s *Sink) Merge(f *source.Source, line int64, raw, reason, why string) error {
	return s.refuse(&trace.RowError{File: f.Name, Line: line, Err: errors.New(why), Raw: raw, Reason: reason, Merged: true})
}

func (s *Sink) refuse(e *trace.RowError) error {
	if s.err == nil {
		s.err = s.reject(e)
	}
	return s.err
}

// Note counts a fact of the account.
func (s *Sink) Note(what string, n int64) {
	if n != 0 {
		s.notes[what] += n
	}
}

// Guess notes a decision that the source did not settle, once per what.
func (s *Sink) Guess(what, value, flag, evidence string, args ...any) {
	if !slices.ContainsFunc(s.guesses, func(g trace.Guess) bool { return g.What == what }) {
		s.guesses = append(s.guesses, trace.Guess{What: what, Value: value, Evidence: fmt.Sprintf(evidence, args...), Flag: flag})
	}
}

// Attributes puts what is left of a JSON row into the attributes of r, below
// prefix, and counts the names.
func (s *Sink) Attributes(r *trace.Request, prefix string, left jsonx.Row, known ...string) {
	for k, v := range left.Attributes() {
		if v == "null" {
			continue
		}
		if r.Attributes == nil {
			r.Attributes = map[string]string{}
		}
		r.Attributes[prefix+k] = v
		if !slices.Contains(known, k) {
			s.unknown[prefix+k]++
		}
	}
}

// maxUnknown is how many unknown fields are named in the account.
const maxUnknown = 20

// Meta ends the import and says what it found.
func (s *Sink) Meta(format, dialect string) (trace.Meta, error) {
	s.flush()
	if s.err != nil {
		return trace.Meta{}, s.err
	}
	for i, k := range slices.Sorted(maps.Keys(s.unknown)) {
		if i >= maxUnknown {
			s.Note("further unknown fields kept in attributes", int64(len(s.unknown)-i))
			break
		}
		s.Note("unknown field "+k+" kept in attributes", s.unknown[k])
	}
	m := trace.Meta{Clock: trace.ClockTrace, Format: format, Dialect: dialect, TickNS: s.tick.NS(), Guesses: s.guesses,
		Counts: trace.Counts{Read: s.Read, Notes: s.notes}}
	switch {
	case s.times == 0:
		m.Clock = trace.ClockNone
	case s.Epoch:
		m.EpochNS, m.Zone = trace.Some(int64(0)), s.Zone
	}
	return m, nil
}

// Unit returns the name of a unit of time.
func Unit(u time.Duration) string {
	switch u {
	case time.Second:
		return "s"
	case time.Millisecond:
		return "ms"
	case time.Microsecond:
		return "us"
	}
	return "ns"
}
