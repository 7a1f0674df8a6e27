package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// runDir makes a run directory of n requests that were late and then took 10 ms;
// a killed run has no end and its results in parts.
func runDir(t *testing.T, n int64, late time.Duration, change func(*results.Run)) string {
	t.Helper()
	dir := t.TempDir()
	run := &results.Run{
		Label: "open loop", Protocol: "chat", Planned: results.Planned{Requests: n},
		Ended: &results.Ended{Sent: n},
	}
	if change != nil {
		change(run)
	}
	if err := results.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
	w, err := results.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		due := time.Duration(i) * time.Second
		sent := trace.Some(due + late)
		w.Add(&results.Result{
			ID: i, Protocol: "chat", Outcome: results.OutcomeOK, Due: trace.Some(due), Eligible: trace.Some(due),
			Dispatched: sent, Sent: sent, End: trace.Some(due + late + 10*time.Millisecond),
			Ledger: []results.Entry{{At: 5000, Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage}},
		})
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

func TestReport(t *testing.T) {
	good, late := runDir(t, 3, 0, nil), runDir(t, 3, 20*time.Millisecond, nil)
	killed := runDir(t, 3, 0, func(r *results.Run) { r.Planned.Requests, r.Ended = 9, nil })
	stopped := runDir(t, 3, 0, func(r *results.Run) {
		r.Planned.Requests, r.Ended.Unsent, r.Ended.Interrupted = 10, 7, true
	})
	for _, tt := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"valid", []string{good}, 0, "valid: p99 lateness 0.000 ms, limit 1.000 ms\n", ""},
		{"late", []string{late}, 3, "invalid: p99 lateness 20.00 ms is above 10 times the limit", "reprise: error: not a valid measurement: p99 lateness 20.00 ms"},
		{"late, by a wider limit", []string{"--late-limit", "15ms", late}, 0, "degraded: p99 lateness 20.00 ms is above the limit of 15.00 ms (15 ms)", ""},
		{"late, by a wider share", []string{"--late-share", "500%", late}, 0, "valid: p99 lateness 20.00 ms, limit 25.00 ms", ""},
		{"killed", []string{killed}, 0, "degraded: the run was killed or still goes on: 3 of 9 planned requests are recorded", ""},
		{"killed, from parts", []string{killed}, 0, "read from the parts of the results", ""},
		{"interrupted", []string{stopped}, 0, "interrupted: 7 of 10 planned requests were not sent", ""},
		{"empty", []string{runDir(t, 0, 0, nil)}, 3, "invalid: no request was recorded", "not a valid measurement: no request was recorded"},
		{"csv", []string{"--csv", good}, 0, "name,unit,n,mean,std,min,p50,p90,p95,p99,p99_9,max,load\nlateness,ms,3,0,", ""},
		{"json", []string{"--json", good}, 0, "{\n  \"schema\": 1,\n  \"verdict\": {\n    \"result\": \"valid\",", ""},
		{"help", []string{"--help"}, 0, "reprise report run/", ""},
		{"not a run", []string{t.TempDir()}, 1, "", "not a run directory: no run.json in it\nreprise: hint: "},
		{"no directory", nil, 2, "", "takes one run directory, got 0 arguments"},
		{"both", []string{"--json", "--csv", good}, 2, "", "--json and --csv exclude each other"},
		{"page and json", []string{"--json", "--html", "-", good}, 2, "", "--html - writes to standard output, as --json and --csv do"},
		{"page for text", []string{"--html", "-", good}, 0, "<!doctype html>\n<html lang=\"en\">", ""},
		{"page of a late run", []string{"--html", "-", late}, 3, "<p class=\"result\">invalid</p>", "not a valid measurement"},
		{"page of a killed run", []string{"--html", "-", killed}, 0, "The results are read from the parts", ""},
		{"page of an empty run", []string{"--html", "-", runDir(t, 0, 0, nil)}, 3, "No request was recorded.", "no request was recorded"},
		{"page over what is read", []string{"--html", filepath.Join(good, "requests.parquet"), good}, 2, "", "requests.parquet is read here: it would be written over"},
		{"page nowhere", []string{"--html", filepath.Join(good, "no", "page.html"), good}, 1, "", "page.html"},
		{"limit", []string{"--late-limit", "0s", good}, 2, "", "--late-limit 0s: must be above 0"},
		{"share", []string{"--late-share", "NaN", good}, 2, "", `--late-share "NaN": not a share above 0`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"report"}, tt.args...), nil, &stdout, &stderr)
		if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%s: code %d, want %d\nstdout %s\nstderr %s", tt.name, code, tt.code, &stdout, &stderr)
		}
		if tt.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%s: stderr %s", tt.name, &stderr)
		}
	}
}

// TestReportJSONIsTheSummary: --json prints the bytes of summary.json, and
// reports without touching the run directory.
func TestReportJSONIsTheSummary(t *testing.T) {
	dir := runDir(t, 3, 0, nil)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"report", "--json", dir}, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, results.SummaryFile)); err == nil {
		t.Error("report wrote into the run directory")
	}
	o, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := analysis.Summarize(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := analysis.WriteSummary(dir, s); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, results.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, stdout.Bytes()) || !json.Valid(file) {
		t.Errorf("--json printed\n%s\nsummary.json holds\n%s", &stdout, file)
	}
	if info, err := os.Stat(filepath.Join(dir, results.HistogramsFile)); err != nil || info.Size() == 0 {
		t.Errorf("%s: %v", results.HistogramsFile, err)
	}
}
