package analysis

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

func ms(v float64) trace.Optional[time.Duration] {
	return trace.Some(time.Duration(v * 1e6))
}

func tokens(n int64) trace.Optional[int64] { return trace.Some(n) }

// chunk is one entry at ms since sent; tokens below 0 are unknown.
func chunk(event int32, at float64, n int32, kind results.Kind, shared bool) results.Entry {
	e := results.Entry{At: int64(at * 1000), Kind: kind, Source: results.SourceUsage, Event: event, SharedRead: shared}
	if n >= 0 {
		e.Tokens = trace.Some(n)
	} else {
		e.Source = results.SourceUnknown
	}
	return e
}

// sent makes a request with its instants in ms; the connection is reused.
func sent(id int64, due, dispatched, sent, end float64, outcome string) results.Result {
	return results.Result{
		ID: id, URL: "http://host:8000/v1/chat/completions", Protocol: "chat", Outcome: outcome,
		Due: ms(due), Eligible: ms(due), Dispatched: ms(dispatched), Connected: ms(dispatched), ConnReused: trace.Some(true),
		Sent: ms(sent), SentEnd: ms(sent), End: ms(end), HTTPStatus: trace.Some(int32(200)),
	}
}

// rows is a run with one request of every sort. The tests below state by hand
// what comes of it.
func rows() []results.Result {
	full := sent(0, 0, 0.1, 1.2, 81.2, results.OutcomeOK)
	full.Connected, full.ConnReused = ms(1.1), trace.Some(false)
	full.Ledger = []results.Entry{
		chunk(0, 10, 0, results.KindNone, false),
		chunk(1, 20, 2, results.KindReasoning, false),
		chunk(2, 30, 1, results.KindContent, false),
		chunk(3, 60, 3, results.KindContent, true),
	}
	full.PlannedInputTokens, full.CountedInputTokens, full.CachedTokens = tokens(100), tokens(100), tokens(40)
	full.PlannedOutputTokens, full.OutputTokens, full.ReasoningTokens = tokens(6), tokens(6), tokens(2)
	full.OutputSource, full.LedgerDifference = trace.Some(results.SourceUsage), tokens(0)
	full.RecordedTTFT, full.RecordedE2E, full.FinishReason = ms(10), ms(40), trace.Some("stop")

	uncounted := sent(1, 100, 150.3, 150.4, 210.4, results.OutcomeOK)
	uncounted.Eligible, uncounted.HoldCause = ms(150), trace.Some("max-in-flight")
	uncounted.Ledger = []results.Entry{chunk(0, 40, -1, results.KindContent, false), chunk(1, 50, -1, results.KindContent, false)}
	uncounted.PlannedInputTokens, uncounted.CountedInputTokens, uncounted.PlannedOutputTokens = tokens(100), tokens(90), tokens(7)
	uncounted.Note, uncounted.FinishReason = trace.Some("no usage; no end marker"), trace.Some("stop")

	body := sent(2, 200, 200.2, 200.5, 300.5, results.OutcomeNotStreamed)
	body.Ledger = []results.Entry{}
	body.PlannedInputTokens, body.CountedInputTokens = tokens(100), tokens(100)
	body.PlannedOutputTokens, body.OutputTokens, body.OutputSource = tokens(8), tokens(5), trace.Some(results.SourceUsage)
	body.FinishReason, body.RecordedE2E = trace.Some("length"), ms(200)

	failed := sent(3, 300, 300.1, 300.2, 310.2, results.OutcomeFailed)
	failed.HTTPStatus, failed.Cause = trace.Some(int32(500)), trace.Some("HTTP 500: out of memory")

	slow := sent(4, 400, 400.1, 400.2, 900.2, results.OutcomeTimeout)
	slow.Cause = trace.Some("no end within 500ms")
	slow.Ledger = []results.Entry{chunk(0, 450, 9, results.KindContent, false)}

	one := sent(5, 500, 500.4, 500.5, 600.5, results.OutcomeOK)
	one.Ledger = []results.Entry{chunk(0, 100, 4, results.KindContent, false)}
	one.CountedInputTokens, one.PlannedOutputTokens = tokens(10), tokens(4)
	one.OutputTokens, one.OutputSource, one.LedgerDifference = tokens(4), trace.Some(results.SourceLogprobs), tokens(-1)

	unsent := results.Result{ID: 6, URL: one.URL, Protocol: "chat", Due: ms(600), Eligible: ms(600), Outcome: results.OutcomeUnsent, Cause: trace.Some("no prompt")}

	warm := sent(7, 0, 90, 91, 5000, results.OutcomeOK)
	warm.Phase = trace.Some(PhaseWarmUp)
	return []results.Result{full, uncounted, body, failed, slow, one, unsent, warm}
}

