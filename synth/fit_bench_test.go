package synth

import (
	"testing"

	"reprise/analysis/stats"
)

// BenchmarkFit fits 100,000 bursty rows.
func BenchmarkFit(b *testing.B) {
	m := generate(b, flat(50, stats.Gamma{Shape: 0.4, Scale: 2.5}), Generation{Requests: 100_000})
	b.ResetTimer()
	for b.Loop() {
		if _, err := Fit(b.Context(), m.open, FitOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "rows/s")
}
