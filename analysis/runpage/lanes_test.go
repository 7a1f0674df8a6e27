package runpage

import (
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// The timeline of a long run shows what ended around its longest wait, also where
// that is near an end of the run.
func TestWindow(t *testing.T) {
	const n = 3*mostLanes + 17
	for _, tt := range []struct{ worst, first, last int64 }{
		{mostLanes * 2, mostLanes*2 - mostLanes/2 + 1, mostLanes*2 + mostLanes/2},
		{10, 0, mostLanes/2 + 10},
		{n - 5, n - mostLanes, n - 1},
	} {
		var w window
		for i := range int64(n) {
			at := time.Duration(i) * time.Second
			r := request{Result: &results.Result{ID: i, Outcome: results.OutcomeOK, Sent: trace.Some(at), End: trace.Some(at + time.Millisecond)}, successful: true, ttft: trace.Some(time.Microsecond)}
			if i == tt.worst {
				r.ttft = trace.Some(time.Millisecond)
			}
			w.add(&r)
		}
		list := w.shown()
		if len(list) == 0 || list[0].id != tt.first || list[len(list)-1].id != tt.last {
			t.Errorf("worst %d: %d requests from %d to %d, want %d to %d", tt.worst, len(list), list[0].id, list[len(list)-1].id, tt.first, tt.last)
		}
		if c, ok := w.chart(); !ok || c.Check() != nil {
			t.Errorf("worst %d: %v", tt.worst, c.Check())
		}
	}
}
