package stats

import (
	"fmt"
	"testing"
)

// Fits of a million distinct values, as gaps at a tick of 1 us are.
func BenchmarkFitLaw(b *testing.B) {
	s := drawn(b, Gamma{0.3, 2}, 1_000_000, 1)
	for _, family := range Families() {
		b.Run(string(family), func(b *testing.B) {
			for b.Loop() {
				if _, err := FitLaw(family, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFitTicks(b *testing.B) {
	for _, tick := range []float64{1e-6, 1e-3} {
		ticks, err := drawTicks(Gamma{0.3, 2}, tick, 1_000_000, rng(1))
		if err != nil {
			b.Fatal(err)
		}
		for _, family := range Families() {
			b.Run(fmt.Sprintf("%s/tick=%v/distinct=%d", family, tick, ticks.Sample().Distinct()), func(b *testing.B) {
				for b.Loop() {
					if _, err := FitTicks(family, ticks, Triangular); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkGoodness(b *testing.B) {
	s := drawn(b, Gamma{0.3, 2}, 1_000_000, 1)
	law := Gamma{0.31, 1.9}
	b.Run("ks", func(b *testing.B) {
		for b.Loop() {
			sink = KSAgainst(s, law)
		}
	})
	b.Run("ad", func(b *testing.B) {
		for b.Loop() {
			sink, _ = ADAgainst(s, law)
		}
	})
	b.Run("w1", func(b *testing.B) {
		for b.Loop() {
			sink, _ = W1Against(s, law)
		}
	})
}
