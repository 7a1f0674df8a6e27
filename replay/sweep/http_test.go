package sweep

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/replay"
	"reprise/replay/mock"
	"reprise/trace"
	"reprise/trace/results"
)

// TestOverHTTP searches for the known edge of the built-in server over the loopback,
// in real time: about four minutes, on a machine that does nothing else.
func TestOverHTTP(t *testing.T) {
	if os.Getenv("REPRISE_SWEEP") == "" {
		t.Skip("takes four minutes of real time: make sweep-test")
	}
	server := mock.New(mock.Config{Engine: engine(0, 0)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go server.Serve(ctx, l)
	dir := t.TempDir()
	path := filepath.Join(dir, "t.parquet")
	writeRows(t, path, 200)
	slo, err := analysis.ParseSLO("ttft_p95<150ms")
	if err != nil {
		t.Fatal(err)
	}
	measure := func(ctx context.Context, load float64, repeat int) (*Run, error) {
		out := filepath.Join(dir, fmt.Sprintf("run-%g-%d", load, repeat))
		config := replay.Config{
			Trace: path, Dir: out, URLs: []string{"http://" + l.Addr().String()}, Model: mock.DefaultModel, NoProbe: true, Scope: out, Begin: func() error { return os.MkdirAll(out, 0o755) },
			Selection: replay.Selection{Arrivals: replay.Arrivals{Kind: "constant", Rate: load}, Duration: 16 * time.Second, Recycle: true},
		}
		if _, err := replay.Run(ctx, config); err != nil {
			return nil, err
		}
		opened, err := results.OpenRun(out)
		if err != nil {
			return nil, err
		}
		s, err := analysis.SummarizeSLO(ctx, opened, slo)
		if err != nil {
			return nil, err
		}
		r := RunOf(s, DefaultAttainment)
		t.Logf("%g/s: margin %+.3f, client %s", load, r.Margin, r.Verdict)
		r.Verdict = "" // a busy machine shows in the edge, if anywhere
		return r, nil
	}
	var c Curve
	f, err := Search{Low: 4, High: 64, Beyond: []float64{}}.Run(ctx, &c, measure)
	if err != nil {
		t.Fatal(err)
	}
	off := *f.Estimate/capacity() - 1
	t.Logf("edge %.3f/s, capacity %.3f/s (%+.1f %%) in %d runs", *f.Estimate, capacity(), 100*off, c.N)
	if math.Abs(off) > 0.05 {
		t.Errorf("more than 5 %% from what the server can do")
	}
}

func writeRows(t *testing.T, path string, n int) {
	t.Helper()
	f, err := trace.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	w, b := trace.NewWriter(f), trace.NewBatch()
	for i := range n {
		b.Append(&trace.Request{ID: int64(i), Operation: trace.OpChat, InputTokens: trace.Some(int64(10)), OutputTokens: trace.Some(int64(answer))})
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockNone, Counts: trace.Counts{Read: int64(n), Kept: int64(n)}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
}
