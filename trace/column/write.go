package column

import (
	"fmt"
	"io"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// Bounds of what is held in memory before it goes to the file.
const (
	DefaultRowGroupBytes = 32 << 20 // rough bytes of values before encoding
	DefaultRowGroupRows  = 1 << 18
	flushValues          = 2048 // values handed to a column at a time; keeps pages near PageBytes
	pageBytes            = 256 << 10
)

// A Writer writes batches of columns into one Parquet file with row groups of
// bounded size, page statistics and page index.
type Writer struct {
	pw     *parquet.GenericWriter[any]
	leaves []*leafWriter
	rows   int // in the open row group
	bytes  int // likewise
}

// NewWriter starts a file. noBounds names columns (their top level) for which
// no minimum and maximum are kept, such as long texts.
func NewWriter(w io.Writer, schema *parquet.Schema, createdBy string, noBounds ...string) *Writer {
	options := []parquet.WriterOption{
		schema,
		parquet.CreatedBy("reprise", createdBy, ""),
		parquet.PageBufferSize(pageBytes),
		parquet.DataPageStatistics(true),
		parquet.DictionaryMaxBytes(1 << 20),
	}
	for _, path := range schema.Columns() {
		for _, name := range noBounds {
			if path[0] == name {
				options = append(options, parquet.SkipPageBounds(path...))
			}
		}
	}
	pw := parquet.NewGenericWriter[any](w, options...)
	out := &Writer{pw: pw}
	for i, cw := range pw.ColumnWriters() {
		leaf, _ := schema.Lookup(schema.Columns()[i]...)
		out.leaves = append(out.leaves, &leafWriter{w: cw, index: i, maxDef: leaf.MaxDefinitionLevel})
	}
	return out
}

// SetMetadata sets a key of the file's metadata; the last value holds.
func (w *Writer) SetMetadata(key, value string) { w.pw.SetKeyValueMetadata(key, value) }

// Write appends the rows of a batch, whose columns are in schema order.
func (w *Writer) Write(cols []Column) error {
	if len(cols) == 0 {
		return nil
	}
	n := cols[0].Len()
	for row := range n {
		leaf := 0
		for _, c := range cols {
			if c.Len() != n {
				return fmt.Errorf("column: batch with %d and %d rows", n, c.Len())
			}
			c.write(w.leaves[leaf:leaf+c.Leaves()], row)
			w.bytes += c.RowBytes(row)
			leaf += c.Leaves()
		}
		for _, l := range w.leaves {
			if len(l.pending) >= flushValues || l.pendingBytes >= pageBytes {
				if err := l.flush(); err != nil {
					return err
				}
			}
		}
		w.rows++
		if w.rows >= DefaultRowGroupRows || w.bytes >= DefaultRowGroupBytes {
			if err := w.endRowGroup(); err != nil {
				return err
			}
		}
	}
	// The batch's memory is the caller's again.
	for _, l := range w.leaves {
		if err := l.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) endRowGroup() error {
	for _, l := range w.leaves {
		if err := l.flush(); err != nil {
			return err
		}
	}
	w.rows, w.bytes = 0, 0
	return w.pw.Flush()
}

// Close writes what is left and the footer; it does not close the file below.
func (w *Writer) Close() error { return w.pw.Close() }

// A leafWriter gathers values of one Parquet leaf, whole rows at a time.
type leafWriter struct {
	w            *parquet.ColumnWriter
	index        int
	maxDef       int
	pending      []parquet.Value
	pendingBytes int
}

func (l *leafWriter) add(v parquet.Value, rep, def int) {
	if v.Kind() == parquet.ByteArray {
		l.pendingBytes += len(v.ByteArray())
	}
	l.pending = append(l.pending, v.Level(rep, def, l.index))
}

func (l *leafWriter) addNull(rep, def int) {
	l.pending = append(l.pending, parquet.NullValue().Level(rep, def, l.index))
}

// addElement adds element e of a list's field.
func (l *leafWriter) addElement(field Column, e int, repeated bool) {
	rep := 0
	if repeated {
		rep = 1
	}
	switch f := field.(type) {
	case *Flat[uint64]:
		addScalar(l, f, e, rep)
	case *Flat[int64]:
		addScalar(l, f, e, rep)
	case *Flat[int32]:
		addScalar(l, f, e, rep)
	case *Flat[string]:
		addScalar(l, f, e, rep)
	case *Flat[bool]:
		addScalar(l, f, e, rep)
	default:
		panic(fmt.Sprintf("column: a list of %T", field))
	}
}

func addScalar[T Scalar](l *leafWriter, f *Flat[T], e, rep int) {
	if f.Null[e] {
		l.addNull(rep, l.maxDef-1)
		return
	}
	l.add(scalarValue(f.Values, e), rep, l.maxDef)
}

func (l *leafWriter) flush() error {
	if len(l.pending) == 0 {
		return nil
	}
	_, err := l.w.WriteRowValues(l.pending)
	clear(l.pending)
	l.pending, l.pendingBytes = l.pending[:0], 0
	return err
}

// scalarValue returns values[i] as a Parquet value that shares its memory.
func scalarValue[T Scalar](values []T, i int) parquet.Value {
	switch v := any(values).(type) {
	case []int64:
		return parquet.Int64Value(v[i])
	case []uint64:
		return parquet.Int64Value(int64(v[i]))
	case []int32:
		return parquet.Int32Value(v[i])
	case []bool:
		return parquet.BooleanValue(v[i])
	default:
		s := any(values).([]string)[i]
		if s == "" {
			return parquet.ByteArrayValue([]byte{})
		}
		return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(s), len(s)))
	}
}
