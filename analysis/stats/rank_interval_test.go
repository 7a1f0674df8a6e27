package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Ranks by the tables of binomial intervals: median of 10 (ranks 2 and 9, level
// 0.979), of 100 (40 and 61).
func TestRankInterval(t *testing.T) {
	for _, tt := range []struct {
		n         int64
		q         float64
		low, high int64
		ok        bool
	}{
		{10, 0.5, 2, 9, true}, {100, 0.5, 40, 61, true},
		{5, 0.5, 0, 0, false}, {6, 0.5, 1, 6, true}, // 2 * 0.5^6 = 3.1 %
		{368, 0.99, 360, 368, true}, {367, 0.99, 0, 0, false}, // 0.99^368 = 2.48 %
		{1, 0.5, 0, 0, false}, {0, 0.5, 0, 0, false}, {100, 1, 0, 0, false}, {100, math.NaN(), 0, 0, false},
	} {
		low, high, ok := RankInterval(tt.n, tt.q, 0.95)
		if low != tt.low || high != tt.high || ok != tt.ok {
			t.Errorf("n %d, q %v: %d to %d, %v; want %d to %d, %v", tt.n, tt.q, low, high, ok, tt.low, tt.high, tt.ok)
		}
	}
}

// Large n agree with the normal law, and the interval covers as often as it says.
func TestRankIntervalCovers(t *testing.T) {
	low, high, ok := RankInterval(1_000_000, 0.99, 0.95)
	half := 1.959964 * math.Sqrt(1e6*0.99*0.01)
	if !ok || math.Abs(float64(low)-(990_000-half)) > 2 || math.Abs(float64(high)-(990_000+half)) > 2 {
		t.Errorf("p99 of a million: %d to %d, want about %.0f to %.0f", low, high, 990_000-half, 990_000+half)
	}
	r := rand.New(rand.NewPCG(1, 2))
	const n, draws, q = 200, 4000, 0.9
	low, high, _ = RankInterval(n, q, 0.95)
	covered := 0
	for range draws {
		below := int64(0) // samples below the quantile of a uniform law
		for range n {
			if r.Float64() < q {
				below++
			}
		}
		if low <= below && below < high {
			covered++
		}
	}
	if share := float64(covered) / draws; share < 0.945 || share > 0.985 {
		t.Errorf("covers %.3f of draws, want at least 0.95", share)
	}
}
