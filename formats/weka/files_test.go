package weka_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/klauspost/compress/gzip"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/source"
	"reprise/formats/weka"
	"reprise/trace"
)

// The same sessions in every layout give the same rows.
func TestLayouts(t *testing.T) {
	a := one(`{"t":0.0,"type":"s","in":64,"hash_ids":[1]},{"t":2.5,"type":"subagent","agent_id":"x","requests":[{"t":0.0,"type":"n","in":70,"hash_ids":[2]}]}`)
	b := strings.Replace(a, `"id":"s"`, `"id":"u"`, 1)
	var pretty bytes.Buffer
	json.Indent(&pretty, []byte(a), "", "  ")
	want := importtest.Text(t, &weka.Importer{}, "x.jsonl", a+"\n"+b)
	texts, _ := json.Marshal([]string{`{"t":0.0,"type":"s","in":64,"hash_ids":[1]}`, `{"t":2.5,"type":"subagent","agent_id":"x","requests":[{"t":0.0,"type":"n","in":70,"hash_ids":[2]}]}`})
	for name, content := range map[string]string{
		"crlf":     a + "\r\n\r\n" + b + "\r\n",
		"array":    "[" + a + ",\n" + b + "]",
		"pretty":   pretty.String() + "\n" + strings.Replace(pretty.String(), `"s"`, `"u"`, 1),
		"strings":  `{"id":"s","block_size":64,"hash_id_scope":"local","requests":` + string(texts) + "}\n" + b,
		"gzip":     zipped(t, a+"\n"+b),
		"bom":      "\xef\xbb\xbf" + a + "\n" + b,
		"no break": a + "\n" + b,
	} {
		got := importtest.Text(t, &weka.Importer{}, "x.jsonl", content)
		for i := range got.Rows {
			got.Rows[i].SourceRow = want.Rows[i].SourceRow
		}
		if !reflect.DeepEqual(got.Rows, want.Rows) || len(got.Rejected) > 0 {
			t.Errorf("%s: rows differ (%d, %d rejected)\n got %+v\nwant %+v", name, len(got.Rows), len(got.Rejected), got.Rows, want.Rows)
		}
	}
}

func zipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// table writes rows given as JSON to a Parquet file.
func table(t *testing.T, fields []arrow.Field, rows ...string) string {
	t.Helper()
	schema := arrow.NewSchema(fields, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "x.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil { // closes f
		t.Fatal(err)
	}
	return path
}

