// Package csvx reads tables of foreign traces: columns by the names in the first
// line, any of the usual delimiters, quotes as encoding/csv reads them, lines
// without quotes at the speed of a byte search.
package csvx

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// A Table is an open table.
type Table struct {
	Header []string // as the first line gives them, without blanks around

	comma  byte
	lines  *source.Lines
	close  io.Closer
	record Record
}

// Open opens a table and reads its header. A byte order mark, CR before LF and a
// missing last line end are no matter.
func Open(f *source.Source) (*Table, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	t := &Table{lines: source.NewLines(r), close: r}
	line, _, err := t.lines.Next()
	if err != nil {
		r.Close()
		return nil, jsonx.Named(f, err)
	}
	for magic, name := range map[string]string{"PAR1": "Parquet", "ARROW1": "Arrow IPC", "{": "JSON", "[": "JSON"} {
		if bytes.HasPrefix(line, []byte(magic)) {
			r.Close()
			return nil, trace.WithFix(fmt.Errorf("%s: %s, but this format is a table of text (CSV)", f.Name, name), "name another --format, or export the table as CSV")
		}
	}
	t.Header, t.comma = source.HeaderFields(line)
	for i := range t.Header {
		t.Header[i] = jsonx.Valid(t.Header[i])
	}
	t.record.table = t
	return t, nil
}

// Close closes the file.
func (t *Table) Close() error { return t.close.Close() }

// Column returns the position of the first of names that the header has, whatever
// the case; -1 if there is none.
func (t *Table) Column(names ...string) int {
	for _, name := range names {
		for i, h := range t.Header {
			if strings.EqualFold(h, name) {
				return i
			}
		}
	}
	return -1
}

// Need returns the positions of columns that must be there.
func (t *Table) Need(f *source.Source, names ...string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = t.Column(name); at[i] < 0 {
			return nil, trace.WithFix(fmt.Errorf("%s: no column %q; the first line has: %s", f.Name, name, clip([]byte(strings.Join(t.Header, ", ")), 200)), "the first line must name the columns; add it, or name another --format")
		}
	}
	return at, nil
}

// Others returns the positions of the columns that are not in known.
func (t *Table) Others(known ...int) (others []int) {
	for i := range t.Header {
		if !slices.Contains(known, i) {
			others = append(others, i)
		}
	}
	return others
}

// A Record is one row, valid until the next one is read.
type Record struct {
	Line   int64    // where it begins
	Raw    []byte   // without its line end
	Fields [][]byte // as many as the header has, if Err is nil
	Err    error    // set if this is no row of the table

	table  *Table
	quoted []byte
}

// Next returns the next row; io.EOF after the last. Blank lines are no rows.
func (t *Table) Next() (*Record, error) {
	r := &t.record
	for {
		line, n, err := t.lines.Next()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 || len(line) < 64 && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r.Line, r.Raw, r.Err = n, line, nil
		if bytes.IndexByte(line, '"') >= 0 {
			return r, t.quotes(r)
		}
		r.split(line)
		r.check()
		return r, nil
	}
}

// split cuts a line without quotes.
func (r *Record) split(line []byte) {
	r.Fields = r.Fields[:0]
	for {
		i := bytes.IndexByte(line, r.table.comma)
		if i < 0 {
			r.Fields = append(r.Fields, line)
			return
		}
		r.Fields = append(r.Fields, line[:i:i])
		line = line[i+1:]
	}
}

// quotes reads a row that has quotes, and may go on over further lines. An error
// is one of reading.
func (t *Table) quotes(r *Record) error {
	r.quoted = append(r.quoted[:0], r.Raw...)
	for quoted := open(r.Raw, t.comma, false); quoted; {
		line, n, err := t.lines.Next()
		if err == io.EOF {
			r.Raw, r.Fields = r.quoted, r.Fields[:0]
			r.Err = &jsonx.FieldError{Err: fmt.Errorf("a quote that does not end; %d lines after it are part of the row", n-r.Line), Fix: "double quotes within quoted fields"}
			return nil
		}
		if err != nil {
			return err
		}
		if r.quoted = append(append(r.quoted, '\n'), line...); len(r.quoted) > source.MaxLine {
			return fmt.Errorf("the row that begins in line %d is longer than %d bytes", r.Line, source.MaxLine)
		}
		quoted = open(line, t.comma, true)
	}
	r.Raw, r.Fields = r.quoted, r.Fields[:0]
	c := csv.NewReader(bytes.NewReader(r.quoted))
	c.Comma, c.FieldsPerRecord = rune(t.comma), -1
	fields, err := c.Read()
	if parse, ok := err.(*csv.ParseError); ok {
		r.Err = &jsonx.FieldError{Err: fmt.Errorf("%w at byte %d", parse.Err, parse.Column), Fix: "double quotes within quoted fields"}
		return nil
	}
	if err != nil {
		r.Err = &jsonx.FieldError{Err: err}
		return nil
	}
	for _, f := range fields {
		r.Fields = append(r.Fields, []byte(f))
	}
	r.check()
	return nil
}

