//go:build !noserver

package cluster

import (
	"testing"
	"time"

	"reprise/replay"
	"reprise/trace/results"
)

// TestStreamedResultsAreKept: what a worker had handed over before it was gone for good
// is in the run, and counts as its own; the rest is lost, and nothing is there twice.
func TestStreamedResultsAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a lease and a trace")
	}
	t.Parallel()
	const n = 600
	s := newStage(t, replay.Config{}, time.Millisecond, evenly(n, 5*time.Millisecond))
	s.stream = 200 * time.Millisecond
	run, rows, err := s.run(2, 150, func(i int) bool { return i == 1 })
	if err != nil {
		t.Fatalf("%v\n%v", err, s.said)
	}
	s.once()
	if len(rows)+int(run.Ended.Lost) != n || run.Ended.Lost == 0 {
		t.Errorf("%d results and %d lost of %d", len(rows), run.Ended.Lost, n)
	}
	for _, w := range run.Workers {
		if w.Name == "w1" && (w.State != results.WorkerRestored || w.Recorded == 0 || w.Recorded+w.Lost > w.Planned) {
			t.Errorf("the worker that was lost: %s, %d recorded and %d lost of %d", w.State, w.Recorded, w.Lost, w.Planned)
		}
	}
}
