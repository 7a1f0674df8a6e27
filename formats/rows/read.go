package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"reprise/formats/csvx"
	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// A Record is one JSON object of a source.
type Record struct {
	File *source.Source
	Line int64  // line; the position, from 1, in an array or over any lines
	Raw  []byte // valid until the visit ends
	Row  jsonx.Row
}

// Objects visits every object of the sources, an object a row. An error of visit
// rejects the row, unless the sink itself has failed. What is no object is rejected
// without a visit.
func (s *Sink) Objects(ctx context.Context, src []*source.Source, visit func(*Record) error) error {
	return s.Records(ctx, src, func(r *Record) error {
		s.Read++
		return visit(r)
	})
}

// Records is Objects for formats whose records are no rows: it counts as read only
// what is no object, and visit the rest.
func (s *Sink) Records(ctx context.Context, src []*source.Source, visit func(*Record) error) error {
	for _, f := range src {
		h, err := f.Head()
		if err != nil {
			return err
		}
		if h.Container == "parquet" || h.Container == "arrow" {
			return trace.WithFix(fmt.Errorf("%s: %s, but this format is JSON", f.Name, h.Container), "export the table as JSON lines")
		}
		err = jsonx.Objects(f, h, func(o jsonx.Object) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return s.object(f, o, visit)
		})
		if err != nil {
			return err
		}
	}
	return s.err
}

func (s *Sink) object(f *source.Source, o jsonx.Object, visit func(*Record) error) error {
	row, err := jsonx.Row(nil), o.Err
	if err == nil {
		row, err = jsonx.Parse(o.Raw)
	}
	if err != nil {
		s.Read++
		return s.Reject(f, o.Line, string(o.Raw), "not JSON", err)
	}
	err = visit(&Record{File: f, Line: o.Line, Raw: o.Raw, Row: row})
	if err != nil && s.err == nil {
		return s.Reject(f, o.Line, string(o.Raw), "row", err)
	}
	return s.err
}

// Place returns a request that says where it was read.
func (r *Record) Place(operation string) trace.Request {
	return trace.Request{Operation: operation, SourceFile: trace.Some(r.File.Base()), SourceRow: trace.Some(r.Line)}
}

// Tables visits every row of the sources, which are tables. open looks up the
// columns of one of them and returns the visit of its rows; an error of it is one
// of the file. An error of the visit rejects the row, unless the sink itself has
// failed.
func (s *Sink) Tables(ctx context.Context, src []*source.Source, open func(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error)) error {
	for _, f := range src {
		if err := s.table(ctx, f, open); err != nil {
			return err
		}
	}
	return s.err
}

func (s *Sink) table(ctx context.Context, f *source.Source, open func(*source.Source, *csvx.Table) (func(*csvx.Record) error, error)) error {
	t, err := csvx.Open(f)
	if err != nil {
		return err
	}
	defer t.Close()
	visit, err := open(f, t)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return jsonx.Named(f, err)
		}
		s.Read++
		if err = r.Err; err == nil {
			err = visit(r)
		}
		if err != nil && s.err == nil {
			err = s.Reject(f, r.Line, string(r.Raw), "not a row", err)
		}
		if err != nil {
			return err
		}
	}
}

// A Clock reads calendar times as Unix times; those without a zone are in Offset.
type Clock struct {
	Offset int    // seconds east of UTC
	Given  bool   // the user named it
	Flag   string // where the user can name it; "" = --zone

	unzoned bool
}

// ParseZone reads the zone that a user names for times without one.
func ParseZone(name string) (Clock, error) {
	if name == "" {
		return Clock{}, nil
	}
	offset, err := instant.Zone(name)
	if err != nil {
		return Clock{}, trace.WithFix(fmt.Errorf("--zone: %w", err), "name an offset from UTC such as +08:00")
	}
	return Clock{Offset: offset, Given: true}, nil
}

// Parse reads a calendar time.
func (c *Clock) Parse(text []byte) (time.Duration, instant.Stamp, error) {
	s, err := instant.Parse(text)
	if err != nil {
		return 0, s, err
	}
	if !s.Zoned {
		c.unzoned = true
		s.NS -= int64(c.Offset) * 1e9
	}
	return time.Duration(s.NS), s, nil
}

// Take reads a calendar time of a JSON row, a string.
func (c *Clock) Take(r jsonx.Row, names ...string) (t trace.Optional[time.Duration], err error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return t, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return t, jsonx.Bad(name, "%s is no time", raw)
	}
	if text == "" {
		return t, nil
	}
	at, _, err := c.Parse([]byte(text))
	if err != nil {
		return t, &jsonx.FieldError{Field: name, Err: err}
	}
	return trace.Some(at), nil
}

// Note says in the account how a zone was found. evidence is why there was none.
func (c *Clock) Note(s *Sink, evidence string) {
	if !c.unzoned {
		return
	}
	zone := "UTC"
	if c.Offset != 0 {
		sign, off := '+', c.Offset
		if off < 0 {
			sign, off = '-', -off
		}
		zone = fmt.Sprintf("%c%02d:%02d", sign, off/3600, off/60%60)
	}
	s.Zone = zone + ": the times name no zone"
	if c.Given {
		evidence += "; given"
	}
	s.Guess("zone", zone, cmp.Or(c.Flag, "--zone"), "%s", evidence)
}

// TakeUnits takes a number of units, exact to the nanosecond; a string of a number
// is one too.
func TakeUnits(r jsonx.Row, unit time.Duration, names ...string) (t trace.Optional[time.Duration], err error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return t, nil
	}
	text := []byte(raw)
	if len(raw) > 1 && raw[0] == '"' {
		text = raw[1 : len(raw)-1]
	}
	d, err := instant.Units(text, unit)
	if err != nil {
		return t, &jsonx.FieldError{Field: name, Err: err}
	}
	return trace.Some(d), nil
}

// TakeSpan is TakeUnits for lengths of time, which are not below 0.
func TakeSpan(r jsonx.Row, unit time.Duration, names ...string) (t trace.Optional[time.Duration], err error) {
	t, err = TakeUnits(r, unit, names...)
	if err == nil && t.Value < 0 {
		err = jsonx.Bad(names[0], "%v is below 0", t.Value)
	}
	return t, err
}
