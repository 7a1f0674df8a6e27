package synth

import (
	"testing"
	"time"

	"reprise/analysis"
	"reprise/synth/model"
	"reprise/trace"
)

// verdicts generates from w and holds the rows against its measures.
func verdicts(t *testing.T, w *model.Workload, g Generation, flags map[string]string) map[string]analysis.Property {
	t.Helper()
	var made Measuring
	if _, err := g.Run(t.Context(), w, func(b *trace.Batch) error { made.Add(b); return nil }); err != nil {
		t.Fatal(err)
	}
	out := map[string]analysis.Property{}
	for _, p := range analysis.ModelFidelity(w.Measures, made.Measures(), analysis.NewGenerated(w, made.rows, g.Seed, flags)).Properties {
		if p.Method == "" {
			t.Errorf("%s: no method", p.Name)
		}
		out[p.Name] = p
	}
	return out
}

// TestModelFidelity: what a model keeps is within noise; what it cannot keep, or
// what flags changed, is said with the reason.
func TestModelFidelity(t *testing.T) {
	t.Parallel()
	w := fitOf(t, compacting(t), FitOptions{})
	for name, p := range verdicts(t, w, Generation{Seed: 1, Warm: true}, nil) {
		if p.Verdict != analysis.WithinNoise && p.Verdict != analysis.Exact {
			t.Errorf("%s: %s, %v and %v (%s)", name, p.Verdict, *p.Source, *p.Achieved, p.Method)
		}
	}
	faster := verdicts(t, w, Generation{Rate: 20, Seed: 1, Warm: true}, map[string]string{"rate": "20"})
	if p := faster["rate"]; p.Verdict != analysis.ByDesign || p.Method != "asked for: --rate 20" {
		t.Errorf("another rate: %+v", p)
	}
	w.Streams[0].Sessions.Paths = nil // turns drawn one by one
	if p := verdicts(t, w, Generation{Seed: 1, Warm: true}, nil)["input mean"]; p.Verdict != analysis.Lost {
		t.Errorf("turns drawn one by one: input mean %s, %v and %v", p.Verdict, *p.Source, *p.Achieved)
	}
	w.Measures = nil
	if p := verdicts(t, w, Generation{Requests: 10}, nil)["all"]; p.Verdict != analysis.NotMeasurable {
		t.Errorf("a model without measures: %+v", p)
	}
}

// TestMeasureBands: 95 % bands of Poisson traffic hold the truth nearly always.
func TestMeasureBands(t *testing.T) {
	t.Parallel()
	truth := map[string]float64{"rate": 5, "gap CV": 1, "IDC at 0.1 s": 1, "IDC at 1 s": 1, "IDC at 10 s": 1, "IDC at 60 s": 1, "IDC at 300 s": 1, "input mean": 700, "output mean": 90}
	missed, all := 0, 0
	for seed := range uint64(12) {
		var made Measuring
		w := poissonModel(t)
		if _, err := (Generation{Duration: time.Hour, Seed: seed}).Run(t.Context(), w, func(b *trace.Batch) error { made.Add(b); return nil }); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range made.Measures() {
			want, ok := truth[m.Name]
			if !ok {
				continue
			}
			found++
			if all++; m.Band == nil || want < m.Band[0] || want > m.Band[1] {
				missed++
			}
		}
		if found != len(truth) {
			t.Fatalf("%d of %d numbers", found, len(truth))
		}
	}
	if share := float64(missed) / float64(all); share > 0.15 {
		t.Errorf("%d of %d bands miss the truth", missed, all)
	}
}

// poissonModel is Poisson traffic of 5 requests/s, with lengths of mean 700 and 90.
func poissonModel(t testing.TB) *model.Workload {
	t.Helper()
	arrivals, _, err := ParseArrivals("poisson:5")
	if err != nil {
		t.Fatal(err)
	}
	l := Laws{Arrivals: arrivals}
	if l.Input, err = ParseLengths("uniform:500,900"); err != nil {
		t.Fatal(err)
	}
	if l.Output, err = ParseLengths("uniform:30,150"); err != nil {
		t.Fatal(err)
	}
	w, err := l.Workload()
	if err != nil {
		t.Fatal(err)
	}
	return w
}
