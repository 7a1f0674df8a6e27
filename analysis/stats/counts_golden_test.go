package stats

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A ref is a node of golden/fits.json, with the way to it as its name.
type ref struct {
	t    *testing.T
	name string
	v    any
}

func readRef(t *testing.T, path string) ref {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("golden values are not here (set REPRISE_SHARED): %v", err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return ref{t, filepath.Base(path), v}
}

func handRef(t *testing.T) ref { return readRef(t, filepath.Join("testdata", "hand.json")) }

func sharedPath(parts ...string) string {
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

func (r ref) at(path ...string) ref {
	r.t.Helper()
	for _, key := range path {
		r.name += "." + key
		m, ok := r.v.(map[string]any)
		if !ok || m[key] == nil {
			r.t.Fatalf("%s: not in the golden file", r.name)
		}
		r.v = m[key]
	}
	return r
}

func (r ref) num() float64 {
	r.t.Helper()
	switch v := r.v.(type) {
	case float64:
		return v
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err == nil {
			return f
		}
	}
	r.t.Fatalf("%s: %v is no number", r.name, r.v)
	return 0
}

func (r ref) list() []ref {
	var out []ref
	for i, v := range r.v.([]any) {
		out = append(out, ref{r.t, fmt.Sprintf("%s[%d]", r.name, i), v})
	}
	return out
}

func (r ref) nums() []float64 {
	var out []float64
	for _, v := range r.list() {
		out = append(out, v.num())
	}
	return out
}

func (r ref) ints() []int64 {
	var out []int64
	for _, v := range r.nums() {
		out = append(out, int64(v))
	}
	return out
}

// is holds got against the value, to a relative tolerance (0 = exact).
func (r ref) is(got, tolerance float64) {
	r.t.Helper()
	r.isAbs(got, tolerance*math.Abs(r.num()))
}

func (r ref) isAbs(got, tolerance float64) {
	r.t.Helper()
	if want := r.num(); !(math.Abs(got-want) <= tolerance) {
		r.t.Errorf("%s = %.17g, want %.17g (off by %.2g, tolerance %.2g)", r.name, got, want, got-want, tolerance)
	}
}

func (r ref) isLogLik(got float64) {
	r.t.Helper()
	r.isAbs(got, max(1e-8*math.Abs(r.num()), 1e-5))
}

// sure drops the second result, which must be true.
func sure(t *testing.T) func(v float64, ok bool) float64 {
	return func(v float64, ok bool) float64 {
		t.Helper()
		if !ok {
			t.Error("a value is missing")
		}
		return v
	}
}

// A record is a row of a public trace, its time in ticks of the source.
type record struct{ at, in, out int64 }

func publicTrace(t *testing.T, name string) (rows []record, perSecond float64) {
	t.Helper()
	path := sharedPath("data", "mooncake", "conversation_trace.jsonl")
	if name == "azure_code" {
		path = sharedPath("data", "azure", "AzureLLMInferenceTrace_code.csv")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("public traces are not here (set REPRISE_SHARED): %v", err)
	}
	defer f.Close()
	if name == "azure_code" {
		lines, err := csv.NewReader(f).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines[1:] {
			at, err := time.Parse("2006-01-02 15:04:05.0000000", l[0])
			if err != nil {
				t.Fatal(err)
			}
			in, _ := strconv.ParseInt(l[1], 10, 64)
			out, _ := strconv.ParseInt(l[2], 10, 64)
			rows = append(rows, record{at.UnixNano() / 100, in, out})
		}
		return rows, 1e7
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r struct {
			Timestamp int64 `json:"timestamp"`
			In        int64 `json:"input_length"`
			Out       int64 `json:"output_length"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, record{r.Timestamp, r.In, r.Out})
	}
	return rows, 1e3
}

var dataSets = []string{"mooncake_conversation", "azure_code"}

func TestGoldenArrivals(t *testing.T) {
	for _, name := range dataSets {
		t.Run(name, func(t *testing.T) {
			rows, hz := publicTrace(t, name)
			want := readRef(t, sharedPath("golden", "fits.json")).at("datasets", name, "arrivals")
			var gaps Tally
			times := int64(1)
			for i := range rows[1:] {
				d := rows[i+1].at - rows[i].at
				gaps.Add(d)
				if d > 0 {
					times++
				}
			}
			s := gaps.Series()
			span := float64(rows[len(rows)-1].at-rows[0].at) / hz
			want.at("n").is(float64(len(rows)), 0)
			want.at("span_s").is(span, 1e-9)
			want.at("mean_rate_hz").is(float64(s.N())/span, 1e-9)
			want.at("gaps").is(float64(s.N()), 0)
			want.at("zero_gaps").is(float64(s.Zeros()), 0)
			want.at("distinct_times").is(float64(times), 0)
			want.at("iat_mean_s").is(sure(t)(s.Mean())/hz, 1e-9)
			want.at("iat_sd_ddof1_s").is(sure(t)(s.SD())/hz, 1e-9)
			cv, n := sure(t)(s.CV()), float64(s.N())
			want.at("iat_cv_ddof1").is(cv, 1e-9)
			want.at("iat_cv_ddof0").is(cv*math.Sqrt((n-1)/n), 1e-9)
			want.at("iat_lag1_autocorr").is(sure(t)(s.Lag1()), 1e-9)
			want.at("batch_mean").is(float64(len(rows))/float64(times), 1e-9)
			_, most, _ := s.Range()
			want.at("iat_max_s").is(float64(most)/hz, 1e-9)
			sample := gaps.Sample(1 / hz)
			least, _ := sample.Where(func(v float64) bool { return v > 0 }).At(0)
			want.at("iat_min_positive_s").is(least, 1e-9)
			goldenQuantiles(want.at("iat_quantiles"), sample)
		})
	}
}

func goldenQuantiles(want ref, s Sample) {
	want.t.Helper()
	p := want.at("p").nums()
	for i, v := range s.Quantiles7(p...) {
		want.at("type7_linear").list()[i].is(v, 1e-9)
	}
	for i, v := range s.Quantiles1(p...) {
		want.at("type1_inverted_cdf").list()[i].is(v, 1e-9)
	}
}

func goldenCounts(want ref, c WindowCounts) {
	t := want.t
	t.Helper()
	want.at("windows").is(float64(c.N()), 0)
	want.at("mean").is(sure(t)(c.Mean()), 1e-9)
	want.at("var").is(sure(t)(c.Variance()), 1e-9)
	want.at("dispersion").is(sure(t)(c.Dispersion()), 1e-9)
	chi2, p, ok := c.PoissonTest()
	if !ok {
		t.Errorf("%s: no test", want.name)
	}
	want.at("chi2").is(chi2, 1e-9)
	want.at("log10_p_upper").is(p, 1e-6)
	_, most, _ := c.Range()
	want.at("max").is(float64(most), 0)
	want.at("zeros").is(float64(c.Zeros()), 0)
	want.at("poisson_loglik").isLogLik(sure(t)(c.PoissonLogLik()))
	want.at("lag1_autocorr").is(sure(t)(c.Lag1()), 1e-9)
	nb, ok := c.FitNegBinomial()
	if !ok {
		t.Fatalf("%s: no negative binomial", want.name)
	}
	want.at("negbin", "r").is(nb.R, 1e-6)
	want.at("negbin", "p").is(nb.P, 1e-6)
	want.at("negbin", "loglik").isLogLik(nb.LogLik)
}

func TestGoldenCounts(t *testing.T) {
	for _, name := range dataSets {
		t.Run(name, func(t *testing.T) {
			rows, hz := publicTrace(t, name)
			want := readRef(t, sharedPath("golden", "fits.json")).at("datasets", name)
			for _, w := range []string{"0.1", "1", "10", "60", "300"} {
				seconds, _ := strconv.ParseFloat(w, 64)
				c := NewCounter(int64(math.Round(seconds * hz)))
				for _, r := range rows {
					c.Add(r.at)
				}
				goldenCounts(want.at("counts", w), c.Counts())
			}
			if name != "mooncake_conversation" {
				return
			}
			perTick := make([]int64, 1180)
			for _, r := range rows {
				perTick[int(math.Floor(float64(r.at-rows[0].at)/3000+0.5))]++
			}
			c, err := CountsOf(perTick)
			if err != nil {
				t.Fatal(err)
			}
			goldenCounts(want.at("per_tick_counts"), c)
		})
	}
}

func goldenLengths(want ref, s Sample) {
	want.t.Helper()
	m := s.Moments()
	want.at("n").is(float64(m.N()), 0)
	want.at("mean").is(sure(want.t)(m.Mean()), 1e-9)
	want.at("sd_ddof1").is(sure(want.t)(m.SD()), 1e-9)
	want.at("cv_ddof1").is(sure(want.t)(m.CV()), 1e-9)
	least, most, _ := m.Range()
	want.at("min").is(least, 0)
	want.at("max").is(most, 0)
	want.at("sum").is(m.Sum(), 1e-15)
	goldenQuantiles(want.at("quantiles"), s)
}

func goldenDependence(want ref, p *Pairs) {
	want.t.Helper()
	d, ok := p.Dependence()
	if !ok {
		want.t.Fatalf("%s: no dependence", want.name)
	}
	want.at("pearson").is(d.Pearson, 1e-9)
	want.at("spearman").is(d.Spearman, 1e-9)
	want.at("kendall_tau_b").is(d.KendallTauB, 1e-9)
	want.at("gauss_copula_rho_from_spearman").is(d.CopulaRho, 1e-9)
	want.at("normal_scores_corr").is(d.NormalScores, 1e-9)
	want.at("pearson_log").is(d.PearsonLog, 1e-9)
	want.at("pearson_log_n").is(float64(d.LogN), 0)
}

func TestGoldenLengths(t *testing.T) {
	for _, name := range dataSets {
		t.Run(name, func(t *testing.T) {
			rows, _ := publicTrace(t, name)
			want := readRef(t, sharedPath("golden", "fits.json")).at("datasets", name)
			var in, out Tally
			pairs := NewPairs(int64(len(rows)))
			for _, r := range rows {
				in.Add(r.in)
				out.Add(r.out)
				if err := pairs.Add(r.in, r.out); err != nil {
					t.Fatal(err)
				}
			}
			goldenLengths(want.at("isl", "describe"), in.Sample(1))
			goldenLengths(want.at("osl", "describe"), out.Sample(1))
			want.at("isl", "zeros").is(float64(in.Series().Zeros()), 0)
			want.at("osl", "zeros").is(float64(out.Series().Zeros()), 0)
			goldenDependence(want.at("dependence"), pairs)
		})
	}
}

func TestHandSamples(t *testing.T) {
	hand := handRef(t).at("hand")
	s, err := NewSample(hand.at("positive_24", "x").nums())
	if err != nil {
		t.Fatal(err)
	}
	goldenLengths(hand.at("positive_24", "describe"), s)
	alpha, ok := s.Hill(int64(hand.at("positive_24", "hill", "k").num()))
	hand.at("positive_24", "hill", "alpha").is(sure(t)(alpha, ok), 1e-9)

	pairs := NewPairs(20)
	in, out := hand.at("pairs_20", "isl").ints(), hand.at("pairs_20", "osl").ints()
	var xs, ys Tally
	for i := range in {
		if err := pairs.Add(in[i], out[i]); err != nil {
			t.Fatal(err)
		}
		xs.Add(in[i])
		ys.Add(out[i])
	}
	goldenDependence(hand.at("pairs_20", "dependence"), pairs)
	goldenQuantiles(hand.at("pairs_20", "isl_quantiles"), xs.Sample(1))
	goldenQuantiles(hand.at("pairs_20", "osl_quantiles"), ys.Sample(1))

	c, err := CountsOf(hand.at("counts_20", "counts").ints())
	if err != nil {
		t.Fatal(err)
	}
	goldenCounts(hand.at("counts_20", "stats"), c)
}

func TestHandTwoSample(t *testing.T) {
	want := handRef(t).at("hand", "two_sample")
	a, err := NewSample(want.at("a").nums())
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewSample(want.at("b").nums())
	if err != nil {
		t.Fatal(err)
	}
	d, err := Distances(a, b)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Moments()
	want.at("ks").is(d.KS, 1e-6)
	want.at("ks_p_asymptotic").is(d.KSP, 1e-6)
	want.at("wasserstein1").is(d.Wasserstein, 1e-9)
	want.at("wasserstein1_over_mean_a").is(d.Wasserstein/sure(t)(m.Mean()), 1e-9)
	want.at("energy_distance_scipy").is(d.Energy, 1e-9)
	ad, err := AndersonDarlingK(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want.at("ad_ksamp_midrank_normalised").is(ad, 1e-6)
}

func TestHandChangePoints(t *testing.T) {
	want := handRef(t).at("hand", "change_points")
	s, err := ChangePoints(want.at("counts").ints(), want.at("window_s").num(), ChangeOptions{Penalty: want.at("penalty").num(), MinEvents: -1})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Changes) != 2 || len(s.Rates) != 3 {
		t.Fatalf("segments %+v", s)
	}
	for i, c := range want.at("change_points").list() {
		c.is(float64(s.Changes[i]), 0)
	}
	for i, r := range want.at("rates").list() {
		r.is(s.Rates[i], 1e-9)
	}
	want.at("objective").is(s.Objective, 1e-9)
}

func TestHandTimeRescaling(t *testing.T) {
	want := handRef(t).at("hand", "time_rescaling")
	r, err := NewStepRate(want.at("edges").nums(), want.at("rates").nums())
	if err != nil {
		t.Fatal(err)
	}
	times := want.at("times").nums()
	tau, err := r.Rescale(times)
	if err != nil {
		t.Fatal(err)
	}
	for i := range times {
		l := want.at("Lambda").list()[i]
		l.is(r.Lambda(times[i]), 1e-9)
		if back := r.Time(l.num()); math.Abs(back-times[i]) > 1e-9 {
			t.Errorf("Time(%v) = %v, want %v", l.num(), back, times[i])
		}
		want.at("tau").list()[i].is(tau[i], 1e-9)
	}
	want.at("ks_vs_unit_exponential").is(sure(t)(KSUnitExponential(tau)), 1e-6)
}

func TestGeneratorDispersion(t *testing.T) {
	gen := handRef(t).at("generator")
	for _, c := range gen.at("cases").list() {
		g := GammaRenewal{Rate: gen.at("rate_hz").num(), Shape: c.at("shape").num()}
		c.at("idc_limit").is(g.DispersionLimit(), 1e-9)
		c.at("scale_s").is(g.Scale(), 1e-9)
		for w := range c.at("idc_equilibrium_asymptotic").v.(map[string]any) {
			seconds, err := strconv.ParseFloat(strings.TrimSpace(w), 64)
			if err != nil {
				t.Fatal(err)
			}
			c.at("idc_equilibrium_asymptotic", w).is(g.Dispersion(seconds), 1e-9)
		}
	}
}
