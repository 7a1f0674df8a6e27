package replay

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"

	"reprise/trace/results"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// measureClient begins to measure what this process uses; the function that it
// returns ends that.
func measureClient() func() results.Client {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, ok := cpuSeconds()
	waits := runQueue()
	return func() results.Client {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		used := results.Client{GCCycles: after.NumGC - before.NumGC, GCPauseNS: after.PauseTotalNs - before.PauseTotalNs}
		used.RunQueue = queueDelay(waits, runQueue())
		if end, okEnd := cpuSeconds(); ok && okEnd {
			spent := end - cpu
			used.CPUSeconds = &spent
		}
		return used
	}
}

// runQueue reads how long goroutines have waited for a processor, since the
// program began.
func runQueue() *metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	h := sample[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: slices.Clone(h.Buckets)}
}

// queueDelay is what came between two readings; quantiles are upper ends of the
// runtime's buckets.
func queueDelay(before, after *metrics.Float64Histogram) *results.Delay {
	if before == nil || after == nil || len(before.Counts) != len(after.Counts) {
		return nil
	}
	counts := make([]uint64, len(after.Counts))
	var n uint64
	for i := range counts {
		counts[i] = after.Counts[i] - before.Counts[i]
		n += counts[i]
	}
	if n == 0 {
		return nil
	}
	at := func(share float64) int64 {
		var sum uint64
		for i, c := range counts {
			if sum += c; float64(sum) >= share*float64(n) && c > 0 {
				end := after.Buckets[i+1]
				if math.IsInf(end, 1) {
					end = after.Buckets[i]
				}
				return int64(end * 1e9)
			}
		}
		return 0
	}
	return &results.Delay{N: int64(n), P50NS: at(0.5), P99NS: at(0.99), P999NS: at(0.999), MaxNS: at(1)}
}

// receiveDelay gathers the delays of all targets; nil if none was measured.
func (r *run) receiveDelay() *results.Delay {
	var all *hdrhistogram.Histogram
	for _, t := range r.targets {
		switch h := t.client.Receive(); {
		case h == nil:
		case all == nil:
			all = h
		default:
			all.Merge(h)
		}
	}
	if all == nil || all.TotalCount() == 0 {
		return nil
	}
	d := &results.Delay{N: all.TotalCount(), P50NS: all.ValueAtQuantile(50), P99NS: all.ValueAtQuantile(99), P999NS: all.ValueAtQuantile(99.9), MaxNS: all.Max()}
	if text, err := all.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		d.Histogram = string(text)
	}
	return d
}
