package vidur_test

import (
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/azure"
	"reprise/formats/importtest"
	"reprise/formats/vidur"
	"reprise/trace"
)

func imp() formats.Importer { return &vidur.Importer{} }

func TestGolden(t *testing.T) {
	importtest.Golden(t, imp(), "vidur", "sample.csv")
	r := importtest.Golden(t, imp(), "vidur", "lengths.csv")
	if r.Meta.Clock != trace.ClockNone {
		t.Errorf("clock %s", r.Meta.Clock)
	}
}

func FuzzImport(f *testing.F) { importtest.Fuzz(f, imp, "vidur", "sample.csv", "lengths.csv") }

func TestRefusals(t *testing.T) {
	importtest.Refusals(t, imp, "a.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,1,2\n", func(n int) string {
		return "num_prefill_tokens,num_decode_tokens,note\n1,2," + strings.Repeat("x", n)
	})
}

func TestDetect(t *testing.T) {
	importtest.Detected(t, vidur.Detect, map[string]bool{
		"arrived_at,num_prefill_tokens,num_decode_tokens\n":                true,
		"num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n": true,
		"arrived_at,num_prefill_tokens\n":                                  false,
	})
}

// Vidur's code trace is Azure's of 2023.
func TestSameAsAzure(t *testing.T) {
	a := importtest.Load(t, &azure.Importer{}, importtest.Shared(t, "azure", "AzureLLMInferenceTrace_code.csv"))
	v := importtest.Load(t, imp(), importtest.Shared(t, "vidur", "splitwise_code.csv"))
	in, out := v.Sums()
	if len(v.Rows) != 8819 || in != 18059974 || out != 245896 || len(v.Rejected) > 0 || len(a.Rows) != len(v.Rows) {
		t.Fatalf("%d rows, %d in, %d out, rejected %v; Azure has %d", len(v.Rows), in, out, v.Rejected, len(a.Rows))
	}
	for i := range v.Rows {
		x, y := &a.Rows[i], &v.Rows[i]
		if x.InputTokens != y.InputTokens || x.OutputTokens != y.OutputTokens || x.Arrival != y.Arrival {
			t.Fatalf("row %d: Azure %v %v %v, Vidur %v %v %v", i, x.Arrival, x.InputTokens, x.OutputTokens, y.Arrival, y.InputTokens, y.OutputTokens)
		}
	}
}
