package bailian_test

import (
	"fmt"
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/bailian"
	"reprise/formats/importtest"
	"reprise/trace"
)

func imp() formats.Importer { return &bailian.Importer{} }

func TestGolden(t *testing.T) { importtest.Golden(t, imp(), "bailian", "sample.jsonl") }

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "bailian", "sample.jsonl") }

const good = `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 3, "output_length": 1, "turn": 1, "hash_ids": [7]}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string {
		return strings.Replace(good, "{", `{"note": "`+strings.Repeat("x", n)+`", `, 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, bailian.Detect, map[string]bool{
		good: true,
		`{"timestamp":0,"input_length":5,"hash_ids":[1]}`: false,
		`{"chat_id":1,"input_length":5}`:                  false,
	})
}

// Later turns hold the history; their lengths are whole, and seconds are seconds.
func TestHistory(t *testing.T) {
	r := importtest.Text(t, imp(), "x.jsonl", `{"chat_id":1,"parent_chat_id":-1,"timestamp":0,"input_length":500,"output_length":1,"turn":1}
{"chat_id":2,"parent_chat_id":1,"timestamp":1.5,"input_length":900,"output_length":1,"turn":2}`)
	a, b := r.Rows[0], r.Rows[1]
	if a.InputTokens.Value != 500 || b.InputTokens.Value != 900 || a.Session != b.Session || b.After[0].ID != a.ID || b.Arrival.Value != 1500e6 || b.Turn.Value != 1 {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// Long chains and circles of any length end.
func TestLongChains(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, `{"chat_id":%d,"parent_chat_id":%d,"timestamp":%d,"input_length":5,"output_length":1,"turn":%d}`+"\n", i, (i+1)%4000, i, i+1)
	}
	r := importtest.Text(t, imp(), "x.jsonl", text.String())
	for _, row := range r.Rows {
		if row.Session.Value != "0" {
			t.Fatalf("chat %s in session %s", row.SourceID.Value, row.Session.Value)
		}
	}
	if r.Meta.Counts.Notes["conversations whose parent links go round, cut at their first row"] != 1 || r.Rows[0].After != nil {
		t.Errorf("notes %v", r.Meta.Counts.Notes)
	}
}

// Files count chats and blocks from 0, each on its own.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	importtest.Write(t, dir, "a_blksz_16.jsonl", good)
	importtest.Write(t, dir, "b_blksz_16.jsonl", good)
	r := importtest.Load(t, imp(), dir)
	if r.Rows[0].Session == r.Rows[1].Session || r.Rows[0].Blocks[0] != 7 || r.Rows[1].Blocks[0] != 1<<48|7 {
		t.Errorf("%+v", r.Rows)
	}
}

func TestPublishedRow(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Shared(t, "bailian", "qwen_thinking_first_row.jsonl"))
	row := r.Rows[0]
	if len(r.Rows) != 1 || row.InputTokens.Value != 502 || row.OutputTokens.Value != 1494 || len(row.Blocks) != 32 || row.BlockTail.Value != trace.TailPartial || row.BlockTokens.Value != 16 {
		t.Errorf("%+v", row)
	}
}
