package baseten_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"reprise/formats"
	"reprise/formats/baseten"
	"reprise/formats/source"
	"reprise/trace"
)

// A cells is one row of a table: int64, string, float64, bool, []any or null
// (not there).
type cells map[string]any

const second = int64(1000)

// plain is the table that every type variant holds: sessions 7 and 8
// interleaved and out of order, a cancelled, an empty and a lone row, hashes
// null, empty, above 2^63, and of each tail rule.
func plain() []cells {
	t0 := int64(1_760_000_000) * second
	return []cells{
		{"timestamp_start_unix_ms": t0 + 10*second, "prompt": "Hello <b>&", "input_tokens": int64(130), "output_tokens": int64(20), "total_hashes": []any{int64(11), int64(-2), int64(33)}, "block_size": int64(64),
			"provided_session_id": "7", "poor_man_session_id": int64(70), "duration_e2e_ms": int64(4000), "duration_ttft_ms": int64(300), "request_canceled": int64(0), "cached_tokens_reference": int64(64),
			"model_name": "llama-70b", "org_id": "12", "features": "json,tools", "speculation_ratio": 1.75, "output_text": "Hi", "total_hashes_len": int64(3), "__version__": "2", "tier": "gold"},
		{"timestamp_start_unix_ms": t0, "prompt": "first", "input_tokens": int64(130), "output_tokens": int64(5), "total_hashes": []any{int64(11), int64(-2)}, "block_size": int64(64),
			"provided_session_id": "7", "duration_e2e_ms": int64(2000), "request_canceled": int64(0), "model_name": "llama-70b", "org_id": "12", "total_hashes_len": int64(9)},
		{"timestamp_start_unix_ms": t0 + 2*second, "prompt": "", "input_tokens": int64(0), "output_tokens": int64(0), "total_hashes": []any{}, "block_size": int64(64), "provided_session_id": "8",
			"poor_man_session_id": int64(80), "request_canceled": int64(1), "duration_e2e_ms": int64(120), "cached_tokens_reference": int64(0), "speculation_ratio": float64(2)},
		{"timestamp_start_unix_ms": t0 + 12*second, "prompt": "überall ♥", "input_tokens": int64(100), "output_tokens": int64(0), "request_canceled": int64(0), "provided_session_id": "7", "tier": "x"},
		{"timestamp_start_unix_ms": t0 + 2*second, "prompt": "alone", "input_tokens": int64(10), "output_tokens": int64(1), "total_hashes": []any{int64(1), int64(2), int64(3)}, "block_size": int64(16)},
		{"timestamp_start_unix_ms": t0 + 2*second, "prompt": "again", "input_tokens": int64(64), "output_tokens": int64(3), "total_hashes": []any{int64(math.MaxInt64)}, "block_size": int64(64), "provided_session_id": "8", "output_text": ""},
	}
}

// plainTypes are the documented types, in the documented order, and an unknown
// column.
func plainTypes() []arrow.Field {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	f := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	return []arrow.Field{
		f("timestamp_start_unix_ms", i64), f("prompt", str), f("input_tokens", i64), f("output_tokens", i64), f("total_hashes", arrow.ListOf(i64)), f("block_size", i64),
		f("provided_session_id", str), f("poor_man_session_id", i64), f("duration_e2e_ms", i64), f("duration_ttft_ms", i64), f("request_canceled", i64), f("cached_tokens_reference", i64),
		f("model_name", str), f("org_id", str), f("features", str), f("speculation_ratio", arrow.PrimitiveTypes.Float64), f("output_text", str), f("total_hashes_len", i64), f("__version__", str), f("tier", str),
	}
}

// retyped changes the types of some columns.
func retyped(types map[string]arrow.DataType) []arrow.Field {
	out := plainTypes()
	for name := range types {
		if !slices.ContainsFunc(out, func(f arrow.Field) bool { return f.Name == name }) {
			panic("no column " + name)
		}
	}
	for i, f := range out {
		if t, ok := types[f.Name]; ok {
			out[i].Type = t
		}
	}
	return out
}

// only keeps the named columns.
func only(fields []arrow.Field, names ...string) []arrow.Field {
	return slices.DeleteFunc(fields, func(f arrow.Field) bool { return !slices.Contains(names, f.Name) })
}

// record builds rows with the given columns.
func record(t testing.TB, fields []arrow.Field, rows []cells) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, row := range rows {
		for i, f := range fields {
			fill(t, b.Field(i), row[f.Name])
		}
	}
	return b.NewRecordBatch()
}

