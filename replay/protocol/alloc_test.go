//go:build !race

package protocol

import (
	"testing"

	"reprise/trace/results"
)

// Under the race detector a sync.Pool forgets on purpose.
func TestResponseDoesNotAllocate(t *testing.T) {
	slab := make([]results.Entry, 0, 1024)
	r := NewResponse(Chat{}, true, 0)
	event := []byte(benchUsage)
	allocs := testing.AllocsPerRun(20, func() {
		r.Start(slab)
		for range 1000 {
			_ = r.Feed(event, 0)
		}
	})
	if allocs > 1 || len(r.Account.Entries()) != 1000 {
		t.Errorf("%v allocations per response of 1000 chunks, %d booked", allocs, len(r.Account.Entries()))
	}
}