// open tells whether a line ends within quotes; quoted, whether it begins there. A
// field that does not begin with a quote has none that count.
func open(text []byte, comma byte, quoted bool) bool {
	start := !quoted
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '"' && i+1 < len(text) && text[i+1] == '"':
			i++
		case quoted:
			quoted = c != '"'
		case c == '"' && start:
			quoted, start = true, false
		default:
			start = c == comma
		}
	}
	return quoted
}

// check holds the number of fields against the header; empty ones too many at the
// end are let go.
func (r *Record) check() {
	want := len(r.table.Header)
	for len(r.Fields) > want && len(r.Fields[len(r.Fields)-1]) == 0 {
		r.Fields = r.Fields[:len(r.Fields)-1]
	}
	switch n := len(r.Fields); {
	case n < want:
		r.Err = jsonx.Bad(r.table.Header[n], "missing: the row has %d of %d fields", n, want)
	case n > want:
		r.Err = &jsonx.FieldError{Err: fmt.Errorf("%d fields, but the first line names %d", n, want)}
	}
}

// Text returns a field without blanks around it; "" if column is -1.
func (r *Record) Text(column int) []byte {
	if column < 0 {
		return nil
	}
	return bytes.TrimSpace(r.Fields[column])
}

// Int returns an integer that is not below 0; the error names the column.
func (r *Record) Int(column int) (int64, error) {
	text := r.Text(column)
	n, plain := int64(0), len(text) > 0 && len(text) < 19
	for _, c := range text {
		if c < '0' || c > '9' {
			plain = false
			break
		}
		n = n*10 + int64(c-'0')
	}
	if plain {
		return n, nil
	}
	name := r.table.Header[column]
	if len(text) == 0 {
		return 0, jsonx.Bad(name, "empty")
	}
	n, err := jsonx.Int(text)
	if err != nil {
		return 0, &jsonx.FieldError{Field: name, Err: err}
	}
	if n < 0 {
		return 0, jsonx.Bad(name, "%d is below 0", n)
	}
	return n, nil
}

// MaybeInt is Int where an empty field, none and NaN are unknown.
func (r *Record) MaybeInt(column int) (trace.Optional[int64], error) {
	if Empty(r.Text(column)) {
		return trace.Optional[int64]{}, nil
	}
	n, err := r.Int(column)
	if err != nil {
		return trace.Optional[int64]{}, err
	}
	return trace.Some(n), nil
}

// Time returns a number of units; the error names the column.
func (r *Record) Time(column int, unit time.Duration) (time.Duration, error) {
	text := r.Text(column)
	if len(text) == 0 {
		return 0, jsonx.Bad(r.table.Header[column], "empty")
	}
	d, err := instant.Units(text, unit)
	if err != nil {
		return 0, &jsonx.FieldError{Field: r.table.Header[column], Err: err}
	}
	return d, nil
}

// Maybe returns the text of a field; unknown if it is empty or the column is -1.
func (r *Record) Maybe(column int) trace.Optional[string] {
	if text := r.Text(column); !Empty(text) {
		return trace.Some(jsonx.Valid(string(text)))
	}
	return trace.Optional[string]{}
}

// Empty tells how tables write what they do not know.
func Empty(text []byte) bool {
	switch string(text) {
	case "", "NaN", "nan", "NULL", "null", "None", `\N`:
		return true
	}
	return false
}

// Attributes returns the fields of columns that are not empty, as JSON text.
func (r *Record) Attributes(columns []int) map[string]string {
	var out map[string]string
	for _, c := range columns {
		if len(r.Fields[c]) == 0 {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(columns))
		}
		out[r.table.Header[c]] = jsonx.Quote(string(r.Fields[c]))
	}
	return out
}

func clip(b []byte, n int) string {
	if len(b) > n {
		return string(b[:n]) + "..."
	}
	return string(b)
}
