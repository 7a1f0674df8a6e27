package mooncake_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/mooncake"
	"reprise/formats/source"
	"reprise/trace"
)

// imported imports text and returns the rows, the metadata and the row errors.
func imported(t testing.TB, im *mooncake.Importer, text string) ([]trace.Request, trace.Meta, []*trace.RowError, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return importFile(t, im, path)
}

func importFile(t testing.TB, im *mooncake.Importer, path string) ([]trace.Request, trace.Meta, []*trace.RowError, error) {
	t.Helper()
	var out bytes.Buffer
	var bad []*trace.RowError
	meta, err := formats.Import(t.Context(), im, []*source.Source{source.New(path, nil)}, &out, 0, trace.Step{}, func(e *trace.RowError) error {
		bad = append(bad, e)
		return nil
	})
	if err != nil {
		return nil, meta, bad, err
	}
	return rowsOf(t, out.Bytes()), meta, bad, nil
}

func rowsOf(t testing.TB, data []byte) []trace.Request {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "out")
	if err != nil {
		t.Fatal(err)
	}
	var rows []trace.Request
	for row, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	r.Close()
	again, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "out")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Check(t.Context(), again, func(e *trace.RowError) { t.Errorf("invariant: %v", e) }); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestRows(t *testing.T) {
	ms := func(v float64) trace.Optional[time.Duration] {
		return trace.Some(time.Duration(v * float64(time.Millisecond)))
	}
	for _, c := range []struct {
		name, text string
		check      func(t *testing.T, rows []trace.Request, meta trace.Meta)
	}{
		{"partial tail kept", `{"timestamp":0,"input_length":33,"output_length":4,"hash_ids":[10,20,99]}`, func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			if r := rows[0]; len(r.Blocks) != 3 || r.BlockTokens.Value != 16 || r.BlockTail.Value != trace.TailPartial {
				t.Errorf("%+v", r)
			}
		}},
		{"64-bit ids", "{\"timestamp\":0,\"input_length\":10,\"hash_ids\":[4294967297]}\n{\"timestamp\":1,\"input_length\":10,\"hash_ids\":[18446744073709551615]}", func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			if rows[0].Blocks[0] != 4294967297 || rows[1].Blocks[0] != 1<<64-1 {
				t.Errorf("ids %v %v", rows[0].Blocks, rows[1].Blocks)
			}
		}},
		{"unsorted rows move whole", "{\"timestamp\":500,\"input_length\":5}\n{\"timestamp\":0,\"input_length\":1}\n{\"timestamp\":250,\"input_length\":3}", func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			if rows[0].InputTokens.Value != 1 || rows[1].InputTokens.Value != 3 || rows[2].InputTokens.Value != 5 || rows[2].ID != 0 {
				t.Errorf("%+v", rows)
			}
			if meta.Counts.Notes["rows moved into order of arrival"] != 2 {
				t.Errorf("notes %v", meta.Counts.Notes)
			}
		}},
		{"Unix times", "{\"timestamp\":1700000000000,\"input_length\":5}\n{\"timestamp\":1700000000500,\"input_length\":1}", func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			if rows[0].Arrival != ms(0) || rows[1].Arrival != ms(500) || meta.EpochNS.Value != 1700000000000*1e6 {
				t.Errorf("%v %v, epoch %v", rows[0].Arrival, rows[1].Arrival, meta.EpochNS)
			}
		}},
		{"sessions count in file order", "{\"session_id\":\"a\",\"timestamp\":0,\"input_length\":5}\n{\"session_id\":\"b\",\"timestamp\":1,\"input_length\":6}\n{\"session_id\":\"a\",\"delay\":7.5,\"input_length\":4}", func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			last := rows[1] // behind the row of its session before it
			if last.Turn.Value != 1 || last.Delay != ms(7.5) || last.Arrival.Known || len(last.After) != 1 || last.After[0].ID != 0 {
				t.Errorf("%+v", last)
			}
			if last.InputTokens.Known || last.NewInputTokens.Value != 4 {
				t.Errorf("an increment was taken for the whole prompt: %+v", last)
			}
		}},
		{"literal content", `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}],"message_mode":"delta","session_id":7,"extra":{"a":1},"output_length":3}`, func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			r := rows[0]
			if r.Messages.Value != `[{"role":"user","content":"hi"}]` || r.MessagesMode.Value != trace.MessagesDelta || r.Session.Value != "7" || r.Operation != trace.OpChat || meta.Clock != trace.ClockNone {
				t.Errorf("%+v, clock %s", r, meta.Clock)
			}
		}},
		{"Dynamo names and edges", "{\"schema\":\"v1\"}\n{\"request_id\":\"r1\",\"created_time\":0.5,\"input_tokens\":16,\"output_tokens\":2,\"branches\":[\"r2\"]}\n{\"request_id\":\"r2\",\"created_time\":2,\"input_tokens\":1e1,\"delay_ms\":3}\n{\"request_id\":\"r3\",\"created_time\":9,\"input_tokens\":4,\"wait_for\":[\"r1\",\"r2\"],\"priority\":5}", func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			if !reflect.DeepEqual(rows[1].After, []trace.Dependency{{ID: 0, Kind: trace.AfterSpawn}}) || rows[1].InputTokens.Value != 10 || rows[1].Delay != ms(3) {
				t.Errorf("%+v", rows[1])
			}
			if !reflect.DeepEqual(rows[2].After, []trace.Dependency{{ID: 0, Kind: trace.AfterJoin}, {ID: 1, Kind: trace.AfterJoin}}) || rows[2].Attributes["priority"] != "5" {
				t.Errorf("%+v", rows[2])
			}
			if meta.Counts.Notes["header lines"] != 1 || meta.Counts.Read != 3 {
				t.Errorf("counts %+v", meta.Counts)
			}
		}},
		{"one id, two lengths", "{\"timestamp\":0,\"input_length\":1024,\"hash_ids\":[1,702]}\n{\"timestamp\":1,\"input_length\":694,\"hash_ids\":[1,702]}", func(t *testing.T, rows []trace.Request, meta trace.Meta) {
			g := meta.Guesses[len(meta.Guesses)-1]
			if g.What != "ids of two lengths" || !strings.Contains(g.Evidence, "id 702 is a full block at first and holds 182 tokens in line 2") {
				t.Errorf("guesses %+v", meta.Guesses)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, meta, bad, err := imported(t, &mooncake.Importer{}, c.text)
			if err != nil || len(bad) > 0 {
				t.Fatalf("error %v, rejected %v", err, bad)
			}
			c.check(t, rows, meta)
		})
	}
}

