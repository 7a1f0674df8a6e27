package chart

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

func traffic(t testing.TB, clock string, rows ...trace.Request) *analysis.Traffic {
	t.Helper()
	c, err := analysis.NewTrafficCollector(trace.Meta{Clock: clock, Format: "made"}, int64(len(rows)), analysis.TrafficOptions{By: analysis.ByModel})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch()
	for i := range rows {
		b.Append(&rows[i])
	}
	if err := c.Add(b); err != nil {
		t.Fatal(err)
	}
	return c.Traffic()
}

func at(s float64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(s * 1e9))
}

// busy is traffic of n rows with everything that can be drawn.
func busy(t testing.TB, n int) *analysis.Traffic {
	r := stats.Stream(11)
	var rows []trace.Request
	now := 0.0
	for i := range n {
		now += r.ExpFloat64()
		rows = append(rows, trace.Request{
			ID: int64(i), Operation: trace.OpChat, Arrival: at(now),
			InputTokens: trace.Some(int64(100 * math.Exp(2*r.NormFloat64()))), OutputTokens: trace.Some(int64(50 * math.Exp(r.NormFloat64()))),
			Session: trace.Some(string(rune('a' + i%20))), RecordedE2E: trace.Some(time.Duration(r.ExpFloat64() * 1e9)), Delay: trace.Some(time.Duration(r.ExpFloat64() * 1e9)),
			BlockTokens: trace.Some[int32](16), Blocks: []uint64{uint64(i % 7), uint64(100 + i%91), uint64(1000 + r.IntN(500))},
		})
	}
	return traffic(t, trace.ClockTrace, rows...)
}

func ids(list []Chart) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.ID)
	}
	return out
}

// TestTrafficPage: a trace that has everything gives every chart, and a page of
// bounded size.
func TestTrafficPage(t *testing.T) {
	a := busy(t, 20000)
	want := []string{"rate", "idc", "count-cv", "gaps-cdf", "input-cdf", "output-cdf", "density", "turns-cdf", "starts-cdf", "think-cdf", "lru"}
	charts := TrafficCharts(a, nil)
	if got := ids(charts); !slices.Equal(got, want) {
		t.Errorf("charts %v, want %v", got, want)
	}
	for i := range charts {
		if err := charts[i].WriteSVG(io.Discard); err != nil {
			t.Error(err)
		}
	}
	p := TrafficPage(a, nil)
	checkPage(t, p)
	var headings, placed []string
	for _, s := range p.Sections {
		headings = append(headings, s.Heading)
		placed = append(placed, ids(s.Charts)...)
	}
	if !slices.Equal(placed, want) {
		t.Errorf("the page has the charts %v, want %v", placed, want)
	}
	if got := strings.Join(headings, ", "); got != "Summary, Arrivals, Lengths, Output by input length, Sessions, Prefix reuse, Groups, Definitions" {
		t.Errorf("sections %s", got)
	}
	if rows := p.Sections[0].Tables[0].Rows; rows[0][1] != "20,000" {
		t.Errorf("summary %v", rows)
	}
}

