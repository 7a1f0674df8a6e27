package transport

import (
	"iter"
	"sync"
	"time"
)

// A conn's goroutine waits for bytes on the 2 KB of stack that it was born with,
// and handling them takes more, which it would keep for as long as it lives. So it
// borrows a stage for that: a coroutine with a deep stack, which the runtime
// switches to directly, in less than 0.1 us and without the scheduler. There are as
// many as handle bytes at once, not as many as there are connections.
type stage struct {
	next func() (struct{}, bool)
	stop func()
	conn *conn
	read readBytes
	more bool // the connection is still of use
}

// readBytes is what came of a read.
type readBytes struct {
	p     []byte
	stamp int64 // of the kernel, Unix ns; 0 = not known
	delay int64 // from stamp to now, ns
	err   error
	at    time.Duration
}

func newStage() *stage {
	s := &stage{}
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		for {
			s.more = s.conn.handle(&s.read)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return s
}

// stages are those that nobody uses.
type stages struct {
	mu   sync.Mutex
	idle []*stage
}

// handle lets a stage handle what k has read.
func (l *stages) handle(k *conn, r *readBytes) (more bool) {
	s := l.take()
	s.conn, s.read = k, *r
	s.next()
	more = s.more
	s.conn, s.read = nil, readBytes{}
	l.give(s)
	return more
}

func (l *stages) take() *stage {
	l.mu.Lock()
	n := len(l.idle)
	if n == 0 {
		l.mu.Unlock()
		return newStage()
	}
	s := l.idle[n-1]
	l.idle = l.idle[:n-1]
	l.mu.Unlock()
	return s
}

// keepStages is how many idle stages are kept. More are at work only while
// something that they wait for is slow.
const keepStages = 32

func (l *stages) give(s *stage) {
	l.mu.Lock()
	keep := len(l.idle) < keepStages
	if keep {
		l.idle = append(l.idle, s)
	}
	l.mu.Unlock()
	if !keep {
		s.stop()
	}
}

// close ends the coroutines, once nobody uses them.
func (l *stages) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.idle {
		s.stop()
	}
	l.idle = nil
}
