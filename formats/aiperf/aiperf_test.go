package aiperf_test

import (
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/aiperf"
	"reprise/formats/importtest"
	"reprise/trace"
)

func imp() formats.Importer { return &aiperf.Importer{} }

func TestGolden(t *testing.T) {
	if r := importtest.Golden(t, imp(), "aiperf", "inputs.json"); r.Meta.Clock != trace.ClockNone {
		t.Errorf("clock %s", r.Meta.Clock)
	}
	importtest.Golden(t, imp(), "aiperf", "profile_export.jsonl")
}

func FuzzImport(f *testing.F) {
	importtest.Fuzz(f, imp, "aiperf", "inputs.json", "profile_export.jsonl")
}

const good = `{"metadata":{"x_request_id":"r","request_start_ns":1759813207532900363},"metrics":{}}` + "\n"

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "profile_export.jsonl", good, func(n int) string {
		return strings.Replace(good, "{", `{"note": "`+strings.Repeat("x", n)+`", `, 1)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, aiperf.Detect, map[string]bool{
		good: true,
		`{"data":[{"session_id":"a","payloads":[]}]}`:            true,
		`{"data":[{"request_id":"a"}]}`:                          false,
		`{"metadata":{"x":1},"metrics":{}}`:                      false,
		`{"request_throughput":{"unit":"requests/sec","avg":1}}`: false,
	})
}
