package column_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/parquet-go/parquet-go"

	"reprise/trace/column"
)

type pair struct {
	At    int64  `parquet:"at,delta,zstd"`
	Word  string `parquet:"word,dict,zstd"`
	Count int32  `parquet:"count,optional,delta"`
	Yes   bool   `parquet:"yes,zstd"`
}

type fileRow struct {
	ID    int64    `parquet:"id,delta"`
	Size  int32    `parquet:"size,optional,dict"`
	Text  string   `parquet:"text,optional,zstd"`
	Name  string   `parquet:"name,optional,dict"`
	On    bool     `parquet:"on,optional"`
	IDs   []uint64 `parquet:"ids,list,optional" parquet-element:",delta"`
	Pairs []pair   `parquet:"pairs,list,optional"`
}

var schema = parquet.NewSchema("row", parquet.SchemaOf(fileRow{}))

// table is one column of each kind.
type table struct {
	id         column.Flat[int64]
	size       column.Flat[int32]
	text, name column.Flat[string]
	on         column.Flat[bool]
	ids, pairs *column.List
	at         column.Flat[int64]
	word       column.Words
	count      column.Flat[int32]
	yes        column.Flat[bool]
	cols       []column.Column
}

func newTable() *table {
	t := &table{}
	t.ids = column.NewList(new(column.Flat[uint64]))
	t.pairs = column.NewList(&t.at, &t.word, &t.count, &t.yes)
	t.cols = []column.Column{&t.id, &t.size, &t.text, &t.name, &t.on, t.ids, t.pairs}
	return t
}

// fill appends n rows; names says how many distinct names there are.
func (t *table) fill(n, names int, r *rand.Rand) {
	known := func() bool { return r.IntN(4) > 0 }
	for range n {
		t.id.Append(r.Int64N(1000) - 500)
		t.size.AppendIf(r.Int32N(3), known())
		t.text.AppendIf(strings.Repeat("é", r.IntN(90)), known())
		t.name.AppendIf(fmt.Sprintf("name %0150d", r.IntN(names)), known())
		t.on.AppendIf(r.IntN(2) > 0, known())
		for range r.IntN(5) * r.IntN(9) {
			t.ids.Fields[0].(*column.Flat[uint64]).Append(r.Uint64() >> r.IntN(64))
		}
		t.ids.EndRow(known()) // unknown lists may hold elements, which are not stored
		for i := range r.IntN(5) * r.IntN(40) {
			t.at.Append(int64(i*1000 + r.IntN(500)))
			t.word.Extend(1)[0] = t.word.Place([]string{"one", "two", ""}[r.IntN(3)])
			t.count.AppendIf(1, r.IntN(50) > 0)
			t.yes.Append(r.IntN(9) == 0)
		}
		t.pairs.EndRow(known())
	}
}

// rows shows all values, so that tables can be compared.
func (t *table) rows() (out []string) {
	for i := range t.id.Len() {
		row := fmt.Sprintln(t.id.Values[i], t.id.Null[i])
		for _, c := range []*column.Flat[string]{&t.text, &t.name} {
			v, known := c.Get(i)
			row += fmt.Sprintln(v, known)
		}
		size, sizeKnown := t.size.Get(i)
		on, onKnown := t.on.Get(i)
		row += fmt.Sprintln(size, sizeKnown, on, onKnown)
		from, to, known := t.ids.Range(i)
		row += fmt.Sprintln(known)
		for e := from; known && e < to; e++ {
			row += fmt.Sprintln(t.ids.Fields[0].(*column.Flat[uint64]).Get(e))
		}
		from, to, known = t.pairs.Range(i)
		row += fmt.Sprintln(known)
		for e := from; known && e < to; e++ {
			count, countKnown := t.count.Get(e)
			row += fmt.Sprintln(t.at.Values[e], t.word.Get(e), count, countKnown, t.yes.Values[e])
		}
		out = append(out, row)
	}
	return out
}

