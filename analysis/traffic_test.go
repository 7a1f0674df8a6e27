package analysis_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/analysis/stats"
	"reprise/trace"
)

// traffic writes rows as a trace and analyses it.
func traffic(t testing.TB, clock string, o analysis.TrafficOptions, rows ...trace.Request) (*analysis.Traffic, error) {
	t.Helper()
	var buf bytes.Buffer
	w := trace.NewWriter(&buf)
	b := trace.NewBatch()
	for i, r := range rows {
		r.ID, r.Operation = int64(i), trace.OpChat
		b.Append(&r)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: clock, Format: "made"}); err != nil {
		t.Fatal(err)
	}
	return trafficOf(t, buf.Bytes(), o)
}

func trafficOf(t testing.TB, data []byte, o analysis.TrafficOptions) (*analysis.Traffic, error) {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "t")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return analysis.AnalyzeTraffic(t.Context(), r, o)
}

// printed returns both forms of the report, neither of which may hold a value
// that is no number.
func printed(t testing.TB, a *analysis.Traffic) (text, js string) {
	t.Helper()
	var buf bytes.Buffer
	if err := analysis.WriteTrafficText(&buf, a); err != nil {
		t.Fatal(err)
	}
	text = buf.String()
	for line := range strings.Lines(text) {
		if len(line) > 135 {
			t.Errorf("line of %d bytes: %s", len(line), line)
		}
		for _, word := range strings.Fields(line) {
			if word = strings.Trim(word, ",;()-"); word == "NaN" || word == "Inf" || word == "+Inf" {
				t.Errorf("no number in: %s", line)
			}
		}
	}
	out, err := json.MarshalIndent(a, "", "  ") // refuses NaN and infinities
	if err != nil {
		t.Fatal(err)
	}
	return text, string(out) + "\n"
}

func at(seconds float64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(math.Round(seconds * 1e9)))
}

// madeRows are conversations of two models behind one system prompt.
func madeRows() []trace.Request {
	r := stats.Stream(11)
	var rows []trace.Request
	now := 0.0
	context := map[string][]uint64{}
	next := uint64(100)
	for range 240 {
		now += float64(int(r.ExpFloat64()*1500)) / 1000
		name := fmt.Sprintf("s%d", r.IntN(40))
		ids := context[name]
		if ids == nil {
			ids = []uint64{1, 2}
		}
		for range 1 + r.IntN(3) {
			ids = append(ids[:len(ids):len(ids)], next)
			next++
		}
		context[name] = ids
		out := int64(1 + r.ExpFloat64()*80)
		rows = append(rows, trace.Request{
			Arrival: at(now), Session: trace.Some(name), Model: trace.Some([]string{"small", "large"}[len(name)%2]),
			InputTokens: trace.Some(int64(16*len(ids)) - int64(r.IntN(8))), OutputTokens: trace.Some(out),
			Blocks: ids, BlockTokens: trace.Some(int32(16)), BlockTail: trace.Some(trace.TailPartial),
			RecordedE2E: at(float64(out) * 0.05),
		})
	}
	return rows
}

func TestTrafficReport(t *testing.T) {
	a, err := traffic(t, trace.ClockTrace, analysis.TrafficOptions{By: analysis.ByModel}, madeRows()...)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := printed(t, a)
	a, err = traffic(t, trace.ClockTrace, analysis.TrafficOptions{}, madeRows()[:6]...)
	if err != nil {
		t.Fatal(err)
	}
	_, js := printed(t, a)
	for name, got := range map[string]string{"traffic.txt": text, "traffic.json": js} {
		path := filepath.Join("testdata", name)
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (-update rewrites it):\n%s", path, got)
		}
	}
}

