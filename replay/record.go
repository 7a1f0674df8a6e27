package replay

import (
	"fmt"
	"sync"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

const (
	flushEvery  = 500 * time.Millisecond // a killed run loses no more than this, and what one write takes
	queueLength = 4096                   // results that wait for the writer
	manyWait    = 64                     // results for which it looks at once
	keepAtMost  = 200_000                // results held while the disk refuses them
)

// A sink keeps results; *results.Recorder is the one that writes files.
type sink interface {
	Add(r *results.Result) // copies what it keeps
	Pending() int          // results that wait for Flush
	Full() bool            // they take so much memory that Flush should not be waited for
	Flush() error          // keeps them after an error
	Drop() int             // forgets what waits, and returns how many that were
	Close() error
}

// A recorder writes results through one goroutine, which looks every flushEvery, or
// when many wait: waking it for each would cost more than the rest of a short request.
// A slow disk may hold up a finished response, never the next send.
type recorder struct {
	out  sink
	free func(*flight) // takes a flight whose result is kept
	wake chan struct{} // holds one when many wait, or no more come
	live *live         // nil = nobody looks
	over chan struct{}
	err  error // the first
	lost int64

	mu      sync.Mutex
	room    *sync.Cond // for more in waiting
	waiting []*flight
	closed  bool
}

func newRecorder(c *Config, live *live, free func(*flight)) (*recorder, error) {
	out := c.sink
	if out == nil {
		files, err := results.NewRecorder(c.Dir)
		if err != nil {
			return nil, err
		}
		out = files
	}
	r := &recorder{out: out, free: free, live: live, wake: make(chan struct{}, 1), over: make(chan struct{})}
	r.room = sync.NewCond(&r.mu)
	go r.loop()
	return r, nil
}

// add takes the result of f, and f.
func (r *recorder) add(f *flight) {
	r.mu.Lock()
	for len(r.waiting) >= queueLength {
		r.room.Wait()
	}
	r.waiting = append(r.waiting, f)
	many := len(r.waiting) == manyWait
	r.mu.Unlock()
	if many {
		r.signal()
	}
}

func (r *recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) loop() {
	defer close(r.over)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var batch []*flight
	for {
		flush := false
		select {
		case <-r.wake:
		case <-tick.C:
			flush = true
		}
		var closed bool
		batch, closed = r.take(batch)
		for i, f := range batch {
			r.out.Add(&f.res)
			if r.live != nil {
				r.live.add(&f.res)
			}
			r.free(f)
			if r.out.Full() && r.err == nil { // a disk that has refused is not asked again before its time
				r.flush()
			}
			batch[i] = nil
		}
		if closed {
			return
		}
		if flush {
			r.flush()
		}
	}
}

// take returns what waits, and leaves the memory of spare for what comes.
func (r *recorder) take(spare []*flight) (batch []*flight, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch, r.waiting = r.waiting, spare[:0]
	r.room.Broadcast()
	return batch, r.closed
}

// flush keeps results that could not be written for the next try, up to a
// bound; beyond it they are dropped and counted.
func (r *recorder) flush() {
	err := r.out.Flush()
	if err == nil {
		return
	}
	if r.err == nil {
		r.err = err
	}
	if r.out.Pending() > keepAtMost {
		r.lost += int64(r.out.Drop())
	}
}

// close writes everything. The error says what was lost, if anything.
func (r *recorder) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.signal()
	<-r.over
	err := r.out.Close()
	if err != nil {
		r.lost += int64(r.out.Pending())
		return fmt.Errorf("records of %s were lost: %w", trace.Plural(r.lost, "request"), err)
	}
	if r.lost > 0 {
		return fmt.Errorf("records of %s were lost: %w", trace.Plural(r.lost, "request"), r.err)
	}
	return nil
}

// identify returns the name, size and digest of a trace file, and its history.
func identify(path string) (trace.Input, []trace.Step, error) {
	r, err := trace.Open(path)
	if err != nil {
		return trace.Input{}, nil, err
	}
	history := r.Meta().History
	r.Close()
	in, err := trace.Identify(path)
	return in, history, err
}
