package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ms(v float64) trace.Optional[time.Duration] { return trace.Some(time.Duration(v * 1e6)) }

// answered is a streamed answer of chunks of two tokens, 10 ms apart, the first
// after ttft ms; its stream ends 5 ms after the last.
func answered(id int64, sent, ttft float64, chunks int) results.Result {
	r := results.Result{
		ID: id, URL: "http://host:8000/v1/chat/completions", Protocol: "chat", Model: trace.Some("m"), Outcome: results.OutcomeOK,
		Due: ms(sent - 1), Eligible: ms(sent - 1), Dispatched: ms(sent - 0.5), Connected: ms(sent - 0.25), ConnReused: trace.Some(false),
		Sent: ms(sent), SentEnd: ms(sent), FirstByte: ms(sent + 1), HTTPStatus: trace.Some(int32(200)), FinishReason: trace.Some("stop"),
		PlannedInputTokens: trace.Some(int64(100)), CountedInputTokens: trace.Some(int64(100)), PlannedOutputTokens: trace.Some(int64(2 * chunks)),
		OutputTokens: trace.Some(int64(2 * chunks)), OutputSource: trace.Some(results.SourceUsage), LedgerDifference: trace.Some(int64(0)),
	}
	at := ttft
	for i := range chunks {
		at = ttft + 10*float64(i)
		r.Ledger = append(r.Ledger, results.Entry{At: int64(at * 1000), Tokens: trace.Some(int32(2)), Kind: results.KindContent, Source: results.SourceUsage, Event: int32(i)})
	}
	r.FirstToken, r.LastToken, r.End = ms(sent+ttft), ms(sent+at), ms(sent+at+5)
	return r
}

// run is a run of one request of every sort.
func run(t *testing.T) *results.Opened {
	t.Helper()
	warm := answered(0, 10, 50, 3)
	warm.Phase = trace.Some(results.PhaseWarmUp)
	first, second, third := answered(1, 100, 20, 5), answered(2, 200, 40, 3), answered(3, 300, 30, 1)
	first.Session, first.Turn, second.Session, second.Turn = trace.Some("a"), trace.Some(int32(0)), trace.Some("a"), trace.Some(int32(1))
	second.ReasoningTokens = trace.Some(int64(2))
	second.Ledger[0].Kind = results.KindReasoning
	failed := answered(4, 400, 10, 0)
	failed.Outcome, failed.HTTPStatus, failed.Cause, failed.OutputTokens = results.OutcomeFailed, trace.Some(int32(503)), trace.Some("HTTP 503: \"busy\""), trace.Optional[int64]{}
	failed.Ledger, failed.FinishReason = nil, trace.Optional[string]{}
	failed.CountedInputTokens, failed.OutputSource, failed.FirstToken, failed.LastToken = trace.Optional[int64]{}, trace.Optional[results.Source]{}, trace.Optional[time.Duration]{}, trace.Optional[time.Duration]{}
	gone := failed
	gone.ID, gone.Pass, gone.Outcome, gone.Cause, gone.HTTPStatus = 5, 1, results.OutcomeCancelled, trace.Some("given up after 10ms"), trace.Some(int32(200))
	unsent := results.Result{ID: 6, URL: first.URL, Protocol: "chat", Due: ms(600), Outcome: results.OutcomeUnsent, Cause: trace.Some("no prompt")}
	return results.InMemory(results.Run{
		Version: "1.2.3", Started: "2026-01-02T03:04:05.5Z", Label: "open loop", Pace: "schedule", Speed: 1, Seed: 7, Protocol: "chat",
		Trace: &trace.Input{Name: "prod.parquet", SHA256: "0123456789abcdef", Bytes: 9}, Host: results.Host{OS: "linux", Arch: "amd64"},
		Ended: &results.Ended{Sent: 6, Unsent: 1}, Planned: results.Planned{Requests: 7},
	}, []results.Result{warm, first, second, third, failed, gone, unsent})
}

