package baseten_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"reprise/formats/baseten"
)

// TestListNames reads the nestings that writers give a list: of two and of
// three levels, under any names, and a repeated column that is not marked as a
// list.
func TestListNames(t *testing.T) {
	reps := parquet.Repetitions
	leaf := func(name string, r parquet.Repetition) schema.Node { return schema.NewInt64Node(name, r, -1) }
	list := func(elements schema.Node) schema.Node {
		return must(schema.NewGroupNodeLogical("total_hashes", reps.Optional, schema.FieldList{elements}, schema.NewListLogicalType(), -1))
	}
	three := func(middle, element string) schema.Node {
		return list(must(schema.NewGroupNode(middle, reps.Repeated, schema.FieldList{leaf(element, reps.Optional)}, -1)))
	}
	for name, hashes := range map[string]schema.Node{
		"list.element": three("list", "element"), "list.item": three("list", "item"), "bag.array_element": three("bag", "array_element"), "list.array": three("list", "array"),
		"array": list(leaf("array", reps.Repeated)), "total_hashes_tuple": list(leaf("total_hashes_tuple", reps.Repeated)), "repeated": leaf("total_hashes", reps.Repeated),
	} {
		t.Run(name, func(t *testing.T) {
			root := must(schema.NewGroupNode("trace", reps.Required, schema.FieldList{
				hashes, leaf("timestamp_start_unix_ms", reps.Required), must(schema.NewPrimitiveNodeLogical("prompt", reps.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1)),
				leaf("input_tokens", reps.Required), leaf("output_tokens", reps.Required), leaf("block_size", reps.Required),
			}, -1))
			in := mustImport(t, &baseten.Importer{}, "x.parquet", lowLevel(t, root, [][]int64{{5, -6}, {}, {7}}))
			if len(in.rows) != 3 || fmt.Sprint(in.rows[0].Blocks, in.rows[1].Blocks, in.rows[2].Blocks) != "[5 18446744073709551610] [] [7]" || in.rows[1].Blocks == nil {
				t.Errorf("rows: %s", lines(t, in.rows))
			}
		})
	}
}

// lowLevel writes rows with the given hashes, level by level.
func lowLevel(t *testing.T, root *schema.GroupNode, lists [][]int64) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := file.NewParquetWriter(&buf, root)
	rows := must(w.AppendRowGroupChecked())
	for range root.NumFields() {
		var err error
		switch c := must(rows.NextColumn()).(type) {
		case *file.ByteArrayColumnChunkWriter:
			_, err = c.WriteBatch([]parquet.ByteArray{[]byte("a"), []byte("b"), []byte("c")}, nil, nil)
		case *file.Int64ColumnChunkWriter:
			full := c.Descr().MaxDefinitionLevel()
			if full == 0 {
				_, err = c.WriteBatch([]int64{64, 65, 66}, nil, nil)
				break
			}
			var values []int64
			var def, rep []int16
			for _, ids := range lists {
				if len(ids) == 0 {
					def, rep = append(def, min(full-1, 1)), append(rep, 0)
				}
				for e, id := range ids {
					values, def, rep = append(values, id), append(def, full), append(rep, int16(min(e, 1)))
				}
			}
			_, err = c.WriteBatch(values, def, rep)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
