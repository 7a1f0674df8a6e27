package vllm_test

import (
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/vllm"
	"reprise/trace"
)

func imp() formats.Importer { return &vllm.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "vllm", "sample.json")
	if r := importtest.Golden(t, imp(), "vllm", "older.json"); r.Meta.Clock != trace.ClockNone {
		t.Errorf("clock %s", r.Meta.Clock)
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "vllm", "sample.json", "older.json") }

const good = `{"model_id":"m","input_lens":[1],"output_lens":[2],"generated_texts":["x"]}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "r.json", good, func(n int) string { return strings.Replace(good, `"x"`, `"`+strings.Repeat("x", n)+`"`, 1) })
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, vllm.Detect, map[string]bool{
		good:                                 true,
		`{"input_lens":[1]}`:                 false,
		`{"input_lens":1,"output_lens":[1]}`: false,
	})
}

// Runs on clocks of their own do not stand on one.
func TestSeveralRuns(t *testing.T) {
	timed := strings.Replace(good, "{", `{"start_times":[5.5],`, 1)
	r := importtest.Text(t, imp(), "r.jsonl", timed+timed)
	if len(r.Rows) != 1 || len(r.Rejected) != 1 || r.Rejected[0].Fix != "import one result at a time" {
		t.Errorf("%d rows, rejected %v", len(r.Rows), r.Rejected)
	}
	unix := strings.Replace(good, "{", `{"start_times":[1700000005.5],`, 1)
	if r := importtest.Text(t, imp(), "r.jsonl", unix+unix); len(r.Rows) != 2 || !r.Meta.EpochNS.Known {
		t.Errorf("%d rows, epoch %v", len(r.Rows), r.Meta.EpochNS)
	}
}