// TestTrafficPageModel: the laws of a model stand beside the data they are of,
// and not beside others.
func TestTrafficPageModel(t *testing.T) {
	a := busy(t, 2000)
	fitted := func(family stats.Law, best string) *model.Fitted {
		return &model.Fitted{Best: best, Fits: []stats.Fit{
			{Law: stats.Gamma{Shape: 0.5, Scale: 2}, BIC: 9, Identified: true},
			{Law: family, BIC: 5, Identified: true},
			{Law: stats.Weibull{Shape: 1, Scale: 1}, BIC: 1},
		}}
	}
	w := &model.Workload{Requests: 2000, Streams: []model.Stream{{
		Arrivals: &model.Arrivals{Of: "request", Profile: []model.Rate{{FromS: 0, ToS: 500, RateHz: 0.8}, {FromS: 500, ToS: 9e9, RateHz: 1.2}}, Gap: fitted(stats.Exponential{Rate: 1}, "exponential")},
		Lengths:  model.Lengths{Of: "request", Input: fitted(stats.Capped{Of: stats.Lognormal{Mu: 4.6, Sigma: 2}, Cap: 1e6}, "lognormal"), Output: &model.Fitted{Refuse: "two families are as good"}},
	}}}
	charts := TrafficCharts(a, w)
	names := func(id string) []string {
		i := slices.Index(ids(charts), id)
		if i < 0 {
			t.Fatalf("no chart %s", id)
		}
		var out []string
		for _, s := range charts[i].Series {
			out = append(out, s.Name)
		}
		return out
	}
	for id, want := range map[string][]string{
		"rate":      {"requests/s", "fitted rate of requests"},
		"gaps-cdf":  {"observed", "exponential (best)", "gamma"},
		"gaps-qq":   {"equal quantiles", "exponential (best)", "gamma"},
		"input-cdf": {"observed", "lognormal, capped (best)", "gamma"},
		"turns-cdf": {"observed"},
	} {
		if got := names(id); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if i := slices.Index(ids(charts), "output-cdf"); charts[i].Note != "No family is named best: two families are as good." {
		t.Errorf("note %q", charts[i].Note)
	}
	checkPage(t, TrafficPage(a, w))

	if got := TrafficCharts(a, nil)[0].Series; len(got) != 2 || got[1].Kind != Band || got[0].Kind != Step {
		t.Errorf("rate without a model: %d series", len(got))
	}

	w.Streams[0].Lengths.Of, w.Streams[0].Arrivals.Of = "first turn of a session", "session"
	charts = TrafficCharts(a, w)
	if got := ids(charts); slices.Contains(got, "gaps-qq") || slices.Contains(got, "input-qq") || !slices.Contains(got, "starts-qq") {
		t.Errorf("charts %v: laws beside data that they are not of", got)
	}
	w.Streams = append(w.Streams, w.Streams[0])
	for _, c := range TrafficCharts(a, w) {
		if strings.HasSuffix(c.ID, "-qq") {
			t.Errorf("chart %s of a model of two streams", c.ID)
		}
	}
	checkPage(t, TrafficPage(a, w))
}

// TestTrafficPageDegenerate: what cannot be drawn is said.
func TestTrafficPageDegenerate(t *testing.T) {
	row := func(s float64) trace.Request {
		return trace.Request{Operation: trace.OpChat, Arrival: at(s), InputTokens: trace.Some[int64](7), OutputTokens: trace.Some[int64](7)}
	}
	zero := trace.Request{Operation: trace.OpChat, InputTokens: trace.Some[int64](0), OutputTokens: trace.Some[int64](0)}
	for name, c := range map[string]struct {
		clock string
		rows  []trace.Request
		say   string
		draw  string
	}{
		"no rows":     {trace.ClockTrace, nil, "not measurable: no row has an arrival time", ""},
		"one row":     {trace.ClockTrace, []trace.Request{row(0)}, "there is one arrival", "input-cdf output-cdf density"},
		"two at once": {trace.ClockTrace, []trace.Request{row(0), row(0)}, "gaps between arrivals: no chart, since no value is above 0", "input-cdf output-cdf density"},
		"two":         {trace.ClockTrace, []trace.Request{row(0), row(1)}, "at least 2 are needed", "rate idc count-cv gaps-cdf input-cdf output-cdf density"},
		"no clock":    {trace.ClockNone, []trace.Request{row(0), row(1)}, "not measurable: no row has an arrival time", "input-cdf output-cdf density"},
		"no lengths":  {trace.ClockTrace, []trace.Request{{Operation: trace.OpChat, Arrival: at(0)}, {Operation: trace.OpChat, Arrival: at(9)}}, "not measurable: no row has input_tokens", "rate idc count-cv gaps-cdf"},
		"zeros":       {trace.ClockNone, []trace.Request{zero, zero}, "input length: no chart, since no value is above 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := traffic(t, c.clock, c.rows...)
			charts := TrafficCharts(a, nil)
			if got := strings.Join(ids(charts), " "); got != c.draw {
				t.Errorf("draws %q, want %q", got, c.draw)
			}
			for i := range charts {
				if err := charts[i].WritePNG(io.Discard); err != nil {
					t.Error(err)
				}
			}
			all := checkPage(t, TrafficPage(a, nil))
			if !slices.ContainsFunc(all, func(e element) bool { return strings.Contains(e.text, c.say) }) {
				t.Errorf("nowhere %q", c.say)
			}
		})
	}
}

// TestCDF: the curve has the shares of the sample at its values, from the share
// of zeros on.
func TestCDF(t *testing.T) {
	d := &analysis.Dist{N: 10, Zeros: 4, Min: 0, Max: 8, CDF: []analysis.Quantile{{P: 0.4, X: 0}, {P: 0.9, X: 2}, {P: 1, X: 8}}}
	c, ok := CDF(Quantity{"x", "X", "x", "s"}, []Sample{{Dist: d}}, Law{"exponential", stats.Exponential{Rate: 0.5}})
	if !ok {
		t.Fatal("no chart")
	}
	s := c.Series[0]
	if !slices.Equal(s.Y, []float64{0.4, 0.9, 1, 1}) || s.X[1] != 2 || s.X[2] != 8 || s.X[0] >= 2 || s.X[0] != c.X.From {
		t.Errorf("curve %v %v", s.X, s.Y)
	}
	if c.Subtitle != "n 10, 4 of them 0, left of the axis" {
		t.Errorf("subtitle %q", c.Subtitle)
	}
	law := c.Series[1]
	for i, x := range law.X {
		if want := -math.Expm1(-0.5 * x); math.Abs(law.Y[i]-want) > 1e-12 {
			t.Fatalf("law at %v: %v, want %v", x, law.Y[i], want)
		}
	}
}

// TestQQ: the quantiles of a law against those of its own sample lie near the
// diagonal; those of a law of ten times the scale do not.
func TestQQ(t *testing.T) {
	law := stats.Lognormal{Mu: 1, Sigma: 1}
	d := &analysis.Dist{N: 10000, Max: 100}
	for i := range 1000 {
		p := float64(i+1) / 1000
		d.CDF = append(d.CDF, analysis.Quantile{P: p, X: law.Quantile(min(p, 0.9999))})
	}
	c, ok := QQ(Quantity{"x", "X", "x", "s"}, d, Law{"right", law}, Law{"wide", stats.Lognormal{Mu: 1, Sigma: 4}})
	if !ok || len(c.Series) != 3 {
		t.Fatalf("%v, %d series", ok, len(c.Series))
	}
	right, wide := c.Series[1], c.Series[2]
	if len(right.X) != 103 {
		t.Errorf("%d marks", len(right.X))
	}
	for i := range right.X {
		if r := right.Y[i] / right.X[i]; r < 0.99 || r > 1.01 {
			t.Errorf("observed %v where the law has %v", right.Y[i], right.X[i])
		}
	}
	if r := wide.Y[0] / wide.X[0]; r < 10 || !strings.Contains(c.Note, "marks too far to the side are left out") {
		t.Errorf("ratio %v, note %q", r, c.Note)
	}
	if _, ok := QQ(Quantity{"x", "X", "x", "s"}, d); ok {
		t.Error("a chart of no law")
	}
	var out bytes.Buffer
	if err := c.WriteSVG(&out); err != nil {
		t.Error(err)
	}
}
