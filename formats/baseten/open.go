package baseten

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"reprise/formats/source"
	"reprise/trace"
)

// A table is read once, batch by batch.
type table interface {
	kind() string // of the container, in words
	schema() *arrow.Schema
	// next returns the columns of the next rows and how many rows they hold,
	// valid until the next call; io.EOF at the end.
	next() ([]arrow.Array, int, error)
	close()
}

// maxPage bounds what one page of a Parquet file may unpack to, in bytes. A
// single prompt can fill a page.
const maxPage = 1 << 30

// open opens f by its first bytes.
func open(ctx context.Context, f *source.Source) (table, error) {
	at, size, err := f.ReaderAt()
	if err != nil {
		return nil, err
	}
	r, err := f.Open() // knows empty files and stand-ins for files
	if err != nil {
		return nil, err
	}
	var magic [6]byte
	n, err := io.ReadFull(r, magic[:])
	if err != nil && err != io.ErrUnexpectedEOF {
		r.Close()
		return nil, err
	}
	begins := func(s string) bool { return bytes.HasPrefix(magic[:n], []byte(s)) }
	if begins("\xff\xff\xff\xff") {
		t, err := openStream(io.MultiReader(bytes.NewReader(magic[:n]), r), r.Close)
		return t, damaged(f, "an Arrow IPC stream", err)
	}
	r.Close()
	switch {
	case begins("PAR1"):
		t, err := openParquet(ctx, at, size)
		return t, damaged(f, "Parquet", err)
	case begins("ARROW1"):
		t, err := openArrow(at, size)
		return t, damaged(f, "Arrow IPC", err)
	}
	return nil, trace.WithFix(fmt.Errorf("%s: neither Parquet nor Arrow IPC", f.Name), "a Baseten trace is one of these; name the file's own format with --format")
}

func damaged(f *source.Source, what string, err error) error {
	if err == nil {
		return nil
	}
	return trace.WithFix(fmt.Errorf("%s: begins like %s but cannot be read as such: %w", f.Name, what, err), "the file is truncated or damaged; fetch it again")
}

// guard turns a panic of the Arrow library, which it has for damaged files and
// for more than 2 GiB of text in one batch, into an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

type parquetTable struct {
	ctx    context.Context
	pf     *file.Reader
	fr     *pqarrow.FileReader
	sc     *arrow.Schema
	leaves []int
	fields []*pqarrow.ColumnReader // of the open row group
	group  int                     // next to open
	left   int64                   // rows left in the open one
	pace   pace
	cols   []arrow.Array
}

