package pipe

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// BufferBytes is how much one direction of a connection holds before a write
// waits for the reader, like a socket's send and receive buffers.
const BufferBytes = 256 << 10

// A deadline is guarded by the mutex of the half that it is for, but for its timer.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer // guarded by mu
	turn    int         // counts settings, so that an old timer does nothing
	expired bool
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

// A half is one direction of a connection.
type half struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     []byte // written and not yet read
	start   int    // buf[:start] is read
	ended   bool   // the writer closed: EOF after buf
	unread  bool   // the reader closed
	broken  bool   // reset
	linger0 bool   // the writer's Close resets
}

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte, d *deadline) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.unread:
			return 0, net.ErrClosed
		case h.broken:
			return 0, syscall.ECONNRESET
		case d.expired:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.start < len(h.buf):
			n := copy(p, h.buf[h.start:])
			h.start += n
			if h.start == len(h.buf) {
				h.buf, h.start = h.buf[:0], 0
			}
			h.changed.Broadcast()
			return n, nil
		case h.ended:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte, d *deadline) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.ended:
			return n, net.ErrClosed
		case h.broken:
			return n, syscall.ECONNRESET
		case h.unread:
			return n, syscall.EPIPE
		case d.expired:
			return n, os.ErrDeadlineExceeded
		}
		if room := BufferBytes - (len(h.buf) - h.start); room > 0 {
			m := min(room, len(p)-n)
			if h.start > 0 && len(h.buf)+m > cap(h.buf) {
				h.buf, h.start = append(h.buf[:0], h.buf[h.start:]...), 0
			}
			h.buf = append(h.buf, p[n:n+m]...)
			n += m
			h.changed.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
		h.changed.Wait()
	}
}

// close marks the writer's or the reader's end as closed.
func (h *half) close(writer bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if writer {
		h.ended = true
	} else {
		h.unread = true
	}
	h.changed.Broadcast()
}

func (h *half) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken, h.buf, h.start = true, nil, 0
	h.changed.Broadcast()
}

func (h *half) setLinger(zero bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.linger0 = zero
}

func (h *half) lingers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.linger0
}

func (h *half) setDeadline(d *deadline, t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	d.turn++
	turn := d.turn
	d.expired = !t.IsZero() && !t.After(time.Now())
	if d.expired {
		h.changed.Broadcast()
		return
	}
	if t.IsZero() {
		return
	}
	d.timer = time.AfterFunc(time.Until(t), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if d.turn == turn {
			d.expired = true
			h.changed.Broadcast()
		}
	})
}
