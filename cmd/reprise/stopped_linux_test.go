package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/trace"
	"reprise/trace/results"
)

// TestStoppedReplay stops the process for 2 s (SIGSTOP) in mid-run at 100
// requests/s. What was due meanwhile goes out late, and says how late; no due
// time moves, what is due later is not later for it, and the verdict is invalid.
func TestStoppedReplay(t *testing.T) {
	t.Parallel()
	const (
		n       = 500
		every   = 10 * time.Millisecond
		stopFor = 2 * time.Second
	)
	dir := t.TempDir()
	program := filepath.Join(dir, "reprise")
	if err := os.Symlink(executable(t), program); err != nil { // by this name, the test is the program
		t.Skipf("no symbolic links here: %v", err)
	}
	path, run := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "run")
	everyTrace(t, path, n, every)
	server, url := serveMock(t)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, "replay", path, "--url", url, "--model", mock.DefaultModel, "--probe=false", "--progress", "none", "-o", run)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if list, _ := server.Account(); len(list) >= 50 {
			break
		}
	}
	cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(stopFor)
	cmd.Process.Signal(syscall.SIGCONT)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.HasPrefix(stdout.String(), "invalid: ") || !strings.Contains(stdout.String(), "p99 lateness") || !strings.Contains(stdout.String(), "worst of ") {
		t.Errorf("exit code %d, want 3\n%s%s", code, &stdout, &stderr)
	}
	late, longest := 0, time.Duration(0)
	due := map[int64]bool{}
	for r := range recorded(t, run) {
		if r.Due.Value != time.Duration(r.ID)*every {
			t.Errorf("id %d was due at %v, want %v", r.ID, r.Due.Value, time.Duration(r.ID)*every)
		}
		due[r.ID] = true
		lateness, ok := results.Lateness(&r)
		if !ok || r.Outcome != results.OutcomeOK {
			t.Errorf("id %d: %s %v", r.ID, r.Outcome, r.Cause)
		}
		if lateness > 100*time.Millisecond {
			late++
		}
		longest = max(longest, lateness)
		if r.ID >= n-20 && lateness > stopFor*9/10 {
			t.Errorf("id %d, due after the stop, was %v late: the stop has shifted it", r.ID, lateness)
		}
	}
	if len(due) != n {
		t.Errorf("%d of %d requests are recorded", len(due), n)
	}
	if most := int((stopFor - 100*time.Millisecond) / every); late < most*9/10 || longest < stopFor*9/10 {
		t.Errorf("%d requests more than 100 ms late, want some %d; the longest by %v, want some %v", late, most, longest, stopFor)
	}
}

func executable(t *testing.T) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// everyTrace writes a trace of n short requests, one every so often.
func everyTrace(t *testing.T, path string, n int, every time.Duration) {
	t.Helper()
	f, err := trace.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	w, b := trace.NewWriter(f), trace.NewBatch()
	for i := range n {
		b.Append(&trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(i) * every), InputTokens: trace.Some(int64(10)), OutputTokens: trace.Some(int64(3))})
	}
	for _, err := range []error{w.Write(b), w.Close(trace.Meta{Clock: trace.ClockTrace}), f.Commit()} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// serveMock serves until the test ends.
func serveMock(t *testing.T) (*mock.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback here: %v", err)
	}
	server := mock.New(mock.Config{Engine: batch.Config{StepBase: time.Millisecond, PrefillRate: 1e6}})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-served })
	return server, fmt.Sprintf("http://%s", l.Addr())
}

// recorded yields the results of a run.
func recorded(t *testing.T, dir string) func(yield func(results.Result) bool) {
	t.Helper()
	run, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(results.Result) bool) {
		for r, err := range run.Results() {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(r) {
				return
			}
		}
	}
}
