package replay

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// An inFlight counts the requests in flight of each session, and how often a session
// overlaps itself. It is in parts, so that who sends hardly ever meets one of the
// thousands of readers that end requests, behind whose lock it would have to wait for
// their processor.
type inFlight struct {
	overlaps atomic.Int64 // requests that began while another of their session was in flight
	parts    [64]struct {
		mu sync.Mutex
		n  map[session]int
	}
}

var inFlightSeed = maphash.MakeSeed()

func (c *inFlight) begins(s session) {
	p := &c.parts[maphash.Comparable(inFlightSeed, s)%uint64(len(c.parts))]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == nil {
		p.n = map[session]int{}
	}
	if p.n[s] > 0 {
		c.overlaps.Add(1)
	}
	p.n[s]++
}

func (c *inFlight) ends(s session) {
	p := &c.parts[maphash.Comparable(inFlightSeed, s)%uint64(len(c.parts))]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n[s]--; p.n[s] == 0 {
		delete(p.n, s)
	}
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}
