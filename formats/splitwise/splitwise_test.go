package splitwise_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/importtest"
	"reprise/formats/splitwise"
)

func imp() formats.Importer { return &splitwise.Importer{} }

func TestGolden(t *testing.T) { importtest.Golden(t, imp(), "splitwise", "sample.csv") }

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "splitwise", "sample.csv") }

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.csv", "arrival_timestamp,prompt_size,token_size\n0.5,1,2\n", func(n int) string {
		return "arrival_timestamp,prompt_size,token_size,note\n0,1,2," + strings.Repeat("x", n)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, splitwise.Detect, map[string]bool{
		"request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n": true,
		"arrival_timestamp,prompt_size\n": false,
	})
}

func TestPublishedFile(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Shared(t, "splitwise", "test_trace.csv"))
	in, out := r.Sums()
	if len(r.Rows) != 3 || in != 8192 || out != 56 || r.Rows[1].Arrival.Value != 2*time.Second || r.Rows[0].SourceID.Value != "0" {
		t.Errorf("%d rows, %d in, %d out: %+v", len(r.Rows), in, out, r.Rows)
	}
}
