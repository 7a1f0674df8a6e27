package mapper

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"reprise/formats/csvx"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// csv reads tables of text.
func (w *work) csv(ctx context.Context, src []*source.Source) error {
	return w.sink.Tables(ctx, src, func(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
		rec := &csvRow{at: make([]int, len(w.bindings))}
		for i, b := range w.bindings {
			rec.at[i] = t.Column(b.rule.Column)
			b.seen = rec.at[i] >= 0
		}
		if err := w.missing(f, t.Header); err != nil {
			return nil, err
		}
		rec.others = t.Others(rec.at...)
		return func(r *csvx.Record) error {
			rec.Record = r
			return w.add(f, r.Line, rec)
		}, nil
	})
}

type csvRow struct {
	*csvx.Record
	at     []int
	others []int
}

func (r *csvRow) cell(b int) (cell, bool) {
	if r.at[b] < 0 {
		return cell{}, false
	}
	return cell{text: r.Fields[r.at[b]]}, true
}

func (r *csvRow) attributes() map[string]string { return r.Attributes(r.others) }

// json reads objects, an object a row.
func (w *work) json(ctx context.Context, src []*source.Source) error {
	for _, f := range src {
		has, n := map[string]bool{}, 0
		err := w.sink.Objects(ctx, []*source.Source{f}, func(r *rows.Record) error {
			if n++; n <= 1000 {
				for k := range r.Row {
					has[k] = true
				}
			}
			return w.add(f, r.Line, &jsonRow{row: r.Row, work: w})
		})
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := w.missing(f, slices.Sorted(maps.Keys(has))); err != nil {
			return err
		}
	}
	return nil
}

type jsonRow struct {
	row  jsonx.Row
	work *work
}

func (r *jsonRow) cell(b int) (cell, bool) {
	raw, ok := lookup(r.row, r.work.bindings[b].rule.Column)
	if !ok {
		return cell{}, false
	}
	return jsonCell(raw), true
}

// lookup finds a key, or a path of keys apart by points.
func lookup(row jsonx.Row, name string) (json.RawMessage, bool) {
	if raw, ok := row[name]; ok {
		return raw, true
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		raw, ok := row[name[:i]]
		if !ok || len(raw) == 0 || raw[0] != '{' {
			continue
		}
		var inner jsonx.Row
		if json.Unmarshal(raw, &inner) != nil {
			continue
		}
		if raw, ok := lookup(inner, name[i+1:]); ok {
			return raw, true
		}
	}
	return nil, false
}

func jsonCell(raw json.RawMessage) cell {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return cell{null: true}
	}
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return cell{text: []byte(s)}
		}
	}
	return cell{text: raw}
}

func (r *jsonRow) attributes() map[string]string {
	for _, b := range r.work.bindings {
		delete(r.row, b.rule.Column)
	}
	for k, v := range r.row {
		if string(v) == "null" {
			delete(r.row, k)
		}
	}
	return r.row.Attributes()
}

// parquet reads leaf columns; of nested ones, the path is the name.
func (w *work) parquet(ctx context.Context, src []*source.Source) error {
	for _, f := range src {
		if err := w.parquetFile(ctx, f); err != nil {
			return err
		}
	}
	return w.sink.Err()
}

func (w *work) parquetFile(ctx context.Context, f *source.Source) (err error) {
	defer func() { // parquet-go has panics for damaged files
		if p := recover(); p != nil {
			err = damaged(f, fmt.Errorf("%v", p))
		}
	}()
	file, err := openParquet(f)
	if err != nil {
		return err
	}
	rec := newParquetRow(file.Schema())
	rec.at = make([]int, len(w.bindings))
	for i, b := range w.bindings {
		rec.at[i] = slices.Index(rec.names, b.rule.Column)
		b.seen = rec.at[i] >= 0
		if b.seen {
			rec.named[rec.at[i]] = true
		}
	}
	if err := w.missing(f, rec.names); err != nil {
		return err
	}
	line := int64(0)
	return eachParquetRow(file, f, func(row parquet.Row) error {
		if line++; line%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		w.sink.Read++
		rec.set(row)
		if err := w.add(f, line, rec); err != nil && w.sink.Err() == nil {
			return w.sink.Reject(f, line, "", "row", err)
		}
		return w.sink.Err()
	})
}

func damaged(f *source.Source, err error) error {
	return trace.WithFix(fmt.Errorf("%s: cannot be read as Parquet: %w", f.Name, err), "the file is truncated, damaged or no Parquet; fetch it again, or name another --format")
}

func openParquet(f *source.Source) (*parquet.File, error) {
	r, err := f.Open() // knows empty files and stand-ins for files
	if err != nil {
		return nil, err
	}
	r.Close()
	at, size, err := f.ReaderAt()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(at, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, damaged(f, err)
	}
	return file, nil
}