func write(t *testing.T, batches ...*table) []byte {
	t.Helper()
	var b bytes.Buffer
	w := column.NewWriter(&b, schema, "1")
	for _, batch := range batches {
		if err := w.Write(batch.cols); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t *testing.T, data []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// read reads all rows, n at a time.
func read(t *testing.T, data []byte, n int, only ...string) *table {
	t.Helper()
	r, err := column.NewReader(open(t, data), schema)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(only) > 0 {
		if err := r.Only(only...); err != nil {
			t.Fatal(err)
		}
	}
	out := newTable()
	for {
		_, err := r.Read(out.cols, n)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Rows read back equal, however they are cut to batches, with few names and
// with more than a dictionary takes.
func TestRoundTrip(t *testing.T) {
	for _, names := range []int{1, 40, 60_000} {
		r := rand.New(rand.NewPCG(1, uint64(names)))
		one, two := newTable(), newTable()
		rows := 3000
		if names > 1000 {
			rows = 12_000
		}
		one.fill(rows, names, r)
		two.fill(1, names, r)
		data := write(t, one, two)
		want := append(one.rows(), two.rows()...)
		for _, n := range []int{7, 1000, 1 << 20} {
			if got := read(t, data, n).rows(); !reflect.DeepEqual(got, want) {
				t.Fatalf("%d names, %d rows at a time: rows differ", names, n)
			}
		}
	}
}

// The rows are the same through the row interface of parquet-go, and arrow-go
// reads all columns.
func TestAnotherReader(t *testing.T) {
	in := newTable()
	in.fill(2000, 40, rand.New(rand.NewPCG(3, 4)))
	data := write(t, in)
	rows, err := parquet.Read[fileRow](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		text, _ := in.text.Get(i)
		from, to, known := in.pairs.Range(i)
		if row.ID != in.id.Values[i] || row.Text != text || known && len(row.Pairs) != to-from {
			t.Fatalf("row %d: %+v", i, row)
		}
		for k, p := range row.Pairs {
			if e := from + k; p.At != in.at.Values[e] || p.Word != in.word.Get(e) || p.Yes != in.yes.Values[e] {
				t.Fatalf("row %d, pair %d: %+v", i, k, p)
			}
		}
	}
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	arrow, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	got, err := arrow.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.NumRows() != 2000 || got.NumCols() != 7 {
		t.Errorf("arrow-go reads %d rows of %d columns", got.NumRows(), got.NumCols())
	}
}

func TestOnly(t *testing.T) {
	in := newTable()
	in.fill(100, 5, rand.New(rand.NewPCG(5, 6)))
	data := write(t, in)
	got := read(t, data, 64, "id", "ids")
	if !reflect.DeepEqual(got.id.Values, in.id.Values) {
		t.Error("ids differ")
	}
	for i := range 100 {
		_, text := got.text.Get(i)
		_, _, pairs := got.pairs.Range(i)
		_, _, ids := got.ids.Range(i)
		if text || pairs || ids == in.ids.Null[i] {
			t.Fatalf("row %d: text %v, pairs %v, ids %v", i, text, pairs, ids)
		}
	}
	r, err := column.NewReader(open(t, data), schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Only("id", "idz"); err == nil || err.Error() != "no column idz" {
		t.Errorf("a column that is not there: %v", err)
	}
}

// A copy of large row groups is the same rows, with what came before and after.
func TestCopy(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	small, large := newTable(), newTable()
	small.fill(10, 5, r)
	large.fill(12_000, 200, r)
	var b bytes.Buffer
	w := column.NewWriter(&b, schema, "1")
	if err := w.Write(small.cols); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		of     *table
		copied bool
	}{{small, false}, {large, true}, {large, true}} {
		data := write(t, part.of)
		copied, err := w.Copy(open(t, data), bytes.NewReader(data))
		if err != nil || copied != part.copied {
			t.Fatalf("copied %v, %v, want %v", copied, err, part.copied)
		}
	}
	if err := w.Write(small.cols); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := append(append(append(small.rows(), large.rows()...), large.rows()...), small.rows()...)
	if got := read(t, b.Bytes(), 999).rows(); !reflect.DeepEqual(got, want) {
		t.Error("rows differ")
	}
	if f := open(t, b.Bytes()); len(f.RowGroups()) != 4 || len(f.OffsetIndexes()) != 4*len(schema.Columns()) {
		t.Errorf("%d row groups", len(f.RowGroups()))
	}
}

// Bounds of pages and of chunks hold all values, also where a text is cut.
func TestBounds(t *testing.T) {
	in := newTable()
	in.fill(40_000, 40, rand.New(rand.NewPCG(9, 10)))
	f := open(t, write(t, in))
	pages := 0
	for g, group := range f.RowGroups() {
		for c, chunk := range group.ColumnChunks() {
			index, err := chunk.ColumnIndex()
			if err != nil {
				t.Fatal(err)
			}
			reader := chunk.Pages()
			for p := 0; ; p++ {
				page, err := reader.ReadPage()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				pages++
				least, most, known := page.Bounds()
				if known == index.NullPage(p) || page.NumNulls() != index.NullCount(p) {
					t.Fatalf("group %d, column %d, page %d: nulls", g, c, p)
				}
				if !known {
					continue
				}
				compare := chunk.Type().Compare
				if compare(index.MinValue(p), least) > 0 || compare(index.MaxValue(p), most) < 0 {
					t.Fatalf("group %d, column %d, page %d: %v to %v, bounds %v to %v", g, c, p, least, most, index.MinValue(p), index.MaxValue(p))
				}
			}
			reader.Close()
		}
	}
	if pages < 20 {
		t.Errorf("only %d pages", pages)
	}
}
