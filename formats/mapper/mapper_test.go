package mapper_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/parquet-go/parquet-go"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/mapper"
	"reprise/formats/source"
	"reprise/trace"
)

func parse(t testing.TB, text string) *mapper.Mapping {
	t.Helper()
	m, err := mapper.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(importtest.Testdata, "mapper", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func csvImp(t testing.TB) func() formats.Importer {
	m := parse(t, sample(t, "calls.yaml"))
	return func() formats.Importer { return &mapper.Importer{Container: mapper.CSV, Mapping: m} }
}

func jsonImp(t testing.TB) func() formats.Importer {
	m := parse(t, sample(t, "turns.yaml"))
	return func() formats.Importer { return &mapper.Importer{Container: mapper.JSONL, Mapping: m} }
}

func TestGolden(t *testing.T) {
	importtest.Golden(t, csvImp(t)(), "mapper", "calls.csv")
	importtest.Golden(t, jsonImp(t)(), "mapper", "turns.jsonl")
}

func FuzzCSV(f *testing.F)  { importtest.Fuzz(f, csvImp(f), "mapper", "calls.csv") }
func FuzzJSON(f *testing.F) { importtest.Fuzz(f, jsonImp(f), "mapper", "turns.jsonl") }

const small = `version: 1
columns: {arrival: {column: t, unit: s}, input_tokens: in, output_tokens: out}
`

func TestRefusals(t *testing.T) {
	m := parse(t, small)
	importtest.Refusals(t, func() formats.Importer { return &mapper.Importer{Container: mapper.CSV, Mapping: m} }, "a.csv", "t,in,out\n0.5,1,2\n",
		func(n int) string { return "t,in,out,note\n0,1,2," + strings.Repeat("x", n) })
	importtest.Refusals(t, func() formats.Importer { return &mapper.Importer{Container: mapper.JSONL, Mapping: m} }, "a.jsonl", `{"t":0.5,"in":1,"out":2}`+"\n",
		func(n int) string { return `{"t":0.5,"in":1,"out":2,"note":"` + strings.Repeat("x", n) + `"}` })
}

// A mapping that is wrong is refused with the line at fault and a way out.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1\ncolumns:\n  arrival:\n    colum: ts\n":                             `m.yaml:4: unknown field "colum"`,
		"version: 1\ncolums: {}\n":                                                      `m.yaml:2: unknown field "colums"`,
		"version: 1\ncolumns:\n  input_tokens: a\n  input_tokens: b\n":                  `m.yaml:4: mapping key "input_tokens" already defined at [3:3]`,
		"version: 1\ncolumns:\n  tokens_in: a\n":                                        `m.yaml:3: tokens_in: no canonical column; there are: arrival, `,
		"version: 1\ncolumns:\n  model: m\n  arrival: ts\n":                             `m.yaml:4: arrival: unit is missing: s, ms, us, ns or iso`,
		"version: 1\ncolumns:\n  arrival: {column: ts, unit: min}\n":                    `m.yaml:3: arrival: unit "min": it can be s, ms, us, ns or iso`,
		"version: 1\ncolumns:\n  arrival: {column: ts, unit: s, zone: UTC}\n":           `m.yaml:3: arrival: zone is for unit iso`,
		"version: 1\ncolumns:\n  arrival: {column: ts, unit: iso, zone: Mars}\n":        `m.yaml:3: arrival: --zone: "Mars" is no zone`,
		"version: 1\ncolumns:\n  model: {column: m, unit: s}\n":                         `m.yaml:3: model: has no use for unit`,
		"version: 1\ncolumns:\n  model: {}\n":                                           `m.yaml:3: model: names neither, or both, of column and constant`,
		"version: 1\ncolumns:\n  model: {column: m, constant: n}\n":                     `m.yaml:3: model: names neither, or both, of column and constant`,
		"version: 1\ncolumns:\n  block_ids: ids\n":                                      `m.yaml:3: block_ids: tokens, the number of tokens of a block, is missing`,
		"version: 1\ncolumns:\n  status: {column: s, values: {a: good}}\n":              `m.yaml:3: status: "good" is none of ok, error, cancelled, empty`,
		"version: 1\ncolumns:\n  status: {column: s, values: {9..1: ok}}\n":             `m.yaml:3: status: values: "9..1" ends before it begins`,
		"version: 1\ncolumns:\n  recorded_e2e: {column: s, unit: s, since: midnight}\n": `m.yaml:3: recorded_e2e: since "midnight": it can be since arrival`,
		"version: 2\ncolumns: {model: m}\n":                                             `m.yaml: version: 2, this program reads version 1`,
		"columns: {model: m}\n":                                                         `m.yaml: version: 0, this program reads version 1`,
		"version: 1\n":                                                                  `m.yaml: columns: no column is mapped`,
		"version: 1\nclock: none\ncolumns: {model: m}\n":                                `m.yaml: clock: "none" is neither trace nor session`,
		"version: 1\nclock: session\ncolumns: {model: m}\n":                             `m.yaml: clock: session, but session_id is not mapped`,
		"version: 1\nothers: keep\ncolumns: {model: m}\n":                               `m.yaml: others: "keep" is neither attributes nor drop`,
		"version: one\ncolumns: {model: m}\n":                                           `m.yaml:1: cannot unmarshal`,
		"version: 1\ncolumns: [\n":                                                      `m.yaml:`,
		"version: 1\ncolumns: " + strings.Repeat("[", 1e6):                              `m.yaml:2: nested deeper than 100 levels`,
		"version: 1\ncolumns:\n" + strings.Repeat("- ? ", 1e5):                          `m.yaml:3: nested deeper than 100 levels`,
		"version: 1\ncolumns:\n  model: {column: [a]}\n":                                `m.yaml:3: `,
	} {
		_, err := mapper.Parse("m.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || trace.Fix(err) == "" {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// A mapped column that a source lacks is an error with the line of the mapping,
// unless it may be missing.
func TestMissingColumn(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ container, text, mapping, want string }{
		{mapper.CSV, "t,in\n1,2\n", small, `m.yaml:2: output_tokens: `},
		{mapper.JSONL, `{"t":1,"in":2}`, small, `m.yaml:2: output_tokens: `},
		{mapper.CSV, "t,in\n1,2\n", strings.Replace(small, "output_tokens: out", "output_tokens: {column: out, optional: true}", 1), ""},
		{mapper.JSONL, `{"t":1,"in":2}`, strings.Replace(small, "output_tokens: out", "output_tokens: {column: out, optional: true}", 1), ""},
	} {
		r, err := importtest.Try(&mapper.Importer{Container: c.container, Mapping: parse(t, c.mapping)}, importtest.Write(t, dir, "in", c.text))
		switch {
		case c.want == "" && (err != nil || len(r.Rows) != 1 || r.Rows[0].OutputTokens.Known):
			t.Errorf("%s: %v, %+v", c.text, err, r.Rows)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || !strings.Contains(err.Error(), `no column "out"; it has: `) || trace.Fix(err) == ""):
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestSessionClock(t *testing.T) {
	m := parse(t, "version: 1\nclock: session\nothers: drop\ncolumns: {arrival: {column: t, unit: ms}, session_id: s, input_tokens: in}\n")
	r := importtest.Text(t, &mapper.Importer{Container: mapper.CSV, Mapping: m}, "a.csv", "t,s,in,note\n5,a,1,x\n0,b,2,x\n0,a,3,x\n9,b,4,x\n")
	var got []int64
	for _, row := range r.Rows {
		got = append(got, row.InputTokens.Value, int64(row.Turn.Value))
	}
	if want := []int64{3, 0, 1, 1, 2, 0, 4, 1}; r.Meta.Clock != trace.ClockSession || !equal(got, want) || r.Rows[0].Attributes != nil {
		t.Errorf("clock %s, %v, want %v", r.Meta.Clock, got, want)
	}
}

func equal(a, b []int64) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

type call struct {
	At     time.Time `parquet:"at,timestamp(microsecond)"`
	Model  *string   `parquet:"model,optional"`
	Usage  usage     `parquet:"usage"`
	Blocks []uint64  `parquet:"blocks,list"`
	Took   float64   `parquet:"took"`
	Tags   []string  `parquet:"tags,list"`
	OK     bool      `parquet:"ok"`
	Hash   uint64    `parquet:"hash"`
}

type usage struct {
	In  int32  `parquet:"in"`
	Out *int64 `parquet:"out,optional"`
}

func TestParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	at, name, out := time.Date(2024, 5, 1, 10, 0, 0, 123456000, time.UTC), "m", int64(9)
	err := parquet.WriteFile(path, []call{
		{At: at.Add(time.Second), Usage: usage{In: 40}, Blocks: []uint64{1, 1 << 63, 3}, Took: 0.25, OK: true, Hash: 1 << 63},
		{At: at, Model: &name, Usage: usage{In: 7, Out: &out}, Tags: []string{"a", "b\""}, Took: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := parse(t, `version: 1
columns:
  arrival: {column: at, unit: iso}
  model: model
  input_tokens: usage.in
  output_tokens: usage.out
  block_ids: {column: blocks, tokens: 16}
  recorded_e2e: {column: took, unit: s}
  status: {column: ok, values: {true: ok, false: error}}
`)
	r := importtest.Load(t, &mapper.Importer{Container: mapper.Parquet, Mapping: m}, path)
	if len(r.Rows) != 2 || r.Meta.EpochNS.Value != at.UnixNano() {
		t.Fatalf("%d rows, epoch %v", len(r.Rows), r.Meta.EpochNS)
	}
	var lines []string
	for i := range r.Rows {
		line, _ := trace.AppendJSON(nil, &r.Rows[i])
		lines = append(lines, string(line))
	}
	want := []string{
		`{"id":1,"operation":"completion","arrival_ns":0,"model":"m","input_tokens":7,"output_tokens":9,"recorded_e2e_ns":2000000000,"status":"error","source_file":"a.parquet","source_row":2,"attributes":{"hash":0,"tags":["a","b\""]}}`,
		`{"id":0,"operation":"completion","arrival_ns":1000000000,"input_tokens":40,"block_ids":[1,9223372036854775808,3],"block_tokens":16,"block_tail":"partial","recorded_e2e_ns":250000000,"status":"ok","source_file":"a.parquet","source_row":1,"attributes":{"hash":9223372036854775808}}`,
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
}

var update = flag.Lookup("update")

// What map-init writes for samples, ours and the published ones, is held as a
// whole; it must be a mapping that imports them.
func TestPropose(t *testing.T) {
	dir := filepath.Join(importtest.Testdata, "mapper")
	for _, in := range []string{"calls.csv", "turns.jsonl"} {
		text, container := propose(t, filepath.Join(dir, in))
		golden := filepath.Join(dir, "init_"+strings.TrimSuffix(in, filepath.Ext(in))+".golden")
		if update.Value.String() == "true" {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s differs; got:\n%s", golden, text)
		}
		if r := importtest.Load(t, &mapper.Importer{Container: container, Mapping: parse(t, text)}, filepath.Join(dir, in)); len(r.Rows) == 0 {
			t.Errorf("%s: no rows by the proposal", in)
		}
	}
}

func propose(t testing.TB, path string) (text, container string) {
	t.Helper()
	s := source.New(path, nil)
	defer s.Close()
	var b bytes.Buffer
	container, err := mapper.Propose(s, &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), container
}

// The proposals for published tables find the columns that their importers read.
func TestProposePublished(t *testing.T) {
	for _, c := range []struct {
		path    []string
		rows    int
		in, out int64
		span    time.Duration
	}{
		{[]string{"azure", "AzureLLMInferenceTrace_code.csv"}, 8819, 18059974, 245896, 3435948056000},
		{[]string{"vidur", "splitwise_code.csv"}, 8819, 18059974, 245896, 3435948056000},
		{[]string{"mooncake", "synthetic_trace.jsonl"}, 3993, 61194628, 595432, 1022025 * time.Millisecond},
		{[]string{"splitwise", "test_trace.csv"}, 3, 8192, 56, 0},
	} {
		path := importtest.Shared(t, c.path...)
		text, container := propose(t, path)
		r := importtest.Load(t, &mapper.Importer{Container: container, Mapping: parse(t, text)}, path)
		in, out := r.Sums()
		if len(r.Rows) != c.rows || in != c.in || out != c.out || c.span > 0 && r.Rows[len(r.Rows)-1].Arrival.Value != c.span {
			t.Errorf("%v: %d rows, in %d, out %d, span %v\n%s", c.path, len(r.Rows), in, out, r.Rows[len(r.Rows)-1].Arrival.Value, text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"calls.yaml", "turns.yaml"} {
		f.Add([]byte(sample(f, name)))
	}
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := mapper.Parse("m.yaml", text)
		if err == nil && len(m.Columns) == 0 {
			t.Error("a mapping of nothing")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "m.yaml") {
			t.Errorf("%v", err)
		}
	})
}

// Whatever is proposed is a mapping.
func FuzzPropose(f *testing.F) {
	for _, name := range []string{"calls.csv", "turns.jsonl"} {
		f.Add([]byte(sample(f, name)))
	}
	f.Add([]byte("a b,\"c: d\",#e\n1,2,x\n"))
	f.Add([]byte(";000;00\n2000-01-01 00:00:00Z;0;\n"))
	f.Add([]byte("status,Error\n\"x # y\",\n,\"{\"\n"))
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		s := source.New(path, nil)
		var b bytes.Buffer
		container, err := mapper.Propose(s, &b)
		if err != nil {
			return
		}
		m, err := mapper.Parse("m.yaml", b.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, &b)
		}
		importtest.Try(&mapper.Importer{Container: container, Mapping: m}, path)
	})
}

// The schema takes the samples, and no more than the reader does.
func TestSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(mapper.Schema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(importtest.Testdata, "mapper")
	init1, _ := propose(t, filepath.Join(dir, "calls.csv"))
	init2, _ := propose(t, filepath.Join(dir, "turns.jsonl"))
	for text, good := range map[string]bool{
		sample(t, "calls.yaml"): true, sample(t, "turns.yaml"): true, small: true, init1: true, init2: true,
		"version: 1\ncolumns: {tokens: a}\n": false, "version: 1\ncolumns: {model: {colum: a}}\n": false, "version: 2\ncolumns: {model: a}\n": false,
		"version: 1\ncolumns: {model: {column: a, constant: b}}\n": false, "version: 1\n": false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(v)
		json.Unmarshal(raw, &v)
		if err := resolved.Validate(v); (err == nil) != good {
			t.Errorf("schema: %v\n%s", err, text)
		}
		if _, err := mapper.Parse("m.yaml", []byte(text)); (err == nil) != good {
			t.Errorf("reader: %v\n%s", err, text)
		}
	}
}
