package transport

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Delays is the distribution of the time between the kernel's receipt of bytes
// and our read of them: how late this client sees what the server has sent. The
// stamp is that of the last segment of a read, so it is the least delay of what
// the read held.
type Delays struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
}

// longestDelay bounds what is kept apart: a longer one counts as this.
const longestDelay = int64(time.Hour)

func (d *Delays) add(v int64) {
	if v < 0 {
		v = 0 // the clock was set back in between
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hist == nil {
		d.hist = hdrhistogram.New(1, longestDelay, 3)
	}
	d.hist.RecordValue(min(v, longestDelay))
}

// Histogram returns a copy, in ns; nil if nothing was measured, as with TLS,
// which hides where the bytes end, or without the kernel's stamps.
func (d *Delays) Histogram() *hdrhistogram.Histogram {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hist == nil {
		return nil
	}
	return hdrhistogram.Import(d.hist.Export())
}