// fill appends v as the builder's type; a number missing in a column of floats
// is NaN, as pandas has it.
func fill(t testing.TB, b array.Builder, v any) {
	t.Helper()
	if v == nil {
		if f, ok := b.(*array.Float64Builder); ok {
			f.Append(math.NaN())
			return
		}
		b.AppendNull()
		return
	}
	n, _ := v.(int64)
	real, isReal := v.(float64)
	if !isReal {
		real = float64(n)
	}
	s, isText := v.(string)
	if !isText {
		s = fmt.Sprint(v)
	} else if _, err := fmt.Sscan(s, &n); err == nil {
		real = float64(n)
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(n)
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Uint64Builder:
		b.Append(uint64(n))
	case *array.Uint32Builder:
		b.Append(uint32(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Uint8Builder:
		b.Append(uint8(n))
	case *array.Float64Builder:
		b.Append(real)
	case *array.Float32Builder:
		b.Append(float32(real))
	case *array.Float16Builder:
		b.Append(float16.New(float32(real)))
	case *array.BooleanBuilder:
		b.Append(n == 1 || v == true)
	case *array.TimestampBuilder:
		per := map[arrow.TimeUnit]float64{arrow.Second: 1e-3, arrow.Millisecond: 1, arrow.Microsecond: 1e3, arrow.Nanosecond: 1e6}[b.Type().(*arrow.TimestampType).Unit]
		if per >= 1 && !isReal {
			b.Append(arrow.Timestamp(n * int64(per)))
		} else {
			b.Append(arrow.Timestamp(math.Round(real * per)))
		}
	case *array.StringBuilder:
		b.Append(s)
	case *array.LargeStringBuilder:
		b.Append(s)
	case *array.StringViewBuilder:
		b.Append(s)
	case *array.BinaryBuilder:
		b.Append([]byte(s))
	case *array.BinaryViewBuilder:
		b.Append([]byte(s))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(s); err != nil {
			t.Fatal(err)
		}
	case *array.Int64DictionaryBuilder:
		if err := b.Append(n); err != nil {
			t.Fatal(err)
		}
	case array.ListLikeBuilder:
		list := v.([]any)
		sized, ok := b.(array.VarLenListLikeBuilder)
		if _, fixed := b.(*array.FixedSizeListBuilder); ok && !fixed {
			sized.AppendWithSize(true, len(list))
		} else {
			b.Append(true)
		}
		for _, e := range list {
			fill(t, b.ValueBuilder(), e)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			fill(t, b.FieldBuilder(i), v.(cells)[f.Name])
		}
	default:
		t.Fatalf("no fixture of type %s", b.Type())
	}
}

// asParquet writes row groups of two rows.
func asParquet(t testing.TB, rec arrow.RecordBatch, options ...parquet.WriterProperty) []byte {
	t.Helper()
	return parquetWith(t, rec, pqarrow.DefaultWriterProps(), options...)
}

func parquetWith(t testing.TB, rec arrow.RecordBatch, arrowProps pqarrow.ArrowWriterProperties, options ...parquet.WriterProperty) []byte {
	t.Helper()
	var buf bytes.Buffer
	options = append([]parquet.WriterProperty{parquet.WithMaxRowGroupLength(2)}, options...)
	w, err := pqarrow.NewFileWriter(rec.Schema(), struct{ io.Writer }{&buf}, parquet.NewWriterProperties(options...), arrowProps)
	if err == nil {
		err = w.Write(rec)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// asArrow writes an IPC file with record batches of four rows.
func asArrow(t testing.TB, rec arrow.RecordBatch, options ...ipc.Option) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := ipc.NewFileWriter(&buf, append(options, ipc.WithSchema(rec.Schema()))...)
	if err != nil {
		t.Fatal(err)
	}
	writeBatches(t, w, rec)
	return buf.Bytes()
}

func asStream(t testing.TB, rec arrow.RecordBatch) []byte {
	t.Helper()
	var buf bytes.Buffer
	writeBatches(t, ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema())), rec)
	return buf.Bytes()
}

func writeBatches(t testing.TB, w interface {
	Write(arrow.RecordBatch) error
	Close() error
}, rec arrow.RecordBatch) {
	t.Helper()
	step := int64(4)
	for _, f := range rec.Schema().Fields() {
		if f.Type.ID() == arrow.LIST_VIEW || f.Type.ID() == arrow.LARGE_LIST_VIEW {
			step = rec.NumRows() // arrow-go writes slices of views wrong
		}
	}
	for from := int64(0); from < rec.NumRows(); from += step {
		if err := w.Write(rec.NewSlice(from, min(from+step, rec.NumRows()))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// An imported is what an import gave.
type imported struct {
	meta     trace.Meta
	rows     []trace.Request
	rejected []*trace.RowError
	file     []byte // the canonical trace
}

func save(t testing.TB, name string, data []byte) *source.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	s := source.New(path, nil)
	t.Cleanup(func() { s.Close() })
	return s
}

func tryImport(t testing.TB, im *baseten.Importer, src ...*source.Source) (imported, error) {
	t.Helper()
	var out imported
	var buf bytes.Buffer
	meta, err := formats.Import(t.Context(), im, src, &buf, 0, trace.Step{Command: "trace import"}, func(e *trace.RowError) error {
		e.File = filepath.Base(e.File)
		out.rejected = append(out.rejected, e)
		return nil
	})
	if out.meta = meta; err != nil {
		return out, err
	}
	out.file = buf.Bytes()
	r, err := trace.NewReader(bytes.NewReader(out.file), int64(len(out.file)), "out")
	if err != nil {
		return out, err
	}
	if _, err := trace.Check(t.Context(), r, func(e *trace.RowError) { t.Error("check:", e) }); err != nil {
		return out, err
	}
	r, _ = trace.NewReader(bytes.NewReader(out.file), int64(len(out.file)), "out")
	for row, err := range r.Rows() {
		if err != nil {
			return out, err
		}
		out.rows = append(out.rows, row)
	}
	return out, nil
}

func mustImport(t testing.TB, im *baseten.Importer, name string, data []byte) imported {
	t.Helper()
	out, err := tryImport(t, im, save(t, name, data))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// exported writes what was imported back as a table.
func exported(t testing.TB, in imported) []byte {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(in.file), int64(len(in.file)), "out")
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	lost, err := baseten.Exporter{}.Export(t.Context(), r.Meta(), r.Rows(), &buf)
	if err != nil {
		t.Fatal(err)
	}
	if len(lost) > 0 {
		t.Errorf("lost: %q", lost)
	}
	return buf.Bytes()
}

// content returns the rows of a Parquet table as JSON values without nulls, in
// the order of their arrival and prompt.
func content(t testing.TB, data []byte) []map[string]any {
	t.Helper()
	table, err := pqarrow.ReadTable(t.Context(), bytes.NewReader(data), nil, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	reader := array.NewTableReader(table, 1)
	for reader.Next() {
		rows = append(rows, recordContent(t, reader.RecordBatch())...)
	}
	return sorted(rows)
}

func recordContent(t testing.TB, rec arrow.RecordBatch) []map[string]any {
	t.Helper()
	var rows []map[string]any
	for i := range int(rec.NumRows()) {
		row := map[string]any{}
		for c, f := range rec.Schema().Fields() {
			v := rec.Column(c).GetOneForMarshal(i)
			if v == nil || v == "NaN" {
				continue
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			d.Decode(&v)
			row[f.Name] = v
		}
		rows = append(rows, row)
	}
	return sorted(rows)
}

func sorted(rows []map[string]any) []map[string]any {
	key := func(r map[string]any) string {
		return fmt.Sprint(r["timestamp_start_unix_ms"], " ", r["prompt"])
	}
	slices.SortFunc(rows, func(a, b map[string]any) int { return bytes.Compare([]byte(key(a)), []byte(key(b))) })
	return rows
}

// lines prints rows as JSON, one a line.
func lines(t testing.TB, rows []trace.Request) string {
	t.Helper()
	var b []byte
	for i := range rows {
		var err error
		if b, err = trace.AppendJSON(b, &rows[i]); err != nil {
			t.Fatal(err)
		}
		b = append(b, '\n')
	}
	return string(b)
}

// bare drops what differs by type: the form of attributes, and names of files.
func bare(rows []trace.Request) []trace.Request {
	out := slices.Clone(rows)
	for i := range out {
		out[i].SourceFile = trace.Optional[string]{}
		attributes := maps.Clone(out[i].Attributes)
		for k, v := range attributes {
			var any any
			json.Unmarshal([]byte(v), &any)
			attributes[k] = string(must(json.Marshal(fmt.Sprint(any)))) // 7 and "7"
		}
		for _, k := range []string{"request_canceled", "total_hashes_signed", "model_name", "org_id"} {
			delete(attributes, k)
		}
		out[i].Attributes = attributes
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func lineOf(v any) string { return string(must(json.Marshal(v))) }
