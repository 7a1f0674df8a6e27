package results

import "testing"

// TestSaid: a worker that was lost or whose results were found said nothing of its client.
func TestSaid(t *testing.T) {
	run := Run{Workers: []Worker{{State: WorkerEnded}, {State: WorkerRestored}, {State: WorkerStopped}, {State: WorkerLost}}}
	if n := run.Said(); n != 2 {
		t.Errorf("%d workers said what their clients used, want 2", n)
	}
	run.Workers = run.Workers[1:2]
	if n := run.Said(); n != 0 {
		t.Errorf("%d said it of one that was restored", n)
	}
}