func TestRejects(t *testing.T) {
	good := `{"timestamp":0,"input_length":1024,"output_length":1,"hash_ids":[1,2]}` + "\n"
	for _, c := range []struct{ name, row, want string }{
		{"too many ids", `{"timestamp":200,"input_length":20,"output_length":8,"hash_ids":[0,1]}`, "hash_ids: 2 ids of 512 tokens, but input_length is 20, which has room for 1"},
		{"too few ids", `{"timestamp":200,"input_length":2000,"output_length":8,"hash_ids":[7]}`, "hash_ids: room for 512 tokens, but input_length is 2000"},
		{"cut tail", `{"timestamp": 90, "input_le`, "not valid JSON at byte 27: unexpected end of JSON input"},
		{"no length", `{"timestamp":5}`, "input_length: missing, and no text_input, messages or payload instead"},
		{"two modes", `{"input_length":5,"text_input":"x"}`, "text_input: beside input_length"},
		{"negative", `{"timestamp":5,"input_length":-1}`, "input_length: -1 is below 0"},
		{"fraction", `{"timestamp":5,"input_length":1.5}`, "input_length: 1.5 is no integer"},
		{"NaN", `{"timestamp":NaN,"input_length":1}`, "not valid JSON at byte 14"},
		{"text time", `{"timestamp":"5","input_length":1}`, `timestamp: "5" is no number`},
		{"negative id", `{"input_length":5,"hash_ids":[-1]}`, "hash_ids: -1 at position 0 is no id from 0 to 2^64-1"},
		{"ids alone", `{"text_input":"x","hash_ids":[1]}`, "hash_ids: 1 ids without input_length"},
		{"mode", `{"messages":[{"role":"user"}],"message_mode":"all"}`, `message_mode: "all" is neither history nor delta`},
		{"no role", `{"messages":[{"content":"x"}]}`, "messages: message 0 has no role"},
		{"an array", `[1,2]`, "a JSON array instead of an object"},
	} {
		rows, meta, bad, err := imported(t, &mooncake.Importer{}, good+c.row)
		switch {
		case err != nil || len(rows) != 1 || len(bad) != 1:
			t.Errorf("%s: %d rows, rejected %v, error %v", c.name, len(rows), bad, err)
		case !strings.Contains(bad[0].Error(), "in.jsonl:2: "+c.want):
			t.Errorf("%s: %v\nwant in.jsonl:2: %s", c.name, bad[0], c.want)
		case meta.Counts.Read != 2 || bad[0].Raw != c.row:
			t.Errorf("%s: counts %+v, raw %q", c.name, meta.Counts, bad[0].Raw)
		}
	}
}

