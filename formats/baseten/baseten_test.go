package baseten_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"reprise/formats/baseten"
	"reprise/formats/source"
	"reprise/trace"
)

var update = flag.Bool("update", false, "rewrite golden files")

const testdata = "../../testdata/baseten"

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		if err := os.MkdirAll(testdata, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs:\n%s", name, got)
	}
}

// TestSample imports the two sample files, the plain table as Parquet and as
// Arrow IPC, and holds the canonical rows and what the import said.
func TestSample(t *testing.T) {
	rec := record(t, plainTypes(), plain())
	for _, s := range []struct {
		name string
		make func() []byte
	}{
		{"sample.parquet", func() []byte { return asParquet(t, rec, parquet.WithCompression(compress.Codecs.Zstd)) }},
		{"sample.arrow", func() []byte { return asArrow(t, rec) }},
	} {
		path := filepath.Join(testdata, s.name)
		if *update {
			os.MkdirAll(testdata, 0o755)
			if err := os.WriteFile(path, s.make(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		src := source.New(path, nil)
		defer src.Close()
		h, err := src.Head()
		if err != nil {
			t.Fatal(err)
		}
		evidence, ok := baseten.Detect(h)
		if !ok {
			t.Errorf("%s is not detected", s.name)
		}
		out, err := tryImport(t, &baseten.Importer{}, src)
		if err != nil {
			t.Fatal(err)
		}
		out.meta.History = nil
		meta, _ := json.MarshalIndent(out.meta, "", "  ")
		golden(t, strings.ReplaceAll(s.name, ".", "_")+".golden", evidence+"\n"+lines(t, out.rows)+string(meta)+"\n")
	}
}

var utc = "UTC"

// variants are the physical types of the plain table.
func variants() map[string][]arrow.Field {
	p := arrow.PrimitiveTypes
	dict := func(v arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: p.Int32, ValueType: v}
	}
	all := func(t arrow.DataType, names ...string) map[string]arrow.DataType {
		m := map[string]arrow.DataType{}
		for _, n := range names {
			m[n] = t
		}
		return m
	}
	ints := []string{"input_tokens", "output_tokens", "block_size", "duration_e2e_ms", "duration_ttft_ms", "cached_tokens_reference", "total_hashes_len"}
	texts := []string{"prompt", "provided_session_id", "model_name", "org_id", "features", "output_text", "__version__"}
	stamp := func(u arrow.TimeUnit, zone string) []arrow.Field {
		return retyped(all(&arrow.TimestampType{Unit: u, TimeZone: zone}, "timestamp_start_unix_ms"))
	}
	small := all(p.Int16, ints...)
	small["timestamp_start_unix_ms"], small["request_canceled"], small["poor_man_session_id"], small["org_id"] = p.Uint64, p.Int8, p.Uint32, p.Uint8
	reversed := plainTypes()
	slices.Reverse(reversed)
	return map[string][]arrow.Field{
		"plain":                plainTypes(),
		"int16":                retyped(small),
		"int32":                retyped(all(p.Int32, append(ints, "request_canceled", "provided_session_id", "poor_man_session_id")...)),
		"uint16":               retyped(all(p.Uint16, append(ints, "request_canceled", "poor_man_session_id")...)),
		"uint32":               retyped(all(p.Uint32, ints...)),
		"uint64":               retyped(all(p.Uint64, append(ints, "timestamp_start_unix_ms", "provided_session_id")...)),
		"double, NaN":          retyped(all(p.Float64, append(ints, "timestamp_start_unix_ms", "request_canceled", "provided_session_id", "poor_man_session_id", "org_id")...)),
		"float":                retyped(all(p.Float32, append(ints, "speculation_ratio")...)),
		"bool flag":            retyped(all(arrow.FixedWidthTypes.Boolean, "request_canceled")),
		"numeric ids":          retyped(all(p.Int64, "provided_session_id", "org_id")),
		"text ids":             retyped(all(arrow.BinaryTypes.String, "poor_man_session_id")),
		"timestamp[s]":         stamp(arrow.Second, ""),
		"timestamp[ms]":        stamp(arrow.Millisecond, ""),
		"timestamp[us, UTC]":   stamp(arrow.Microsecond, utc),
		"timestamp[ns, UTC]":   stamp(arrow.Nanosecond, utc),
		"large_string":         retyped(all(arrow.BinaryTypes.LargeString, texts...)),
		"binary":               retyped(all(arrow.BinaryTypes.Binary, texts...)),
		"large_binary":         retyped(all(arrow.BinaryTypes.LargeBinary, texts...)),
		"dictionary":           retyped(all(dict(arrow.BinaryTypes.String), texts...)),
		"list<uint64>":         retyped(all(arrow.ListOf(p.Uint64), "total_hashes")),
		"large_list<int64>":    retyped(all(arrow.LargeListOf(p.Int64), "total_hashes")),
		"large_list<uint64>":   retyped(all(arrow.LargeListOf(p.Uint64), "total_hashes")),
		"list named item":      retyped(all(arrow.ListOfField(arrow.Field{Name: "item", Type: p.Int64, Nullable: true}), "total_hashes")),
		"list of not null":     retyped(all(arrow.ListOfNonNullable(p.Int64), "total_hashes")),
		"columns in disorder":  reversed,
		"string_view":          retyped(all(arrow.BinaryTypes.StringView, texts...)),
		"binary_view":          retyped(all(arrow.BinaryTypes.BinaryView, texts...)),
		"list_view<uint64>":    retyped(all(arrow.ListViewOf(p.Uint64), "total_hashes")),
		"dictionary of int64":  retyped(all(dict(p.Int64), "poor_man_session_id", "provided_session_id")),
		"large_list_view<i64>": retyped(all(arrow.LargeListViewOf(p.Int64), "total_hashes")),
	}
}

// arrowOnly are types that Parquet, or its writer here, does not have.
var arrowOnly = []string{"string_view", "binary_view", "list_view<uint64>", "dictionary of int64", "large_list_view<i64>"}

// TestTypes imports the plain table in every physical type and container: all
// give the same canonical rows.
func TestTypes(t *testing.T) {
	want := mustImport(t, &baseten.Importer{}, "plain.parquet", asParquet(t, record(t, plainTypes(), plain())))
	if len(want.rejected) > 0 || len(want.rows) != 6 {
		t.Fatalf("%d rows, rejected %v", len(want.rows), want.rejected)
	}
	for name, fields := range variants() {
		rec := record(t, fields, plain())
		files := map[string][]byte{"x.arrow": asArrow(t, rec), "x.arrows": asStream(t, rec)}
		if !slices.Contains(arrowOnly, name) {
			files["x.parquet"] = asParquet(t, rec)
			files["schema.parquet"] = parquetWith(t, rec, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
		}
		for file, data := range files {
			t.Run(name+"/"+file, func(t *testing.T) { same(t, want, mustImport(t, &baseten.Importer{}, file, data)) })
		}
	}
}

func same(t *testing.T, want, got imported) {
	t.Helper()
	for _, e := range got.rejected {
		t.Error("rejected:", e)
	}
	if a, b := lines(t, bare(want.rows)), lines(t, bare(got.rows)); a != b {
		t.Errorf("rows differ:\n%s\nwant\n%s", b, a)
	}
	if got.meta.EpochNS != want.meta.EpochNS {
		t.Errorf("epoch %v, want %v", got.meta.EpochNS, want.meta.EpochNS)
	}
}

// TestContainers varies how the plain table is packed.
func TestContainers(t *testing.T) {
	rec := record(t, plainTypes(), plain())
	want := mustImport(t, &baseten.Importer{}, "plain.parquet", asParquet(t, rec))
	for name, codec := range map[string]compress.Compression{"none": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip, "zstd": compress.Codecs.Zstd} {
		for _, dict := range []bool{true, false} {
			for _, version := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
				t.Run(fmt.Sprint(name, dict, version), func(t *testing.T) {
					same(t, want, mustImport(t, &baseten.Importer{}, "x.parquet", asParquet(t, rec,
						parquet.WithCompression(codec), parquet.WithDictionaryDefault(dict), parquet.WithDataPageVersion(version), parquet.WithStats(dict))))
				})
			}
		}
	}
	t.Run("one row group", func(t *testing.T) {
		same(t, want, mustImport(t, &baseten.Importer{}, "x.parquet", asParquet(t, rec, parquet.WithMaxRowGroupLength(100), parquet.WithStats(false))))
	})
	t.Run("gzip around", func(t *testing.T) {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		w.Write(asArrow(t, rec))
		w.Close()
		same(t, want, mustImport(t, &baseten.Importer{}, "x.arrow.gz", buf.Bytes()))
	})
	for name, option := range map[string]ipc.Option{"lz4": ipc.WithLZ4(), "zstd": ipc.WithZstd()} {
		t.Run("arrow "+name, func(t *testing.T) {
			same(t, want, mustImport(t, &baseten.Importer{}, "x.arrow", asArrow(t, rec, option)))
		})
	}
	t.Run("standard input", func(t *testing.T) {
		for _, data := range [][]byte{asParquet(t, rec), asArrow(t, rec), asStream(t, rec)} {
			src := source.New("-", bytes.NewReader(data))
			defer src.Close()
			got, err := tryImport(t, &baseten.Importer{}, src)
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, got)
		}
	})
}

// TestRoundTrip exports every variant that Parquet holds and compares the cells
// of both tables.
func TestRoundTrip(t *testing.T) {
	for name, fields := range variants() {
		if slices.Contains(arrowOnly, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data := asParquet(t, record(t, fields, plain()))
			in := mustImport(t, &baseten.Importer{}, "in.parquet", data)
			back := exported(t, in)
			got, want := content(t, back), content(t, data)
			if strings.HasPrefix(name, "timestamp") { // written as the documented type
				dropTimes(got)
				dropTimes(want)
			}
			if strings.HasSuffix(name, "binary") { // written as text
				want = content(t, asParquet(t, record(t, plainTypes(), plain())))
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("content differs:\n%v\nwant\n%v", got, want)
			}
			again := mustImport(t, &baseten.Importer{}, "in.parquet", back)
			for i := range again.rows {
				again.rows[i].ID, again.rows[i].After, again.rows[i].SourceRow = in.rows[i].ID, in.rows[i].After, in.rows[i].SourceRow
			}
			if a, b := lines(t, in.rows), lines(t, again.rows); a != b {
				t.Errorf("rows differ:\n%s\nwant\n%s", b, a)
			}
			if !bytes.Equal(back, exported(t, in)) {
				t.Error("two exports differ")
			}
		})
	}
}

