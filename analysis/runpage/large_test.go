//go:build unix

package runpage

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"reprise/trace/results"
)

// cpu is the processor time that the test has had; a busy machine gives little of it.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestLargeRun makes the page of a run of REPRISE_REPORT_ROWS requests, says what it
// took, and holds the size of the page. What it makes is kept in REPRISE_REPORT_DIR.
func TestLargeRun(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("REPRISE_REPORT_ROWS"))
	if err != nil {
		t.Skip("takes minutes: make bench-report asks for it")
	}
	const rate = 250
	r := rand.New(rand.NewPCG(3, 4))
	var ledger []results.Entry
	began := time.Now()
	entries := 0
	dir := writeRun(t, madeRun(rows, rate), rows, func(i int) results.Result {
		res := madeResult(r, i, rate, ledger[:0])
		entries += len(res.Ledger)
		if res.Ledger != nil {
			ledger = res.Ledger
		}
		return res
	})
	info, err := os.Stat(filepath.Join(dir, results.RequestsFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests with %d chunks, %d MB, written in %v", rows, entries, info.Size()>>20, time.Since(began).Round(time.Second))
	began, cpuBegan := time.Now(), cpu()
	s, c, o := summed(t, dir)
	read, cpuRead := time.Since(began), cpu()-cpuBegan
	var out bytes.Buffer
	if err := c.Page(s, o).Write(&out); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("report in %v (%v of CPU), of which %v (%v) read and add up; page %d kB; %d MB from the system on %d CPUs", took.Round(100*time.Millisecond), (cpu() - cpuBegan).Round(100*time.Millisecond), read.Round(100*time.Millisecond), cpuRead.Round(100*time.Millisecond), out.Len()>>10, memory.Sys>>20, runtime.NumCPU())
	if out.Len() > 10<<20 {
		t.Errorf("the page has %d bytes", out.Len())
	}
	if keep := os.Getenv("REPRISE_REPORT_DIR"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, "report.html"), out.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	}
}
