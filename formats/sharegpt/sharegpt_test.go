package sharegpt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/sharegpt"
	"reprise/formats/source"
	"reprise/trace"
)

var update = flag.Bool("update", false, "rewrite golden files")

const testdata = "../../testdata/sharegpt"

// result is what an import gave.
type result struct {
	rows     []trace.Request
	meta     trace.Meta
	rejected []*trace.RowError
	data     []byte
}

// load imports paths and checks every invariant of the trace.
func load(t testing.TB, imp *sharegpt.Importer, paths ...string) result {
	t.Helper()
	r, err := try(imp, paths...)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := trace.NewReader(bytes.NewReader(r.data), int64(len(r.data)), "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Check(context.Background(), reader, func(e *trace.RowError) { t.Error(e) }); err != nil {
		t.Fatal(err)
	}
	total := r.meta.Counts.Kept
	for _, n := range r.meta.Counts.Rejected {
		total += n
	}
	if total != r.meta.Counts.Read {
		t.Errorf("kept and rejected make %d rows, read were %d", total, r.meta.Counts.Read)
	}
	return r
}

func try(imp *sharegpt.Importer, paths ...string) (r result, err error) {
	src, _, err := source.Find(paths, nil)
	if err != nil {
		return r, err
	}
	defer func() {
		for _, s := range src {
			s.Close()
		}
	}()
	var buf bytes.Buffer
	r.meta, err = formats.Import(context.Background(), imp, src, &buf, 0, trace.Step{Command: "trace import"}, func(e *trace.RowError) error {
		r.rejected = append(r.rejected, e)
		return nil
	})
	if err != nil {
		return r, err
	}
	r.data = buf.Bytes()
	reader, err := trace.NewReader(bytes.NewReader(r.data), int64(len(r.data)), "t")
	if err != nil {
		return r, err
	}
	r.meta = reader.Meta()
	for row, err := range reader.Rows() {
		if err != nil {
			return r, err
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// text imports a text as file name.
func text(t testing.TB, imp *sharegpt.Importer, name, content string) result {
	t.Helper()
	return load(t, imp, write(t, t.TempDir(), name, content))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", name, got)
	}
}

// summary lists rows and the account of an import.
func (r result) summary(t *testing.T) []byte {
	var out []byte
	for i := range r.rows {
		var err error
		if out, err = trace.AppendJSON(out, &r.rows[i]); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	out = fmt.Appendf(out, "clock %s, dialect %s\nread %d, kept %d, rejected %v\nnotes %v\n", r.meta.Clock, r.meta.Dialect,
		r.meta.Counts.Read, r.meta.Counts.Kept, r.meta.Counts.Rejected, r.meta.Counts.Notes)
	for _, e := range r.rejected {
		e.File = filepath.Base(e.File)
		out = fmt.Appendf(out, "%v; reason %s\n", e, e.Reason)
	}
	return out
}

func TestGolden(t *testing.T) {
	golden(t, "sample.golden", load(t, &sharegpt.Importer{}, filepath.Join(testdata, "sample.json")).summary(t))
	golden(t, "bad.golden", load(t, &sharegpt.Importer{}, filepath.Join(testdata, "bad.jsonl")).summary(t))
}

// history returns the roles that a server sees at a row, from the deltas so far.
func history(t *testing.T, rows []trace.Request, upTo int) (roles []string) {
	t.Helper()
	for _, r := range rows[:upTo+1] {
		var list []struct{ Role string }
		if err := json.Unmarshal([]byte(r.Messages.Value), &list); err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			roles = append(roles, m.Role)
		}
	}
	return roles
}

func TestAllTurnsAreKept(t *testing.T) {
	talk := `{"id":"x","conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"a"},{"from":"human","value":"2"},{"from":"gpt","value":"b"},{"from":"human","value":"3"},{"from":"gpt","value":"c"}]}`
	r := text(t, &sharegpt.Importer{}, "x.jsonl", talk)
	if len(r.rows) != 3 {
		t.Fatalf("%d requests, want 3", len(r.rows))
	}
	for k, row := range r.rows {
		if row.Session != trace.Some("x") || row.Turn != trace.Some(int32(k)) || (k > 0) != (len(row.After) == 1) || row.MessagesMode != trace.Some(trace.MessagesDelta) {
			t.Errorf("row %d: %+v", k, row)
		}
	}
	if got := strings.Join(history(t, r.rows, 2), " "); got != "user assistant user assistant user" {
		t.Errorf("the last prompt holds %q", got)
	}
	if r.rows[2].OutputText != trace.Some("c") || r.rows[2].InputTokens.Known || r.rows[2].Arrival.Known || r.rows[2].Delay.Known {
		t.Errorf("last row %+v", r.rows[2])
	}
	single := text(t, &sharegpt.Importer{SingleTurn: true}, "x.jsonl", talk)
	if n := single.meta.Counts.Notes["requests after the first of their conversation, left out"]; len(single.rows) != 1 || n != 2 {
		t.Errorf("single turn: %d rows, %d left out", len(single.rows), n)
	}
}

func TestBadConversationsAreCountedAndOthersRead(t *testing.T) {
	r := load(t, &sharegpt.Importer{}, filepath.Join(testdata, "bad.jsonl"))
	want := map[string]int64{"no conversation": 3, "no text": 2, "no user message": 1, "no messages": 1, "role": 2, "text": 2, "message": 1, "id": 1, "not JSON": 2}
	if !reflect.DeepEqual(r.meta.Counts.Rejected, want) || len(r.rows) != 2 || r.rows[1].Session.Value != "last" {
		t.Errorf("rejected %v, kept %d", r.meta.Counts.Rejected, len(r.rows))
	}
}

func TestNothingIsFilteredByLength(t *testing.T) {
	var b strings.Builder
	for i := range 10 {
		n := 1
		if i%3 == 0 {
			n = 20_000 // words: far above the limits that other loaders have
		}
		fmt.Fprintf(&b, `{"id":"%d","conversations":[{"from":"human","value":"%s"},{"from":"gpt","value":"%s"}]}`+"\n", i, strings.Repeat("word ", n), strings.Repeat("x", i))
	}
	if r := text(t, &sharegpt.Importer{}, "x.jsonl", b.String()); len(r.rows) != 10 || len(r.rejected) != 0 {
		t.Errorf("%d of 10 conversations, rejected %v", len(r.rows), r.rejected)
	}
}

// A server refuses a tool message without a call before it, and a call without
// its results.
func TestToolMessagesAreAcceptable(t *testing.T) {
	for name, c := range map[string]struct{ talk, want string }{
		"pair":      {`["human","call","observation","gpt"]`, "user; assistant calls 1, tool"},
		"parallel":  {`["human","call","call","observation","observation","gpt"]`, "user; assistant calls 2, tool, tool"},
		"no result": {`["human","call","human","gpt"]`, "user; assistant, user"},
		"no call":   {`["human","gpt","observation","gpt"]`, "user; assistant, user"},
		"text too":  {`["human","gpt","call","observation","gpt"]`, "user; assistant calls 1, tool"},
	} {
		var roles []string
		if err := json.Unmarshal([]byte(c.talk), &roles); err != nil {
			t.Fatal(err)
		}
		var list []map[string]string
		for _, r := range roles {
			m := map[string]string{"from": r, "value": "text"}
			if r == "call" {
				m = map[string]string{"from": "function_call", "value": `{"name": "f", "arguments": {"x": 1}}`}
			}
			list = append(list, m)
		}
		raw, _ := json.Marshal(map[string]any{"conversations": list})
		var got []string
		for _, row := range text(t, &sharegpt.Importer{}, "x.jsonl", string(raw)).rows {
			var delta []struct {
				Role  string
				Calls []any  `json:"tool_calls"`
				ID    string `json:"tool_call_id"`
			}
			if err := json.Unmarshal([]byte(row.Messages.Value), &delta); err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, m := range delta {
				part := m.Role
				if len(m.Calls) > 0 {
					part += fmt.Sprintf(" calls %d", len(m.Calls))
				}
				if (m.ID != "") != (m.Role == "tool") {
					t.Errorf("%s: %s message with tool_call_id %q", name, m.Role, m.ID)
				}
				parts = append(parts, part)
			}
			got = append(got, strings.Join(parts, ", "))
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, content, want string }{
		{"cut.json.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaa\x56", "ends too early"},
		{"pointer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"},
		{"empty.json", "", "the file is empty"},
		{"prose.txt", "a,b\n1,2\n", "no row of 1 could be used"},
		{"x.parquet", "PAR1xxxx", "cannot be read"},
	} {
		_, err := try(&sharegpt.Importer{}, write(t, dir, c.name, c.content))
		if err == nil || !strings.Contains(err.Error()+trace.Fix(err), c.want) || trace.Fix(err) == "" {
			t.Errorf("%s: error %v, want %q and a way out", c.name, err, c.want)
		}
	}
	// A cut array gives what came before.
	r := text(t, &sharegpt.Importer{}, "cut.json", `[{"conversations":[{"from":"human","value":"q"}]},{"conv`)
	if len(r.rows) != 1 || len(r.rejected) != 1 || r.rejected[0].Line != 2 {
		t.Errorf("%d rows, rejected %v", len(r.rows), r.rejected)
	}
}

func TestDirectoryWithStrayFilesAndALongLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", `{"conversations":[{"from":"human","value":"`+strings.Repeat("x", 20<<20)+`"}]}`)
	write(t, dir, "README.md", "about")
	write(t, dir, "z.json", `{"name":"no conversation"}`)
	r := load(t, &sharegpt.Importer{}, dir)
	if len(r.rows) != 1 || len(r.rows[0].Messages.Value) < 20<<20 || len(r.rejected) != 1 {
		t.Errorf("%d rows, rejected %v", len(r.rows), r.rejected)
	}
}

func (r result) exported(t testing.TB) ([]byte, []string) {
	t.Helper()
	reader, err := trace.NewReader(bytes.NewReader(r.data), int64(len(r.data)), "t")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	lost, err := sharegpt.Exporter{}.Export(context.Background(), reader.Meta(), reader.Rows(), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), lost
}

func TestRoundTrip(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata, "sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, lost := load(t, &sharegpt.Importer{}, filepath.Join(testdata, "sample.json")).exported(t)
	var a, b any
	if json.Unmarshal(data, &a) != nil || json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b) || lost != nil {
		t.Errorf("lost %v; got\n%s", lost, got)
	}
	if !bytes.Contains(got, []byte(`half a pair \ud83d and`)) {
		t.Error("half a surrogate pair did not survive")
	}
}

func TestExportOfOthers(t *testing.T) {
	some := trace.Some[string]
	rows := []trace.Request{
		{ID: 0, Operation: "chat", Session: some("a"), Messages: some(`[{"role":"user","content":"1"}]`), MessagesMode: some("full"), OutputText: some("x")},
		{ID: 1, Operation: "chat", Session: some("a"), Messages: some(`[{"role":"user","content":"1"},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"2"},{"type":"image_url"}]}]`), MessagesMode: some("full"),
			OutputMessage: some(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`)},
		{ID: 2, Operation: "chat", Session: some("a"), Messages: some(`[{"role":"user","content":"other"}]`), MessagesMode: some("full")},
		{ID: 3, Operation: "completion", Prompt: some("p"), OutputText: some("o")},
		{ID: 4, Operation: "completion", InputTokens: trace.Some(int64(9))},
		{ID: 5, Operation: "chat", Session: some("d"), Messages: some(`[{"role":"user","content":"1"}]`), MessagesMode: some("delta"), OutputText: some("y")},
		{ID: 6, Operation: "chat", Session: some("d"), Messages: some(`[{"role":"assistant","content":"y"},{"role":"user","content":"2"}]`), MessagesMode: some("delta")},
	}
	var out bytes.Buffer
	lost, err := sharegpt.Exporter{}.Export(context.Background(), trace.Meta{Clock: trace.ClockNone, Format: "other"}, func(yield func(trace.Request, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[
{"id":"a","conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"x"},{"from":"human","value":"2"},{"from":"function_call","value":"{\"name\": \"f\", \"arguments\": {\"x\": 1}}"}]},
{"id":"a#2","conversations":[{"from":"human","value":"other"}]},
{"conversations":[{"from":"human","value":"p"},{"from":"gpt","value":"o"}]},
{"id":"d","conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"y"},{"from":"human","value":"2"}]}
]
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	if s := strings.Join(lost, "; "); s != "parts other than text of 1 rows; token counts of 1 rows; whole row (no text) of 1 rows" {
		t.Errorf("lost %q", s)
	}
}

func TestDetect(t *testing.T) {
	for content, want := range map[string]bool{
		`[{"id":"x","conversations":[]}]`:              true,
		`{"messages":[{"role":"user","content":"x"}]}`: true,
		`{"id":1,"items":[]}`:                          true,
		`{"messages":[],"timestamp":0}`:                false,
		`{"id":"x","requests":[],"block_size":64}`:     false,
		`{"conversations":7}`:                          false,
		"from,value\nhuman,x":                          false,
	} {
		h, err := source.New(write(t, t.TempDir(), "x", content), nil).Head()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := sharegpt.Detect(h); ok != want {
			t.Errorf("%s: detected %v", content, ok)
		}
	}
	f, _, err := formats.Detect(source.New(filepath.Join(testdata, "sample.json"), nil))
	if err != nil || f.Name != "sharegpt" {
		t.Errorf("the sample: %s, %v", f.Name, err)
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"sample.json", "bad.jsonl"} {
		data, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range bytes.Split(data, []byte("\n")) {
			f.Add(bytes.TrimSuffix(line, []byte(",")))
		}
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := try(&sharegpt.Importer{}, path)
		for _, e := range r.rejected {
			if e.Line < 1 || e.Err == nil || e.File != path {
				t.Errorf("a rejection without its place: %+v", e)
			}
		}
		if err != nil {
			return
		}
		load(t, &sharegpt.Importer{}, path) // checks every invariant
		out, _ := r.exported(t)
		again := text(t, &sharegpt.Importer{}, "x", string(out))
		if len(again.rejected) > 0 || len(again.rows) != len(r.rows) {
			t.Fatalf("%d rows written, %d read again, rejected %v\n%s", len(r.rows), len(again.rows), again.rejected, out)
		}
		for i := range r.rows {
			a, b := r.rows[i], again.rows[i]
			if a.Messages != b.Messages || a.OutputText != b.OutputText || a.OutputMessage != b.OutputMessage || !reflect.DeepEqual(a.Media, b.Media) {
				t.Fatalf("row %d:\n got %+v\nwant %+v", i, b, a)
			}
		}
	})
}
