package weka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// An object is one session as it was read.
type object struct {
	file  *source.Source
	line  int64 // line or row; the position in an array or a file of several objects
	raw   json.RawMessage
	nulls bool  // keys with null are not there: they fill up a Parquet row
	err   error // set if there is no object at this place
}

// each reads the sessions of f in order: one object, an array or a sequence of
// objects over any lines, an object per line, or Parquet rows. It can be called
// again.
func each(ctx context.Context, f *source.Source, fn func(object) error) error {
	h, err := f.Head() // standard input is spooled by this
	if err != nil {
		return err
	}
	visit := func(o object) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.file = f
		return fn(o)
	}
	if h.Container == "parquet" {
		return parquetRows(ctx, f, h, visit)
	}
	return jsonx.Objects(f, h, func(o jsonx.Object) error {
		return visit(object{line: o.Line, raw: o.Raw, err: o.Err})
	})
}

// rowBatch is how many Parquet rows are held at a time; a row is a session.
const rowBatch = 8

// parquetRows makes JSON of each row.
func parquetRows(ctx context.Context, f *source.Source, h *source.Head, visit func(object) error) error {
	if !h.Has("requests") {
		return trace.WithFix(fmt.Errorf("%s: no column requests", f.Name), "name the file's own format with --format; a WEKA table has the columns id, block_size, hash_id_scope and requests")
	}
	r, size, err := f.ReaderAt()
	if err != nil {
		return err
	}
	pf, err := file.NewParquetReader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return jsonx.Named(f, err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: rowBatch}, memory.DefaultAllocator)
	if err != nil {
		return jsonx.Named(f, err)
	}
	rr, err := fr.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return jsonx.Named(f, err)
	}
	defer rr.Release()
	n := int64(0)
	for rr.Next() {
		rec := rr.RecordBatch()
		for i := range int(rec.NumRows()) {
			n++
			raw, err := rowJSON(rec, i)
			if err != nil {
				return jsonx.Named(f, fmt.Errorf("row %d: %w", n, err))
			}
			if err := visit(object{line: n, raw: raw, nulls: true}); err != nil {
				return err
			}
		}
	}
	if err := rr.Err(); err != nil && err != io.EOF {
		return jsonx.Named(f, err)
	}
	return nil
}

func rowJSON(rec arrow.RecordBatch, i int) ([]byte, error) {
	row := map[string]any{}
	for c, field := range rec.Schema().Fields() {
		row[field.Name] = rec.Column(c).GetOneForMarshal(i)
	}
	return json.Marshal(row)
}

// fields returns the session's fields without requests, and its entries.
func (o *object) fields() (jsonx.Row, []json.RawMessage, error) {
	if o.err != nil {
		return nil, nil, o.err
	}
	f, err := jsonx.Parse(o.raw)
	if err != nil {
		return nil, nil, err
	}
	o.dropNulls(f)
	entries, err := takeRequests(f)
	return f, entries, err
}

// entry returns the fields of one entry, which some exports keep as a string.
func (o *object) entry(raw json.RawMessage) (jsonx.Row, error) {
	f, err := jsonx.Parse(unquoted(raw))
	if err == nil {
		o.dropNulls(f)
	}
	return f, err
}

func (o *object) dropNulls(f jsonx.Row) {
	if !o.nulls {
		return
	}
	for k, v := range f {
		if string(v) == "null" {
			delete(f, k)
		}
	}
}

func takeRequests(f jsonx.Row) ([]json.RawMessage, error) {
	_, raw, ok := f.Take("requests")
	if !ok {
		return nil, &jsonx.FieldError{Field: "requests", Err: errors.New("missing"), Fix: "a session is an object with a list of requests"}
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(unquoted(raw), &entries); err != nil {
		return nil, jsonx.Bad("requests", "not a list")
	}
	return entries, nil
}

// unquoted returns the JSON that a JSON string holds, or raw itself.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return raw
	}
	return json.RawMessage(text)
}
