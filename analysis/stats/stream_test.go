package stats

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHashAvalanche: each bit of the seed and of each key flips each bit of the
// hash half of the time.
func TestHashAvalanche(t *testing.T) {
	const trials = 4000
	for word := range 3 {
		for bit := range 64 {
			var flips [64]int
			for i := range uint64(trials) {
				in := [3]uint64{i, i * 3, 7} // small, as seeds and ordinals are
				a := Hash(in[0], in[1], in[2])
				in[word] ^= 1 << bit
				d := a ^ Hash(in[0], in[1], in[2])
				for ; d != 0; d &= d - 1 {
					flips[bits.TrailingZeros64(d)]++
				}
			}
			for out, n := range flips {
				// 12 288 checks: 6 sigma
				if math.Abs(float64(n)-trials/2) > 6*math.Sqrt(trials)/2 {
					t.Fatalf("word %d bit %d flips bit %d in %d of %d", word, bit, out, n, trials)
				}
			}
		}
	}
}

// TestStreamsDiffer: first draws over keys that differ in one bit, or in their
// number or order, are uniform and not correlated (chi-squared over 64 cells).
func TestStreamsDiffer(t *testing.T) {
	cells, joint := make([]int64, 64), make([]int64, 64)
	const n = 64 * 400
	for i := range uint64(n) {
		a, b := Draw(9, i, 1), Draw(9, i^1<<(i%64), 1)
		cells[int(a*64)]++
		joint[int(a*8)*8+int(b*8)]++
	}
	for name, c := range map[string][]int64{"one": cells, "two": joint} {
		var chi2 float64
		for _, k := range c {
			d := float64(k) - n/64
			chi2 += d * d / (n / 64)
		}
		if p := math.Exp(LogChi2Tail(chi2, 63)); p < 1e-4 || p > 1-1e-4 {
			t.Errorf("%s: chi2 %v, p %v", name, chi2, p)
		}
	}
	seen := map[uint64]bool{}
	for _, keys := range [][]uint64{nil, {0}, {0, 0}, {1, 0}, {0, 1}, {1}, {1 << 63}} {
		seen[Stream(0, keys...).Uint64()] = true
		seen[Stream(1, keys...).Uint64()] = true
	}
	if len(seen) != 14 {
		t.Errorf("%d of 14 streams differ", len(seen))
	}
}

