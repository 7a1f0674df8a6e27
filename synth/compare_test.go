package synth

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/analysis/prefix"
	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// againstItself holds a trace against the model that is fitted to it.
func againstItself(t *testing.T, m *made) (*analysis.TrafficComparison, *model.Workload) {
	t.Helper()
	w := fitOf(t, m, FitOptions{})
	c, err := analysis.NewProfileCollector(SpecimenMeta(w), 0, "model")
	if err != nil {
		t.Fatal(err)
	}
	if err := Specimen(t.Context(), w, c.Add); err != nil {
		t.Fatal(err)
	}
	r, err := m.open()
	if err != nil {
		t.Fatal(err)
	}
	p, err := analysis.ProfileOfTrace(t.Context(), r, "trace")
	if err != nil {
		t.Fatal(err)
	}
	return analysis.CompareProfiles(c.ProfileOfModel(w), p, 0), w
}

// compacting is traffic of long sessions in which all goes together: larger ones
// have more turns, and every fifth turn the context falls to a tenth.
func compacting(t testing.TB) *made {
	r := stats.Stream(12)
	var rows []trace.Request
	var start time.Duration
	for s := range 700 {
		start += time.Duration(r.ExpFloat64() * 5e9)
		at := start
		input := 100 + 4000*r.Float64()
		for turn := range 1 + int(input/400) {
			rows = append(rows, trace.Request{Operation: trace.OpChat, Session: trace.Some(fmt.Sprint(s)), Turn: trace.Some(int32(turn)), Arrival: trace.Some(at),
				InputTokens: trace.Some(int64(input)), OutputTokens: trace.Some(int64(10 + input/10*r.Float64()))})
			if input += 500 * r.Float64(); turn%5 == 4 {
				input /= 10
			}
			at += time.Duration((5 + input/200) * r.Float64() * 1e9)
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.Arrival.Value - b.Arrival.Value) })
	rows = slices.DeleteFunc(rows, func(r trace.Request) bool { return r.Arrival.Value > start }) // a window of traffic that goes on
	first := rows[0].Arrival.Value
	for i := range rows {
		rows[i].ID, rows[i].Arrival.Value = int64(i), rows[i].Arrival.Value-first
	}
	return write(t, trace.Meta{Clock: trace.ClockTrace}, rows)
}

// TestModelIsLikeItsTrace: whatever is compared, a model does not differ from the
// trace that it was fitted to: its lengths are those of all turns, not of the
// first.
func TestModelIsLikeItsTrace(t *testing.T) {
	t.Parallel()
	c, w := againstItself(t, compacting(t))
	if n := len(w.Streams[0].Sessions.Paths); n != 700 {
		t.Errorf("%d sessions are kept whole", n)
	}
	for _, q := range c.Quantities {
		if q.Verdict == analysis.Differs {
			t.Errorf("%s: %s", q.Name, q.Why)
		}
	}
	for _, s := range c.Scalars {
		if s.Verdict == analysis.Differs && math.Abs(*s.Ratio-1) > 0.03 { // of nine, one may differ by chance
			t.Errorf("%s: %v and %v", s.Name, *s.A, *s.B)
		}
	}
	if mean := c.Quantities[0].Stats[0]; math.Abs(*mean.Ratio-1) > 0.03 {
		t.Errorf("mean input %v and %v", *mean.A, *mean.B)
	}
}

// TestModelIsLikeConversation: the model of the Mooncake trace differs from it in
// nothing but the bursts of a minute, which its rate in ten or more minutes leaves
// out; hit share and the trend over five minutes stay.
func TestModelIsLikeConversation(t *testing.T) {
	t.Parallel()
	c, _ := againstItself(t, imported(t, "mooncake", "conversation_trace.jsonl"))
	for _, q := range c.Quantities {
		if q.Verdict == analysis.Differs {
			t.Errorf("%s: %s", q.Name, q.Why)
		}
	}
	for _, s := range c.Scalars {
		if s.Verdict == analysis.Differs && s.Name != "idc_60s" {
			t.Errorf("%s: %v and %v", s.Name, *s.A, *s.B)
		}
		if s.Name == "idc_300s" && *s.A < 3 {
			t.Errorf("the trend is lost: IDC at 300 s %v, of the trace %v", *s.A, *s.B)
		}
	}
}

// TestModelKeepsSilences: the Azure code trace has minutes without a request, and
// so has what its model generates.
func TestModelKeepsSilences(t *testing.T) {
	t.Parallel()
	c, _ := againstItself(t, imported(t, "azure", "AzureLLMInferenceTrace_code.csv"))
	for _, s := range c.Scalars {
		if s.Name == "gap_cv" && (s.Verdict == analysis.Differs || *s.A < 9) {
			t.Errorf("gap CV %v, of the trace %v", *s.A, *s.B)
		}
	}
}

// TestPathsAreBounded: of many sessions a sample is kept whole, of one that is too
// long none, and generation goes on by laws.
func TestPathsAreBounded(t *testing.T) {
	var p fitPaths
	p.begin(1, 0)
	for s := range int64(maxPathTurns) {
		c := &fitSession{last: -1, end: -1}
		for range 4 {
			p.add(s, fitRow{input: s, output: 1, at: -1, delay: -1}, prefix.Hits{}, c)
			c.turns++
		}
	}
	paths, sampled := p.result()
	if !sampled || len(paths) < maxPathTurns/16 || 4*len(paths) > maxPathTurns {
		t.Errorf("%d paths, sampled %v", len(paths), sampled)
	}
	mean := 0.0
	for _, path := range paths {
		if len(path) != 4 {
			t.Fatalf("a path of %d turns", len(path))
		}
		mean += float64(path[0].Input) / float64(len(paths))
	}
	if math.Abs(mean/(maxPathTurns/2)-1) > 0.03 {
		t.Errorf("the mean of the sample is %v", mean)
	}
	c := &fitSession{last: -1, end: -1}
	p.begin(1, 0)
	for range maxPath + 1 {
		p.add(0, fitRow{}, prefix.Hits{}, c)
	}
	if paths, _ := p.result(); !p.closed || len(paths) > 0 {
		t.Errorf("closed %v, %d paths", p.closed, len(paths))
	}
}
