package replay

import (
	"runtime"

	"reprise/trace/results"
)

// measureClient begins to measure what this process uses; the function that it
// returns ends that.
func measureClient() func() results.Client {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, ok := cpuSeconds()
	return func() results.Client {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		used := results.Client{GCCycles: after.NumGC - before.NumGC, GCPauseNS: after.PauseTotalNs - before.PauseTotalNs}
		if end, okEnd := cpuSeconds(); ok && okEnd {
			spent := end - cpu
			used.CPUSeconds = &spent
		}
		return used
	}
}
