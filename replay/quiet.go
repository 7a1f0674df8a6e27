package replay

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// garbageRoom is how much memory a run may throw away before the first
// collection, bytes.
const garbageRoom = 96 << 20

// quiet collects once, and then keeps the collector away as long as it can: a
// collection stops the sender, and on a busy machine for long. A run makes
// little garbage, so garbageRoom lasts for millions of requests. Whoever sets
// GOGC or GOMEMLIMIT has it as set. The function that it returns ends that.
func quiet() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	collectAmongSmall()
	percent := roomPercent(liveHeap())
	before := debug.SetGCPercent(percent)
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C: // a heap that has grown needs no more room than before
				if p := roomPercent(liveHeap()); p < percent*3/4 {
					percent = p
					debug.SetGCPercent(p)
				}
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-over
		debug.SetGCPercent(before)
	}
}

// collectAmongSmall collects while many goroutines with small stacks are there. The
// runtime gives a new goroutine as much stack as those that it found had on average,
// rounded up to a power of two: of the few that a run begins with, some are deep, and
// thousands of connections would each wait on 4 KB instead of 2.
func collectAmongSmall() {
	const many = 256
	quit := make(chan struct{})
	var ready, over sync.WaitGroup
	ready.Add(many)
	for range many {
		over.Go(func() {
			ready.Done()
			<-quit
		})
	}
	ready.Wait()
	runtime.GC()
	close(quit)
	over.Wait()
}

// liveHeap is what the last collection has found alive, bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return garbageRoom
	}
	return sample[0].Value.Uint64()
}

// roomPercent is the GOGC that leaves garbageRoom above live, and never less
// than the usual one.
func roomPercent(live uint64) int { return int(max(100, 100*garbageRoom/max(live, 1<<20))) }
