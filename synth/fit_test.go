package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// fitOf fits a model, which reads back as it was written and satisfies the
// schema.
func fitOf(t testing.TB, m *made, o FitOptions) *model.Workload {
	t.Helper()
	w, err := Fit(t.Context(), m.open, o)
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, w)
	return w
}

// written is the model file.
func written(t testing.TB, w *model.Workload) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := w.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func checkModel(t testing.TB, w *model.Workload) {
	t.Helper()
	text := written(t, w)
	back, err := model.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := written(t, back); !bytes.Equal(text, again) {
		t.Error("the model does not read back as it was written")
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if err := modelSchema(t).Validate(value); err != nil {
		t.Errorf("schema: %v", err)
	}
}

func modelSchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(model.SchemaJSON, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// goldenGaps are the fits to gaps in ticks of golden/fits.json.
func goldenGaps(t *testing.T, name string) (fits map[string]json.RawMessage) {
	t.Helper()
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(dir, "golden", "fits.json"))
	if err != nil {
		t.Skipf("golden values are not here (set REPRISE_SHARED): %v", err)
	}
	var file struct {
		Datasets map[string]struct {
			Ticks struct {
				Triangular map[string]json.RawMessage `json:"triangular"`
			} `json:"iat_ticks"`
		} `json:"datasets"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Datasets[name].Ticks.Triangular
}

// holdGaps holds the fits of identified families against golden ones.
func holdGaps(t *testing.T, name string, got *model.Fitted) {
	t.Helper()
	golden := goldenGaps(t, name)
	for _, fit := range got.Fits {
		text, ok := golden[fit.Law.Name()]
		if !ok {
			continue
		}
		var want struct {
			Params map[string]float64
			N      int64
			LogLik float64
			BIC    float64
			Ill    bool    `json:"ill_conditioned"`
			KS     float64 `json:"ks_discrete"`
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if fit.N != want.N || math.Abs(fit.LogLik-want.LogLik) > 1e-6*math.Abs(want.LogLik)+1e-4 {
			t.Errorf("%s %s: n %d, loglik %v, want %d, %v", name, fit.Law.Name(), fit.N, fit.LogLik, want.N, want.LogLik)
		}
		if fit.Identified == want.Ill {
			t.Errorf("%s %s: identified %v, ill-conditioned %v", name, fit.Law.Name(), fit.Identified, want.Ill)
		}
		if want.Ill {
			continue
		}
		if want.KS > 0 && math.Abs(fit.KS-want.KS) > 1e-5 {
			t.Errorf("%s %s: KS %v, want %v", name, fit.Law.Name(), fit.KS, want.KS)
		}
		for _, p := range fit.Law.Params() {
			if w := want.Params[p.Name]; math.Abs(p.Value-w) > 1e-5*math.Abs(w) {
				t.Errorf("%s %s: %s %v, want %v", name, fit.Law.Name(), p.Name, p.Value, w)
			}
		}
	}
}

func shapeOf(t testing.TB, a *model.Arrivals) float64 {
	t.Helper()
	if a.Gaps == nil || a.Gaps.Family != "gamma" {
		t.Fatalf("gaps are %+v: %s", a.Gaps, a.GapsWhy)
	}
	return a.Gaps.Params["shape"]
}

func TestFitAzureCode(t *testing.T) {
	t.Parallel()
	m := imported(t, "azure", "AzureLLMInferenceTrace_code.csv")
	w := fitOf(t, m, FitOptions{Profile: time.Minute, Seed: 1})
	s := &w.Streams[0]
	a := s.Arrivals
	holdGaps(t, "azure_code", a.Gap)
	if a.Of != "request" || s.Sessions != nil || s.Prefix != nil || a.Gap.Best != "weibull" || *a.TickS != 1e-6 {
		t.Errorf("arrivals of %s, sessions %v, prefix %v, best %s, tick %v", a.Of, s.Sessions, s.Prefix, a.Gap.Best, *a.TickS)
	}
	near(t, "azure", "rate", 0, a.RateHz, 2.5663950258507637, 1e-12)
	near(t, "azure", "CV", 0, *a.Gap.CV, 13.152036744949925, 1e-9)
	within(t, "residual shape", shapeOf(t, a), 0.27, 0.03)
	if len(a.Rest.Notes) != 1 || !strings.Contains(a.Rest.Notes[0], "follows the rate, and not its noise") {
		t.Errorf("check of over-fitting: %v", a.Rest.Notes)
	}
	if s.Lengths.Input.Fits[0].Likelihood != stats.Censored || !strings.Contains(strings.Join(s.Lengths.Input.Notes, "\n"), "from 7434 up") {
		t.Errorf("input: %v", s.Lengths.Input.Notes)
	}
	mass := 0.0
	for _, r := range a.Profile {
		mass += (r.ToS - r.FromS) * r.RateHz
	}
	near(t, "azure", "arrivals of the profile", 0, mass, 8819, 1e-9)
	if again := written(t, fitOf(t, m, FitOptions{Profile: time.Minute, Seed: 1})); !bytes.Equal(again, written(t, w)) {
		t.Error("the same seed gives another model")
	}
}

func TestFitMooncake(t *testing.T) {
	t.Parallel()
	m := imported(t, "mooncake", "conversation_trace.jsonl")
	w := fitOf(t, m, FitOptions{})
	s := &w.Streams[0]
	a := s.Arrivals
	if a.Of != "session" || a.N != 7373 || s.Sessions.N != 7373 || s.Sessions.How != "inferred from prefixes" {
		t.Errorf("%d arrivals of %s, %d sessions, %s", a.N, a.Of, s.Sessions.N, s.Sessions.How)
	}
	near(t, "mooncake", "turns", 0, *s.Sessions.TurnFits.Mean, 1.63, 0.005)
	if *a.TickS != 3 || a.Gaps != nil || !strings.Contains(a.GapsWhy, "tick of 3 s is longer than the mean gap") || !strings.Contains(a.Turns.Refuse, "tick of 3 s") {
		t.Errorf("tick %v, gaps %v: %s; %s", *a.TickS, a.Gaps, a.GapsWhy, a.Turns.Refuse)
	}
	holdGaps(t, "mooncake_conversation", a.Turns)
	near(t, "mooncake", "per-tick IDC", 0, *a.Turns.Ticks.IDC, 1.1007398966297763, 1e-9)
	near(t, "mooncake", "per-tick log10 p", 0, -*a.Turns.Ticks.Log10P, 2.0649333874128084, 1e-6)
	near(t, "mooncake", "per-tick NB r", 0, *a.Turns.Ticks.NegBinR, 102.96553104445424, 1e-6)
	near(t, "mooncake", "hit share", 0, s.Prefix.HitShare, 0.374, 0.002)
	if s.Prefix.BlockTokens != 512 || s.Prefix.Tail != trace.TailPartial || len(s.Prefix.Roots) != 1 || s.Prefix.Roots[0].Blocks != 1 {
		t.Errorf("prefix %+v", s.Prefix)
	}
}

// TestFitGeneratesAgain: what is generated from a fit is fitted by the same laws.
func TestFitGeneratesAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file []string
		o    FitOptions
	}{
		{[]string{"azure", "AzureLLMInferenceTrace_code.csv"}, FitOptions{Profile: time.Minute}},
		{[]string{"mooncake", "conversation_trace.jsonl"}, FitOptions{}},
	} {
		first := fitOf(t, imported(t, c.file...), c.o)
		n := first.Requests
		second := fitOf(t, generate(t, first, Generation{Requests: n, Seed: 5}), c.o)
		a, b := &first.Streams[0], &second.Streams[0]
		within(t, c.file[0]+" rate", b.Arrivals.RateHz, a.Arrivals.RateHz, 0.03)
		if a.Sessions == nil {
			within(t, "shape", shapeOf(t, b.Arrivals), shapeOf(t, a.Arrivals), 0.08)
		} else {
			within(t, "turns", *b.Sessions.TurnFits.Mean, *a.Sessions.TurnFits.Mean, 0.08)
			within(t, "Poisson", shapeOf(t, b.Arrivals), 1, 0.06)
			if d := math.Abs(b.Prefix.HitShare - a.Prefix.HitShare); d > 0.05 {
				t.Errorf("%s: hit share %v, was %v", c.file[0], b.Prefix.HitShare, a.Prefix.HitShare)
			}
		}
		for side, pick := range []func(model.Pair) int64{func(p model.Pair) int64 { return p.Input }, func(p model.Pair) int64 { return p.Output }} {
			for _, p := range []float64{0.1, 0.5, 0.9, 0.99} {
				within(t, fmt.Sprintf("%s: side %d quantile %v", c.file[0], side, p), pairQuantile(t, b.Lengths.Pairs, pick, p), pairQuantile(t, a.Lengths.Pairs, pick, p), 0.06)
			}
		}
	}
}

func pairQuantile(t testing.TB, pairs []model.Pair, pick func(model.Pair) int64, p float64) float64 {
	t.Helper()
	var tally stats.Tally
	for _, x := range pairs {
		tally.AddN(pick(x), x.N)
	}
	return tally.Sample(1).Quantiles7(p)[0]
}

// TestFitFindsTheModel: a model that was written by hand comes back.
func TestFitFindsTheModel(t *testing.T) {
	t.Parallel()
	want := conversing()
	m := generate(t, want, Generation{Duration: 2000 * time.Second, Seed: 9})
	w := fitOf(t, m, FitOptions{})
	s := &w.Streams[0]
	c := s.Sessions
	near(t, "found", "rate", 0, s.Arrivals.RateHz, 2, 0.06)
	near(t, "found", "shape", 0, shapeOf(t, s.Arrivals), 1, 0.06)
	near(t, "found", "turns", 0, *c.TurnFits.Mean, 8.0/3, 0.05)
	if c.How != "explicit" || c.ThinkOf != "recorded delay" {
		t.Errorf("sessions are %s, think is from %s", c.How, c.ThinkOf)
	}
	for name, law := range map[string]*stats.LawSpec{"think 3": c.Think, "gap 4": c.Gap, "growth 300": c.Growth, "output 7": &c.Outputs} {
		if _, value, _ := strings.Cut(name, " "); len(law.Values) != 1 && name != "gap 4" || fmt.Sprint(math.Round(law.Values[0]*1e6)/1e6) != value {
			t.Errorf("%s: %v", name, law.Values)
		}
	}
	if len(s.Models) != 2 || s.Models[0].Name != "small" {
		t.Errorf("models %+v", s.Models)
	}
	p := s.Prefix
	if len(p.Roots) != 2 || p.Roots[0].Blocks != 1 || p.Roots[1].Blocks != 2 {
		t.Fatalf("roots %+v", p.Roots)
	}
	near(t, "found", "root", 0, p.Roots[0].Share, 0.6, 0.06)
	near(t, "found", "root", 1, p.Roots[1].Share, 0.3, 0.08)
	if p.BlockTokens != 64 || p.Tail != trace.TailPartial || p.Kept == nil {
		t.Errorf("prefix %+v", p)
	}
}

// TestFitDegenerate: little or odd input gives plain words, and a model that is
// generated from where it has arrivals.
func TestFitDegenerate(t *testing.T) {
	row := func(at float64, in, out int64) trace.Request {
		return trace.Request{Operation: trace.OpChat, Arrival: seconds(at), InputTokens: trace.Some(in), OutputTokens: trace.Some(out)}
	}
	many := func(n int, f func(i int) trace.Request) (rows []trace.Request) {
		for i := range n {
			rows = append(rows, f(i))
		}
		return rows
	}
	for _, c := range []struct {
		name     string
		clock    string
		rows     []trace.Request
		says     string // in the notes or refusals
		arrivals bool
	}{
		{"one row", trace.ClockTrace, []trace.Request{row(0, 10, 5)}, "there is one arrival", false},
		{"two rows", trace.ClockTrace, []trace.Request{row(0, 10, 5), row(2, 10, 5)}, "too few gaps: 1, and it takes 3", true},
		{"all equal", trace.ClockTrace, many(50, func(i int) trace.Request { return row(float64(i), 10, 5) }), "all 50 values are 10", true},
		{"all zero gaps", trace.ClockTrace, many(50, func(i int) trace.Request { return row(0, int64(i+1), 5) }), "all 50 arrivals come at the same time", false},
		{"two times", trace.ClockTrace, many(50, func(i int) trace.Request { return row(float64(i/49), 10, 5) }), "the effective tick of 1 s is longer than the mean gap", true},
		{"one session", trace.ClockTrace, many(50, func(i int) trace.Request {
			r := row(float64(i*i), 10*int64(i+1), 5)
			r.Session, r.Turn = trace.Some("s"), trace.Some(int32(i))
			return r
		}), "there is one arrival, and no gap", true},
		{"no arrivals", trace.ClockNone, many(5, func(i int) trace.Request {
			r := row(0, 10, 5)
			r.Arrival = trace.Optional[time.Duration]{}
			return r
		}), "the trace has no times", false},
		{"no lengths", trace.ClockTrace, many(40, func(i int) trace.Request {
			return trace.Request{Operation: trace.OpChat, Arrival: seconds(float64(i * i))}
		}), "input lengths: not measurable: no row has one above 0", true},
		{"all failed", trace.ClockTrace, many(40, func(i int) trace.Request {
			r := row(float64(i*i), 7, 0)
			r.Status = trace.Some(trace.StatusError)
			return r
		}), "40 of 40 rows failed or ended without a token", true},
		{"no tokens", trace.ClockTrace, many(40, func(i int) trace.Request { return row(float64(i*i), 0, 1) }), "input lengths: not measurable", true},
		{"blocks of another rule", trace.ClockTrace, many(40, func(i int) trace.Request {
			r := row(float64(i*i), 64, 1)
			r.Blocks, r.BlockTokens, r.BlockTail = []uint64{1, 2, uint64(i)}, trace.Some(int32(32)), trace.Some(trace.TailOther)
			return r
		}), "count as open", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.rows {
				c.rows[i].ID = int64(i)
			}
			m := write(t, trace.Meta{Clock: c.clock}, c.rows)
			w := fitOf(t, m, FitOptions{})
			text := string(written(t, w))
			if !strings.Contains(text, c.says) {
				t.Errorf("nothing says %q:\n%s", c.says, text)
			}
			if (w.Streams[0].Arrivals != nil) != c.arrivals {
				t.Errorf("arrivals %+v", w.Streams[0].Arrivals)
			}
			if c.arrivals {
				generate(t, w, Generation{Requests: 30, Seed: 2})
			}
		})
	}
	empty := write(t, trace.Meta{Clock: trace.ClockTrace}, nil)
	if _, err := Fit(t.Context(), empty.open, FitOptions{}); err == nil || err.Error() != "the trace has no rows: there is nothing to fit" {
		t.Errorf("no rows: %v", err)
	}
}

// TestFitTakesAnyTrace: whatever rows there are, the model holds only numbers,
// satisfies the schema and, where it has arrivals, makes rows.
func TestFitTakesAnyTrace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := stats.Stream(seed, 77)
		some := func(share float64) bool { return r.Float64() < share }
		clock := []string{trace.ClockTrace, trace.ClockTrace, trace.ClockNone}[r.IntN(3)]
		tick := math.Pow(10, float64(-r.IntN(5)))
		named, blocked, sized := some(0.4), some(0.4), some(0.8)
		at := 0.0
		var rows []trace.Request
		for i := range 1 + r.IntN(150) {
			q := trace.Request{ID: int64(i), Operation: trace.OpChat}
			if clock == trace.ClockTrace && some(0.95) {
				q.Arrival = seconds(math.Floor(at/tick) * tick)
			}
			at += stats.Gamma{Shape: 0.3, Scale: 1}.Rand(r)
			if sized && some(0.9) {
				q.InputTokens = trace.Some(int64(r.IntN(1000)))
			}
			if sized && some(0.9) {
				q.OutputTokens = trace.Some(int64(r.IntN(30) * r.IntN(2)))
			}
			if named && some(0.8) {
				q.Session = trace.Some(fmt.Sprint("s", r.IntN(20)))
			}
			if some(0.3) {
				q.ClientID = trace.Some(fmt.Sprint("c", r.IntN(4)))
			}
			if in := q.InputTokens.Or(0); blocked && in > 0 {
				q.BlockTokens, q.BlockTail, q.Blocks = trace.Some(int32(100)), trace.Some(trace.TailPartial), []uint64{}
				first := uint64(r.IntN(6)) << 8
				for k := range uint64(in+99) / 100 {
					q.Blocks = append(q.Blocks, first+k)
				}
			}
			rows = append(rows, q)
		}
		w := fitOf(t, write(t, trace.Meta{Clock: clock}, rows), FitOptions{By: []string{FitAll, FitClient}[r.IntN(2)], Streams: 3, Seed: seed})
		timed := true
		for _, s := range w.Streams {
			timed = timed && s.Arrivals != nil
		}
		if timed {
			generate(t, w, Generation{Requests: 50, Seed: seed})
		}
	}
}