// TestTrafficDegenerate: what cannot be measured is said in a sentence.
func TestTrafficDegenerate(t *testing.T) {
	in, out := trace.Some(int64(10)), trace.Some(int64(3))
	row := func(seconds float64) trace.Request {
		return trace.Request{Arrival: at(seconds), InputTokens: in, OutputTokens: out}
	}
	session := func(name string, seconds float64) trace.Request {
		r := row(seconds)
		r.Session = trace.Some(name)
		return r
	}
	blocks := func(seconds float64, ids ...uint64) trace.Request {
		r := row(seconds)
		r.InputTokens = trace.Some(int64(16 * len(ids)))
		r.Blocks, r.BlockTokens = append([]uint64{}, ids...), trace.Some(int32(16))
		return r
	}
	var same []trace.Request
	for range 50 {
		same = append(same, row(5))
	}
	for _, c := range []struct {
		name, clock string
		rows        []trace.Request
		want        []string // without "not measurable: "
	}{
		{"no rows", trace.ClockTrace, nil, []string{"no row has an arrival time", "no row has input_tokens", "rows with both lengths: 0"}},
		{"one row", trace.ClockTrace, []trace.Request{row(0)}, []string{"gaps, rate and burstiness: there is one arrival", "rows with both lengths: 1", "sessions: none is recorded", "prefix reuse: no row has block ids"}},
		{"two rows", trace.ClockTrace, []trace.Request{row(0), row(1)}, []string{"gap CV: there is one gap", "complete windows of 1 s: 1", "all inputs or all outputs are equally long"}},
		{"equal gaps", trace.ClockTrace, []trace.Request{row(0), row(1), row(2), row(3)}, []string{"lag-1 autocorrelation: all gaps are equal"}},
		{"all at once", trace.ClockTrace, same, []string{"gap CV and burstiness: all gaps are 0"}},
		{"one session", trace.ClockTrace, []trace.Request{session("a", 0), session("a", 4)}, []string{"think time and overlap: neither delays nor response times are recorded"}},
		{"single turns", trace.ClockTrace, []trace.Request{session("a", 0), session("b", 4)}, []string{"what happens between turns: every session has one"}},
		{"session clocks", trace.ClockSession, []trace.Request{session("a", 0), session("a", 4), session("a", 9), session("b", 0)}, []string{"rate, burstiness and batches: each session has its own clock, so the trace has no common one", "starts of sessions"}},
		{"no clock", trace.ClockNone, []trace.Request{{InputTokens: in}, {OutputTokens: out}}, []string{"no row has an arrival time", "rows with both lengths: 0"}},
		{"no lengths", trace.ClockTrace, []trace.Request{{Arrival: at(0)}, {Arrival: at(1)}}, []string{"no row has input_tokens", "no row has output_tokens"}},
		{"blocks once", trace.ClockTrace, []trace.Request{blocks(0, 1, 2), blocks(1, 3)}, []string{"reuse time and distance: no block is used twice"}},
		{"empty prompts", trace.ClockTrace, []trace.Request{blocks(0), blocks(1)}, []string{"prefix reuse: all prompts are empty"}},
		{"blocks of no length", trace.ClockTrace, []trace.Request{{Arrival: at(0), Blocks: []uint64{1}}}, []string{"prefix reuse: no row with block ids says how long a block is"}},
		{"blocks on session clocks", trace.ClockSession, []trace.Request{blocks(0, 1, 2), blocks(0, 1, 2)}, []string{"order of uses between sessions", "reuse time: each session has its own clock"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := traffic(t, c.clock, analysis.TrafficOptions{By: analysis.ByClient}, c.rows...)
			if err != nil {
				t.Fatal(err)
			}
			text, js := printed(t, a)
			flat := strings.Join(strings.Fields(text), " ")
			for _, want := range c.want {
				if want = "not measurable: " + want; !strings.Contains(flat, want) || !strings.Contains(js, want) {
					t.Errorf("nothing says %q in:\n%s", want, text)
				}
			}
		})
	}
}

// TestTrafficOfAnything: no trace gives a value that is no number, and counts
// add up.
func TestTrafficOfAnything(t *testing.T) {
	for seed := range uint64(60) {
		r := stats.Stream(seed, 3)
		clock := []string{trace.ClockTrace, trace.ClockSession, trace.ClockNone}[r.IntN(3)]
		var rows []trace.Request
		now := map[string]int64{}
		for range r.IntN(30) {
			var q trace.Request
			key := ""
			if r.IntN(2) == 0 || clock == trace.ClockSession {
				q.Session = trace.Some(fmt.Sprint(r.IntN(4)))
				if clock == trace.ClockSession {
					key = q.Session.Value
				}
			}
			if clock != trace.ClockNone && r.IntN(5) > 0 {
				now[key] += r.Int64N(3) * r.Int64N(1e9)
				q.Arrival = trace.Some(time.Duration(now[key]))
			}
			if r.IntN(3) > 0 {
				q.InputTokens = trace.Some(r.Int64N(3) * r.Int64N(100))
			}
			if r.IntN(3) > 0 {
				q.OutputTokens = trace.Some(r.Int64N(20))
				q.RecordedE2E = trace.Some(time.Duration(r.Int64N(1e9)))
			}
			if r.IntN(2) == 0 {
				q.Blocks = []uint64{}
				for i := range uint64(r.IntN(6)) {
					q.Blocks = append(q.Blocks, i*uint64(1+r.IntN(2)))
				}
				q.BlockTokens = trace.Some(int32(1 + r.IntN(32)))
			}
			rows = append(rows, q)
		}
		a, err := traffic(t, clock, analysis.TrafficOptions{By: analysis.ByModel, MaxBlocks: r.IntN(2) * 4}, rows...)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		printed(t, a)
		if a.Rows != int64(len(rows)) || a.Sessions.Rows+a.Sessions.Without != a.Rows {
			t.Errorf("seed %d: %d rows, sessions %+v", seed, a.Rows, a.Sessions)
		}
	}
}

