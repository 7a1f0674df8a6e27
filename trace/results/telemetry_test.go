package results_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"reprise/trace/results"
)

// TestTelemetry: samples come back from the parts while a run goes on, and from one
// file when it has ended, in order.
func TestTelemetry(t *testing.T) {
	dir := t.TempDir()
	if err := results.WriteRun(dir, &results.Run{}); err != nil {
		t.Fatal(err)
	}
	w, err := results.NewTelemetryRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	const parts, each = 3, 5000
	for part := range parts {
		var list []results.Sample
		for i := range each {
			list = append(list, results.Sample{AtNS: int64(part*each + i), Source: "http://h/metrics", Name: "a", Labels: `b="c"`, Kind: "gauge", Value: float64(i)})
		}
		list[0].Value = math.NaN()
		if lost := w.Add(list); lost != 0 {
			t.Errorf("%d lost", lost)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (n int64) {
		t.Helper()
		o, err := results.OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range o.Telemetry() {
			if err != nil {
				t.Fatal(err)
			}
			first := n%each == 0
			if s.AtNS != n || s.Labels != `b="c"` || first != math.IsNaN(s.Value) || !first && s.Value != float64(n%each) {
				t.Fatalf("sample %d: %+v", n, s)
			}
			n++
		}
		return n
	}
	if n := read(); n != parts*each {
		t.Errorf("%d samples in the parts", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := read(); n != parts*each {
		t.Errorf("%d samples in the end", n)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "telemetry-parts*")); list != nil {
		t.Errorf("left: %q", list)
	}
	if _, err := os.Stat(filepath.Join(dir, results.TelemetryFile)); err != nil {
		t.Error(err)
	}
}

// TestTelemetryRefused: a disk that refuses samples does not take all memory.
func TestTelemetryRefused(t *testing.T) {
	dir := t.TempDir()
	w, err := results.NewTelemetryRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for range 12 {
		lost += w.Add(make([]results.Sample, 100_000))
		if w.Flush() == nil {
			t.Fatal("wrote into a directory that is gone")
		}
	}
	if lost != 12*100_000-1<<20 {
		t.Errorf("%d lost", lost)
	}
}
