package ragpulse_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/ragpulse"
)

func imp() formats.Importer { return &ragpulse.Importer{} }

func TestGolden(t *testing.T) { importtest.Golden(t, imp(), "ragpulse", "sample.jsonl") }

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "ragpulse", "sample.jsonl") }

const good = `{"timestamp": "82", "input_length": 3, "output_length": 1, "hash_ids": {"sys_prompt": [1]}, "session_id": "s"}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string {
		return strings.Replace(good, "{", `{"note": "`+strings.Repeat("x", n)+`", `, 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, ragpulse.Detect, map[string]bool{
		good: true,
		`{"timestamp":0,"input_length":5,"hash_ids":[1]}`: false,
	})
}

func TestPublishedFile(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Shared(t, "ragpulse", "0_trace.jsonl"))
	in, out := r.Sums()
	sessions := map[string]bool{}
	for _, row := range r.Rows {
		sessions[row.Session.Value] = true
	}
	last := r.Rows[len(r.Rows)-1]
	if len(r.Rows) != 7106 || in != 20917099 || out != 2012676 || len(sessions) != 3990 || last.Arrival.Value != 604603*time.Second || len(r.Rejected) > 0 {
		t.Errorf("%d rows, %d in, %d out, %d sessions, last %v, rejected %v", len(r.Rows), in, out, len(sessions), last.Arrival, r.Rejected)
	}
	// One step back in time, after which 3,304 rows are earlier than the row before it.
	if r.Meta.Counts.Notes["rows moved into order of arrival"] != 3304 {
		t.Errorf("notes %v", r.Meta.Counts.Notes)
	}
}