func TestBlockSizeIsFound(t *testing.T) {
	for _, size := range []int{512, 64, 32, 16} {
		var text strings.Builder
		for i := 1; i < 40; i++ {
			in := i*37 + size
			fmt.Fprintf(&text, `{"timestamp":%d,"input_length":%d,"output_length":1,"hash_ids":[`, i, in)
			for k := range (in + size - 1) / size {
				if k > 0 {
					text.WriteString(",")
				}
				fmt.Fprint(&text, k)
			}
			text.WriteString("]}\n")
		}
		rows, meta, bad, err := imported(t, &mooncake.Importer{}, text.String())
		if err != nil || len(bad) > 0 || rows[0].BlockTokens.Value != int32(size) || meta.Guesses[0].Value != fmt.Sprint(size) {
			t.Errorf("size %d: found %v, rejected %v, error %v", size, meta.Guesses, bad, err)
		}
	}
}

func shared(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	path := filepath.Join(dir, "data", "mooncake", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("public traces are not here (set REPRISE_SHARED): %v", err)
	}
	return path
}

// Counts as measured in the manifest of the public traces.
func TestPublishedTraces(t *testing.T) {
	for _, c := range []struct {
		file                    string
		rows, in, out, ids, uni int64
		origin                  time.Duration
	}{
		{"conversation_trace.jsonl", 12031, 144793823, 4122048, 288500, 182790, 0},
		{"synthetic_trace.jsonl", 3993, 61194628, 595432, 121877, 43924, 0},
		{"arxiv_trace_excerpt.jsonl", 61, 418859, 11714, 851, 522, 1178625 * time.Millisecond},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := shared(t, c.file)
			rows, meta, bad, err := importFile(t, &mooncake.Importer{}, path)
			if err != nil || len(bad) > 0 {
				t.Fatalf("error %v, rejected %v", err, bad)
			}
			var in, out, ids int64
			unique := map[uint64]bool{}
			for _, r := range rows {
				in += r.InputTokens.Value
				out += r.OutputTokens.Value
				ids += int64(len(r.Blocks))
				for _, id := range r.Blocks {
					unique[id] = true
				}
			}
			if int64(len(rows)) != c.rows || in != c.in || out != c.out || ids != c.ids || int64(len(unique)) != c.uni || time.Duration(meta.OriginNS.Or(0)) != c.origin {
				t.Errorf("rows %d, in %d, out %d, ids %d, unique %d, origin %v; want %+v", len(rows), in, out, ids, len(unique), meta.OriginNS, c)
			}
		})
	}
}

