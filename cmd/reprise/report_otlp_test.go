package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/trace/results"
)

// TestReportOTLP: a collector gets spans and metrics, and the spans are a trace that
// can be imported.
func TestReportOTLP(t *testing.T) {
	bodies := map[string][]byte{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies[r.URL.Path], _ = io.ReadAll(r.Body)
		io.WriteString(w, "{}")
	}))
	defer collector.Close()
	dir := runDir(t, 3, 0, func(r *results.Run) { r.Started = "2026-01-02T03:04:05Z" })
	var stdout, stderr bytes.Buffer
	if code := runProgram(t, &stdout, &stderr, "report", dir, "--otlp", collector.URL); code != 0 || !strings.Contains(stderr.String(), "sent 3 spans and ") {
		t.Fatalf("exit code %d\n%s", code, &stderr)
	}
	if len(bodies["/v1/metrics"]) == 0 || !bytes.Contains(bodies["/v1/metrics"], []byte(`"reprise.ttft"`)) {
		t.Errorf("metrics: %s", bodies["/v1/metrics"])
	}
	spans := filepath.Join(t.TempDir(), "spans.json")
	if err := os.WriteFile(spans, bodies["/v1/traces"], 0o644); err != nil {
		t.Fatal(err)
	}
	stdout.Reset()
	if code := runProgram(t, &stdout, &stderr, "trace", "import", spans, "--format", "otel", "-o", spans+".parquet"); code != 0 || !strings.Contains(stdout.String(), "kept 3") {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}

func runProgram(t *testing.T, stdout, stderr io.Writer, args ...string) int {
	t.Helper()
	return run(t.Context(), args, strings.NewReader(""), stdout, stderr)
}
