package model

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"reprise/analysis/stats"
	"reprise/trace"
)

// whole is a model in which every part is filled in.
func whole() *Workload {
	law := func(l stats.Law) *stats.LawSpec { s := stats.SpecOf(l); return &s }
	v := 1.5
	ad := 0.7
	fitted := func() *Fitted {
		return &Fitted{
			Unit: "seconds", N: 9, Mean: &v, CV: &v, Lag1: &v, Best: "gamma", Refuse: "no reason", Notes: []string{"a [note] with \"quotes\" and {braces}"},
			Fits: []stats.Fit{{
				Law: stats.Gamma{Shape: 2, Scale: 3}, N: 9, Free: 2, Likelihood: stats.TriangularTick, LogLik: -1e-9, AIC: 4, BIC: 5, Tick: 0.5, LogLikDensity: -3, StdErr: []float64{1, 2},
				AD: &ad, ADClipped: 1, W1OverMean: &v, QuantileRatios: []stats.QuantileRatio{{P: 0.5, Ratio: 1.1}}, Identified: true, Reason: "why", Grade: stats.Good,
			}},
			Ticks:      &TickCounts{TickS: 3, N: 4, Mean: 2, IDC: &v, Log10P: &v, NegBinR: nil},
			BootstrapP: map[string]float64{"gamma": 0.3}, Intervals: map[string][2]float64{"gamma.shape": {1, 3}}, IntervalsHow: "95 %",
		}
	}
	spliced := stats.Spliced{Threshold: 9, TailShare: 0.1, Body: stats.Lognormal{Mu: 1, Sigma: 1}, Tail: stats.GPD{Threshold: 9, Xi: 0.1, Beta: 2}}
	mixture := stats.Mixture{Weights: []float64{0.5, 0.5}, Laws: []stats.Law{stats.Normal{Mu: 1, Sigma: 2}, stats.Uniform{Low: 1, High: 2}}}
	values := stats.LawSpec{Family: "empirical", Values: []float64{1, 2.5}, Counts: []int64{3, 1}}
	shares := stats.LawSpec{Family: "empirical", Values: []float64{0.5, 1}, Counts: []int64{3, 1}}
	return &Workload{
		Kind: Kind, Schema: Schema, Requests: 10, SpanS: &v,
		Provenance: Provenance{
			Version: "1", Trace: &trace.Input{Name: "t", SHA256: "aa", Bytes: 3}, Flags: map[string]string{"by": "client"}, Seed: 7, Notes: []string{"n"},
			History: []trace.Step{{Command: "import", Version: "1", Inputs: []trace.Input{{Name: "x"}}}},
		},
		Streams: []Stream{
			{
				Name: "a", Client: "a", Model: "m", Models: []Share{{"m", 1}}, Requests: 10,
				Arrivals: &Arrivals{Of: "session", N: 9, RateHz: 2, Profile: []Rate{{0, 5, 2}}, Gaps: law(stats.Constant{Value: 1}), GapsWhy: "w", TickS: &v, Gap: fitted(), Rest: fitted(), Turns: fitted()},
				Lengths: Lengths{
					Pairs: []Pair{{-1, 4, 2}, {3, 5, 1}}, Sampled: true, Of: "request", Input: fitted(), Output: fitted(), InputLaw: law(spliced), OutputLaw: law(mixture),
					Copula: &Copula{Rho: 0.4, Monotone: true, Bins: []Bin{{1, 2, 50, values}}},
				},
				Sessions: &Sessions{How: "explicit", N: 4, Open: 1, Turns: values, TurnFits: fitted(), Think: &values, ThinkOf: "delay", Gap: &values, ThinkFit: fitted(), Growth: law(stats.Capped{Of: stats.Weibull{Shape: 1, Scale: 2}, Cap: 9}), Answers: true, Outputs: *law(stats.Pareto{Min: 1, Alpha: 2})},
				Prefix:   &Prefix{BlockTokens: 16, Tail: trace.TailPartial, Roots: []Root{{2, 0.5}}, Kept: &shares, HitShare: 0.2},
			},
			{Name: "b", Lengths: Lengths{InputLaw: law(stats.Exponential{Rate: 1}), OutputLaw: law(stats.Hyperexponential{P: 0.5, Rate1: 1, Rate2: 2})}},
		},
	}
}

func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(SchemaJSON, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keysOf collects the keys of all objects but of those whose keys are data.
func keysOf(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			into[k] = true
			if k != "params" && k != "flags" && k != "bootstrap_p" && k != "intervals" {
				keysOf(x, into)
			}
		}
	case []any:
		for _, x := range v {
			keysOf(x, into)
		}
	}
}

