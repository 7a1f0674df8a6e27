package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// someLaws are laws of every kind, over the shapes that traffic has.
func someLaws(t testing.TB) []Law {
	s, err := CountedSample([]float64{1, 2, 7, 4096}, []int64{5, 3, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	empirical, err := NewEmpirical(s)
	if err != nil {
		t.Fatal(err)
	}
	return []Law{
		Exponential{2.5}, Exponential{1e-4},
		Gamma{0.05, 3}, Gamma{0.25, 0.4}, Gamma{0.9, 2000}, Gamma{1, 1}, Gamma{3.5, 2}, Gamma{20, 0.1}, Gamma{500, 1},
		Weibull{0.4, 0.06}, Weibull{1, 2}, Weibull{3, 100},
		Lognormal{-4, 2.7}, Lognormal{6, 0.8}, Lognormal{2, 0.1},
		Hyperexponential{0.6, 8.7, 0.8}, Hyperexponential{0.99, 100, 0.01},
		Pareto{2, 1.5}, Pareto{100, 3.5},
		GPD{0.2, 0.33, 0.7}, GPD{10, 0, 3}, GPD{0, -0.3, 5}, GPD{0, 1, 2}, GPD{1, 1e-10, 2},
		Normal{-3, 2}, Normal{100, 15}, Uniform{-1, 3}, Uniform{10, 20},
		Mixture{[]float64{0.3, 0.7}, []Law{Lognormal{2, 0.5}, Lognormal{6, 1}}},
		Spliced{100, 0.1, Lognormal{3, 1}, GPD{100, 0.3, 40}},
		Spliced{50, 0.2, Gamma{2, 10}, Pareto{50, 3}},
		Capped{Gamma{0.93, 2200}, 7437},
		Constant{42}, empirical, Geometric{0.4}, Geometric{1}, Geometric{1e-4},
	}
}

func TestLawsAreSound(t *testing.T) {
	for _, law := range someLaws(t) {
		if err := CheckLaw(law); err != nil {
			t.Errorf("%#v: %v", law, err)
		}
	}
}

func TestQuantileInvertsCDF(t *testing.T) {
	for _, law := range someLaws(t) {
		if hasMass(law) && law.Name() != "mixture" && law.Name() != "capped" {
			continue
		}
		for _, p := range []float64{1e-6, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1 - 1e-9} {
			x := law.Quantile(p)
			if x < 1e-300 { // below what float64 can tell apart
				continue
			}
			if c, ok := law.(Capped); ok && x == c.Cap {
				continue
			}
			if got := law.CDF(x); !(math.Abs(got-p) <= 1e-9*p) {
				t.Errorf("%#v: CDF(Quantile(%v)) = %v", law, p, got)
			}
			if got := law.Survival(x); !(math.Abs(got-(1-p)) <= 1e-6*(1-p)) {
				t.Errorf("%#v: Survival(Quantile(%v)) = %v", law, p, got)
			}
			if back := law.Quantile(law.CDF(x)); p < 0.999 && !(math.Abs(back-x) <= 1e-7*math.Abs(x)) {
				t.Errorf("%#v: Quantile(CDF(%v)) = %v", law, x, back)
			}
		}
	}
}

func TestQuantileEnds(t *testing.T) {
	for _, law := range someLaws(t) {
		lo, hi := law.Quantile(0), law.Quantile(1)
		if math.IsNaN(lo) || math.IsNaN(hi) || lo > hi {
			t.Errorf("%#v: Quantile(0) = %v, Quantile(1) = %v", law, lo, hi)
		}
		if law.CDF(hi) != 1 || law.Survival(hi) != 0 {
			t.Errorf("%#v: CDF(Quantile(1)) = %v, Survival %v", law, law.CDF(hi), law.Survival(hi))
		}
	}
}

// The density is the slope of the CDF, and the CDF that of its integral.
func TestDensityAndIntegralMatchCDF(t *testing.T) {
	for _, law := range someLaws(t) {
		if hasMass(law) && law.Name() != "mixture" {
			continue
		}
		for _, p := range []float64{0.02, 0.2, 0.45, 0.6, 0.85, 0.98} {
			x := law.Quantile(p)
			if x != 0 && math.Abs(x) < 1e-200 {
				continue
			}
			h := 1e-4 * math.Abs(x)
			if s, ok := law.(Spliced); ok && math.Abs(x-s.Threshold) < 2*h {
				continue
			}
			if slope := (law.IntegralCDF(x+h) - law.IntegralCDF(x-h)) / (2 * h); !(math.Abs(slope-p) <= 1e-4*p) {
				t.Errorf("%#v at %v: H' = %v, want F = %v", law, x, slope, p)
			}
			slope, f := (law.CDF(x+h)-law.CDF(x-h))/(2*h), math.Exp(law.LogDensity(x))
			if !(math.Abs(slope-f) <= 1e-3*f) {
				t.Errorf("%#v at %v: F' = %v, density %v", law, x, slope, f)
			}
		}
	}
}

// From mean - x + H(x), which is the integral of S above x, the mean follows.
func TestMeanMatchesIntegral(t *testing.T) {
	for _, law := range someLaws(t) {
		mean, ok := law.Mean()
		if !ok {
			continue
		}
		x := law.Quantile(1 - 1e-15)
		if math.IsInf(x, 0) {
			t.Fatalf("%#v: no far quantile", law)
		}
		if over := mean - x + law.IntegralCDF(x); !(math.Abs(over) <= 2e-3*math.Abs(mean)+1e-9*x) {
			t.Errorf("%#v: mean %v, but the integral gives %v", law, mean, mean-over)
		}
	}
}

func TestRandHasMeanAndCV(t *testing.T) {
	const n = 50_000
	for i, law := range someLaws(t) {
		mean, ok := law.Mean()
		sd, finite := law.SD()
		if !ok || !finite {
			continue
		}
		var drawn, inverted Moments
		r := rng(uint64(i))
		for range n {
			drawn.Add(law.Rand(r))
			inverted.Add(law.Quantile(r.Float64()))
		}
		for how, m := range map[string]*Moments{"Rand": &drawn, "Quantile(u)": &inverted} {
			got, _ := m.Mean()
			if !(math.Abs(got-mean) <= 4.5*sd/math.Sqrt(n)) {
				t.Errorf("%#v: mean of %s is %v, want %v +- %v", law, how, got, mean, sd/math.Sqrt(n))
			}
			spread, _ := m.SD()
			if lightTail(law) && !(math.Abs(spread-sd) <= 0.08*sd+1e-12) {
				t.Errorf("%#v: sd of %s is %v, want %v", law, how, spread, sd)
			}
		}
	}
}

// lightTail reports whether 50,000 draws settle the standard deviation to 8 %.
func lightTail(law Law) bool {
	switch l := law.(type) {
	case Lognormal:
		return l.Sigma <= 1
	case Pareto:
		return l.Alpha > 5
	case GPD:
		return l.Xi < 0.2
	case Spliced, Mixture:
		return false
	case Hyperexponential:
		return l.P < 0.9
	}
	return true
}

func TestCompoundSD(t *testing.T) {
	// A splice of a law with itself is that law, and so is a cap far away.
	for _, law := range []Law{
		Spliced{10, Exponential{0.2}.Survival(10), Exponential{0.2}, GPD{10, 0, 5}},
		Capped{Exponential{0.2}, 400},
		Mixture{[]float64{0.25, 0.75}, []Law{Exponential{0.2}, Exponential{0.2}}},
	} {
		if mean, _ := law.Mean(); math.Abs(mean-5) > 1e-9 {
			t.Errorf("%#v: mean %v, want 5", law, mean)
		}
		if sd, _ := law.SD(); math.Abs(sd-5) > 1e-6 {
			t.Errorf("%#v: sd %v, want 5", law, sd)
		}
	}
}

func TestInfiniteMomentsAreAbsent(t *testing.T) {
	for _, law := range []Law{Pareto{1, 0.9}, GPD{0, 1, 1}, Spliced{100, 0.1, Lognormal{3, 1}, GPD{100, 1.2, 40}}} {
		if v, ok := law.Mean(); ok {
			t.Errorf("%#v: mean %v, want none", law, v)
		}
		if v, ok := CV(law); ok {
			t.Errorf("%#v: CV %v, want none", law, v)
		}
	}
	if _, ok := (Pareto{1, 1.5}).Mean(); !ok {
		t.Error("Pareto 1.5 has a mean")
	}
	if v, ok := (Pareto{1, 1.5}).SD(); ok {
		t.Errorf("Pareto 1.5: sd %v, want none", v)
	}
}

func TestGammaDrawsAreNever0(t *testing.T) {
	r := rng(7)
	law := Gamma{0.002, 1}
	least := math.Inf(1)
	for range 100_000 {
		least = min(least, law.Rand(r))
	}
	if least != math.SmallestNonzeroFloat64 {
		t.Errorf("least draw %v, want the smallest float64: the shape underflows", least)
	}
}

func TestSpecRoundTrip(t *testing.T) {
	for _, law := range someLaws(t) {
		text, err := json.Marshal(SpecOf(law))
		if err != nil {
			t.Fatalf("%#v: %v", law, err)
		}
		var spec LawSpec
		if err := json.Unmarshal(text, &spec); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		back, err := spec.Law()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(back, law) {
			t.Errorf("%s came back as %#v, want %#v", text, back, law)
		}
	}
}

func TestSpecRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`{"params": {"rate": 1}}`:                                                        `a law has no family`,
		`{"family": "zipf"}`:                                                             `no law is called "zipf"`,
		`{"family": "gamma", "params": {"shape": 1}}`:                                    `gamma law: params has no scale`,
		`{"family": "gamma", "params": {"shape": 1, "scale": 1, "loc": 0}}`:              `gamma law: params has loc, which the law has not`,
		`{"family": "gamma", "params": {"shape": -1, "scale": 1}}`:                       `gamma law: shape is -1, but must be above 0`,
		`{"family": "gamma", "parms": {}}`:                                               `law: json: unknown field "parms"`,
		`{"family": "gamma", "params": {"shape": 1, "scale": 1}, "values": [1]}`:         `gamma law: it has values, which the law has not`,
		`{"family": "uniform", "params": {"low": 3, "high": 3}}`:                         `uniform law: low is 3, but must be below high, which is 3`,
		`{"family": "hyperexponential", "params": {"p": 2, "rate1": 1, "rate2": 1}}`:     `hyperexponential law: p is 2, but must be between 0 and 1`,
		`{"family": "mixture", "weights": [0.5], "laws": []}`:                            `mixture law: it has no laws`,
		`{"family": "mixture", "weights": [0.5], "laws": [{"family": "normal"}]}`:        `mixture law: part 1: normal law: params has no mu`,
		`{"family": "empirical", "values": [2, 1], "counts": [1, 1]}`:                    `empirical law: value 1 does not come after 2`,
		`{"family": "empirical"}`:                                                        `an empirical law needs at least one value`,
		`{"family": "capped", "params": {"cap": 5}}`:                                     `capped law: it has no of`,
		`{"family": "spliced", "params": {"threshold": 5, "tail_share": 0.1}, "of": {}}`: `spliced law: it has of, which the law has not`,
		`{"family": "mixture", "weights": [0.5, 0.4], "laws": [{"family": "constant", "params": {"value": 1}}, {"family": "constant", "params": {"value": 2}}]}`:                                   `mixture law: the weights add up to 0.9, but must add up to 1`,
		`{"family": "spliced", "params": {"threshold": 5, "tail_share": 0.1}, "body": {"family": "exponential", "params": {"rate": 1}}, "tail": {"family": "exponential", "params": {"rate": 1}}}`: `spliced law: the tail begins below the threshold 5`,
	} {
		var spec LawSpec
		err := json.Unmarshal([]byte(text), &spec)
		if err == nil {
			_, err = spec.Law()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func FuzzLawSpec(f *testing.F) {
	for _, law := range someLaws(f) {
		text, err := json.Marshal(SpecOf(law))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var spec LawSpec
		if json.Unmarshal(text, &spec) != nil {
			return
		}
		law, err := spec.Law()
		if err != nil {
			return
		}
		for _, p := range []float64{0, 0.3, 1} {
			if x := law.Quantile(p); math.IsNaN(x) {
				t.Errorf("%s: Quantile(%v) is NaN", text, p)
			}
		}
		back, err := SpecOf(law).Law()
		if err != nil || !reflect.DeepEqual(back, law) {
			t.Errorf("%s came back as %#v, %v", text, back, err)
		}
	})
}

func TestLawsDoNotAllocate(t *testing.T) {
	r := rng(1)
	for _, law := range someLaws(t) {
		allocs := testing.AllocsPerRun(10, func() {
			x := law.Rand(r)
			sink = law.LogDensity(x) + law.CDF(x) + law.Survival(x) + law.Quantile(0.3) + law.IntegralCDF(x)
		})
		if allocs != 0 {
			t.Errorf("%#v allocates %v times", law, allocs)
		}
	}
}

var sink float64

func BenchmarkGammaQuantile(b *testing.B) {
	r := rng(1)
	for b.Loop() {
		sink = Gamma{0.25, 1}.Quantile(r.Float64())
	}
}

func BenchmarkGammaRand(b *testing.B) {
	r := rng(1)
	for b.Loop() {
		sink = Gamma{0.25, 1}.Rand(r)
	}
}