// eachParquetRow visits the rows of a file.
func eachParquetRow(file *parquet.File, f *source.Source, visit func(parquet.Row) error) error {
	buf := make([]parquet.Row, 64)
	for _, group := range file.RowGroups() {
		in := group.Rows()
		for {
			n, err := in.ReadRows(buf)
			for _, row := range buf[:n] {
				if verr := visit(row); verr != nil {
					in.Close()
					return verr
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				in.Close()
				return damaged(f, err)
			}
		}
		in.Close()
	}
	return nil
}

// A parquetRow has a cell for each leaf column.
type parquetRow struct {
	names []string
	types []parquet.Type
	lists []bool
	named []bool // a rule takes the column
	cells []cell
	at    []int // by binding
}

func newParquetRow(schema *parquet.Schema) *parquetRow {
	r := &parquetRow{}
	for _, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		name := strings.Join(path, ".")
		for _, wrap := range []string{".list.element", ".list.item", ".array"} {
			name = strings.TrimSuffix(name, wrap)
		}
		r.names, r.types, r.lists = append(r.names, name), append(r.types, leaf.Node.Type()), append(r.lists, leaf.MaxRepetitionLevel > 0)
	}
	n := len(r.names)
	r.named, r.cells = make([]bool, n), make([]cell, n)
	return r
}

// set takes the values of a row. Those of a list become a JSON array.
func (r *parquetRow) set(row parquet.Row) {
	for i := range r.cells {
		r.cells[i] = cell{null: true}
	}
	for _, v := range row {
		i := v.Column()
		if r.lists[i] {
			r.push(i, v)
			continue
		}
		if !v.IsNull() {
			r.cells[i] = cell{text: plain(v, r.types[i])}
		}
	}
	for i, list := range r.lists {
		if list && !r.cells[i].null {
			r.cells[i].text = append(r.cells[i].text, ']')
		}
	}
}

func (r *parquetRow) push(i int, v parquet.Value) {
	c := &r.cells[i]
	if v.IsNull() && v.DefinitionLevel() == 0 {
		return
	}
	if c.null {
		*c = cell{text: []byte{'['}}
	}
	if v.IsNull() {
		return // an empty list, or a null in it
	}
	if len(c.text) > 1 {
		c.text = append(c.text, ',')
	}
	c.text = append(c.text, literal(plain(v, r.types[i]), v)...)
}

// stamped returns the logical type of a column of times.
func stamped(t parquet.Type) (at *format.TimestampType, unit time.Duration) {
	l := t.LogicalType()
	if l == nil {
		return nil, 0
	}
	at, _ = l.Value.(*format.TimestampType)
	if at == nil {
		return nil, 0
	}
	switch at.Unit.Value.(type) {
	case *format.MilliSeconds:
		return at, time.Millisecond
	case *format.MicroSeconds:
		return at, time.Microsecond
	}
	return at, time.Nanosecond
}

func unsigned(t parquet.Type) bool {
	l := t.LogicalType()
	if l == nil {
		return false
	}
	i, ok := l.Value.(*format.IntType)
	return ok && !i.IsSigned
}

// plain writes a value as text: times as calendar times, numbers as decimals.
func plain(v parquet.Value, t parquet.Type) []byte {
	if stamp, unit := stamped(t); stamp != nil {
		per := int64(time.Second / unit)
		n := v.Int64()
		at := time.Unix(n/per, n%per*int64(unit)).UTC()
		if stamp.IsAdjustedToUTC {
			return at.AppendFormat(nil, "2006-01-02T15:04:05.999999999Z07:00")
		}
		return at.AppendFormat(nil, "2006-01-02T15:04:05.999999999")
	}
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		if unsigned(t) {
			return strconv.AppendUint(nil, v.Uint64(), 10)
		}
		return strconv.AppendInt(nil, v.Int64(), 10)
	case parquet.Float:
		return strconv.AppendFloat(nil, float64(v.Float()), 'g', -1, 32)
	case parquet.Double:
		return strconv.AppendFloat(nil, v.Double(), 'g', -1, 64)
	case parquet.Boolean:
		return strconv.AppendBool(nil, v.Boolean())
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return bytes.Clone(v.ByteArray())
	}
	return []byte(v.String())
}

// literal writes the text of a value as JSON.
func literal(text []byte, v parquet.Value) []byte {
	switch v.Kind() {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.Boolean:
		if json.Valid(text) {
			return text
		}
	}
	return []byte(jsonx.Quote(string(text)))
}

func (r *parquetRow) cell(b int) (cell, bool) {
	if r.at[b] < 0 {
		return cell{}, false
	}
	return r.cells[r.at[b]], true
}

func (r *parquetRow) attributes() map[string]string {
	var out map[string]string
	for i, c := range r.cells {
		if r.named[i] || c.null {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		switch {
		case r.lists[i], r.types[i].Kind() < parquet.ByteArray && json.Valid(c.text):
			out[r.names[i]] = string(c.text)
		default:
			out[r.names[i]] = jsonx.Quote(string(c.text))
		}
	}
	return out
}