// Rows of a Parquet table hold the union of all keys, with nulls; or texts.
func TestParquetRows(t *testing.T) {
	request := []arrow.Field{
		{Name: "t", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "type", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "model", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "in", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "out", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "hash_ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "api_time", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "stop", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "agent_id", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "duration_ms", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "status", Type: arrow.BinaryTypes.String, Nullable: true},
	}
	entry := arrow.StructOf(append(request, arrow.Field{Name: "requests", Type: arrow.ListOf(arrow.StructOf(request[:8]...)), Nullable: true})...)
	session := func(requests arrow.DataType) []arrow.Field {
		return []arrow.Field{
			{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "models", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
			{Name: "block_size", Type: arrow.PrimitiveTypes.Int64}, {Name: "hash_id_scope", Type: arrow.BinaryTypes.String, Nullable: true},
			{Name: "tool_tokens", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "requests", Type: requests, Nullable: true},
		}
	}
	entries := `{"t":0.5,"type":"s","model":"m","in":70,"out":3,"hash_ids":[0,1],"api_time":4.1370000000000005,"stop":"end_turn"},` +
		`{"t":6.5,"type":"subagent","agent_id":"x","duration_ms":1000,"status":"completed","requests":[{"t":6.5,"type":"n","model":"m","in":64,"out":1,"hash_ids":[2],"stop":""}]},` +
		`{"t":9.25,"type":"n","model":"m","in":10,"out":0,"hash_ids":[]}`
	object := func(requests string) string {
		return `{"id":"a","models":["m"],"block_size":64,"hash_id_scope":"local","requests":` + requests + `}`
	}
	var texts []string
	for _, e := range strings.Split(strings.ReplaceAll(entries, "},{", "}\n{"), "\n") {
		raw, _ := json.Marshal(e)
		texts = append(texts, string(raw))
	}
	whole, _ := json.Marshal("[" + entries + "]")
	want := importtest.Text(t, &weka.Importer{}, "x.parquet", object("["+entries+"]"))
	for name, path := range map[string]string{
		"structs": table(t, session(arrow.ListOf(entry)), object("["+entries+"]")),
		"texts":   table(t, session(arrow.ListOf(arrow.BinaryTypes.String)), object("["+strings.Join(texts, ",")+"]")),
		"text":    table(t, session(arrow.BinaryTypes.String), object(string(whole))),
	} {
		got := importtest.Load(t, &weka.Importer{}, path)
		if !reflect.DeepEqual(got.Rows, want.Rows) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got.Rows, want.Rows)
		}
		head, err := source.New(path, nil).Head()
		if err != nil {
			t.Fatal(err)
		}
		if why, ok := weka.Detect(head); !ok {
			t.Errorf("%s: not recognised (%s)", name, why)
		}
	}

	other := table(t, []arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, `{"id":"a"}`)
	if _, err := importtest.Try(&weka.Importer{}, other); err == nil || !strings.Contains(err.Error(), "no column requests") || trace.Fix(err) == "" {
		t.Errorf("a table without requests: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	whole := zipped(t, strings.Repeat(one(`{"t":0,"type":"n","in":64}`)+"\n", 500))
	for _, c := range []struct{ name, content, want string }{
		{"cut.json.gz", whole[:len(whole)-20], "ends too early"},
		{"pointer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"},
		{"empty.json", "", "the file is empty"},
		{"prose.txt", "a,b\n1,2\n3,4\n", "no row of 1 could be used"},
		{"cut.json", one(`{"t":0,"type":"n","in":64}`)[:60], "no row of 1 could be used"},
		{"cut.parquet", "PAR1xxxx", "cannot"},
	} {
		_, err := importtest.Try(&weka.Importer{}, importtest.Write(t, dir, c.name, c.content))
		if err == nil || !strings.Contains(err.Error()+trace.Fix(err), c.want) || trace.Fix(err) == "" {
			t.Errorf("%s: error %v, want %q and a way out", c.name, err, c.want)
		}
	}
	for _, imp := range []*weka.Importer{{NestedTime: "x"}, {BlockTokens: -1}, {GapCap: -1}} {
		if _, err := importtest.Try(imp, filepath.Join(testdata, "sample.jsonl")); err == nil {
			t.Errorf("%+v: no error", imp)
		}
	}
}

func TestLongLine(t *testing.T) {
	var b strings.Builder
	for i := range 3_000_000 {
		fmt.Fprintf(&b, ",%d", i)
	}
	r := importtest.Text(t, &weka.Importer{}, "a.json", one(`{"t":0,"type":"n","in":192000000,"hash_ids":[`+b.String()[1:]+`]}`))
	if n := len(r.Rows[0].Blocks); n != 3_000_000 || b.Len() < 20<<20 {
		t.Errorf("%d ids of a line of %d bytes", n, b.Len())
	}
}

func TestDirectoryWithStrayFiles(t *testing.T) {
	dir := t.TempDir()
	importtest.Write(t, dir, "a.json", one(`{"t":0,"type":"n","in":64}`))
	importtest.Write(t, dir, "README.md", "about")
	importtest.Write(t, dir, "index.json", "[]")
	importtest.Write(t, dir, ".hidden", "x")
	importtest.Write(t, dir, "z.json", `{"name":"no session"}`)
	r := importtest.Load(t, &weka.Importer{}, dir)
	if len(r.Rows) != 1 || len(r.Rejected) != 1 || filepath.Base(r.Rejected[0].File) != "z.json" {
		t.Errorf("%d rows, rejected %v", len(r.Rows), r.Rejected)
	}
}

func sessions(t testing.TB, data []byte) (all []map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		var s map[string]any
		if err := d.Decode(&s); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, plain(s).(map[string]any))
	}
}

// plain makes numbers comparable, without losing bits of ids.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && f > -1<<53 && f < 1<<53 {
			return f
		}
	}
	return v
}

func TestRoundTrip(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata, "sample.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	got, lost := importtest.Load(t, &weka.Importer{KeepPairs: true}, filepath.Join(testdata, "sample.jsonl")).Exported(t, weka.Exporter{})
	if !reflect.DeepEqual(sessions(t, []byte(got)), sessions(t, data)) || lost != nil {
		t.Errorf("lost %v; got\n%s", lost, got)
	}
	absolute := one(`{"t":3.5,"type":"n","in":64},{"t":100,"type":"subagent","agent_id":"a","requests":[{"t":105.25,"type":"n","in":64}]},{"t":101,"type":"subagent","agent_id":"a","requests":[{"t":102,"type":"n","in":64}]}`)
	got, lost = importtest.Text(t, &weka.Importer{}, "a.json", absolute).Exported(t, weka.Exporter{})
	if !reflect.DeepEqual(sessions(t, []byte(got)), sessions(t, []byte(absolute))) || lost != nil {
		t.Errorf("lost %v; got\n%s", lost, got)
	}
}

