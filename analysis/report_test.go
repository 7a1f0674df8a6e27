package analysis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace/results"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update rewrites it):\n%s", path, got)
	}
}

func TestGoldenReports(t *testing.T) {
	dir := writeRun(t, baseRun(), rows())
	o, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text, table bytes.Buffer
	if err := WriteText(&text, s); err != nil {
		t.Fatal(err)
	}
	if err := WriteCSV(&table, s); err != nil {
		t.Fatal(err)
	}
	if err := WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	summary, err := os.ReadFile(filepath.Join(dir, results.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", text.Bytes())
	golden(t, "report.csv", table.Bytes())
	golden(t, "summary.json", summary)
	for _, line := range strings.Split(text.String(), "\n") {
		if len(line) > 120 || strings.TrimRight(line, " ") != line {
			t.Errorf("%d columns, or blanks at the end: %q", len(line), line)
		}
	}
	if !json.Valid(summary) {
		t.Error("summary.json is not JSON")
	}
	records, err := csv.NewReader(&table).ReadAll() // strict: as many fields in each row
	if err != nil || len(records) != 1+17+9+3 {
		t.Errorf("%d rows of CSV: %v", len(records), err)
	}
}

// TestDegenerateRuns: nothing prints as 0 or NaN that was not measured.
func TestDegenerateRuns(t *testing.T) {
	one := sent(0, 0, 0, 0, 10, results.OutcomeOK)
	body := sent(0, 0, 0, 0, 10, results.OutcomeNotStreamed)
	bad := sent(0, 0, 0, 0, 10, results.OutcomeFailed)
	unsent := results.Result{Outcome: results.OutcomeUnsent}
	warm := one
	warm.Phase.Known, warm.Phase.Value = true, PhaseWarmUp
	for _, tt := range []struct {
		name   string
		rows   []results.Result
		want   []string
		result string
	}{
		{"no requests", nil, []string{"invalid: no request was recorded", "0 requests, 0 recorded"}, Invalid},
		{"one request", []results.Result{one}, []string{"ttft, ttfo, ttst,", "n/a (0 samples): not streamed 1"}, Valid},
		{"not streamed", []results.Result{body, body}, []string{"not_streamed 2 (100 %)", "n/a (0 samples): not streamed 2"}, Valid},
		{"all failed", []results.Result{bad, bad}, []string{"invalid: no request was successful", "failed 2 (100 %)", "2 x failed: no cause recorded"}, Invalid},
		{"never dispatched", []results.Result{unsent}, []string{"unsent 1 (100 %)"}, Invalid},
		{"warm-up only", []results.Result{warm}, []string{"invalid: only the warm-up was recorded"}, Invalid},
	} {
		run := baseRun()
		run.Ended.Sent, run.Ended.Unsent = 0, 0
		s := summarize(t, run, tt.rows)
		var text, table bytes.Buffer
		if err := WriteText(&text, s); err != nil {
			t.Fatal(err)
		}
		if err := WriteCSV(&table, s); err != nil {
			t.Fatal(err)
		}
		summary, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if s.Verdict.Result != tt.result {
			t.Errorf("%s: %s, want %s", tt.name, s.Verdict.Result, tt.result)
		}
		for _, want := range tt.want {
			if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
				t.Errorf("%s: want %q in\n%s", tt.name, want, &text)
			}
		}
		for _, out := range []string{text.String(), table.String(), string(summary)} {
			if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") || strings.Contains(out, "<nil>") {
				t.Errorf("%s: not a number in\n%s", tt.name, out)
			}
		}
		if s.Metrics.Get("ttft").N == 0 && !strings.Contains(string(summary), `"ttft":{"definition":"time to first token: sent to the first chunk with a token of any kind","of":"request","n":0,"requests":0,"mean_ms":null`) {
			t.Errorf("%s: ttft is not null in %s", tt.name, summary)
		}
	}
}

// TestCausesAreHarmless: what a server writes does not reach the terminal as
// control characters.
func TestCausesAreHarmless(t *testing.T) {
	bad := sent(0, 0, 0, 0, 10, results.OutcomeFailed)
	bad.Cause.Known, bad.Cause.Value = true, "HTTP 500: \x1b[31mred\n\nover two lines\x07"
	var text bytes.Buffer
	if err := WriteText(&text, summarize(t, baseRun(), []results.Result{bad})); err != nil {
		t.Fatal(err)
	}
	if want := "1 x failed: HTTP 500: ?[31mred over two lines?\n"; !strings.Contains(text.String(), want) {
		t.Errorf("want %q in\n%s", want, &text)
	}
}

// TestPercent: only the whole is 100 %, only none is 0 %.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.5: "50 %", 0.4285: "42.9 %", 0.01: "1 %", 0.001: "0.1 %", 0.99999: "more than 99.9 %", 0.000001: "less than 0.01 %", 5: "500 %",
	} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %q, want %q", share, got, want)
		}
	}
}

// TestHistogramLog reads two logs back and merges them: the counts are those of
// both runs, whichever way they are read.
func TestHistogramLog(t *testing.T) {
	total := map[string]*hdrhistogram.Histogram{}
	want := map[string]int64{}
	for _, list := range [][]results.Result{rows(), lateRun(50, 2)} {
		s := summarize(t, baseRun(), list)
		var first, again bytes.Buffer
		for _, w := range []*bytes.Buffer{&first, &again} {
			if err := WriteHistograms(w, s); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Error("two writes differ")
		}
		log := hdrhistogram.NewHistogramLogReader(&first)
		for {
			h, err := log.NextIntervalHistogram()
			if err != nil {
				t.Fatal(err)
			}
			if h == nil {
				break
			}
			if total[h.Tag()] == nil {
				total[h.Tag()] = newHistogram()
			}
			if dropped := total[h.Tag()].Merge(h); dropped != 0 {
				t.Errorf("%s: %d dropped", h.Tag(), dropped)
			}
		}
		for _, name := range histogramsOf {
			want[name] += s.Metrics.Get(name).N
		}
	}
	for name, n := range want {
		if got := total[name]; got == nil || got.TotalCount() != n {
			t.Errorf("%s: %v, want %d values", name, got, n)
		}
	}
	if got := total["ttft"].ValueAtPercentile(50); !near(float64(got)/1e6, 50, 0.05) {
		t.Errorf("median of the merged ttft: %d ns, want 50 ms", got)
	}
}
