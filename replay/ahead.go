package replay

import "sync/atomic"

// An ahead is the flights that are rendered ahead of time, in order: one goroutine puts
// them, another takes them. It is a channel without a lock, since who takes is the
// sender, which would wait for a processor together with who puts.
type ahead struct {
	slots [aheadRequests]*flight
	taken atomic.Uint64 // how many were
	put   atomic.Uint64 // likewise; at most aheadRequests more
	over  atomic.Bool   // no more are put
	waits atomic.Bool   // who takes waits for fresh
	fresh chan struct{} // holds one when there is something new
}

func newAhead() *ahead { return &ahead{fresh: make(chan struct{}, 1)} }

// len is how many wait.
func (a *ahead) len() int { return int(a.put.Load() - a.taken.Load()) }

// add adds a flight, for which there must be room.
func (a *ahead) add(f *flight) {
	n := a.put.Load()
	a.slots[n%aheadRequests] = f
	a.put.Store(n + 1)
	a.wake()
}

// close says that no more are added.
func (a *ahead) close() {
	a.over.Store(true)
	a.wake()
}

// wake is called after what is new was stored, and next looks for it after it has said
// that it waits.
func (a *ahead) wake() {
	if a.waits.Load() {
		select {
		case a.fresh <- struct{}{}:
		default:
		}
	}
}

// next takes the first flight, and waits for it if need be; false after the last.
func (a *ahead) next() (*flight, bool) {
	n := a.taken.Load()
	for n == a.put.Load() {
		if a.over.Load() && n == a.put.Load() {
			return nil, false
		}
		a.waits.Store(true)
		if n == a.put.Load() && !a.over.Load() {
			<-a.fresh
		}
		a.waits.Store(false)
	}
	slot := &a.slots[n%aheadRequests]
	f := *slot
	*slot = nil
	a.taken.Store(n + 1)
	return f, true
}