func TestSourceResets(t *testing.T) {
	var s Source
	r := rand.New(&s)
	for i := range uint64(10) {
		s.Reset(4, i, 2)
		if r.Uint64() != Stream(4, i, 2).Uint64() {
			t.Errorf("stream %d differs", i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.Reset(4, 7, 2); r.Uint64() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStream(b *testing.B) {
	var s Source
	r := rand.New(&s)
	b.ReportAllocs()
	for i := range b.N {
		s.Reset(1, uint64(i), 3, 2)
		r.Uint64()
	}
}

func ExampleStream() {
	// Copy 2 of session 17 draws the same, whatever else is drawn.
	fmt.Println(Stream(42, 2, 17).IntN(1000) == Stream(42, 2, 17).IntN(1000))
	// Output: true
}

func TestTally(t *testing.T) {
	r := Stream(6)
	for _, limit := range []int{0, 100} {
		tally := Tally{Limit: limit}
		var values []int64
		for range 20000 {
			v := int64(math.Exp(r.NormFloat64()*6)) - 3
			if r.IntN(10) == 0 {
				v = -v
			}
			values = append(values, v)
			tally.Add(v)
		}
		s := tally.Sample(1)
		if tally.Exact() != (limit == 0) || s.N() != 20000 || tally.N() != 20000 {
			t.Fatalf("limit %d: exact %v, %d numbers", limit, tally.Exact(), s.N())
		}
		slices.Sort(values)
		for _, p := range []float64{0, 0.001, 0.05, 0.3, 0.5, 0.9, 0.99, 0.999, 1} {
			want, _ := Quantile1(values, p)
			got := s.Quantiles1(p)[0]
			if tolerance := TallyError * math.Abs(want); tally.Exact() && got != want || math.Abs(got-want) > tolerance {
				t.Errorf("limit %d: quantile %v is %v, want %v", limit, p, got, want)
			}
		}
	}
	for _, v := range []int64{0, 1, 2047, 2048, 2049, 4095, 4096, 123456789, math.MaxInt64, -1, -5000, -math.MaxInt64} {
		got := middleOf(bucketOf(v))
		if math.Abs(float64(got)-float64(v)) > TallyError*math.Abs(float64(v)) {
			t.Errorf("%d becomes %d", v, got)
		}
	}
}

func TestQuantilesOfFew(t *testing.T) {
	ten := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct{ p, seven, one float64 }{{0, 1, 1}, {0.25, 3.25, 3}, {0.3, 3.7, 3}, {0.7, 7.3, 7}, {0.9, 9.1, 9}, {1, 10, 10}} {
		a, _ := Quantile7(ten, c.p)
		b, _ := Quantile1(ten, c.p)
		if math.Abs(a-c.seven) > 1e-12 || b != c.one {
			t.Errorf("p = %v: %v and %v, want %v and %v", c.p, a, b, c.seven, c.one)
		}
	}
	if _, ok := Quantile7([]float64(nil), 0.5); ok {
		t.Error("a quantile of nothing")
	}
	if _, ok := Quantile1(ten, math.NaN()); ok || (Sample{}).Quantiles7(0.5) != nil {
		t.Error("a quantile of nothing")
	}
}

func TestMomentsOfFew(t *testing.T) {
	var m Moments
	if _, ok := m.Mean(); ok {
		t.Error("a mean of nothing")
	}
	m.Add(1e9 + 1)
	if _, ok := m.SD(); ok {
		t.Error("a deviation of one")
	}
	for _, v := range []float64{1e9 + 2, 1e9 + 3} {
		m.Add(v)
	}
	if sd, _ := m.SD(); math.Abs(sd-1) > 1e-9 {
		t.Errorf("sd %v", sd)
	}
	var s Series
	for _, v := range []int64{1 << 60, 1<<60 + 1, 1<<60 + 2} { // beyond float64
		s.Add(v)
	}
	if v, ok := s.Variance(); !ok || v != 1 {
		t.Errorf("variance %v", v)
	}
	if r, ok := s.Lag1(); !ok || r != 0 {
		t.Errorf("lag 1: %v", r)
	}
	var once, often Series
	for _, v := range []int64{4, -7, 0, 1 << 40} {
		often.AddN(v, 3)
		for range 3 {
			once.Add(v)
		}
	}
	if once != often {
		t.Errorf("AddN: %+v, want %+v", often, once)
	}
	var large Series // the sum is beyond 63 bits
	large.AddN(1<<40, 1<<30)
	large.AddN(1<<40+2, 1<<30)
	if mean, _ := large.Mean(); mean != 1<<40+1 || large.Sum() != (1<<40+1)*(1<<31) {
		t.Errorf("mean %v, sum %v", mean, large.Sum())
	}
	if sd, _ := large.SD(); math.Abs(sd-1) > 1e-9 {
		t.Errorf("sd %v", sd)
	}
	var signed Series
	for _, v := range []int64{-3, 3, -3, 3} {
		signed.Add(v)
	}
	if r, ok := signed.Lag1(); !ok || r != -0.75 {
		t.Errorf("lag 1 of alternating numbers: %v", r)
	}
}

func TestHillRefuses(t *testing.T) {
	s, _ := NewSample([]float64{0, 1, 2, 4, 4})
	for k, want := range map[int64]bool{0: false, 1: false, 2: true, 3: true, 4: false, 5: false} {
		if _, ok := s.Hill(k); ok != want {
			t.Errorf("k = %d: %v", k, ok)
		}
	}
}
