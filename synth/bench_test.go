package synth

import (
	"testing"
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
)

// BenchmarkGenerate and BenchmarkScale give the time per row that is made and
// written.
func BenchmarkGenerate(b *testing.B) {
	w := flat(1000, stats.Exponential{Rate: 1})
	out := trace.NewWriter(discard{})
	if _, err := (Generation{Requests: int64(b.N)}).Run(b.Context(), w, out.Write); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkScale(b *testing.B) {
	m := generate(b, flat(1000, stats.Exponential{Rate: 1}), Generation{Requests: int64(max(1000, b.N/3))})
	b.ResetTimer()
	out := trace.NewWriter(discard{})
	if _, _, err := (&Scaling{Factor: 3, Jitter: trace.Some(10 * time.Second)}).Run(b.Context(), m.open, out.Write); err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
