package runpage

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"reprise/trace/results"
)

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
	began = time.Now()
	s, c, o := summed(t, dir)
	read := time.Since(began)
	var out bytes.Buffer
	if err := c.Page(s, o).Write(&out); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("report in %v, of which %v read and add up; page %d kB; %d MB from the system on %d CPUs", took.Round(100*time.Millisecond), read.Round(100*time.Millisecond), out.Len()>>10, memory.Sys>>20, runtime.NumCPU())
	if out.Len() > 10<<20 {
		t.Errorf("the page has %d bytes", out.Len())
	}
	if keep := os.Getenv("REPRISE_REPORT_DIR"); keep != "" {
		if err := os.WriteFile(filepath.Join(keep, "report.html"), out.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	}
}
