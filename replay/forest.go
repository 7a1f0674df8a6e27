package replay

import (
	"sync"
	"time"
)

// A forest keeps a number of sessions in flight: when one has ended, the next of
// the trace begins. With Load.Inside the first ones begin together, once what they
// have lived through before was sent.
type forest struct {
	now    func() time.Duration
	wake   func()
	places *places

	open   int64         // session being taken in; -1 = none yet
	begins time.Duration // its start

	first int64     // sessions that begin together; 0 = none do, or they have begun
	held  []*flight // their requests until then

	mu      sync.Mutex
	left    map[int64]*grown // by session
	warm    int              // warm-up requests that have not ended
	warmEnd time.Duration
}

// A grown is a session in flight.
type grown struct {
	left     int  // requests that have not ended
	complete bool // all of them are taken in
}

func newForest(c *Config, now func() time.Duration, wake func()) *forest {
	l := c.Selection.Load
	g := &forest{now: now, wake: wake, places: newPlaces(l.N, l.Ramp, 0), open: -1, left: map[int64]*grown{}}
	if l.Inside[1] > 0 {
		g.first = int64(l.N)
	}
	return g
}

// admits tells whether f can be taken in: its session is, or there is a place for
// it.
func (g *forest) admits(f *flight) bool {
	if f.tree == g.open {
		return true
	}
	since, ok := g.places.try(g.now())
	if ok {
		g.open, g.begins = f.tree, since
	}
	return ok
}

// take takes f in. It returns false if f has to wait for the warm-up.
func (g *forest) take(f *flight) bool {
	g.mu.Lock()
	t := g.left[f.tree]
	if t == nil {
		t = &grown{}
		g.left[f.tree] = t
	}
	t.left++
	t.complete = f.last
	if f.warm {
		g.warm++
	}
	g.mu.Unlock()
	f.hasDue = false // there is no schedule
	if f.tree < g.first && !f.warm {
		g.held = append(g.held, f)
		return false
	}
	f.due += g.begins
	return true
}

// warmed returns what waited for the warm-up once that is over; next is the row of
// the trace that comes, if any. All begin at the end of the last warm-up request.
func (g *forest) warmed(next *flight, more bool) []*flight {
	if g.first == 0 || more && next.tree < g.first {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.warm > 0 {
		return nil
	}
	held := g.held
	for _, f := range held {
		f.due += g.warmEnd
	}
	g.first, g.held = 0, nil
	return held
}

// opens is when the next place opens by itself.
func (g *forest) opens() (time.Duration, bool) {
	if len(g.places.opens) == 0 {
		return 0, false
	}
	return g.places.opens[0], true
}

// ended takes a request that has ended, and frees the place of a session that has.
func (g *forest) ended(f *flight, at time.Duration) {
	g.mu.Lock()
	if f.warm {
		g.warm--
		g.warmEnd = max(g.warmEnd, at)
	}
	t := g.left[f.tree]
	if t.left--; t.left == 0 && t.complete {
		delete(g.left, f.tree)
		g.places.give(at)
	}
	g.mu.Unlock()
	g.wake()
}
