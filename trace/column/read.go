package column

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// A Reader reads the rows of a Parquet file into batches of columns.
type Reader struct {
	file   *parquet.File
	leaves []*leafReader // nil where the file lacks the column
	groups []parquet.RowGroup
	group  int // next to open
	left   int // rows left in the open group
}

// NewReader reads the leaves of schema from file, in schema order. A leaf that
// the file lacks reads as null; one of another physical type is an error that
// names it.
func NewReader(file *parquet.File, schema *parquet.Schema) (*Reader, error) {
	r := &Reader{file: file, groups: file.RowGroups()}
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
	typed  any // the page's values as a slice, made once

	dict        parquet.Dictionary
	dictStrings []string
}

func (l *leafReader) levels() int { return l.count }

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
		l.count, l.pos, l.value, l.typed = int(page.NumValues()), 0, 0, nil
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
	l.dict, l.dictStrings = nil, nil
	if l.pages == nil {
		return nil
	}
	err := l.pages.Close()
	l.pages = nil
	return err
}

// readList appends n rows of a repeated leaf to field; ends, if not nil, is
// called at the end of each row.
func (l *leafReader) readList(field Column, n int, ends func(known bool)) error {
	switch f := field.(type) {
	case *Flat[uint64]:
		return readElements(l, f, n, ends)
	case *Flat[int64]:
		return readElements(l, f, n, ends)
	case *Flat[int32]:
		return readElements(l, f, n, ends)
	case *Flat[string]:
		return readElements(l, f, n, ends)
	case *Flat[bool]:
		return readElements(l, f, n, ends)
	default:
		panic(fmt.Sprintf("column: a list of %T", field))
	}
}

func readElements[T Scalar](l *leafReader, f *Flat[T], n int, ends func(known bool)) error {
	rows, known := 0, true
	end := func() {
		if rows > 0 && ends != nil {
			ends(known)
		}
	}
	for {
		err := l.fill()
		if err == io.ErrUnexpectedEOF && rows == n {
			break
		}
		if err != nil {
			return err
		}
		values := pageValues[T](l)
		for ; l.pos < l.count; l.pos++ {
			if l.rep[l.pos] == 0 {
				if rows == n {
					end()
					return nil
				}
				end()
				rows++
				known = l.def[l.pos] > 0
			}
			switch d := l.def[l.pos]; {
			case d == l.maxDef:
				f.Append(values[l.value])
				l.value++
			case d >= 2:
				f.AppendNull()
			}
		}
	}
	end()
	return nil
}

// pageValues returns the values of the open page, without nulls.
func pageValues[T Scalar](l *leafReader) []T {
	if l.typed == nil {
		var zero T
		switch any(zero).(type) {
		case int64:
			l.typed = pageInts(l, func(p parquet.Page) []int64 { d := p.Data(); return d.Int64() })
		case uint64:
			l.typed = pageInts(l, func(p parquet.Page) []uint64 { d := p.Data(); return d.Uint64() })
		case int32:
			l.typed = pageInts(l, func(p parquet.Page) []int32 { d := p.Data(); return d.Int32() })
		case bool:
			l.typed = l.bools()
		default:
			l.typed = l.strings()
		}
	}
	return l.typed.([]T)
}

// pageInts resolves a dictionary, if the page has one (foreign rewrites do).
func pageInts[T int64 | uint64 | int32](l *leafReader, plain func(parquet.Page) []T) []T {
	dict := l.page.Dictionary()
	if dict == nil {
		return plain(l.page)
	}
	table := plain(dict.Page())
	data := l.page.Data()
	out := make([]T, 0, len(data.Int32()))
	for _, i := range data.Int32() {
		out = append(out, table[i])
	}
	return out
}

func (l *leafReader) bools() []bool {
	n := int(l.page.NumValues() - l.page.NumNulls())
	values := make([]parquet.Value, l.count)
	m, _ := l.page.Values().ReadValues(values)
	out := make([]bool, 0, n)
	for _, v := range values[:m] {
		if !v.IsNull() {
			out = append(out, v.Boolean())
		}
	}
	return out
}

func (l *leafReader) strings() []string {
	dict := l.page.Dictionary()
	if dict == nil {
		return pageStrings(l.page)
	}
	if dict != l.dict {
		l.dict, l.dictStrings = dict, pageStrings(dict.Page())
	}
	data := l.page.Data()
	out := make([]string, 0, len(data.Int32()))
	for _, i := range data.Int32() {
		out = append(out, l.dictStrings[i])
	}
	return out
}

// pageStrings copies a page's text once; the strings share the copy.
func pageStrings(p parquet.Page) []string {
	values := p.Data()
	data, offsets := values.ByteArray()
	text := string(data)
	var out []string
	for i := 1; i < len(offsets); i++ {
		out = append(out, text[offsets[i-1]:offsets[i]])
	}
	return out
}
