package analysis_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"reprise/analysis"
	"reprise/formats"
	"reprise/formats/azure"
	"reprise/formats/mooncake"
	"reprise/formats/source"
	"reprise/trace"
)

// goldenValues reads golden/fits.json of one data set.
func goldenValues(t *testing.T, name string) func(path ...string) float64 {
	t.Helper()
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(dir, "golden", "fits.json"))
	if err != nil {
		t.Skipf("golden values are not here (set REPRISE_SHARED): %v", err)
	}
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return func(path ...string) float64 {
		t.Helper()
		var v any = file["datasets"].(map[string]any)[name]
		for _, key := range path {
			v = v.(map[string]any)[key]
		}
		f, ok := v.(float64)
		if !ok {
			t.Fatalf("%v is %v", path, v)
		}
		return f
	}
}

// TestTrafficGolden: what analyze prints of two public traces, through their
// importers, agrees with the golden values.
func TestTrafficGolden(t *testing.T) {
	for _, c := range []struct {
		name, dir, file string
		imp             formats.Importer
	}{
		{"mooncake_conversation", "mooncake", "conversation_trace.jsonl", &mooncake.Importer{}},
		{"azure_code", "azure", "AzureLLMInferenceTrace_code.csv", &azure.Importer{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := goldenValues(t, c.name)
			var data bytes.Buffer
			src := []*source.Source{source.New(sharedTrace(t, c.dir, c.file), nil)}
			if _, err := formats.Import(t.Context(), c.imp, src, &data, 0, trace.Step{}, func(e *trace.RowError) error { return e }); err != nil {
				t.Fatal(err)
			}
			a, err := trafficOf(t, data.Bytes(), analysis.TrafficOptions{})
			if err != nil {
				t.Fatal(err)
			}
			printed(t, a)
			is := func(got float64, tolerance float64, path ...string) {
				t.Helper()
				if w := want(path...); math.Abs(got-w) > tolerance*math.Abs(w) {
					t.Errorf("%v = %.17g, want %.17g", path, got, w)
				}
			}
			is(float64(a.Rows), 0, "arrivals", "n")
			is(*a.Arrivals.SpanS, 1e-9, "arrivals", "span_s")
			is(*a.Arrivals.RateHz, 1e-9, "arrivals", "mean_rate_hz")
			is(*a.Arrivals.Gaps.CV, 1e-9, "arrivals", "iat_cv_ddof1")
			is(*a.Arrivals.Lag1, 1e-9, "arrivals", "iat_lag1_autocorr")
			is(*a.Arrivals.BatchMean, 1e-9, "arrivals", "batch_mean")
			is(float64(a.Arrivals.Gaps.Zeros), 0, "arrivals", "zero_gaps")
			for _, b := range a.Arrivals.Burstiness {
				w := fmt.Sprint(b.WindowS)
				is(float64(b.Windows), 0, "counts", w, "windows")
				is(*b.IDC, 1e-9, "counts", w, "dispersion")
				is(*b.Log10P, 1e-6, "counts", w, "log10_p_upper")
				is(*b.NegBinR, 1e-6, "counts", w, "negbin", "r")
				is(*b.Lag1, 1e-9, "counts", w, "lag1_autocorr")
				v, m := want("counts", w, "var"), want("counts", w, "mean")
				if cv := math.Sqrt(max(0, v-m)) / m; math.Abs(*b.CountCV-cv) > 1e-9*cv {
					t.Errorf("count CV in %s s is %v, want %v", w, *b.CountCV, cv)
				}
			}
			for i, kind := range []string{"isl", "osl"} {
				l := a.Lengths[i]
				is(l.Mean, 1e-9, kind, "describe", "mean")
				is(*l.SD, 1e-9, kind, "describe", "sd_ddof1")
				is(l.Sum, 0, kind, "describe", "sum")
				is(l.Max, 0, kind, "describe", "max")
			}
			is(*a.Dependence.Pearson, 1e-9, "dependence", "pearson")
			is(*a.Dependence.Spearman, 1e-9, "dependence", "spearman")
			is(*a.Dependence.KendallTauB, 1e-9, "dependence", "kendall_tau_b")
			is(*a.Dependence.NormalScores, 1e-9, "dependence", "normal_scores_corr")
			is(*a.Dependence.PearsonLog, 1e-9, "dependence", "pearson_log")
			if c.dir != "mooncake" {
				if *a.Arrivals.EffectiveTickS != 1e-6 {
					t.Errorf("tick %v", *a.Arrivals.EffectiveTickS)
				}
				return
			}
			if *a.Arrivals.EffectiveTickS != 3 || *a.Arrivals.TickS != 0.001 {
				t.Errorf("tick %v, effective %v", *a.Arrivals.TickS, *a.Arrivals.EffectiveTickS)
			}
			if a.Sessions.N != 7373 || a.Sessions.Basis != analysis.SessionsInferred {
				t.Errorf("sessions %+v", a.Sessions)
			}
			is(*a.Prefix.HitShareBlocks, 1e-9, "prefix", "infinite", "hit_rate_blocks")
			is(*a.Prefix.HitShareTokens, 1e-9, "prefix", "infinite", "hit_rate_tokens")
			is(float64(a.Prefix.Once), 0, "prefix", "blocks_used_once")
			is(float64(a.Prefix.Distinct), 0, "prefix", "infinite", "unique_blocks")
		})
	}
}

func sharedTrace(t *testing.T, dir, file string) string {
	t.Helper()
	root := os.Getenv("REPRISE_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	path := filepath.Join(root, "data", dir, file)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("public traces are not here (set REPRISE_SHARED): %v", err)
	}
	return path
}
