package column

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what is held in memory before it goes to the file.
const (
	DefaultRowGroupBytes = 16 << 20 // rough bytes of values before encoding
	DefaultRowGroupRows  = 1 << 18
	pageBytes            = 256 << 10 // of values before encoding; a page holds whole rows
	dictionaryBytes      = 1 << 20   // of a chunk's distinct values; above, the rest is stored plain
)

const magic = "PAR1"

// A Writer writes batches of columns into one Parquet file with row groups of
// bounded size, statistics and page index. It encodes whole runs of a column at
// a time: values do not pass through a row or a variant type.
//
// Data pages are version 1, whose codec also takes the levels: those of lists
// are much alike, and would be most of a ledger's bytes.
type Writer struct {
	w      io.Writer
	offset int64
	leaves []leafWriter
	meta   format.FileMetaData
	fresh  format.FileMetaData // meta of a file without rows
	groups []rowGroup
	rows   int // in the open row group
	bytes  int // likewise
	thrift compactor
	index  []*chunkIndex // scratch
}

// NewWriter starts a file. noBounds names columns (their top level) for which
// no minimum and maximum are kept, such as long texts.
func NewWriter(w io.Writer, schema *parquet.Schema, createdBy string, noBounds ...string) *Writer {
	out := &Writer{fresh: fileMeta(schema, createdBy)}
	for _, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		out.leaves = append(out.leaves, newLeafWriter(path, leaf, !slices.Contains(noBounds, path[0])))
	}
	out.Reset(w)
	return out
}

// Reset starts another file with the memory of the one before, which must have
// been closed without an error.
func (w *Writer) Reset(out io.Writer) {
	w.w, w.offset, w.rows, w.bytes = out, 0, 0, 0
	w.meta, w.groups = w.fresh, nil
	w.meta.KeyValueMetadata = slices.Clone(w.fresh.KeyValueMetadata)
}

// fileMeta returns the metadata of a file without rows, as parquet-go writes it.
func fileMeta(schema *parquet.Schema, createdBy string) format.FileMetaData {
	var empty bytes.Buffer
	w := parquet.NewGenericWriter[any](&empty, schema, parquet.CreatedBy("reprise", createdBy, ""))
	if err := w.Close(); err != nil {
		panic(fmt.Sprintf("column: %v", err))
	}
	f, err := parquet.OpenFile(bytes.NewReader(empty.Bytes()), int64(empty.Len()))
	if err != nil {
		panic(fmt.Sprintf("column: %v", err))
	}
	return *f.Metadata()
}

// SetMetadata sets a key of the file's metadata; the last value holds.
func (w *Writer) SetMetadata(key, value string) {
	for i := range w.meta.KeyValueMetadata {
		if w.meta.KeyValueMetadata[i].Key == key {
			w.meta.KeyValueMetadata[i].Value = value
			return
		}
	}
	w.meta.KeyValueMetadata = append(w.meta.KeyValueMetadata, format.KeyValue{Key: key, Value: value})
}

// Write appends the rows of a batch, whose columns are in schema order.
func (w *Writer) Write(cols []Column) error {
	if len(cols) == 0 {
		return nil
	}
	n := cols[0].Len()
	for _, c := range cols {
		if c.Len() != n {
			return fmt.Errorf("column: batch with %d and %d rows", n, c.Len())
		}
	}
	for from := 0; from < n; {
		to, size := w.fit(cols, from, n)
		leaf := 0
		for _, c := range cols {
			c.write(w.leaves[leaf:leaf+c.Leaves()], from, to)
			leaf += c.Leaves()
		}
		w.rows, w.bytes = w.rows+to-from, w.bytes+size
		if w.rows >= DefaultRowGroupRows || w.bytes >= DefaultRowGroupBytes {
			if err := w.endRowGroup(); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// fit returns up to which row the batch goes to the open row group, at least
// one row, and the bytes of these rows. It does not depend on how the rows are
// cut to batches.
func (w *Writer) fit(cols []Column, from, n int) (to, size int) {
	rows := min(n-from, DefaultRowGroupRows-w.rows)
	of := func(rows int) (size int) {
		for _, c := range cols {
			size += c.RowsBytes(from, from+rows)
		}
		return size
	}
	if size = of(rows); w.bytes+size >= DefaultRowGroupBytes {
		rows = 1 + sort.Search(rows-1, func(i int) bool { return w.bytes+of(i+1) >= DefaultRowGroupBytes })
		size = of(rows)
	}
	return from + rows, size
}

// endRowGroup writes the chunks of the open row group.
func (w *Writer) endRowGroup() error {
	if w.rows == 0 {
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	group := format.RowGroup{NumRows: int64(w.rows), FileOffset: w.offset, Ordinal: int16(len(w.groups))}
	index := w.index[:0]
	for _, l := range w.leaves {
		dict, data, chunk, places := l.endChunk(w.offset)
		if err := w.put(dict); err != nil {
			return err
		}
		for _, piece := range data {
			if err := w.put(piece); err != nil {
				return err
			}
		}
		group.TotalByteSize += chunk.MetaData.TotalUncompressedSize
		group.TotalCompressedSize += chunk.MetaData.TotalCompressedSize
		group.Columns = append(group.Columns, chunk)
		index = append(index, places)
	}
	w.rows, w.bytes, w.index = 0, 0, index
	if err := w.keep(&group, index); err != nil {
		return err
	}
	for _, l := range w.leaves {
		l.reset()
	}
	return nil
}

// begin writes what a file begins with, once.
func (w *Writer) begin() error {
	if w.offset > 0 {
		return nil
	}
	return w.put([]byte(magic))
}

func (w *Writer) put(b []byte) error {
	n, err := w.w.Write(b)
	w.offset += int64(n)
	return err
}

// Close writes what is left and the footer; it does not close the file below.
func (w *Writer) Close() error {
	if err := w.endRowGroup(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	return w.putFooter()
}