// openParquet reads column chunks as streams: neither a row group nor a chunk
// is ever held whole.
func openParquet(ctx context.Context, at io.ReaderAt, size int64) (t *parquetTable, err error) {
	defer guard(&err)
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled, props.BufferSize = true, 256<<10
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = min(size, maxPage), maxPage
	pf, err := file.NewParquetReader(io.NewSectionReader(at, 0, size), file.WithReadProps(props))
	if err != nil {
		return nil, err
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	sc, err := fr.Schema()
	if err != nil {
		return nil, err
	}
	t = &parquetTable{ctx: ctx, pf: pf, fr: fr, sc: sc}
	for i := range pf.MetaData().Schema.NumColumns() {
		t.leaves = append(t.leaves, i)
	}
	return t, nil
}

func (t *parquetTable) kind() string          { return "Parquet" }
func (t *parquetTable) schema() *arrow.Schema { return t.sc }

func (t *parquetTable) next() (cols []arrow.Array, n int, err error) {
	defer guard(&err)
	for t.left == 0 {
		if t.group >= t.pf.NumRowGroups() {
			return nil, 0, io.EOF
		}
		if err := t.openGroup(); err != nil {
			return nil, 0, err
		}
	}
	t.release()
	n = int(min(t.left, t.pace.rows()))
	for i, f := range t.fields {
		chunked, err := f.NextBatch(int64(n))
		if err != nil {
			return nil, 0, fmt.Errorf("column %s: %w", t.sc.Field(i).Name, err)
		}
		col, err := single(chunked)
		if err != nil {
			return nil, 0, fmt.Errorf("column %s: %w", t.sc.Field(i).Name, err)
		}
		if col.Len() != n {
			return nil, 0, fmt.Errorf("column %s: %d rows of %d", t.sc.Field(i).Name, col.Len(), n)
		}
		t.cols = append(t.cols, col)
	}
	t.left -= int64(n)
	t.pace.took(n, t.cols)
	return t.cols, n, nil
}

func (t *parquetTable) openGroup() error {
	t.releaseFields()
	fields, _, err := t.fr.GetFieldReaders(t.ctx, t.leaves, []int{t.group})
	if err != nil {
		return fmt.Errorf("row group %d: %w", t.group, err)
	}
	t.fields, t.left = fields, t.pf.MetaData().RowGroup(t.group).NumRows()
	t.group++
	return nil
}

func (t *parquetTable) release() {
	for _, c := range t.cols {
		c.Release()
	}
	t.cols = t.cols[:0]
}

func (t *parquetTable) releaseFields() {
	for _, f := range t.fields {
		f.Release()
	}
	t.fields = nil
}

func (t *parquetTable) close() {
	var err error
	defer guard(&err) // of a damaged file, after its error was returned
	t.release()
	t.releaseFields()
	t.pf.Close()
}

// single returns the column as one array and releases the chunks.
func single(c *arrow.Chunked) (arrow.Array, error) {
	defer c.Release()
	switch len(c.Chunks()) {
	case 0:
		return array.NewNull(0), nil
	case 1:
		c.Chunk(0).Retain()
		return c.Chunk(0), nil
	}
	return array.Concatenate(c.Chunks(), memory.DefaultAllocator)
}

// A pace sets how many rows are read at a time, by the size of those before:
// sizes in the file's footer say nothing of text that is stored once and
// repeated.
type pace struct{ n int64 }

// Bounds of a read.
const (
	firstRows = 16
	maxRows   = 4096
)

func (p *pace) rows() int64 {
	if p.n == 0 {
		p.n = firstRows
	}
	return p.n
}

// took notes that n rows filled cols.
func (p *pace) took(n int, cols []arrow.Array) {
	var size int64
	for _, c := range cols {
		size += int64(c.Data().SizeInBytes())
	}
	fit := int64(math.MaxInt64)
	if perRow := size / int64(max(n, 1)); perRow > 0 {
		fit = batchBytes / perRow
	}
	p.n = max(1, min(2*p.n, fit, maxRows))
}

type arrowTable struct {
	r     *ipc.FileReader
	unmap func()
	batch int
	rec   arrow.RecordBatch
}

// openArrow maps the file where it can, so that only the pages of a record
// batch that are read take memory; a compressed batch is unpacked whole.
func openArrow(at io.ReaderAt, size int64) (t *arrowTable, err error) {
	defer guard(&err)
	if err := source.VerifyArrowFile(at, size); err != nil {
		return nil, err
	}
	if data, unmap, ok := mapFile(at, size); ok {
		if r, err := mapped(data); err == nil {
			return &arrowTable{r: r, unmap: unmap}, nil
		}
		unmap()
	}
	r, err := ipc.NewFileReader(io.NewSectionReader(at, 0, size), ipc.WithBodySizeLimit(math.MaxInt64))
	if err != nil {
		return nil, err
	}
	return &arrowTable{r: r, unmap: func() {}}, nil
}

// mapped fails for files with dictionaries, for which arrow-go v18.8 panics.
func mapped(data []byte) (r *ipc.FileReader, err error) {
	defer guard(&err)
	return ipc.NewMappedFileReader(data, ipc.WithBodySizeLimit(math.MaxInt64))
}

func (t *arrowTable) kind() string          { return "Arrow IPC file" }
func (t *arrowTable) schema() *arrow.Schema { return t.r.Schema() }

func (t *arrowTable) next() (cols []arrow.Array, n int, err error) {
	defer guard(&err)
	t.release()
	if t.batch >= t.r.NumRecords() {
		return nil, 0, io.EOF
	}
	rec, err := t.r.RecordBatch(t.batch)
	if err != nil {
		return nil, 0, fmt.Errorf("record batch %d: %w", t.batch, err)
	}
	t.batch++
	t.rec = rec
	return checked(rec)
}

func (t *arrowTable) release() {
	if t.rec != nil {
		t.rec.Release()
		t.rec = nil
	}
}

func (t *arrowTable) close() {
	var err error
	defer guard(&err)
	defer t.unmap()
	t.release()
	t.r.Close()
}

type streamTable struct {
	r    *ipc.Reader
	done func() error
}

func openStream(r io.Reader, done func() error) (t *streamTable, err error) {
	defer guard(&err)
	defer func() {
		if t == nil {
			done()
		}
	}()
	if r, err = source.VerifyArrowStream(r); err != nil {
		return nil, err
	}
	reader, err := ipc.NewReader(r)
	if err != nil {
		return nil, err
	}
	return &streamTable{reader, done}, nil
}

func (t *streamTable) kind() string          { return "Arrow IPC stream" }
func (t *streamTable) schema() *arrow.Schema { return t.r.Schema() }

func (t *streamTable) next() (cols []arrow.Array, n int, err error) {
	defer guard(&err)
	if !t.r.Next() {
		if err := t.r.Err(); err != nil {
			return nil, 0, err
		}
		return nil, 0, io.EOF
	}
	return checked(t.r.RecordBatch())
}

func (t *streamTable) close() {
	var err error
	defer guard(&err)
	t.r.Release()
	t.done()
}

// checked tests the offsets of a record batch, which Arrow files may have
// wrong, before cells are read.
func checked(rec arrow.RecordBatch) ([]arrow.Array, int, error) {
	for i, col := range rec.Columns() {
		if err := validate(col); err != nil {
			return nil, 0, fmt.Errorf("column %s: %w", rec.ColumnName(i), err)
		}
	}
	return rec.Columns(), int(rec.NumRows()), nil
}

func validate(a arrow.Array) error {
	if v, ok := a.(interface{ ValidateFull() error }); ok {
		if err := v.ValidateFull(); err != nil {
			return err
		}
	}
	switch a := a.(type) {
	case *array.Dictionary:
		for i := range a.Len() {
			if v := 0; a.IsValid(i) {
				if v = a.GetValueIndex(i); v < 0 || v >= a.Dictionary().Len() {
					return fmt.Errorf("entry %d of a dictionary of %d", v, a.Dictionary().Len())
				}
			}
		}
		return validate(a.Dictionary())
	case array.ListLike:
		return validate(a.ListValues())
	case array.ExtensionArray:
		return validate(a.Storage())
	}
	return nil
}
