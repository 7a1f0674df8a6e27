package tracelab_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/tracelab"
)

func imp() formats.Importer { return &tracelab.Importer{} }

func TestGolden(t *testing.T) { importtest.Golden(t, imp(), "tracelab", "sample.jsonl") }

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "tracelab", "sample.jsonl") }

const good = `{"session_id":"a","input_tokens_total":9,"output_tokens":5,"timing_events":[{"event_type":"text","timestamp":"2026-06-01T05:40:25Z"}]}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.jsonl", good, func(n int) string {
		return strings.Replace(good, "{", `{"note": "`+strings.Repeat("x", n)+`", `, 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, tracelab.Detect, map[string]bool{
		good:                       true,
		`{"input_tokens_total":5}`: false,
	})
}

func TestPublishedExample(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Shared(t, "tracelab", "round_trace.sanitized.jsonl"))
	in, out := r.Sums()
	var prefix int64
	sessions := map[string]bool{}
	for _, row := range r.Rows {
		sessions[row.Session.Value] = true
		prefix += row.CachedTokens.Value
	}
	if len(r.Rows) != 19 || in != 514012 || out != 11335 || prefix != 473556 || len(sessions) != 2 || len(r.Rejected) > 0 {
		t.Errorf("%d rows, %d in, %d out, %d cached, %d sessions, rejected %v", len(r.Rows), in, out, prefix, len(sessions), r.Rejected)
	}
	for _, row := range r.Rows {
		if !row.RecordedE2E.Known || row.RecordedE2E.Value > time.Hour || row.Turn.Value > 0 && (len(row.After) != 1 || !row.Delay.Known) {
			t.Errorf("%+v", row)
		}
	}
}
