package column

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// A Reader reads the rows of a Parquet file into batches of columns.
type Reader struct {
	file   *parquet.File
	paths  [][]string
	leaves []*leafReader // nil where the file lacks the column
	groups []parquet.RowGroup
	group  int // next to open
	left   int // rows left in the open group
}

// NewReader reads the leaves of schema from file, in schema order. A leaf that
// the file lacks reads as null; one of another physical type is an error that
// names it.
func NewReader(file *parquet.File, schema *parquet.Schema) (*Reader, error) {
	r := &Reader{file: file, paths: schema.Columns(), groups: file.RowGroups()}
	for _, path := range schema.Columns() {
		want, _ := schema.Lookup(path...)
		got, ok := file.Schema().Lookup(path...)
		if !ok {
			r.leaves = append(r.leaves, nil)
			continue
		}
		if got.Node.Type().Kind() != want.Node.Type().Kind() {
			return nil, fmt.Errorf("column %s: type %s, want %s", path[0], got.Node.Type(), want.Node.Type())
		}
		if got.MaxRepetitionLevel != want.MaxRepetitionLevel || got.MaxDefinitionLevel > want.MaxDefinitionLevel {
			return nil, fmt.Errorf("column %s: nested otherwise than schema 1", path[0])
		}
		r.leaves = append(r.leaves, &leafReader{column: got.ColumnIndex, maxDef: byte(got.MaxDefinitionLevel)})
	}
	return r, nil
}

// Only leaves out all columns but these, top level names of the schema that the
// reader was made with; what is left out reads as null. To be called before the
// first Read.
func (r *Reader) Only(names ...string) error {
	for _, name := range names {
		if !slices.ContainsFunc(r.paths, func(path []string) bool { return path[0] == name }) {
			return fmt.Errorf("no column %s", name)
		}
	}
	for i, path := range r.paths {
		if !slices.Contains(names, path[0]) {
			r.leaves[i] = nil
		}
	}
	return nil
}

// Read appends up to n rows to cols, which are in schema order, and returns how
// many; 0 and io.EOF at the end. Damaged bytes are an error: parquet-go trusts
// the counts in page headers, and panics on those that cannot be.
func (r *Reader) Read(cols []Column, n int) (rows int, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = 0, fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	for r.left == 0 {
		if r.group >= len(r.groups) {
			return 0, io.EOF
		}
		if err := r.open(r.groups[r.group]); err != nil {
			return 0, err
		}
		r.group++
	}
	n = min(n, r.left)
	leaf := 0
	for _, c := range cols {
		if err := c.read(r.leaves[leaf:leaf+c.Leaves()], n); err != nil {
			return 0, err
		}
		leaf += c.Leaves()
	}
	r.left -= n
	return n, nil
}

func (r *Reader) open(g parquet.RowGroup) error {
	chunks := g.ColumnChunks()
	for _, l := range r.leaves {
		if l == nil {
			continue
		}
		if err := l.close(); err != nil {
			return err
		}
		l.pages = chunks[l.column].Pages()
	}
	r.left = int(g.NumRows())
	return nil
}

// Close lets go of the open pages; it does not close the file below.
func (r *Reader) Close() error {
	var err error
	for _, l := range r.leaves {
		if l != nil {
			err = errors.Join(err, l.close())
		}
	}
	return err
}

// A leafReader walks the pages of one leaf in one row group.
type leafReader struct {
	column int
	maxDef byte
	pages  parquet.Pages
	page   parquet.Page
	rep    []byte
	def    []byte
	count  int // levels in the page
	pos    int // next level
	value  int // next value

	values    any     // of the page, or of the dictionary, as a slice; nil until they are asked for
	positions []int32 // of the page's values in the dictionary; nil if they are not in one
	dict      parquet.Dictionary
	table     any // its values
}

// fill makes sure that the page has a level left; io.ErrUnexpectedEOF if the
// row group has no more.
func (l *leafReader) fill() error {
	for l.page == nil || l.pos >= l.count {
		l.release()
		page, err := l.pages.ReadPage()
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		l.page, l.rep, l.def = page, page.RepetitionLevels(), page.DefinitionLevels()
		l.count, l.pos, l.value, l.values = int(page.NumValues()), 0, 0, nil
	}
	return nil
}

func (l *leafReader) release() {
	if l.page != nil {
		parquet.Release(l.page)
		l.page = nil
	}
}

func (l *leafReader) close() error {
	l.release()
	l.dict, l.table, l.values = nil, nil, nil
	if l.pages == nil {
		return nil
	}
	err := l.pages.Close()
	l.pages = nil
	return err
}

// appendValues appends the next n values of the open page, nulls left out.
func appendValues[T Scalar](dst []T, l *leafReader, n int) []T {
	values, positions := pageValues[T](l)
	from, to := l.value, l.value+n
	l.value = to
	at := len(dst)
	dst = room(dst, n)[:at+n]
	if positions == nil {
		copy(dst[at:], values[from:to])
		return dst
	}
	for i, p := range positions[from:to] {
		dst[at+i] = values[p]
	}
	return dst
}

// pageValues returns the values of the open page; with positions, the values are
// those of the dictionary.
func pageValues[T Scalar](l *leafReader) (values []T, positions []int32) {
	if l.values == nil {
		openValues[T](l)
	}
	return l.values.([]T), l.positions
}

// openValues finds the values of the open page, or their positions in the
// dictionary of its chunk.
func openValues[T Scalar](l *leafReader) {
	dict := l.page.Dictionary()
	if dict == nil {
		l.values, l.positions = plainValues[T](l.page), nil
		return
	}
	if dict != l.dict {
		l.dict, l.table = dict, plainValues[T](dict.Page())
	}
	data := l.page.Data()
	l.values, l.positions = l.table, data.Int32()
	if l.positions == nil {
		l.positions = []int32{}
	}
}

// plainValues returns the values of a page without a dictionary.
func plainValues[T Scalar](p parquet.Page) any {
	var zero T
	data := p.Data()
	switch any(zero).(type) {
	case int64:
		return data.Int64()
	case uint64:
		return data.Uint64()
	case int32:
		return data.Int32()
	case bool:
		return pageBools(data.Boolean(), int(p.NumValues()-p.NumNulls()))
	default:
		return pageStrings(data.ByteArray())
	}
}

// pageBools unpacks n bits.
func pageBools(packed []byte, n int) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = packed[i/8]>>(i%8)&1 != 0
	}
	return out
}

// pageStrings copies a page's text once; the strings share the copy.
func pageStrings(data []byte, offsets []uint32) []string {
	text := string(data)
	out := make([]string, 0, len(offsets))
	for i := 1; i < len(offsets); i++ {
		out = append(out, text[offsets[i-1]:offsets[i]])
	}
	return out
}
