package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDependenceAgainstDefinitions(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		n := 2 + random.IntN(70)
		x, y := make([]int64, n), make([]int64, n)
		p := NewPairs(int64(n))
		for i := range n {
			x[i], y[i] = random.Int64N(12), random.Int64N(9)+random.Int64N(3)*1000
			if err := p.Add(x[i], y[i]); err != nil {
				t.Fatal(err)
			}
		}
		var concordant, discordant, tx, ty float64
		for i := range n {
			for j := range i {
				a, b := x[i]-x[j], y[i]-y[j]
				switch {
				case a == 0 && b == 0:
				case a == 0:
					tx++
				case b == 0:
					ty++
				case a > 0 == (b > 0):
					concordant++
				default:
					discordant++
				}
			}
		}
		d, ok := p.Dependence()
		if !ok {
			continue
		}
		tau := (concordant - discordant) / math.Sqrt((concordant+discordant+tx)*(concordant+discordant+ty))
		spearman := plainPearson(plainRanks(x), plainRanks(y))
		if math.Abs(d.KendallTauB-tau) > 1e-12 || math.Abs(d.Spearman-spearman) > 1e-12 {
			t.Fatalf("tau %v, want %v; rho %v, want %v", d.KendallTauB, tau, d.Spearman, spearman)
		}
	}
}

func plainRanks(v []int64) []float64 {
	r := make([]float64, len(v))
	for i, a := range v {
		for _, b := range v {
			if b < a {
				r[i]++
			} else if b == a {
				r[i] += 0.5
			}
		}
	}
	return r
}

func plainPearson(x, y []float64) float64 {
	var mx, my, xx, yy, xy float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(x))
	}
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
		xy += (x[i] - mx) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

func TestDependenceOfNothing(t *testing.T) {
	for _, c := range [][][2]int64{nil, {{1, 2}}, {{1, 2}, {1, 3}}, {{1, 2}, {3, 2}}} {
		p := NewPairs(0)
		for _, v := range c {
			if err := p.Add(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		if d, ok := p.Dependence(); ok {
			t.Errorf("%v: %+v", c, d)
		}
	}
	p := NewPairs(2)
	if p.Add(-1, 0) == nil || p.Add(0, MaxPaired+1) == nil {
		t.Error("values out of range passed")
	}
	for _, v := range [][2]int64{{0, 1}, {1, 0}, {2, 2}} {
		p.Add(v[0], v[1])
	}
	if d, ok := p.Dependence(); !ok || d.LogOK || d.LogN != 1 {
		t.Errorf("logarithms of zeros: %+v", d)
	}
}

func TestBins(t *testing.T) {
	p := NewPairs(0)
	for i := range int64(100) {
		p.Add(i, 1000-i)
	}
	bins := p.Bins(10)
	if len(bins) != 10 || bins[0] != (Bin{0, 9, 10, 995.5, 995.5, 999.1}) {
		t.Errorf("%+v", bins)
	}
	for range 900 {
		p.Add(7, 5) // one value with most of the mass
	}
	var n int64
	bins = p.Bins(10)
	for i, b := range bins {
		n += b.N
		if i > 0 && b.FromX <= bins[i-1].ToX {
			t.Errorf("bins overlap: %+v", bins)
		}
	}
	if n != 1000 || len(bins) != 2 || len(NewPairs(0).Bins(10)) != 0 {
		t.Errorf("%d pairs in %+v", n, bins)
	}
}

func BenchmarkDependence(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	p := NewPairs(1e6)
	for range 1_000_000 {
		p.Add(random.Int64N(100000), random.Int64N(2000))
	}
	packed := p.packed
	for b.Loop() {
		p.packed = append(p.packed[:0:0], packed...)
		p.Dependence()
	}
}
