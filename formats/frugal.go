package formats

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// frugalRoom is what the runtime may hold during an import, bytes, unless more is alive.
const frugalRoom = 36 << 20

// Frugal keeps the memory of this process small while it imports: what an import keeps
// are buffers that are used again, and all else is soon garbage. The runtime collects
// when it holds frugalRoom, however little of that is alive, so that memory does not
// grow with the input; and where more is alive, when an eighth more than that is held.
// Whoever sets GOGC or GOMEMLIMIT has it as set. The function that it returns ends that.
func Frugal() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(frugalRoom)
	quit := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		limit := int64(frugalRoom)
		for {
			select {
			case <-tick.C:
				if l := max(frugalRoom, held()/8*9); l != limit {
					limit = l
					debug.SetMemoryLimit(l)
				}
			case <-quit:
				return
			}
		}
	})
	return func() {
		close(quit)
		over.Wait()
		debug.SetMemoryLimit(before)
	}
}

// held is what the last collection has left, with all that is no heap, bytes.
func held() int64 {
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sample)
	var v [6]int64
	for i, s := range sample {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0
		}
		v[i] = int64(s.Value.Uint64())
	}
	return v[0] + v[1] - v[2] - v[3] - v[4] - v[5]
}
