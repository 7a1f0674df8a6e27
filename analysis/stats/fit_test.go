package stats

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func drawn(t testing.TB, law Law, n int, seed uint64) Sample {
	t.Helper()
	r, x := rng(seed), make([]float64, n)
	for i := range x {
		x[i] = law.Rand(r)
	}
	s, err := NewSample(x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recovered holds every parameter of fit within 4 standard errors of truth.
func recovered(t *testing.T, what string, fit Fit, truth []Param) {
	t.Helper()
	if !fit.Identified {
		t.Errorf("%s: not identified: %s", what, fit.Reason)
	}
	for i, p := range fit.Law.Params() {
		if !(math.Abs(p.Value-truth[i].Value) <= 4*fit.StdErr[i]+1e-12) {
			t.Errorf("%s: %s = %v +- %v, want %v", what, p.Name, p.Value, fit.StdErr[i], truth[i].Value)
		}
	}
}

func TestFitRecovers(t *testing.T) {
	for _, law := range []Law{
		Exponential{1e-4}, Exponential{1}, Exponential{500},
		Gamma{0.05, 5}, Gamma{0.23, 1.7}, Gamma{1, 0.1}, Gamma{4, 300}, Gamma{20, 0.05},
		Weibull{0.42, 0.063}, Weibull{1, 3}, Weibull{6, 2000},
		Lognormal{-4, 2.78}, Lognormal{2.8, 0.85}, Lognormal{8.7, 1.2},
		Hyperexponential{0.6, 8.7, 0.8}, Hyperexponential{0.95, 50, 0.5}, Hyperexponential{0.2, 1, 0.01},
	} {
		for seed := range uint64(3) {
			fit, err := FitLaw(Family(law.Name()), drawn(t, law, 20_000, seed))
			if err != nil {
				t.Fatalf("%#v: %v", law, err)
			}
			recovered(t, fmt.Sprintf("%#v seed %d", law, seed), fit, law.Params())
			if fit.Grade != Good {
				t.Errorf("%#v: grade %q at KS %v", law, fit.Grade, fit.KS)
			}
		}
	}
}

// Deviations over their standard errors have standard deviation 1, so the errors are
// not only large enough.
func TestStdErrsAreTheSpread(t *testing.T) {
	for _, law := range []Law{Exponential{2}, Gamma{0.3, 2}, Weibull{0.6, 2}, Lognormal{1, 2}} {
		var z [2]Moments
		for seed := range uint64(200) {
			fit, err := FitLaw(Family(law.Name()), drawn(t, law, 500, 100+seed))
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range fit.Law.Params() {
				z[i].Add((p.Value - law.Params()[i].Value) / fit.StdErr[i])
			}
		}
		for i := range law.Params() {
			if sd, _ := z[i].SD(); math.Abs(sd-1) > 0.2 {
				t.Errorf("%#v: parameter %d spreads %.2f standard errors, want 1", law, i, sd)
			}
		}
	}
}

func TestFitTicksRecovers(t *testing.T) {
	for _, c := range []struct {
		law  Law
		tick float64
	}{
		{Gamma{0.05, 5}, 0.001}, {Gamma{0.25, 1}, 0.001}, {Gamma{0.25, 1}, 0.05}, {Gamma{0.25, 8}, 1},
		{Gamma{0.5, 0.5}, 0.2}, {Gamma{1, 3}, 1}, {Gamma{4, 0.1}, 0.05}, {Gamma{20, 0.05}, 0.1},
		{Exponential{4}, 0.001}, {Exponential{4}, 0.2}, {Exponential{4}, 1},
		{Weibull{0.42, 0.063}, 0.001}, {Weibull{0.8, 2}, 1}, {Weibull{3, 0.5}, 0.1},
		{Lognormal{-4, 2.5}, 0.001}, {Lognormal{-1, 1}, 0.1}, {Lognormal{1, 0.4}, 1},
		{Hyperexponential{0.6, 8.7, 0.8}, 0.001}, {Hyperexponential{0.6, 8.7, 0.8}, 0.1}, {Hyperexponential{0.9, 4, 0.1}, 1},
	} {
		for seed := range uint64(2) {
			ticks, err := drawTicks(c.law, c.tick, 20_000, rng(seed))
			if err != nil {
				t.Fatal(err)
			}
			fit, err := FitTicks(Family(c.law.Name()), ticks, Triangular)
			if err != nil {
				t.Fatalf("%#v tick %v: %v", c.law, c.tick, err)
			}
			recovered(t, fmt.Sprintf("%#v tick %v seed %d", c.law, c.tick, seed), fit, c.law.Params())
		}
	}
}

// Past the mean gap the estimate may be right, but the tool must not count on it.
func TestCoarseTickIsNotIdentified(t *testing.T) {
	ticks, err := drawTicks(Gamma{0.5, 0.5}, 1, 5000, rng(3))
	if err != nil {
		t.Fatal(err)
	}
	fits, err := FitAllTicks(ticks, Triangular)
	if err != nil {
		t.Fatal(err)
	}
	for _, fit := range fits {
		if one := fit.Free == 1; one != fit.Identified {
			t.Errorf("%s: identified %v", fit.Law.Name(), fit.Identified)
		}
		if fit.Free > 1 && !strings.Contains(fit.Reason, "tick of 1 s is longer than the mean gap of 0.2") {
			t.Errorf("%s: reason %q", fit.Law.Name(), fit.Reason)
		}
	}
	if best, ok := fits.Best(); !ok || best.Law.Name() != "exponential" {
		t.Errorf("best is %v, want the exponential law", best.Law)
	}
}

func counted(t testing.TB, values []float64, counts []int64) Sample {
	t.Helper()
	s, err := CountedSample(values, counts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFitRefusesDegenerateValues(t *testing.T) {
	for name, c := range map[string]struct {
		s    Sample
		want string // of the gamma law
	}{
		"none":      {Sample{}, "gamma law cannot be fitted: there are no values"},
		"one":       {counted(t, []float64{3}, []int64{1}), "gamma law cannot be fitted: too few values: 1, and it takes 3"},
		"two":       {counted(t, []float64{3, 4}, []int64{1, 1}), "gamma law cannot be fitted: too few values: 2, and it takes 3"},
		"equal":     {counted(t, []float64{3}, []int64{9}), "gamma law cannot be fitted: all 9 values are 3"},
		"zeros":     {counted(t, []float64{0, 1, 2}, []int64{4, 1, 1}), "gamma law cannot be fitted: 4 of 6 values are 0, where its likelihood is not finite"},
		"all zero":  {counted(t, []float64{0}, []int64{4}), "gamma law cannot be fitted: all 4 values are 0"},
		"negative":  {counted(t, []float64{-1, 1, 2}, []int64{1, 1, 1}), "gamma law cannot be fitted: the smallest value is -1, and the law begins at 0"},
		"too large": {counted(t, []float64{1, 1e300, 1.7e308}, []int64{1, 1, 5}), "gamma law cannot be fitted: the values from 1 to 1.7e+308 are beyond its arithmetic"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FitGamma(c.s)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			for _, family := range Families() {
				fit, err := FitLaw(family, c.s)
				soundFit(t, fit, err)
			}
			for what, fit := range map[string]func() (Fit, error){
				"mixture":  func() (Fit, error) { return FitMixture(c.s) },
				"spliced":  func() (Fit, error) { return FitSpliced(c.s) },
				"gpd":      func() (Fit, error) { return FitGPD(c.s, 1) },
				"pareto":   func() (Fit, error) { return FitPareto(c.s, 1) },
				"censored": func() (Fit, error) { return FitCensored(FamilyGamma, c.s, 2) },
			} {
				f, err := fit()
				if err == nil && what != "gpd" && what != "pareto" {
					t.Errorf("%s law fitted %v", what, f.Law)
				}
				soundFit(t, f, err)
			}
		})
	}
}

// soundFit holds that an error is a FitError and that numbers are finite.
func soundFit(t *testing.T, fit Fit, err error) {
	t.Helper()
	var refused *FitError
	if err != nil {
		if !errors.As(err, &refused) {
			t.Errorf("error %v is no FitError", err)
		}
		return
	}
	if !fit.Identified && fit.Reason == "" {
		t.Errorf("%#v: not identified, without a reason", fit.Law)
	}
	text, err := json.Marshal(fit) // refuses NaN and infinities
	if err != nil {
		t.Errorf("%#v: %v", fit.Law, err)
	}
	var back struct{ Law LawSpec }
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if law, err := back.Law.Law(); err != nil || !reflect.DeepEqual(law, fit.Law) {
		t.Errorf("%s: law came back as %#v, %v", text, law, err)
	}
}

func TestTicksRefuseDegenerateGaps(t *testing.T) {
	for want, gaps := range map[string]map[int64]int64{
		"gamma law cannot be fitted: there are no gaps":                      {},
		"gamma law cannot be fitted: too few gaps: 2, and it takes 3":        {1: 1, 2: 1},
		"gamma law cannot be fitted: all 8 gaps are 0 ticks of 0.5 s":        {0: 8},
		"gamma law cannot be fitted: all 1000000 gaps are 33 ticks of 0.5 s": {33: 1_000_000},
	} {
		ticks, err := NewTicks(0.5, gaps)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FitTicks(FamilyGamma, ticks, Triangular); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := NewTicks(0, map[int64]int64{1: 1}); err == nil {
		t.Error("a tick of 0 s is accepted")
	}
	if _, err := NewTicks(1, map[int64]int64{-1: 1}); err == nil {
		t.Error("a gap of -1 ticks is accepted")
	}
}

// Gaps that hardly vary: the shape is beyond what the ticks show.
func TestNearlyConstantIsNotIdentified(t *testing.T) {
	ticks, err := NewTicks(0.001, map[int64]int64{2999: 3, 3000: 1000, 3001: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []Family{FamilyGamma, FamilyWeibull, FamilyLognormal} {
		fit, err := FitTicks(family, ticks, Triangular)
		soundFit(t, fit, err)
		if mean, _ := fit.Law.Mean(); err == nil && math.Abs(mean-3) > 0.01 {
			t.Errorf("%s: mean %v, want 3", family, mean)
		}
	}
	s := counted(t, []float64{2999, 3000, 3001}, []int64{3, 1000, 4})
	fit, err := FitGamma(s)
	soundFit(t, fit, err)
	if fit.Identified {
		t.Error("gamma law of nearly equal values is identified")
	}
}

func TestCensoredRecovers(t *testing.T) {
	for _, c := range []struct {
		law   Law
		limit float64
	}{
		{Exponential{1.0 / 2000}, 4000}, {Gamma{0.9, 2200}, 7437}, {Gamma{5, 10}, 40},
		{Weibull{0.8, 2000}, 8000}, {Lognormal{7, 1.3}, 8192}, {Lognormal{7, 1.3}, 1000},
	} {
		s := drawn(t, Capped{c.law, c.limit}, 20_000, 5)
		spike, ok := DetectCap(s)
		if !ok || spike.Value != c.limit {
			t.Errorf("%#v: cap %+v, %v, want %v", c.law, spike, ok, c.limit)
		}
		fit, err := FitCensored(Family(c.law.Name()), s, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		soundFit(t, fit, err)
		recovered(t, fmt.Sprintf("%#v capped at %v", c.law, c.limit), fit, Capped{c.law, c.limit}.Params())
		if fit.Grade != Good {
			t.Errorf("%#v: grade %q", c.law, fit.Grade)
		}
		for _, q := range fit.QuantileRatios {
			if math.Abs(q.Ratio-1) > 0.1 {
				t.Errorf("%#v: quantile ratio %+v", c.law, q)
			}
		}
	}
	if spike, ok := DetectCap(drawn(t, Exponential{1}, 20_000, 1)); ok {
		t.Errorf("cap %+v in draws without one", spike)
	}
}

func TestSpikes(t *testing.T) {
	counts := map[int64]int64{}
	r := rng(4)
	for range 20_000 {
		counts[1+int64(Exponential{1.0 / 300}.Rand(r))]++
	}
	counts[512] += 900
	counts[2000] += 300
	s := countedSample(counts, 0)
	spikes := Spikes(s)
	if len(spikes) != 2 || spikes[0].Value != 512 || spikes[1].Value != 2000 {
		t.Fatalf("spikes %+v, want 512 and 2000", spikes)
	}
	if share := spikes[0].Share; math.Abs(share-900.0/21_200) > 0.002 {
		t.Errorf("share of 512 is %v", share)
	}
}

func TestTailsRecover(t *testing.T) {
	for _, law := range []GPD{{0, 0.3, 2}, {100, -0.2, 50}, {5, 0.9, 1}, {0, 0, 3}} {
		fit, err := FitGPD(drawn(t, law, 20_000, 9), law.Threshold)
		soundFit(t, fit, err)
		recovered(t, fmt.Sprintf("%#v", law), fit, law.Params())
	}
	for _, law := range []Pareto{{1, 0.5}, {200, 1.5}, {10, 4}} {
		fit, err := FitPareto(drawn(t, law, 20_000, 9), law.Min)
		soundFit(t, fit, err)
		recovered(t, fmt.Sprintf("%#v", law), fit, law.Params())
	}
	if _, err := FitGPD(drawn(t, Exponential{1}, 100, 1), 50); err == nil || !strings.Contains(err.Error(), "0 values lie above the threshold 50") {
		t.Errorf("error %v", err)
	}
}

func TestSplicedRecovers(t *testing.T) {
	body := Lognormal{6, 1}
	threshold := body.Quantile(0.9)
	truth := Spliced{threshold, 0.1, body, GPD{threshold, 0.4, 800}}
	fit, err := FitSpliced(drawn(t, truth, 40_000, 2))
	soundFit(t, fit, err)
	law := fit.Law.(Spliced)
	if mu := law.Body.(Lognormal).Mu; math.Abs(mu-6) > 0.1 {
		t.Errorf("mu %v, want 6", mu)
	}
	if xi := law.Tail.(GPD).Xi; math.Abs(xi-0.4) > 0.1 {
		t.Errorf("xi %v, want 0.4", xi)
	}
	if math.Abs(law.TailShare-0.1) > 0.08 || fit.Grade != Good {
		t.Errorf("tail share %v, grade %q", law.TailShare, fit.Grade)
	}
	if best, err := FitLognormal(drawn(t, truth, 40_000, 2)); err != nil || best.BIC < fit.BIC {
		t.Errorf("the lognormal law alone has BIC %v, below %v", best.BIC, fit.BIC)
	}

	_, err = FitSpliced(drawn(t, Capped{truth, 4000}, 40_000, 2))
	if err == nil || !strings.Contains(err.Error(), "the values are the largest one, 4000: fit with that as a cap instead") {
		t.Errorf("with a cap: %v", err)
	}
	_, err = FitSpliced(drawn(t, truth, 300, 2))
	if err == nil || !strings.Contains(err.Error(), "two thresholds with at least 50 values above them") {
		t.Errorf("with 300 values: %v", err)
	}
}

func TestMixtureRecovers(t *testing.T) {
	truth := Mixture{[]float64{0.3, 0.7}, []Law{Lognormal{2, 0.5}, Lognormal{6, 1}}}
	for _, n := range []int{5000, 40_000} { // as they are, and grouped
		fit, err := FitMixture(drawn(t, truth, n, 2))
		soundFit(t, fit, err)
		for i, p := range fit.Law.Params() {
			if math.Abs(p.Value-truth.Params()[i].Value) > 0.06 {
				t.Errorf("n %d: %s = %v, want %v", n, p.Name, p.Value, truth.Params()[i].Value)
			}
		}
	}
}

func TestLogSumsFitAsValuesDo(t *testing.T) {
	s := drawn(t, Gamma{0.4, 3}, 3000, 8)
	var sums LogSums
	sums.Add(0)
	for i := range s.Distinct() {
		v, _ := s.At(i)
		sums.Add(v)
	}
	if sums.N() != 3000 || sums.Refused() != 1 {
		t.Errorf("n %d, refused %d", sums.N(), sums.Refused())
	}
	for _, family := range []Family{FamilyExponential, FamilyGamma, FamilyLognormal} {
		want, err := FitLaw(family, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sums.Law(family)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range got.Params() {
			if w := want.Law.Params()[i].Value; math.Abs(p.Value-w) > 1e-9*math.Abs(w) {
				t.Errorf("%s: %s = %v, want %v", family, p.Name, p.Value, w)
			}
		}
	}
	if _, err := sums.Law(FamilyWeibull); err == nil {
		t.Error("a Weibull law came out of sums")
	}
}

func TestBootstrapP(t *testing.T) {
	right, err := BootstrapP(FamilyExponential, drawn(t, Exponential{2}, 200, 1), 7)
	if err != nil {
		t.Fatal(err)
	}
	if right.P < 0.01 || right.Replicates != 999 || right.Cut {
		t.Errorf("of exponential draws: %+v", right)
	}
	wrong, err := BootstrapP(FamilyExponential, drawn(t, Gamma{0.3, 2}, 200, 1), 7)
	if err != nil || wrong.P != 0.001 {
		t.Errorf("of gamma draws: %+v, %v", wrong, err)
	}
	cut, err := BootstrapP(FamilyLognormal, drawn(t, Lognormal{2, 1}, 6000, 1), 7)
	if err != nil || !cut.Cut || cut.N != 5000 || cut.Replicates != 199 || cut.P < 0.01 {
		t.Errorf("of 6000 draws: %+v, %v", cut, err)
	}
}

func TestBootstrapDoesNotDependOnProcessors(t *testing.T) {
	ticks, err := drawTicks(Gamma{0.5, 0.5}, 0.1, 60, rng(1))
	if err != nil {
		t.Fatal(err)
	}
	var tests [2]BootstrapTest
	for i, procs := range []int{1, 4} {
		before := runtime.GOMAXPROCS(procs)
		tests[i], err = BootstrapTicksP(FamilyGamma, ticks, Triangular, 3)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
	}
	if tests[0] != tests[1] || tests[0].P < 0.01 {
		t.Errorf("one processor %+v, four %+v", tests[0], tests[1])
	}
}

// W1 by areas is the area by a fine sum.
func TestW1Against(t *testing.T) {
	for _, law := range []Law{Gamma{0.5, 2}, Lognormal{0, 1}, Normal{0.5, 1}, Uniform{0, 2}, Capped{Exponential{1}, 2}} {
		s := drawn(t, Exponential{1}, 30, 6)
		got, ok := W1Against(s, law)
		if !ok {
			t.Fatalf("%#v: no distance", law)
		}
		e, err := NewEmpirical(s)
		if err != nil {
			t.Fatal(err)
		}
		const step = 1e-3
		var want total
		for x := -10.0; x < 300; x += step {
			want.add(step * math.Abs(e.CDF(x+step/2)-law.CDF(x+step/2)))
		}
		if math.Abs(got-want.value()) > 2e-3 {
			t.Errorf("%#v: W1 %v, want %v", law, got, want.value())
		}
		if d := KSAgainst(s, law); d <= 0 || d > 1 {
			t.Errorf("%#v: KS %v", law, d)
		}
	}
	s := drawn(t, Exponential{1}, 30, 6)
	e, err := NewEmpirical(s)
	if err != nil {
		t.Fatal(err)
	}
	if w1, ok := W1Against(s, e); !ok || w1 > 1e-12 || KSAgainst(s, e) > 1e-12 {
		t.Errorf("a sample is %v from its own law, KS %v", w1, KSAgainst(s, e))
	}
	if _, ok := W1Against(s, Pareto{1, 0.8}); ok {
		t.Error("a law without a mean has a distance")
	}
}

// Probabilities of whole ticks add up to 1, in every law and form.
func TestTickProbabilitiesAddUp(t *testing.T) {
	for _, law := range []Law{Exponential{2}, Gamma{0.2, 1}, Gamma{8, 0.1}, Weibull{0.5, 0.3}, Lognormal{-1, 1}, Hyperexponential{0.7, 9, 0.9}, Uniform{0.2, 1.4}} {
		for _, form := range []TickForm{Triangular, HalfOpen} {
			const tick = 0.01
			seen := tickLaw{law, form, tick, densityOf(law)}
			var sum total
			for k := range int64(3000) {
				sum.add(math.Exp(form.LogProb(law, k, tick)))
				if k%500 != 1 {
					continue
				}
				if c := seen.cumulative(float64(k)); math.Abs(sum.value()-c) > 1e-5 {
					t.Errorf("%#v form %v: P(<= %d) = %v, the sum is %v", law, form, k, c, sum.value())
				}
			}
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 255, 255, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		counts, ticks := map[float64]int64{}, map[int64]int64{}
		for ; len(data) >= 4 && len(counts) < 60; data = data[4:] {
			// A float of 16 bits of exponent and mantissa spans many magnitudes.
			v := math.Ldexp(float64(data[0]), int(int8(data[1])))
			counts[v] += int64(data[2])%7 + 1
			ticks[int64(binary.LittleEndian.Uint16(data))] += int64(data[3])%9 + 1
		}
		var s Sample
		for _, v := range sortedKeys(counts) {
			s.add(v, counts[v])
		}
		gaps, err := NewTicks(0.01, ticks)
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range Families() {
			fit, err := FitLaw(family, s)
			soundFit(t, fit, err)
			fit, err = FitTicks(family, gaps, Triangular)
			soundFit(t, fit, err)
			if s.N() > 0 && s.values[0] >= 0 {
				fit, err = FitCensored(family, s, s.values[len(s.values)-1]+1e-300)
				soundFit(t, fit, err)
			}
		}
		fit, err := FitMixture(s)
		soundFit(t, fit, err)
		fit, err = FitGPD(s, 1)
		soundFit(t, fit, err)
	})
}

func TestFitsAreRanked(t *testing.T) {
	fits, err := FitAll(drawn(t, Weibull{0.5, 2}, 5000, 1))
	if err != nil {
		t.Fatal(err)
	}
	best, ok := fits.Best()
	if !ok || best.Law.Name() != "weibull" || best.DeltaBIC != 0 {
		t.Errorf("best %#v, delta %v", best.Law, best.DeltaBIC)
	}
	for i, fit := range fits {
		if Family(fit.Law.Name()) != Families()[i] {
			t.Errorf("fit %d is %s", i, fit.Law.Name())
		}
		if fit.DeltaBIC != fit.BIC-best.BIC {
			t.Errorf("%s: delta %v", fit.Law.Name(), fit.DeltaBIC)
		}
	}
	if _, err := FitAll(Sample{}); err == nil {
		t.Error("no values gave fits")
	}
	// Zeros leave the families whose density takes them.
	zeros := counted(t, []float64{0, 1, 2, 5}, []int64{9, 3, 2, 1})
	if fits, err = FitAll(zeros); err != nil || len(fits) == 0 || fits[0].Law.Name() != "exponential" {
		t.Errorf("with zeros: %v, %v", fits, err)
	}
}