func TestTrafficOutOfOrder(t *testing.T) {
	_, err := traffic(t, trace.ClockTrace, analysis.TrafficOptions{}, trace.Request{Arrival: at(2)}, trace.Request{Arrival: at(1)})
	if err == nil || !strings.HasPrefix(err.Error(), "row 2: arrival_ns 1000000000 comes after 2000000000") || trace.Fix(err) == "" {
		t.Errorf("error %v", err)
	}
	_, err = traffic(t, trace.ClockSession, analysis.TrafficOptions{By: analysis.ByHour})
	if err == nil || trace.Fix(err) == "" {
		t.Errorf("hours without a common clock: %v", err)
	}
}

func TestTrafficSessions(t *testing.T) {
	row := func(name string, start, e2e float64, in int64) trace.Request {
		return trace.Request{Arrival: at(start), RecordedE2E: at(e2e), Session: trace.Some(name), InputTokens: trace.Some(in)}
	}
	delayed := row("a", 12, 1, 40)
	delayed.Delay = at(7)
	a, err := traffic(t, trace.ClockTrace, analysis.TrafficOptions{},
		row("a", 0, 4, 100), row("b", 1, 5, 10), row("b", 3, 1, 30), delayed, trace.Request{Arrival: at(20)})
	if err != nil {
		t.Fatal(err)
	}
	s := a.Sessions
	if s.Basis != analysis.SessionsRecorded || s.N != 2 || s.Rows != 4 || s.Without != 1 || s.EndKnown != 2 || s.Overlaps != 1 || s.Shrinks != 1 {
		t.Errorf("%+v", s)
	}
	if s.ThinkMeasured.N != 1 || s.ThinkMeasured.Mean != 8 || s.ThinkRecorded.Mean != 7 || s.Gaps.N != 2 || s.Growth.Mean != -20 || *s.MeanOpen != 14./12 {
		t.Errorf("think %+v %+v, gaps %+v, growth %+v, open %v", s.ThinkMeasured, s.ThinkRecorded, s.Gaps, s.Growth, *s.MeanOpen)
	}
}

func TestTrafficGroups(t *testing.T) {
	var rows []trace.Request
	for i := range analysis.MaxGroups + 50 {
		rows = append(rows, trace.Request{Arrival: at(float64(10 * i)), ClientID: trace.Some(fmt.Sprint(i))})
	}
	a, err := traffic(t, trace.ClockTrace, analysis.TrafficOptions{By: analysis.ByClient}, rows...)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Groups) != analysis.MaxGroups+1 || a.Pooled != 50 || a.Groups[0].Name != "others" || a.Groups[0].Rows != 50 {
		t.Errorf("%d groups, %d pooled, first %s of %d", len(a.Groups), a.Pooled, a.Groups[0].Name, a.Groups[0].Rows)
	}
	a, err = traffic(t, trace.ClockTrace, analysis.TrafficOptions{By: analysis.ByHour}, rows...)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Groups) != 3 || a.Groups[1].Name != "hour 1" || a.Groups[1].Rows != 360 {
		t.Errorf("hours %+v", a.Groups)
	}
}

// TestTrafficBounds: what is kept for a plot is bounded, whatever the span.
func TestTrafficBounds(t *testing.T) {
	for _, span := range []float64{0.5, 1999, 86400 * 30, 86400 * 3000} {
		var rows []trace.Request
		r := stats.Stream(4)
		for i := range 5000 {
			rows = append(rows, trace.Request{Arrival: at(span * float64(i) / 5000), InputTokens: trace.Some(r.Int64N(1e6))})
		}
		a, err := traffic(t, trace.ClockTrace, analysis.TrafficOptions{}, rows...)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, n := range a.Arrivals.Rate.Counts {
			sum += n
		}
		bins := len(a.Arrivals.Rate.Counts)
		if sum != 5000 || bins > 2000 || bins < 200 {
			t.Errorf("span %v: %d arrivals in %d bins of %v s", span, sum, bins, a.Arrivals.Rate.BinS)
		}
		cdf := a.Lengths[0].CDF
		if len(cdf) > 1000 || len(cdf) < 500 || cdf[len(cdf)-1].P != 1 || cdf[len(cdf)-1].X != a.Lengths[0].Max {
			t.Errorf("%d points, last %+v", len(cdf), cdf[len(cdf)-1])
		}
	}
}