// A foreign trace comes out as sessions that this package reads again.
func TestExportOfOthers(t *testing.T) {
	row := func(id int64, seconds float64, session, agent string) trace.Request {
		r := trace.Request{ID: id, Operation: "chat", Arrival: at(seconds), Session: trace.Some(session), InputTokens: trace.Some(int64(100)), OutputTokens: trace.Some(int64(5)),
			Blocks: []uint64{7, 8}, BlockTokens: trace.Some(int32(64)), BlockTail: trace.Some(trace.TailPartial), Model: trace.Some("m"), ClientID: trace.Some("c")}
		if agent != "" {
			r.Agent = trace.Some(agent)
		}
		return r
	}
	rows := []trace.Request{row(0, 0, "a", ""), row(1, 1, "b", ""), row(2, 2, "a", "sub"), row(3, 3, "a", ""), row(4, 4, "b", "")}
	rows[4].InputTokens = trace.Optional[int64]{}
	var out bytes.Buffer
	lost, err := weka.Exporter{}.Export(context.Background(), trace.Meta{Clock: trace.ClockTrace, Format: "other"}, func(yield func(trace.Request, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if len(lost) != 4 || !strings.Contains(strings.Join(lost, "; "), "start times of 2 sessions") {
		t.Errorf("lost %q", lost)
	}
	r := importtest.Text(t, &weka.Importer{}, "a.jsonl", out.String())
	if len(r.Rows) != 4 || r.Rows[1].Agent.Value != "sub" || r.Rows[1].Arrival != at(2) || r.Rows[3].Arrival != at(0) || r.Rows[0].Blocks[1] != 8 {
		t.Errorf("read again: %+v\n%s", r.Rows, out.String())
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"sample.jsonl", "bad.jsonl"} {
		data, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range bytes.Split(data, []byte("\n")) {
			f.Add(line)
		}
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := importtest.Try(&weka.Importer{KeepPairs: true}, path)
		for _, e := range r.Rejected {
			if e.Line < 1 || e.Err == nil || e.File != path {
				t.Errorf("a rejection without its place: %+v", e)
			}
		}
		if err != nil {
			return
		}
		importtest.Load(t, &weka.Importer{}, path) // checks every invariant
		out, _ := r.Exported(t, weka.Exporter{})
		again := importtest.Text(t, &weka.Importer{KeepPairs: true}, "x", out)
		if len(again.Rejected) > 0 || len(again.Rows) != len(r.Rows) {
			t.Fatalf("%d rows written, %d read again, rejected %v\n%s", len(r.Rows), len(again.Rows), again.Rejected, out)
		}
		for i := range r.Rows {
			a, b := r.Rows[i], again.Rows[i]
			if a.Arrival != b.Arrival || a.InputTokens != b.InputTokens || !reflect.DeepEqual(a.After, b.After) || a.Delay != b.Delay || !reflect.DeepEqual(a.Blocks == nil, b.Blocks == nil) {
				t.Fatalf("row %d:\n got %+v\nwant %+v", i, b, a)
			}
		}
	})
}

func TestDetect(t *testing.T) {
	for content, want := range map[string]bool{
		one(""):                                   true,
		`{"id":"x","requests":[`:                  true,
		`[{"requests":[],"models":["m"]}`:         true,
		`{"session_id":"x","requests":[]}`:        false,
		`{"hash_ids":[1],"input_length":1}`:       false,
		`{"id":"x","conversations":[]}`:           false,
		`{"requests":{"a":1},"block_size":1}`:     false,
		`{"t":0,"type":"n","in":1,"hash_ids":[]}`: false,
	} {
		h, err := source.New(importtest.Write(t, t.TempDir(), "x", content), nil).Head()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := weka.Detect(h); ok != want {
			t.Errorf("%s: detected %v", content, ok)
		}
	}
	f, _, err := formats.Detect(source.New(filepath.Join(testdata, "sample.jsonl"), nil))
	if err != nil || f.Name != "weka" {
		t.Errorf("the sample: %s, %v", f.Name, err)
	}
}
