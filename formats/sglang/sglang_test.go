package sglang_test

import (
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/sglang"
	"reprise/trace"
)

func imp() formats.Importer { return &sglang.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "sglang", "sample.log")
	if r := importtest.Golden(t, imp(), "sglang", "older.log"); r.Meta.Clock != trace.ClockNone {
		t.Errorf("clock %s", r.Meta.Clock)
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "sglang", "sample.log", "older.log") }

const good = `{"request_parameters": "{\"text\": \"x\"}", "id": "r", "prompt_tokens": 5, "e2e_latency": 0.5}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "sglang-request-metrics-20260211_14.log", good, func(n int) string { return strings.Replace(good, "x", strings.Repeat("x", n), 1) })
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, sglang.Detect, map[string]bool{
		good:                                  true,
		`{"request_parameters":{},"id":"x"}`:  false,
		`{"prompt_tokens":1,"e2e_latency":1}`: false,
	})
}
