package analysis

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// madeRun is a run of n requests of 11 tokens, one every 100 ms, with a TTFT of
// around 100 ms and gaps of around 10 ms times slower; every hundredth fails.
func madeRun(t testing.TB, name string, n int, seed uint64, slower float64, change func(*results.Run)) *RunData {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	var rows []results.Result
	for i := range n {
		at := float64(i) * 100
		gap := 10 * slower * (1 + 0.1*random.NormFloat64())
		ttft := 100 + 20*random.NormFloat64()
		r := sent(int64(i), at, at+0.1, at+0.1, at+0.1+ttft+10*gap, results.OutcomeOK)
		if i%100 == 99 {
			r.Outcome, r.Cause = results.OutcomeFailed, trace.Some("HTTP 500")
			rows = append(rows, r)
			continue
		}
		for k := range int32(11) {
			r.Ledger = append(r.Ledger, chunk(k, ttft+gap*float64(k), 1, results.KindContent, false))
		}
		r.OutputTokens, r.CountedInputTokens = tokens(11), tokens(100)
		rows = append(rows, r)
	}
	run := baseRun()
	run.Planned.Requests, run.Ended.Sent, run.Ended.Unsent, run.Ended.Capped = int64(n), int64(n), 0, 0
	if change != nil {
		change(run)
	}
	d, err := LoadRun(t.Context(), results.InMemory(*run, rows), name, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func comparedRuns(t testing.TB, a, b []*RunData) *RunComparison {
	t.Helper()
	c, err := CompareRuns(t.Context(), a, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func numberOf(t testing.TB, c *RunComparison, name string) *RunNumber {
	t.Helper()
	names, list := c.numbers()
	for i := range names {
		if names[i] == name {
			return list[i]
		}
	}
	t.Fatalf("no number is called %s", name)
	return nil
}

// TestCompareRuns: a change of 5 % is found, with its size inside the interval;
// what did not change is not.
func TestCompareRuns(t *testing.T) {
	c := comparedRuns(t, []*RunData{madeRun(t, "before", 1000, 1, 1, nil)}, []*RunData{madeRun(t, "after", 1000, 2, 1.05, nil)})
	if !c.Paired || c.Pairs != 990 || c.Alone != 0 {
		t.Errorf("paired %v, %d pairs, %d alone", c.Paired, c.Pairs, c.Alone)
	}
	n := numberOf(t, c, "tpot_mean")
	if n.Verdict != Differs || *n.ChangeLo > 0.05 || *n.ChangeHi < 0.05 || math.Abs(*n.Change-0.05) > 0.02 {
		t.Errorf("tpot_mean %+v", n)
	}
	for _, name := range []string{"ttft_p50", "ttft_mean", "lateness_p50", "error_rate"} {
		if n := numberOf(t, c, name); n.Verdict == Differs {
			t.Errorf("%s differs: %+v", name, n)
		}
	}
	m := &c.Metrics[3]
	if m.Name != "tpot" || m.ShiftOf != "pairs" || math.Abs(*m.Shift-0.5) > 0.1 || *m.Delta < 0.2 {
		t.Errorf("effect of %s: shift %v of %s, delta %v", m.Name, *m.Shift, m.ShiftOf, *m.Delta)
	}
	for _, shapes := range [][]Shape{first(c.Shapes()), second(c.Shapes())} {
		if len(shapes) != rowMetrics || shapes[0].Name != "ttft" || math.Abs(shapes[0].Mean-100) > 3 || shapes[0].CDF[0].X < 10 || shapes[0].CDF[len(shapes[0].CDF)-1].P != 1 {
			t.Errorf("%d shapes, first %+v", len(shapes), shapes[0])
		}
	}
	if mean := numberOf(t, c, "itl_mean"); math.Abs(*mean.A-*numberOf(t, c, "tpot_mean").A) > 0.01 {
		t.Errorf("itl and tpot of equal answers are %v and %v", *mean.A, *n.A)
	}
}

func first(a, _ []Shape) []Shape  { return a }
func second(_, b []Shape) []Shape { return b }

// TestCompareRunsWithItself: nothing differs from itself.
func TestCompareRunsWithItself(t *testing.T) {
	a := madeRun(t, "a", 300, 1, 1, nil)
	c := comparedRuns(t, []*RunData{a}, []*RunData{a})
	_, list := c.numbers()
	for _, n := range list {
		if n.Verdict != Same && n.Verdict != NotMeasurable {
			t.Errorf("%s is %s", n.Name, n.Verdict)
		}
	}
}

// TestSeveralRuns: numbers of a side are those of all its requests, and what
// varies from run to run widens the interval.
func TestSeveralRuns(t *testing.T) {
	a := []*RunData{madeRun(t, "a1", 400, 1, 1, nil), madeRun(t, "a2", 400, 2, 1.2, nil)}
	b := []*RunData{madeRun(t, "b1", 400, 3, 1.05, nil), madeRun(t, "b2", 400, 4, 1.25, nil)}
	c := comparedRuns(t, a, b)
	n := numberOf(t, c, "tpot_mean")
	if n.Verdict == Differs || n.df != 2 || n.RunsA == nil || n.RunsA[0] > 10.2 || n.RunsA[1] < 11.8 {
		t.Errorf("runs that vary by 20 %% on a side: %+v, runs %v", n, n.RunsA)
	}
	if m := &c.Metrics[3]; m.NA != 792 || m.ShiftOf != "samples" {
		t.Errorf("tpot has %d samples, shift of %s", m.NA, m.ShiftOf)
	}
}

func TestBasis(t *testing.T) {
	a := madeRun(t, "a", 300, 1, 1, nil)
	for name, tt := range map[string]struct {
		change func(*results.Run)
		refuse bool
		paired bool
		want   string
	}{
		"pace":    {func(r *results.Run) { r.Pace = "think" }, true, false, "pacing: schedule in a, think in b"},
		"speed":   {func(r *results.Run) { r.Speed = 2 }, true, false, "speed: 1 in a, 2 in b"},
		"lengths": {func(r *results.Run) { r.Flags = map[string]string{"output-length": "free"} }, true, true, "output length: exact in a, free in b"},
		"cap":     {func(r *results.Run) { r.Label = "capped" }, true, true, "label: open loop in a, capped in b"},
		"invalid": {func(r *results.Run) { r.Ended.RecordsLost = 3 }, true, true, "not a valid measurement: b is invalid"},
		"trace":   {func(r *results.Run) { r.Trace = &trace.Input{Name: "other", SHA256: "1234"} }, false, false, "trace: prod.parquet (sha256 5d41402abc4b) in a, other (sha256 1234) in b"},
		"renamed": {func(r *results.Run) { r.Trace = &trace.Input{Name: "x", SHA256: r.Trace.SHA256} }, false, true, ""},
		"version": {func(r *results.Run) { r.Version = "9" }, false, true, "version of reprise: 0.0.0 in a, 9 in b"},
	} {
		b := madeRun(t, "b", 300, 2, 1, tt.change)
		sides := [2][]*RunData{{a}, {b}}
		notes := Basis(sides[0], sides[1])
		var texts []string
		for i := range notes {
			texts = append(texts, notes[i].String())
		}
		if got := strings.Join(texts, "; "); got != tt.want {
			t.Errorf("%s: basis %q, want %q", name, got, tt.want)
		}
		if err := Refusal(notes); (err != nil) != tt.refuse {
			t.Errorf("%s: refused with %v", name, err)
		}
		if got := sameTrace(sides[0], sides[1]); got != tt.paired {
			t.Errorf("%s: paired %v", name, got)
		}
	}
}

func TestRunGates(t *testing.T) {
	a, b := madeRun(t, "a", 1000, 1, 1, nil), madeRun(t, "b", 1000, 2, 1.05, nil)
	for _, tt := range []struct {
		text, rule string
		failed     int
		why        string
	}{
		{"tpot_mean>+3%", RuleSignificant, 1, ""},
		{"tpot_mean>+3%", RuleProven, 1, ""},
		{"tpot_mean>+4.9%", RuleProven, 0, "chance may explain"},
		{"tpot_mean>+9%", RuleEstimate, 0, ""},
		{"ttft_mean>-1%", RuleEstimate, 1, ""},
		{"ttft_mean>-1%", RuleSignificant, 0, "within noise"},
		{"tpot_p95<1s", RuleSignificant, 1, ""}, // a value of B that must not be
		{"error_rate>5%; tpot_mean<+3%", RuleSignificant, 0, ""},
	} {
		conditions, err := ParseConditions(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		c := comparedRuns(t, []*RunData{a}, []*RunData{b})
		failed, err := c.Gate(conditions, tt.rule)
		if err != nil || failed != tt.failed || !strings.Contains(c.Gates[0].Why, tt.why) {
			t.Errorf("%s, %s: %d failed (%v), %+v", tt.text, tt.rule, failed, err, c.Gates)
		}
	}
	c := comparedRuns(t, []*RunData{a}, []*RunData{b})
	for _, text := range []string{"speed>+5%", "ttft_p95>800", "requests_per_s<5ms"} {
		conditions, err := ParseConditions(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Gate(conditions, RuleSignificant); err == nil || trace.Fix(err) == "" {
			t.Errorf("%s: %v without a way out", text, err)
		}
	}
}

// TestTrend: a run whose queue grows and shrinks slowly says little of how much its
// TTFT varies.
func TestTrend(t *testing.T) {
	growing := func(name string, seed uint64) *RunData {
		random := rand.New(rand.NewPCG(seed, 7))
		var rows []results.Result
		ttft := 500.0
		for i := range 1000 {
			at := float64(i) * 100
			ttft = max(10, ttft+20*random.NormFloat64())
			r := sent(int64(i), at, at, at, at+ttft+1, results.OutcomeOK)
			r.Ledger = []results.Entry{chunk(0, ttft, 1, results.KindContent, false)}
			rows = append(rows, r)
		}
		d, err := LoadRun(t.Context(), results.InMemory(*baseRun(), rows), name, Limits{Lateness: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	c := comparedRuns(t, []*RunData{growing("a", 1)}, []*RunData{growing("b", 2)})
	if n := numberOf(t, c, "ttft_mean"); n.Verdict != WithinNoise || n.df != leastDF || *n.ChangeLo > 0 || *n.ChangeHi < 0 {
		t.Errorf("ttft_mean %+v, change %v up to %v", n, *n.Change, *n.ChangeHi)
	}
}

// TestUnboundedChange: a change that may be almost anything has no interval of its
// own, and does not fail a gate.
func TestUnboundedChange(t *testing.T) {
	c := &RunComparison{Level: RunLevel, Scalars: []RunNumber{
		newRunNumber(gateRequestsPer, "requests/s", 10, 8, spread{2, 5, 30}), newRunNumber(gateOutputPer, "tokens/s", 10, 8, spread{2, 0.2, 30}),
	}}
	c.judge()
	wide, narrow := &c.Scalars[0], &c.Scalars[1]
	if got, want := wide.intervalText(), "-6.085 to +2.085 requests/s"; got != want || wide.ChangeLo != nil || wide.ChangeHi != nil || wide.Verdict != WithinNoise {
		t.Errorf("interval %s, want %s: %+v", got, want, wide)
	}
	if got, want := narrow.intervalText(), "-46.83 % to +20.36 %"; got != want {
		t.Errorf("interval %s, want %s", got, want)
	}
	conditions, err := ParseConditions(gateRequestsPer + "<-5%")
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := c.Gate(conditions, DefaultRule); failed != 0 || err != nil || c.Gates[0].Lo != nil || c.Gates[0].Hi != nil {
		t.Errorf("%d failed, %v: %+v", failed, err, c.Gates)
	}
}

func TestGoldenRunComparison(t *testing.T) {
	c := comparedRuns(t, []*RunData{madeRun(t, "before/", 600, 1, 1, nil)}, []*RunData{madeRun(t, "after/", 600, 2, 1.05, func(r *results.Run) { r.Version = "0.0.1" })})
	conditions, err := ParseConditions("tpot_p50>+2%; ttft_p95>+5%; error_rate>2%")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Gate(conditions, DefaultRule); err != nil {
		t.Fatal(err)
	}
	var text, markdown bytes.Buffer
	if err := WriteRunsText(&text, c); err != nil {
		t.Fatal(err)
	}
	if err := WriteRunsMarkdown(&markdown, c); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "runs.txt", text.Bytes())
	golden(t, "runs.md", markdown.Bytes())
	golden(t, "runs.json", append(out, '\n'))
	if parts := RunsParts(c); len(parts) < 10 {
		t.Errorf("%d parts", len(parts))
	}
}

// TestStrides: quantiles by strides are those of the whole walk, whatever was
// drawn.
func TestStrides(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const blocks = 3
	c := &cells{}
	for i := range 4*mostStrides*blocks + 77 {
		c.v, c.n, c.block = append(c.v, int64(i/3)), append(c.n, 1+random.Int64N(4)), append(c.block, uint16(random.IntN(blocks)))
	}
	c.close(blocks)
	if c.stride == 0 {
		t.Fatal("no strides")
	}
	walk := *c
	walk.stride = 0
	for range 200 {
		w := draw{float64(random.IntN(3)), float64(random.IntN(3)), float64(random.IntN(3))}
		var got, want runNumbers
		if ok := c.numbers(w, &got); ok != walk.numbers(w, &want) || got != want {
			t.Fatalf("drawn %v: %v, want %v", w, got, want)
		}
	}
}
