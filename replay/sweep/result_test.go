package sweep

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"reprise/analysis"
	"reprise/replay/mock/batch"
)

// A margin is above 0 exactly where a gate fails, whatever its direction.
func TestMargin(t *testing.T) {
	for _, c := range []struct {
		value  *float64
		op     string
		limit  float64
		passed bool
		want   float64
	}{
		{new(100.0), "<", 100, false, smallest}, {new(200.0), "<", 100, false, 0.6931}, {new(50.0), "<", 100, true, -0.6931}, {new(0.0), "<", 100, true, -MarginLimit},
		{nil, "<", 100, false, MarginLimit}, {new(1e9), "<", 100, false, MarginLimit}, {new(0.5), ">=", 1, false, 0.6931}, {new(2.0), ">=", 1, true, -0.6931}, {new(0.0), ">", 1, false, MarginLimit},
		{new(0.0), "<", 0, false, smallest},
	} {
		r := Run{Met: true, Margin: -MarginLimit}
		r.add(Gate{Text: "x", Value: c.value, Passed: c.passed}, c.op, c.limit)
		if r.Met != c.passed || r.Margin-c.want > 1e-3 || c.want-r.Margin > 1e-3 {
			t.Errorf("%+v: met %v, margin %v", c, r.Met, r.Margin)
		}
	}
}

// found searches the simulated engine.
func found(t *testing.T) *Result {
	t.Helper()
	r := &Result{Version: "test", Axis: "rate", Unit: "requests/s", Objective: "ttft_p95<1s", Label: "open loop, arrivals constant", Flags: map[string]string{"seed": "1"}, Replicas: 2, Complete: true}
	f, err := Search{Low: 1, High: 1000}.Run(t.Context(), &r.Curve, simulated(t, 1, false))
	if err != nil {
		t.Fatal(err)
	}
	r.Conclude(f)
	return r
}

func TestResultReads(t *testing.T) {
	r := found(t)
	var text, markdown, page, object bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	if err := r.Page().Write(&page); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	met := analysis.NumberText(*r.Found.Met)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"text":     {text.String(), []string{"the highest load that meets ttft_p95<1s is " + met + " requests/s", "with 2 replicas that is", "past the edge the system degrades", "slo met", "past the edge)"}},
		"Markdown": {markdown.String(), []string{"- the highest load that meets", "| rate, requests/s | runs | slo met |", "| " + met + " | "}},
		"HTML":     {page.String(), []string{"Sweep of the rate", "Throughput of successful requests", "highest that meets the slo"}},
		"JSON":     {object.String(), []string{`"settled": true`}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.text, want) {
				t.Errorf("%s lacks %q:\n%.2000s", name, want, c.text)
			}
		}
	}
	var back Result
	if err := json.Unmarshal(object.Bytes(), &back); err != nil || *back.Found.Met != *r.Found.Met || back.N != r.N || len(back.Points) != len(r.Points) {
		t.Errorf("read back %+v, %v", back, err)
	}
}

func TestDiffers(t *testing.T) {
	a := &Result{Axis: "rate", Trace: "t.parquet", Flags: map[string]string{"seed": "1"}}
	for want, b := range map[string]*Result{
		"":       {Axis: "rate", Trace: "t.parquet", Flags: map[string]string{"seed": "1"}, Objective: "ttft_p95<1s"},
		"axis":   {Axis: "scale", Trace: "t.parquet"},
		"trace":  {Axis: "rate"},
		"--seed": {Axis: "rate", Trace: "t.parquet"},
		"--pace": {Axis: "rate", Trace: "t.parquet", Flags: map[string]string{"seed": "1", "pace": ""}},
	} {
		if got := a.Differs(b); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
	if _, err := ReadResult(filepath.Join(t.TempDir(), ResultFile)); err == nil {
		t.Error("read a result that is not there")
	}
}

// The engine of these tests can do what it is said to.
func TestCapacity(t *testing.T) {
	if want := engine(0, 0).DecodeRate(16) / answer; capacity() != want {
		t.Errorf("capacity %v, want %v", capacity(), want)
	}
	var _ batch.Config = engine(0, 0)
}
