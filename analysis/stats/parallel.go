package stats

import (
	"runtime"
	"sync"
)

// sampleChunk is how many distinct values one worker takes at a time; sums are
// joined in the order of the chunks, so that no result depends on the workers.
const sampleChunk = 1 << 14

func (s Sample) chunks() int { return (len(s.values) + sampleChunk - 1) / sampleChunk }

// sum adds of(i) for each value of s as often as it occurs, i the index of the
// distinct value. of is called on several goroutines where there are many.
func (s Sample) sum(of func(i int) float64) float64 {
	parts := make([]float64, s.chunks())
	inParallel(len(parts), func(part int) {
		var sum total
		for i := part * sampleChunk; i < min(len(s.values), (part+1)*sampleChunk); i++ {
			sum.add(float64(s.counts[i]) * of(i))
		}
		parts[part] = sum.value()
	})
	var sum total
	for _, p := range parts {
		sum.add(p)
	}
	return sum.value()
}

// inParallel calls do for 0 to n-1, on as many goroutines as there are processors,
// and returns when all are done.
func inParallel(n int, do func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	group.Wait()
}
