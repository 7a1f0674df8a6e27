package synth

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// arrivalsOf returns the times (ns since the generation began) of requests of one
// token that arrive as text says.
func arrivalsOf(t *testing.T, text string, g Generation) []int64 {
	t.Helper()
	a, _, err := ParseArrivals(text)
	if err != nil {
		t.Fatal(err)
	}
	w, err := (&Laws{Arrivals: a, Input: stats.Constant{Value: 1}, Output: stats.Constant{Value: 1}}).Workload()
	if err != nil {
		t.Fatal(err)
	}
	return times(t, w, g)
}

func times(t *testing.T, w *model.Workload, g Generation) (times []int64) {
	t.Helper()
	meta, err := g.Run(t.Context(), w, func(b *trace.Batch) error { times = append(times, b.ArrivalNS.Values...); return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i := range times {
		times[i] += meta.OriginNS.Or(0)
	}
	return times
}

// TestPinnedDurationEndsExactly: the last of N requests comes at N / rate, to the
// nanosecond, whatever the law and the seed, and no gap is negative.
func TestPinnedDurationEndsExactly(t *testing.T) {
	t.Parallel()
	for _, law := range []string{"poisson:8", "gamma:8,cv=3.5", "gamma:8,burstiness=0.25", "weibull:8,shape=0.6", "constant:8"} {
		for seed := range uint64(5) {
			at := arrivalsOf(t, law, Generation{Requests: 4000, Seed: seed, Pin: true})
			if n := len(at); n != 4000 || at[n-1] != 500e9 {
				t.Errorf("%s, seed %d: %d requests, the last at %d ns", law, seed, n, at[n-1])
			}
			if !slices.IsSorted(at) {
				t.Errorf("%s, seed %d: times go back", law, seed)
			}
		}
	}
	if at := arrivalsOf(t, "poisson:8", Generation{Requests: 4000, Rate: 40, Pin: true}); at[3999] != 100e9 {
		t.Errorf("at another rate the last comes at %d ns", at[3999])
	}
	free, pinned := arrivalsOf(t, "gamma:8,cv=2", Generation{Requests: 4000, Seed: 1}), arrivalsOf(t, "gamma:8,cv=2", Generation{Requests: 4000, Seed: 1, Pin: true})
	by := float64(pinned[3999]) / float64(free[3999])
	for i := range free {
		if math.Abs(float64(pinned[i])-by*float64(free[i])) > 2 {
			t.Fatalf("request %d is not moved in proportion: %d and %d", i, free[i], pinned[i])
		}
	}
}

// TestPinnedDurationIsRefused where it means nothing.
func TestPinnedDurationIsRefused(t *testing.T) {
	w := poissonModel(t)
	for want, g := range map[string]Generation{"how many requests?": {Duration: time.Minute, Pin: true}, "--duration exclude": {Duration: time.Minute, Requests: 5, Pin: true}} {
		if _, err := g.Run(t.Context(), w, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := (Generation{Requests: 5, Pin: true}).Run(t.Context(), conversing(), nil); err == nil || !strings.Contains(err.Error(), "requests of sessions") {
		t.Errorf("error %v", err)
	}
}

// TestPoissonCounts: 5 requests/s for 600 s, over 100 seeds. The plain process has
// a count that varies like the root of its mean, some 55; a fixed count has none, and
// an end that varies; a pinned one has neither.
func TestPoissonCounts(t *testing.T) {
	t.Parallel()
	var counts, ends stats.Moments
	for seed := range uint64(100) {
		counts.Add(float64(len(arrivalsOf(t, "poisson:5", Generation{Duration: 600 * time.Second, Seed: seed}))))
		fixed := arrivalsOf(t, "poisson:5", Generation{Requests: 3000, Seed: seed})
		ends.Add(float64(fixed[2999]) / 1e9)
		if pinned := arrivalsOf(t, "poisson:5", Generation{Requests: 3000, Seed: seed, Pin: true}); len(fixed) != 3000 || len(pinned) != 3000 || pinned[2999] != 600e9 {
			t.Fatalf("seed %d: %d and %d requests, pinned to %d ns", seed, len(fixed), len(pinned), pinned[2999])
		}
	}
	mean, _ := counts.Mean()
	sd, _ := counts.SD()
	if math.Abs(mean-3000) > 4*54.8/10 || math.Abs(sd-54.8) > 4*54.8/math.Sqrt(200) {
		t.Errorf("counts of mean %v and standard deviation %v, want 3000 and 55", mean, sd)
	}
	mean, _ = ends.Mean()
	sd, _ = ends.SD()
	if math.Abs(mean-600) > 4*10.95/10 || math.Abs(sd-10.95) > 4*10.95/math.Sqrt(200) {
		t.Errorf("3000 requests end at mean %v s, standard deviation %v s, want 600 and 11", mean, sd)
	}
}

// TestDispersionIsUniform: gamma arrivals of shape 1 are Poisson, so that the p of
// the dispersion test is uniform over seeds.
func TestDispersionIsUniform(t *testing.T) {
	t.Parallel()
	var ps []float64
	for seed := range uint64(200) {
		c := stats.NewCounter(1e9)
		for _, at := range arrivalsOf(t, "gamma:20,cv=1", Generation{Duration: 30 * time.Second, Seed: seed}) {
			c.Add(at)
		}
		counts := c.Counts()
		_, log10, ok := counts.PoissonTest()
		if !ok {
			t.Fatal("no test")
		}
		ps = append(ps, math.Pow(10, log10))
	}
	slices.Sort(ps)
	worst := 0.0
	for i, p := range ps {
		worst = max(worst, math.Abs(p-(float64(i)+0.5)/float64(len(ps))))
	}
	if limit := 1.63 / math.Sqrt(float64(len(ps))); worst > limit { // 1 %
		t.Errorf("p is %v away from uniform, want less than %v", worst, limit)
	}
}

// TestBurstyGapsKeepTheirLaw: at 2000 requests/s and CV 3.5 many gaps are below a
// microsecond; they are kept to the nanosecond, so that mean, CV and law are those
// that were asked for.
func TestBurstyGapsKeepTheirLaw(t *testing.T) {
	at := arrivalsOf(t, "gamma:2000,cv=3.5", Generation{Requests: 10_001, Seed: 3})
	var m stats.Moments
	var gaps []float64
	for i := 1; i < len(at); i++ {
		gap := float64(at[i]-at[i-1]) / 1e9
		m.Add(gap)
		gaps = append(gaps, gap)
	}
	mean, _ := m.Mean()
	cv, _ := m.CV()
	if math.Abs(mean*2000-1) > 0.05 || math.Abs(cv/3.5-1) > 0.1 {
		t.Errorf("mean %v s, CV %v", mean, cv)
	}
	s, err := stats.NewSample(gaps)
	if err != nil {
		t.Fatal(err)
	}
	shape := 1 / 3.5 / 3.5
	law := stats.Gamma{Shape: shape, Scale: 1 / (2000 * shape)}
	// Of this law half lie below 1 us, and a quarter below half a nanosecond, which
	// whole nanoseconds cannot show: the law is held above them.
	d := stats.KSAgainst(s.Where(func(v float64) bool { return v > 20e-9 }), conditional{law, law.CDF(20e-9)})
	if limit := 1.36 / math.Sqrt(10_000*(1-law.CDF(20e-9))); d > limit {
		t.Errorf("KS %v above 20 ns, want less than %v", d, limit)
	}
}

// conditional is a law above the value up to which it has the share below.
type conditional struct {
	stats.Law
	below float64
}

func (c conditional) CDF(x float64) float64 { return max(0, (c.Law.CDF(x)-c.below)/(1-c.below)) }