func dropTimes(rows []map[string]any) {
	for _, r := range rows {
		delete(r, "timestamp_start_unix_ms")
	}
}

// TestUnknownColumns keeps columns of any type in attributes and writes them
// back.
func TestUnknownColumns(t *testing.T) {
	p := arrow.PrimitiveTypes
	extra := []arrow.Field{
		{Name: "big", Type: p.Uint64, Nullable: true}, {Name: "share", Type: p.Float64, Nullable: true}, {Name: "on", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}, {Name: "matrix", Type: arrow.ListOf(arrow.ListOf(p.Int64)), Nullable: true},
		{Name: "nested", Type: arrow.StructOf(arrow.Field{Name: "a", Type: p.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
	}
	rows := plain()
	rows[0]["big"], rows[1]["big"] = int64(-1), int64(5) // as uint64, 2^64-1
	rows[0]["share"], rows[1]["share"] = 0.1, float64(3)
	rows[0]["on"], rows[1]["on"] = int64(1), int64(0)
	rows[0]["tags"], rows[1]["tags"] = []any{"a", "<b>"}, []any{}
	rows[0]["matrix"] = []any{[]any{int64(1)}, []any{}, nil}
	rows[0]["nested"], rows[1]["nested"] = cells{"a": int64(9007199254740993), "b": "x"}, cells{"b": "y"}
	data := asParquet(t, record(t, append(plainTypes(), extra...), rows))
	in := mustImport(t, &baseten.Importer{}, "in.parquet", data)
	at := slices.IndexFunc(in.rows, func(r trace.Request) bool { return r.Prompt.Value == "Hello <b>&" })
	for k, want := range map[string]string{"big": "18446744073709551615", "share": "0.1", "on": "true", "matrix": "[[1],[],null]", "features": `"json,tools"`, "provided_session_id": `"7"`, "poor_man_session_id": "70"} {
		if got := in.rows[at].Attributes[k]; got != want {
			t.Errorf("attribute %s is %s, want %s", k, got, want)
		}
	}
	if n := in.meta.Counts.Notes["unknown column nested kept in attributes"]; n != 2 {
		t.Errorf("notes count %d rows with nested, want 2: %v", n, in.meta.Counts.Notes)
	}
	if got, want := content(t, exported(t, in)), content(t, data); !reflect.DeepEqual(got, want) {
		t.Errorf("content differs:\n%v\nwant\n%v", got, want)
	}
}
