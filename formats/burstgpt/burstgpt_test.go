package burstgpt_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/burstgpt"
	"reprise/formats/importtest"
	"reprise/trace"
)

func imp() formats.Importer { return &burstgpt.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "burstgpt", "v1.csv")
	importtest.Golden(t, imp(), "burstgpt", "v2.csv")
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "burstgpt", "v1.csv", "v2.csv") }

func TestRefusals(t *testing.T) {
	head := "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	importtest.Refusals(t, imp, "a.csv", head+"5,ChatGPT,1,2,3,API log\n", func(n int) string {
		return head + "5,ChatGPT,1,2,3," + strings.Repeat("x", n)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, burstgpt.Detect, map[string]bool{
		"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n":                         true,
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n": true,
		"Timestamp,Model,Total tokens\n":            false,
		"TIMESTAMP,ContextTokens,GeneratedTokens\n": false,
	})
}

// A call of 0 response tokens failed: it stays an arrival and is no length.
func TestFailedCalls(t *testing.T) {
	r := importtest.Load(t, imp(), importtest.Testdata+"/burstgpt/v1.csv")
	if row := r.Rows[1]; row.Status.Value != trace.StatusError || row.OutputTokens != trace.Some(int64(0)) || r.Meta.Counts.Notes["rows with 0 response tokens, which are failed calls (status error)"] != 1 {
		t.Errorf("%+v, notes %v", row, r.Meta.Counts.Notes)
	}
}

// The rows of the published files that are known.
func TestPublishedRows(t *testing.T) {
	v1 := importtest.Load(t, imp(), importtest.Shared(t, "burstgpt", "burstgpt_1_head.csv"))
	in, out := v1.Sums()
	if len(v1.Rows) != 3 || v1.Meta.OriginNS != trace.Some(int64(5*time.Second)) || v1.Rows[1].Arrival.Value != 40*time.Second || v1.Rows[0].InputTokens.Value != 472 {
		t.Errorf("v1: %d rows, %d in, %d out, origin %v", len(v1.Rows), in, out, v1.Meta.OriginNS)
	}
	v2 := importtest.Load(t, imp(), importtest.Shared(t, "burstgpt", "burstgpt_3_head.csv"))
	row := v2.Rows[0]
	if len(v2.Rows) != 4 || v2.Meta.OriginNS != trace.Some(int64(19440110*time.Second)) || row.RecordedE2E.Value != 43*time.Second || row.InputTokens.Value != 906 || row.OutputTokens.Value != 446 ||
		row.Session.Value != "1722ac82-0a46-4bf0-aa08-89794e7a2b3f" || row.Model.Value != "GPT-4" || len(row.Attributes) != 1 || v2.Meta.Dialect != "v2" {
		t.Errorf("v2: %d rows, origin %v, first %+v", len(v2.Rows), v2.Meta.OriginNS, row)
	}
}
