package column

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The footer, which is put together group by group, is what Thrift makes of the whole.
func TestFooter(t *testing.T) {
	type row struct {
		A int64  `parquet:"a,delta"`
		B string `parquet:"b,optional,dict"`
	}
	for _, groups := range []int{0, 1, 14, 15, 200} {
		var out bytes.Buffer
		w := NewWriter(&out, parquet.SchemaOf(row{}), "test", "b")
		w.SetMetadata("k", "v")
		a, b := new(Flat[int64]), new(Flat[string])
		for i := range groups {
			a.Append(int64(i))
			b.AppendIf("x", i%2 == 0)
			if err := w.Write([]Column{a, b}); err != nil {
				t.Fatal(err)
			}
			if err := w.endRowGroup(); err != nil {
				t.Fatal(err)
			}
			a.Reset()
			b.Reset()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text := out.Bytes()
		f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(f.RowGroups()); n != groups || f.NumRows() != int64(groups) {
			t.Errorf("%d row groups of %d rows, want %d", n, f.NumRows(), groups)
		}
		want, err := new(compactor).compact(f.Metadata())
		if err != nil {
			t.Fatal(err)
		}
		size := int(binary.LittleEndian.Uint32(text[len(text)-8:]))
		if got := text[len(text)-8-size : len(text)-8]; !bytes.Equal(got, want) {
			t.Errorf("%d groups: the footer has %d bytes, want %d", groups, len(got), len(want))
		}
	}
}
