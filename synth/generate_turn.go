package synth

import (
	"container/heap"
	"fmt"
	"math"
	"strconv"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A turn is the next request of an open session.
type turn struct {
	flow   *flow
	rand   randStream
	name   string
	model  string
	key    uint64     // of the session
	path   model.Path // of the session; nil where its turns are drawn one by one
	number int32
	left   int32
	at     float64 // s
	delay  float64 // s since the end of the turn before; below 0 = not known
	before int64   // id of the turn before; -1 = none that is in the trace
	input  int64
	output int64
	blocks []uint64
}

// session begins the session whose start has come.
func (s *flow) session(m *maker) *turn {
	t := &turn{flow: s, at: s.next, key: s.number, before: -1, model: s.Stream.Model, left: 1}
	s.number++
	t.rand.reset(m.g.Seed, genSession, s.ordinal, t.key)
	t.input, t.output = s.lengths.draw(&t.rand)
	if len(s.models) > 0 {
		u := t.rand.uniform() * s.models[len(s.models)-1]
		for i, edge := range s.models {
			if u < edge {
				t.model = s.Models[i].Name
				break
			}
		}
	}
	switch {
	case len(s.paths) > 0:
		t.path = s.paths[min(len(s.paths)-1, int(t.rand.uniform()*float64(len(s.paths))))]
		t.left, t.input = int32(len(t.path)), t.path[0].Input
		if answer := t.path[0].Output; answer >= 0 {
			t.output = answer
		}
	case s.turns != nil:
		t.left = int32(min(model.MaxTurns, max(1, math.Round(s.turns.Quantile(t.rand.uniform())))))
	}
	if s.turns != nil {
		t.name = strconv.FormatUint(s.ordinal, 10) + "-" + strconv.FormatUint(t.key, 10)
	}
	t.fill(m, 0)
	return t
}

// maxPromptBlocks bounds the block ids of one prompt: they are held in memory.
const maxPromptBlocks = 1 << 22

// follow draws the next turn of a session, if there is one.
func (m *maker) follow(t *turn) {
	if t.left--; t.left == 0 {
		return
	}
	t.number++
	var kept int
	if t.path != nil {
		kept = t.step(t.path[t.number])
	} else {
		kept = t.drawn()
	}
	t.fill(m, kept)
	heap.Push(&m.due, t)
}

// step takes the next turn of a path and returns the blocks that are kept.
func (t *turn) step(p model.Step) (kept int) {
	t.delay = -1
	if p.DelayNS >= 0 {
		t.delay = float64(p.DelayNS) / 1e9
	}
	t.at += max(0, t.delay, float64(p.GapNS)/1e9)
	t.input = p.Input
	if t.output = p.Output; t.output < 0 {
		t.output = t.flow.answer(&t.rand)
	}
	return min(int(p.Kept), len(t.blocks))
}

// answer draws the output length of a later turn.
func (s *flow) answer(r *randStream) int64 {
	return max(-1, int64(math.Round(min(model.MaxTokens, max(-1, s.outputs.Quantile(r.uniform()))))))
}

// drawn takes the next turn from the laws and returns the blocks that are kept.
func (t *turn) drawn() (kept int) {
	s := t.flow
	t.delay = -1
	u := t.rand.uniform() // of both: a long think time is part of a long gap
	if s.think != nil {
		t.delay = max(0, s.think.Quantile(u))
	}
	gap := max(0, t.delay)
	if s.gap != nil {
		gap = max(gap, s.gap.Quantile(u))
	}
	t.at += gap
	kept = len(t.blocks)
	if s.kept != nil {
		kept = int(math.Round(s.kept.Quantile(t.rand.uniform()) * float64(kept)))
	}
	switch {
	case t.input < 0:
	case s.growth != nil:
		if s.Sessions.Answers {
			t.input += max(0, t.output)
		}
		t.input = whole(float64(t.input) + math.Round(s.growth.Quantile(t.rand.uniform())))
	default:
		t.input, _ = s.lengths.draw(&t.rand)
	}
	t.output = s.answer(&t.rand)
	return kept
}

// fill gives the prompt its block ids: of what is kept those of the turn before,
// then, in a first turn, those of a root that many sessions share, then ids of
// its own.
func (t *turn) fill(m *maker, kept int) {
	p := t.flow.Prefix
	if p == nil || t.input < 0 {
		return
	}
	n := int(t.input / int64(p.BlockTokens))
	if p.Tail != trace.TailDropped && t.input%int64(p.BlockTokens) != 0 {
		n++
	}
	if n > maxPromptBlocks {
		m.err = trace.WithFix(fmt.Errorf("a prompt of %d tokens is %d blocks of %d tokens, more than %d", t.input, n, p.BlockTokens, maxPromptBlocks), "take shorter prompts, or a larger --block-tokens")
		n = 0
	}
	ids := make([]uint64, 0, n)
	ids = append(ids, t.blocks[:min(kept, n)]...)
	if t.number == 0 {
		ids = t.root(m, ids, n)
	}
	for len(ids) < n {
		ids = append(ids, stats.Hash(m.g.Seed, genBlock, t.flow.ordinal, t.key, uint64(t.number), uint64(len(ids)))>>1)
	}
	t.blocks = ids
}

// root appends the blocks of a shared beginning, which the session's number
// chooses.
func (t *turn) root(m *maker, ids []uint64, n int) []uint64 {
	u := t.rand.uniform()
	for i, r := range t.flow.Prefix.Roots {
		if u -= r.Share; u >= 0 {
			continue
		}
		for k := range min(n, int(r.Blocks)) {
			ids = append(ids, stats.Hash(m.g.Seed, genRoot, t.flow.ordinal, uint64(i), uint64(k))>>1)
		}
		break
	}
	return ids
}

// turnHeap orders by time, then by stream and session.
type turnHeap []*turn

func (h turnHeap) Len() int { return len(h) }
func (h turnHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	if h[i].flow.ordinal != h[j].flow.ordinal {
		return h[i].flow.ordinal < h[j].flow.ordinal
	}
	return h[i].key < h[j].key
}
func (h turnHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turnHeap) Push(x any)   { *h = append(*h, x.(*turn)) }
func (h *turnHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