// TestWholeModel reads back as it was written and satisfies the schema, in which
// no key is wanting.
func TestWholeModel(t *testing.T) {
	var out, again bytes.Buffer
	if err := whole().Write(&out); err != nil {
		t.Fatal(err)
	}
	back, err := Read(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := back.Write(&again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("read back it is\n%s\nwas\n%s", &again, &out)
	}
	var value any
	if err := json.Unmarshal(out.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(value); err != nil {
		t.Error(err)
	}
	keys := map[string]bool{}
	keysOf(value, keys)
	for key := range keys {
		renamed := bytes.ReplaceAll(out.Bytes(), []byte(`"`+key+`":`), []byte(`"`+key+`_":`))
		var value any
		if err := json.Unmarshal(renamed, &value); err != nil {
			t.Fatal(err)
		}
		if err := schema(t).Validate(value); err == nil {
			t.Errorf("the schema takes %s_ for %s", key, key)
		}
		if _, err := Read(bytes.NewReader(renamed)); err == nil {
			t.Errorf("%s_ is read for %s", key, key)
		}
	}
	if !bytes.Contains(out.Bytes(), []byte("[-1, 4, 2]")) || !bytes.Contains(out.Bytes(), []byte(`"a [note] with \"quotes\" and {braces}"`)) {
		t.Errorf("numbers are not on one line, or a note is torn:\n%s", &out)
	}
}

// TestReadRefuses names what is wrong and what to do.
func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ text, says, fix string }{
		{`[`, "not a workload model: ", ""},
		{`{"kind":"x"}`, `not a workload model: kind is "x"`, "reprise fit"},
		{`{"kind":"reprise workload model","schema":2}`, "workload model of schema 2, this program reads 1 to 1", "newer"},
		{`{"kind":"reprise workload model","schema":1,"streams":[]}`, "no streams", ""},
		{`{"kind":"reprise workload model","schema":1,"stream":[]}`, `unknown field "stream"`, ""},
	} {
		_, err := Read(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(trace.Fix(err), c.fix) {
			t.Errorf("%s: %v (%s)", c.text, err, trace.Fix(err))
		}
	}
	law := func(l stats.Law) *stats.LawSpec { s := stats.SpecOf(l); return &s }
	for name, change := range map[string]func(*Stream){
		"no rate":                              func(s *Stream) { s.Arrivals.RateHz = 0 },
		"pieces follow":                        func(s *Stream) { s.Arrivals.Profile = []Rate{{0, 1, 2}, {2, 3, 1}} },
		"0 at all times":                       func(s *Stream) { s.Arrivals.Profile = []Rate{{0, 1, 0}} },
		"neither pairs":                        func(s *Stream) { s.Lengths = Lengths{} },
		"occurs 0 times":                       func(s *Stream) { s.Lengths.Pairs[0].N = 0 },
		"blocks of 0 tokens":                   func(s *Stream) { s.Prefix.BlockTokens = 0 },
		"-1 requests":                          func(s *Stream) { s.Requests = -1 },
		"models: a share is -0.5":              func(s *Stream) { s.Models = []Share{{"m", -0.5}, {"n", 1.5}} },
		"the shares add up to 0.2, not to 1":   func(s *Stream) { s.Models = []Share{{"m", 0.1}, {"n", 0.1}} },
		"rate_hz is 7, but the profile has 2":  func(s *Stream) { s.Arrivals.RateHz = 7 },
		"resolution of 1 ns":                   func(s *Stream) { s.Arrivals.Profile = []Rate{{0, 5, 1e10}} },
		"gaps: the law has mean 0":             func(s *Stream) { s.Arrivals.Gaps = law(stats.Constant{}) },
		"gaps: a gpd law of infinite mean":     func(s *Stream) { s.Arrivals.Gaps = law(stats.GPD{Xi: 5, Beta: 1}) },
		"gaps: a normal law that goes below 0": func(s *Stream) { s.Arrivals.Gaps = law(stats.Normal{Mu: 1, Sigma: 5}) },
		"it is too bursty":                     func(s *Stream) { s.Arrivals.Gaps = law(stats.Gamma{Shape: 1e-60, Scale: 1e60}) },
		"occurs 4611686018427387904 times":     func(s *Stream) { s.Lengths.Pairs = []Pair{{1, 2, 1 << 62}, {3, 4, 1 << 62}} },
		"is longer than 1099511627776 tokens":  func(s *Stream) { s.Lengths.Pairs[0].Input = 1 << 60 },
		"copula: rho is 3":                     func(s *Stream) { s.Lengths.Copula.Rho = 3 },
		"copula: bin 0: no law is called":      func(s *Stream) { s.Lengths.Copula.Bins[0].Output.Family = "zipf" },
		"turns: the mean must be":              func(s *Stream) { s.Sessions.Turns = *law(stats.Constant{Value: 1e12}) },
		`tail is "foo"`:                        func(s *Stream) { s.Prefix.Tail = "foo" },
		"a beginning of -3 blocks":             func(s *Stream) { s.Prefix.Roots[0].Blocks = -3 },
		"roots: the shares add up to 1.5":      func(s *Stream) { s.Prefix.Roots = []Root{{1, 1}, {2, 0.5}} },
		"kept: shares must be between 0 and 1": func(s *Stream) { s.Prefix.Kept = law(stats.Constant{Value: 7}) },
		`no law is called`:                     func(s *Stream) { s.Sessions.Turns = stats.LawSpec{Family: "zipf"} },
		"params has no scale": func(s *Stream) {
			s.Arrivals.Gaps = &stats.LawSpec{Family: "gamma", Params: map[string]float64{"shape": 1}}
		},
	} {
		w := whole()
		change(&w.Streams[0])
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `stream "a"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