// Import then export gives the same JSON, row by row.
func TestRoundTrip(t *testing.T) {
	dialects := `{"timestamp": 10.25, "session_id": "a", "input_length": 5, "output_length": 2}
{"delay": 3, "session_id": "a", "input_length": 4, "output_length": 2, "unknown": {"x": [1, null]}}
{"timestamp": 11, "text_input": "caf\u00e9 <b>", "output_length": 9, "model": "m"}
{"timestamp": 12, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "message_mode": "history", "context_mode": "message_array_with_responses", "tools": [{"a": 1}], "extra": {"temperature": 0}}
{"timestamp": 13, "payload": {"messages": [], "x": 1.50}}
{"timestamp": 14.0000001, "request_id": "r", "input_length": 40, "hash_ids": [3, 18446744073709551615, 5], "wait_for": ["q"], "branches": [], "tool_wait_ms": 2.5, "prefix_reset": true}
`
	files := map[string]func(t *testing.T) string{
		"dialects": func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "d.jsonl")
			os.WriteFile(path, []byte(dialects), 0o644)
			return path
		},
	}
	for _, name := range []string{"conversation_trace.jsonl", "synthetic_trace.jsonl", "arxiv_trace_excerpt.jsonl"} {
		files[name] = func(t *testing.T) string { return shared(t, name) }
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			var first, second bytes.Buffer
			for _, out := range []*bytes.Buffer{&first, &second} {
				if _, err := formats.Import(t.Context(), &mooncake.Importer{}, []*source.Source{source.New(path, nil)}, out, 0, trace.Step{}, func(e *trace.RowError) error { return e }); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("the same file gave other bytes the second time")
			}
			r, err := trace.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()), "out")
			if err != nil {
				t.Fatal(err)
			}
			var back bytes.Buffer
			lost, err := mooncake.Exporter{}.Export(t.Context(), r.Meta(), r.Rows(), &back)
			if err != nil || len(lost) > 0 {
				t.Fatalf("lost %v, error %v", lost, err)
			}
			text, _ := os.ReadFile(path)
			want, got := decode(t, text), decode(t, back.Bytes())
			if len(want) != len(got) {
				t.Fatalf("%d rows came back of %d", len(got), len(want))
			}
			for i := range want {
				if !reflect.DeepEqual(want[i], got[i]) {
					t.Fatalf("row %d:\n got %v\nwant %v", i, got[i], want[i])
				}
			}
		})
	}
}

// decode reads JSON lines as values; numbers keep all digits but are compared
// as numbers where they are short.
func decode(t *testing.T, text []byte) []any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var rows []any
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, v)
	}
	return rows
}

func FuzzImport(f *testing.F) {
	f.Add(`{"timestamp":0,"input_length":33,"output_length":4,"hash_ids":[10,20,99]}`)
	f.Add(`{"session_id":"a","delay":1,"messages":[{"role":"user"}]}` + "\n" + `{"request_id":"r","input_tokens":1e3,"wait_for":["r"]}`)
	f.Add("{\"timestamp\":1e300,\"input_length\":1}\n\n[1]\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		rows, meta, bad, err := imported(t, &mooncake.Importer{}, text)
		if err != nil {
			if strings.TrimSpace(text) != "" && len(bad) == 0 && meta.Counts.Read > 0 {
				t.Errorf("failed without a row error: %v", err)
			}
			return
		}
		if meta.Counts.Read != int64(len(rows)+len(bad)) {
			t.Errorf("read %d, kept %d, rejected %d", meta.Counts.Read, len(rows), len(bad))
		}
		for _, e := range bad {
			if e.Line < 1 {
				t.Errorf("no line in %v", e)
			}
		}
	})
}
