package sharegpt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/sharegpt"
	"reprise/formats/source"
	"reprise/trace"
)

const testdata = importtest.Testdata + "/sharegpt"

func TestGolden(t *testing.T) {
	importtest.Golden(t, &sharegpt.Importer{}, "sharegpt", "sample.json")
	importtest.Golden(t, &sharegpt.Importer{}, "sharegpt", "bad.jsonl")
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
	r := importtest.Text(t, &sharegpt.Importer{}, "x.jsonl", talk)
	if len(r.Rows) != 3 {
		t.Fatalf("%d requests, want 3", len(r.Rows))
	}
	for k, row := range r.Rows {
		if row.Session != trace.Some("x") || row.Turn != trace.Some(int32(k)) || (k > 0) != (len(row.After) == 1) || row.MessagesMode != trace.Some(trace.MessagesDelta) {
			t.Errorf("row %d: %+v", k, row)
		}
	}
	if got := strings.Join(history(t, r.Rows, 2), " "); got != "user assistant user assistant user" {
		t.Errorf("the last prompt holds %q", got)
	}
	if r.Rows[2].OutputText != trace.Some("c") || r.Rows[2].InputTokens.Known || r.Rows[2].Arrival.Known || r.Rows[2].Delay.Known {
		t.Errorf("last row %+v", r.Rows[2])
	}
	single := importtest.Text(t, &sharegpt.Importer{SingleTurn: true}, "x.jsonl", talk)
	if n := single.Meta.Counts.Notes["requests after the first of their conversation, left out"]; len(single.Rows) != 1 || n != 2 {
		t.Errorf("single turn: %d rows, %d left out", len(single.Rows), n)
	}
}

func TestBadConversationsAreCountedAndOthersRead(t *testing.T) {
	r := importtest.Load(t, &sharegpt.Importer{}, filepath.Join(testdata, "bad.jsonl"))
	want := map[string]int64{"no conversation": 3, "no text": 2, "no user message": 1, "no messages": 1, "role": 2, "text": 2, "message": 1, "id": 1, "not JSON": 2}
	if !reflect.DeepEqual(r.Meta.Counts.Rejected, want) || len(r.Rows) != 2 || r.Rows[1].Session.Value != "last" {
		t.Errorf("rejected %v, kept %d", r.Meta.Counts.Rejected, len(r.Rows))
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
	if r := importtest.Text(t, &sharegpt.Importer{}, "x.jsonl", b.String()); len(r.Rows) != 10 || len(r.Rejected) != 0 {
		t.Errorf("%d of 10 conversations, rejected %v", len(r.Rows), r.Rejected)
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
		for _, row := range importtest.Text(t, &sharegpt.Importer{}, "x.jsonl", string(raw)).Rows {
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
		_, err := importtest.Try(&sharegpt.Importer{}, importtest.Write(t, dir, c.name, c.content))
		if err == nil || !strings.Contains(err.Error()+trace.Fix(err), c.want) || trace.Fix(err) == "" {
			t.Errorf("%s: error %v, want %q and a way out", c.name, err, c.want)
		}
	}
	// A cut array gives what came before.
	r := importtest.Text(t, &sharegpt.Importer{}, "cut.json", `[{"conversations":[{"from":"human","value":"q"}]},{"conv`)
	if len(r.Rows) != 1 || len(r.Rejected) != 1 || r.Rejected[0].Line != 2 {
		t.Errorf("%d rows, rejected %v", len(r.Rows), r.Rejected)
	}
}

func TestDirectoryWithStrayFilesAndALongLine(t *testing.T) {
	dir := t.TempDir()
	importtest.Write(t, dir, "a.jsonl", `{"conversations":[{"from":"human","value":"`+strings.Repeat("x", 20<<20)+`"}]}`)
	importtest.Write(t, dir, "README.md", "about")
	importtest.Write(t, dir, "z.json", `{"name":"no conversation"}`)
	r := importtest.Load(t, &sharegpt.Importer{}, dir)
	if len(r.Rows) != 1 || len(r.Rows[0].Messages.Value) < 20<<20 || len(r.Rejected) != 1 {
		t.Errorf("%d rows, rejected %v", len(r.Rows), r.Rejected)
	}
}

func TestRoundTrip(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata, "sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, lost := importtest.Load(t, &sharegpt.Importer{}, filepath.Join(testdata, "sample.json")).Exported(t, sharegpt.Exporter{})
	var a, b any
	if json.Unmarshal(data, &a) != nil || json.Unmarshal([]byte(got), &b) != nil || !reflect.DeepEqual(a, b) || lost != nil {
		t.Errorf("lost %v; got\n%s", lost, got)
	}
	if !strings.Contains(got, `half a pair \ud83d and`) {
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
		h, err := source.New(importtest.Write(t, t.TempDir(), "x", content), nil).Head()
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
		r, err := importtest.Try(&sharegpt.Importer{}, path)
		for _, e := range r.Rejected {
			if e.Line < 1 || e.Err == nil || e.File != path {
				t.Errorf("a rejection without its place: %+v", e)
			}
		}
		if err != nil {
			return
		}
		importtest.Load(t, &sharegpt.Importer{}, path) // checks every invariant
		out, _ := r.Exported(t, sharegpt.Exporter{})
		again := importtest.Text(t, &sharegpt.Importer{}, "x", out)
		if len(again.Rejected) > 0 || len(again.Rows) != len(r.Rows) {
			t.Fatalf("%d rows written, %d read again, rejected %v\n%s", len(r.Rows), len(again.Rows), again.Rejected, out)
		}
		for i := range r.Rows {
			a, b := r.Rows[i], again.Rows[i]
			if a.Messages != b.Messages || a.OutputText != b.OutputText || a.OutputMessage != b.OutputMessage || !reflect.DeepEqual(a.Media, b.Media) {
				t.Fatalf("row %d:\n got %+v\nwant %+v", i, b, a)
			}
		}
	})
}