func summed(t *testing.T, o *results.Opened, watchers ...func(*results.Result)) *analysis.Summary {
	t.Helper()
	slo, err := analysis.ParseSLO("ttft<35ms")
	if err != nil {
		t.Fatal(err)
	}
	s, err := analysis.SummarizeSLO(t.Context(), o, slo, watchers...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// golden holds what write writes against a file.
func golden(t *testing.T, name string, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s: got\n%s", name, b.Bytes())
	}
	return b.Bytes()
}

func TestAIPerf(t *testing.T) {
	o := run(t)
	var lines bytes.Buffer
	a := NewAIPerf(&o.Run, &lines)
	s := summed(t, o, a.Add)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, AIPerfRecords, func(w io.Writer) error { _, err := w.Write(lines.Bytes()); return err })
	golden(t, AIPerfCSV, func(w io.Writer) error { return a.WriteCSV(w, s) })
	text := golden(t, AIPerfJSON, func(w io.Writer) error { return a.WriteJSON(w, s) })

	var got map[string]json.RawMessage
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	// Request latencies end at the last content: 20+40, 40+20 and 30 ms. The decoding
	// of the first takes 40 ms for 9 tokens, of the second 20 ms for 5.
	for tag, want := range map[string]map[string]float64{
		"request_latency":       {"avg": 50, "p50": 60, "p25": 45, "min": 30, "max": 60, "sum": 150, "count": 3, "std": math.Sqrt(200)},
		"time_to_first_token":   {"avg": 30, "p50": 30, "p90": 38, "count": 3},
		"inter_token_latency":   {"min": 4, "max": 40.0 / 9, "count": 2},
		"inter_chunk_latency":   {"avg": 10, "count": 6},
		"output_token_count":    {"sum": 16, "count": 3},
		"request_count":         {"avg": 3},
		"error_request_count":   {"avg": 2},
		"request_error_rate":    {"avg": 40},
		"benchmark_duration":    {"avg": 0.23},
		"request_throughput":    {"avg": 3 / 0.23},
		"total_osl":             {"avg": 18},
		"good_request_count":    {"avg": 2},
		"good_request_fraction": {"avg": 0.4},
	} {
		var m map[string]any
		if err := json.Unmarshal(got[tag], &m); err != nil {
			t.Errorf("%s: %v", tag, err)
			continue
		}
		for stat, v := range want {
			if have, _ := m[stat].(float64); math.Abs(have-v) > 1e-6*v+1e-9 {
				t.Errorf("%s %s = %v, want %v", tag, stat, m[stat], v)
			}
		}
	}
}

// TestAIPerfErrors: a run with ever new errors does not grow without bound.
func TestAIPerfErrors(t *testing.T) {
	a := NewAIPerf(&results.Run{}, io.Discard)
	for i := range maxErrors + 5 {
		r := answered(int64(i), 1, 1, 1)
		r.Outcome, r.Cause = results.OutcomeFailed, trace.Some(strings.Repeat("x", i+1))
		a.Add(&r)
	}
	list := a.errorList()
	if len(list) != maxErrors+1 || list[0].Count != 5 || list[0].Error.Type != "other" {
		t.Errorf("%d errors, the first %+v", len(list), list[0])
	}
}

type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestWriteErrors: a full disk is an error of every writer.
func TestWriteErrors(t *testing.T) {
	o := run(t)
	s := summed(t, o)
	a := NewAIPerf(&o.Run, &failing{})
	r := answered(0, 1, 1, 2)
	a.Add(&r)
	rows := []RowWriter{NewRequestsCSV(&failing{}), NewRequestsParquet(&failing{})}
	for _, w := range rows {
		w.Add(&r)
	}
	for name, err := range map[string]error{
		"records": a.Close(), "json": a.WriteJSON(&failing{}, s), "csv": a.WriteCSV(&failing{}, s), "benchstat": WriteBenchstat(&failing{}, s, o.Run.Host),
		"requests csv": rows[0].Close(), "requests parquet": rows[1].Close(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBenchstat(t *testing.T) {
	o := run(t)
	s := summed(t, o)
	golden(t, "benchmark.txt", func(w io.Writer) error { return WriteBenchstat(w, s, o.Run.Host) })
}

// TestRequests: CSV and Parquet hold the same rows, and nulls where a number is absent.
func TestRequests(t *testing.T) {
	o := run(t)
	var text, file bytes.Buffer
	c, p := NewRequestsCSV(&text), NewRequestsParquet(&file)
	summed(t, o, c.Add, p.Add)
	for _, w := range []RowWriter{c, p} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, RequestsCSV, func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err })
	rows, err := parquet.Read[Row](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 7 || len(table) != 8 {
		t.Fatalf("%d rows in Parquet, %d lines of CSV", len(rows), len(table))
	}
	column := func(name string) int { return slices.Index(table[0], name) }
	for i, row := range rows {
		if got, want := table[i+1][column("ttft_ns")], pointed(row.TTFT); got != want {
			t.Errorf("row %d: ttft %q in CSV, %q in Parquet", i, got, want)
		}
	}
	if r := rows[1]; *r.TTFT != 20e6 || *r.ITLMean != 5e6 || r.Hold != nil || *r.Connect != 25e4 || *r.E2E != 65e6 || *r.ResponseTime != 66e6 {
		t.Errorf("row 1: %+v", r)
	}
	if r := rows[4]; r.TTFT != nil || r.Chunks != nil || r.Output != nil || r.Successful {
		t.Errorf("a failed request has %+v", r)
	}
}

func pointed(v *int64) string {
	if v == nil {
		return ""
	}
	b, _ := json.Marshal(*v)
	return string(b)
}