func baseRun() *results.Run {
	cpu := 0.05
	return &results.Run{
		Version: "0.0.0", Started: "2026-01-02T03:04:05Z", Label: "open loop", Pace: "schedule", Speed: 1, Protocol: "chat",
		Trace: &trace.Input{Name: "prod.parquet", SHA256: "5d41402abc4b2a76b9719d911017c592", Bytes: 10}, URLs: []string{"http://host:8000/v1/chat/completions"},
		Planned: results.Planned{Requests: 8, InputTokens: new(int64(310)), OutputTokens: new(int64(25)), DurationNS: 600e6},
		Ended:   &results.Ended{DurationNS: 900.2e6, Sent: 7, Unsent: 1, Capped: 1, Client: results.Client{CPUSeconds: &cpu, GCCycles: 2, GCPauseNS: 150_000, ConnsOpened: 1, ConnsReused: 5}},
		Host:    results.Host{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26"},
	}
}

// writeRun makes a run directory.
func writeRun(t testing.TB, run *results.Run, rows []results.Result) string {
	t.Helper()
	dir := t.TempDir()
	if err := results.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
	w, err := results.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		w.Add(&rows[i])
	}
	if run.Ended == nil {
		err = w.Flush()
	} else {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func summarize(t testing.TB, run *results.Run, rows []results.Result) *Summary {
	t.Helper()
	o, err := results.OpenRun(writeRun(t, run, rows))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMetrics holds every metric of the run of rows against numbers worked out
// by hand.
func TestMetrics(t *testing.T) {
	s := summarize(t, baseRun(), rows())
	none := -1.0
	for _, tt := range []struct {
		name                     string
		n                        int64
		mean, std, min, p50, max float64
		absent                   []Count
	}{
		// dispatched - eligible: .1 .3 .2 .1 .1 .4; squares about the mean .2: .01+.01+0+.01+.01+.04 = .08 / 5
		{"lateness", 6, 0.2, 0.126491, 0.1, 0.1, 0.4, []Count{}},
		{"hold", 1, 50, none, 50, 50, 50, []Count{{"not held", 5}}},
		{"connect", 1, 1, none, 1, 1, 1, []Count{{"connection reused", 5}}},
		// 20, 40, 100
		{"ttft", 3, 53.333333, 41.633320, 20, 40, 100, []Count{{"not streamed", 1}}},
		// 30, 40, 100
		{"ttfo", 3, 56.666667, 37.859389, 30, 40, 100, []Count{{"not streamed", 1}}},
		{"ttst", 2, 10, 0, 10, 10, 10, []Count{{"not streamed", 1}, {"one chunk with tokens", 1}}},
		// 10 for the third token, then 30 for three tokens
		{"itl", 4, 10, 0, 10, 10, 10, []Count{{"not streamed", 1}, {"one chunk with tokens", 1}, {"tokens of a chunk unknown", 1}}},
		// 10, 30 and 10
		{"chunk_gap", 3, 16.666667, 11.547005, 10, 10.002431, 30, []Count{{"not streamed", 1}, {"one chunk with tokens", 1}}},
		{"longest_stall", 2, 20, 14.142136, 10, 10, 30, []Count{{"not streamed", 1}, {"one chunk with tokens", 1}}},
		// (60 - 20) / (6 - 2)
		{"tpot", 1, 10, none, 10, 10, 10, []Count{{"OSL unknown", 1}, {"not streamed", 1}, {"one chunk with tokens", 1}}},
		// (60 - 20) / (6 - 1)
		{"tpot_osl1", 1, 8, none, 8, 8, 8, []Count{{"OSL unknown", 1}, {"not streamed", 1}, {"one chunk with tokens", 1}}},
		{"time_to_90", 2, 80, 28.284271, 60, 60, 100, []Count{{"not streamed", 1}, {"tokens of a chunk unknown", 1}}},
		// 80, 60, 100, 100
		{"e2e", 4, 85, 19.148542, 60, 80, 100, []Count{}},
		// 81.2, 110.4, 100.5, 100.5; squares about the mean 98.15: 287.3025 + 150.0625 + 2 * 5.5225 = 448.41 / 3
		{"response_time", 4, 98.15, 12.225792, 81.2, 100.5, 110.4, []Count{}},
		// 2 1 3 4
		{"tokens_per_chunk", 4, 2.5, 1.290994, 1, 2, 4, []Count{{"not streamed", 1}, {"tokens of a chunk unknown", 1}}},
		// 100 90 100 10
		{"input_tokens", 4, 75, 43.588989, 10, 90, 100, []Count{}},
		// 6 5 4
		{"output_tokens", 3, 5, 1, 4, 5, 6, []Count{{"OSL unknown", 1}}},
	} {
		m := s.Metrics.Get(tt.name)
		if m == nil {
			t.Errorf("%s: no such metric", tt.name)
			continue
		}
		if m.N != tt.n || !reflect.DeepEqual(m.Absent, tt.absent) {
			t.Errorf("%s: n %d, absent %v, want %d, %v", tt.name, m.N, m.Absent, tt.n, tt.absent)
		}
		for stat, want := range map[string]float64{"mean": tt.mean, "std": tt.std, "min": tt.min, "p50": tt.p50, "max": tt.max, "p99": tt.max, "p99_9": tt.max} {
			got := m.Stat(stat)
			if got.Known != (want != none) || got.Known && !near(got.Value, want, 1e-6) {
				t.Errorf("%s %s = %v, want %v", tt.name, stat, got, want)
			}
		}
	}
	if len(s.Metrics) != 17 {
		t.Errorf("%d metrics, the table above has 17", len(s.Metrics))
	}
}

func near(got, want, by float64) bool { return got-want <= by && want-got <= by }

func TestAccounts(t *testing.T) {
	s := summarize(t, baseRun(), rows())
	f := func(v float64) *float64 { return &v }
	i := func(v int64) *int64 { return &v }
	for _, tt := range []struct {
		what      string
		got, want any
	}{
		{"requests", []int64{s.Requests.Recorded, s.Requests.WarmUp, s.Requests.Dispatched, s.Requests.Sent, s.Requests.Successful, s.Requests.Unsent, s.Requests.RecordsLost}, []int64{8, 1, 6, 6, 4, 1, 0}},
		{"outcomes", s.Outcomes, []Outcome{{"ok", 3, f(3. / 7)}, {"failed", 1, f(1. / 7)}, {"not_streamed", 1, f(1. / 7)}, {"timeout", 1, f(1. / 7)}, {"unsent", 1, f(1. / 7)}}},
		{"causes", s.Causes.First, []Count{{"failed: HTTP 500: out of memory", 1}, {"timeout: no end within 500ms", 1}, {"unsent: no prompt", 1}}},
		{"finish reasons", s.FinishReasons.First, []Count{{"stop", 2}, {"length", 1}}},
		{"statuses", s.HTTPStatuses, []Count{{"200", 5}, {"500", 1}}},
		{"notes", s.Notes.First, []Count{{"no end marker", 1}, {"no usage", 1}}},
		{"holds", s.Holds, []Count{{"max-in-flight", 1}}},
		{"input", s.Tokens.Input, Comparison{Requests: 3, Planned: 300, Counted: 290, Exact: 2, ExactShare: f(2. / 3), Short: 1, ShortShare: f(1. / 3), Unplanned: 1, Beside: 10, Largest: i(-10)}},
		{"output", s.Tokens.Output, Comparison{Requests: 3, Planned: 18, Counted: 15, Exact: 2, ExactShare: f(2. / 3), Short: 1, ShortShare: f(1. / 3), Largest: i(-3)}},
		{"cached", s.Tokens.Cached, Portion{1, 40, 100, f(0.4)}},
		{"reasoning", s.Tokens.Reasoning, Portion{1, 2, 6, f(1. / 3)}},
		{"output sources", s.Tokens.OutputSources, []Count{{"usage", 2}, {"logprobs", 1}, {"unknown", 1}}},
		{"ledger sources", s.Tokens.LedgerSources, []Count{{"usage", 2}, {"unknown", 1}}},
		{"ledger difference", s.Tokens.LedgerDifference, Difference{2, 1, i(-1)}},
		{"chunks", []int64{s.Tokens.Chunks, s.Tokens.SharedReads}, []int64{6, 1}},
		{"recorded", s.Recorded, Recorded{Paired{1, f(2)}, Paired{2, f(0.5)}}}, // 20/10; 80/40 and 100/200, the lower of two
		{"throughput", s.Throughput, Throughput{
			WindowMS: f(899), RequestsPerS: f(4.449388), InputTokensPerS: f(333.704116), OutputTokensPerS: f(16.685206), // 4, 300 and 15 in 900.2 - 1.2 ms
			OutputUncounted: 1, ArrivalWindowMS: f(600), DuePerS: f(10), // 7 due
			SteadyWindowMS: f(499.3), SteadyPerS: f(6.008412), DrainMS: f(399.7), // 3 ended by 500.5 ms; the timeout at 900.2
		}},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			got, _ := json.Marshal(tt.got)
			want, _ := json.Marshal(tt.want)
			t.Errorf("%s:\n got %s\nwant %s", tt.what, got, want)
		}
	}
}

// TestTailIsApart: 100 requests in 10 s, one of which lasts 60 s, must not make
// a server of 10 requests/s look like one of 1.7.
func TestTailIsApart(t *testing.T) {
	var list []results.Result
	for i := range int64(101) {
		at := float64(i) * 100
		r := sent(i, at, at, at, at+50, results.OutcomeOK)
		if i == 0 {
			r.End = ms(60_000)
		}
		list = append(list, r)
	}
	run := baseRun()
	run.Ended.Sent, run.Ended.Unsent = 101, 0
	got := summarize(t, run, list).Throughput
	if !near(*got.RequestsPerS, 101./60, 1e-6) || *got.SteadyPerS != 9.9 || *got.DrainMS != 50_000 || *got.ArrivalWindowMS != 10_000 || *got.DuePerS != 10 {
		text, _ := json.Marshal(got)
		t.Errorf("throughput %s", text)
	}
}

func BenchmarkCollect(b *testing.B) {
	r := sent(0, 0, 0, 0, 3000, results.OutcomeOK)
	for e := range int32(200) {
		r.Ledger = append(r.Ledger, chunk(e, float64(e)*12, 1, results.KindContent, false))
	}
	r.OutputTokens = tokens(200)
	b.ReportAllocs()
	c := newCollection(nil)
	for b.Loop() {
		c.add(&r)
	}
	b.ReportMetric(float64(b.N)*200/b.Elapsed().Seconds(), "chunks/s")
}

// TestNamesDiffer: one request with 10 gaps of 10 ms and one with 1000 of 20 ms:
// the mean ITL is 19.9 ms, the mean TPOT 15 ms.
func TestNamesDiffer(t *testing.T) {
	list := make([]results.Result, 2)
	for i, c := range []struct{ gaps, gap int }{{10, 10}, {1000, 20}} {
		list[i] = sent(int64(i), 0, 0, 0, 30_000, results.OutcomeOK)
		for e := range c.gaps + 1 {
			list[i].Ledger = append(list[i].Ledger, chunk(int32(e), float64(e*c.gap), 1, results.KindContent, false))
		}
		list[i].OutputTokens = tokens(int64(c.gaps + 1))
	}
	s := summarize(t, baseRun(), list)
	itl, tpot := s.Metrics.Get("itl"), s.Metrics.Get("tpot")
	if itl.N != 1010 || !near(itl.Stat("mean").Value, 19.90099, 1e-6) || tpot.N != 2 || tpot.Stat("mean").Value != 15 {
		t.Errorf("itl mean %v of %d, tpot mean %v of %d", itl.Stat("mean").Value, itl.N, tpot.Stat("mean").Value, tpot.N)
	}
}
