package analysis

import (
	"container/heap"

	"reprise/analysis/stats"
	"reprise/trace"
)

// heldTokens follow how many tokens, of prompts and answers, are with the server at
// one time: from each arrival to the recorded end. Its memory grows with the
// requests that are open at one time.
type heldTokens struct {
	clock string
	known int64 // rows with arrival, tokens and end
	now   int64 // tokens
	at    int64 // ns
	open  heldHeap
	time  stats.Tally // microseconds by tokens
}

type held struct{ until, tokens int64 }

// add takes the next row.
func (h *heldTokens) add(b *trace.Batch, i int, row flowRow) {
	e2e, ok := b.RecordedE2ENS.Get(i)
	in, out := row.lengths[inputTokens], row.lengths[outputTokens]
	if h.clock != trace.ClockTrace || !ok || e2e < 0 || !row.atKnown || !in.known || !out.known {
		return
	}
	h.upTo(row.at)
	h.known++
	h.now += in.v + out.v
	heap.Push(&h.open, held{row.at + e2e, in.v + out.v})
}

// upTo ends what ends before a time.
func (h *heldTokens) upTo(at int64) {
	for len(h.open) > 0 && h.open[0].until <= at {
		h.pass(h.open[0].until)
		h.now -= heap.Pop(&h.open).(held).tokens
	}
	h.pass(at)
}

func (h *heldTokens) pass(at int64) {
	if h.known > 0 && at > h.at {
		h.time.AddN(h.now, (at-h.at)/1000)
	}
	h.at = at
}

// meanAndP99 returns mean and p99 over time; false without any.
func (h *heldTokens) meanAndP99() (mean, p99 float64, ok bool) {
	if mean, ok = h.time.Series().Mean(); !ok {
		return 0, 0, false
	}
	return mean, h.time.Sample(1).Quantiles7(0.99)[0], true
}

type heldHeap []held

func (h heldHeap) Len() int           { return len(h) }
func (h heldHeap) Less(i, j int) bool { return h[i].until < h[j].until }
func (h heldHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heldHeap) Push(x any)        { *h = append(*h, x.(held)) }
func (h *heldHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
