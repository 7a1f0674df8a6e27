package runpage

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A curve's integral is that of what was added, however often the bins doubled, and
// each bin is the time-weighted mean.
func TestCurve(t *testing.T) {
	k := newClock(2 * time.Second) // bins of 10 ms
	if k.width != 10*time.Millisecond {
		t.Errorf("bins of %v", k.width)
	}
	u := k.curve()
	u.span(5*time.Millisecond, 25*time.Millisecond, 2)
	u.instant(25*time.Millisecond, 3)
	u.span(30*time.Millisecond, 30*time.Millisecond, 9) // of no length
	got := u.totals()
	want := []float64{0.01, 0.02, 3.01}
	for i, w := range want {
		if math.Abs(got[i]-w) > 1e-12 {
			t.Errorf("bin %d: %v, want %v", i, got[i], w)
		}
	}
	if y := u.perSecond(26 * time.Millisecond); math.Abs(y[0]-1) > 1e-6 || math.Abs(y[1]-2) > 1e-6 || math.Abs(y[2]-3.01/0.006) > 1e-5 {
		t.Errorf("means %v", y)
	}
}

func TestCurveFolds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	k := newClock(time.Second)
	u, p := k.curve(), k.plane()
	type span struct {
		from, to time.Duration
		weight   float64
	}
	var spans []span
	sum := 0.0
	for i := range 500 {
		from := time.Duration(r.Int64N(int64(time.Second) << (i / 60)))
		s := span{from, from + time.Duration(r.Int64N(int64(20*time.Second))), float64(1 + r.IntN(9))}
		spans = append(spans, s)
		u.span(s.from, s.to, s.weight)
		p.add(k.bin(s.from), int64(s.to-s.from), 1)
		sum += s.weight * (s.to - s.from).Seconds()
	}
	got := 0.0
	bins := u.totals()
	for i, v := range bins {
		got += v
		want := 0.0
		low, high := time.Duration(i)*k.width, time.Duration(i+1)*k.width
		for _, s := range spans {
			if over := min(s.to, high) - max(s.from, low); over > 0 {
				want += s.weight * over.Seconds()
			}
		}
		if math.Abs(v-want) > 1e-6*max(1, want) {
			t.Errorf("bin %d of %v: %v, want %v", i, k.width, v, want)
		}
	}
	if math.Abs(got-sum) > 1e-6*sum || len(bins) > mostBins {
		t.Errorf("integral %v in %d bins, want %v", got, len(bins), sum)
	}
	if all := p.all(); all.n != 500 || len(p.rows) > mostBins {
		t.Errorf("plane of %d in %d rows", all.n, len(p.rows))
	}
}

func TestBuckets(t *testing.T) {
	for _, keep := range []int{0, 1, 2, 5} {
		last := -1
		for _, v := range []int64{0, 1, 2, 3, 5, 31, 32, 63, 64, 65, 100, 127, 128, 1000, 1 << 20, 1<<53 - 1, 1 << 53} {
			b := bucketOf(v, keep)
			if b < last || lowOf(b, keep) > v || lowOf(b+1, keep) <= v {
				t.Errorf("keep %d: %d is in bucket %d, from %d to %d, after %d", keep, v, b, lowOf(b, keep), lowOf(b+1, keep), last)
			}
			last = b
		}
	}
}

// Quantiles of rows are within their bound of the nearest rank.
func TestRowQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var u row
	var values []int64
	for range 999 {
		v := int64(math.Exp(10 + 2*r.NormFloat64()))
		values = append(values, v)
		u.add(v, 1)
	}
	d := sortedCopy(values)
	for _, q := range []int64{1, 5, 500, 900, 990, 1000} {
		want := float64(d[max(1, (q*999+999)/1000)-1])
		if got := u.quantile(q); math.Abs(got-want) > quantileError*want+0.5 {
			t.Errorf("q %d: %v, want %v", q, got, want)
		}
	}
	if u.quantile(1000) != float64(d[998]) {
		t.Errorf("largest %v, want %v", u.quantile(1000), d[998])
	}
}

func sortedCopy(values []int64) []int64 {
	out := slices.Clone(values)
	slices.Sort(out)
	return out
}
