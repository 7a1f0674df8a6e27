package servegen

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"reprise/formats/rows"
	"reprise/trace"
)

// A flow draws the requests of one client.
type flow struct {
	*client
	id     string
	rng    *rand.Rand
	window int
	left   float64 // of the gap that runs, in units of its mean
	next   float64 // s; when the next request arrives
	order  int
}

// start begins a flow at from: a gap may have begun before.
func (c *client) start(order int, seed uint64, from float64) *flow {
	f := &flow{client: c, id: c.model + "/" + c.name, rng: rand.New(rand.NewPCG(seed, uint64(order))), order: order, next: from}
	if c.model == "" {
		f.id = c.name
	}
	f.left = -1
	return f
}

// advance moves next to the next arrival; false after the last.
func (f *flow) advance(end float64) bool {
	for ; f.window < len(f.windows); f.window++ {
		w := &f.windows[f.window]
		if w.from >= end {
			return false
		}
		f.next = max(f.next, w.from)
		if w.rate == 0 || f.next >= w.to {
			continue
		}
		if f.left < 0 { // the first gap began somewhere before
			f.left = w.gaps().Rand(f.rng) * f.rng.Float64()
		}
		if mass := (w.to - f.next) * w.rate; f.left > mass {
			f.left -= mass
			f.next = w.to
			continue
		}
		f.next += f.left / w.rate
		f.left = w.gaps().Rand(f.rng)
		return f.next < end
	}
	return false
}

// draw hands the requests of all clients on, in order of time.
func (i *Importer) draw(ctx context.Context, s *rows.Sink, clients []*client) error {
	from, end := i.From.Seconds(), math.Inf(1)
	if i.Duration > 0 {
		end = from + i.Duration.Seconds()
	}
	var h flowHeap
	for n, c := range clients {
		if f := c.start(n, i.Seed, from); f.advance(end) {
			h = append(h, f)
		}
	}
	heap.Init(&h)
	for n := 0; len(h) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		f := h[0]
		if err := f.request(s); err != nil {
			return err
		}
		if f.advance(end) {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	return s.Err()
}

// request draws one request at the time that is next.
func (f *flow) request(s *rows.Sink) error {
	r := trace.Request{Operation: trace.OpOther, Arrival: trace.Some(time.Duration(math.Round(f.next * 1e9))), ClientID: trace.Some(f.id), SourceFile: trace.Some(f.file.Base())}
	if f.model != "" {
		r.Model = trace.Some(f.model)
	}
	if in, ok := f.prompt(); ok {
		r.InputTokens = trace.Some(in)
	}
	if out, ok := f.length("output_tokens"); ok {
		r.OutputTokens = trace.Some(int64(math.Round(out)))
		if ratio, ok := f.length("reason_ratio"); ok {
			r.ReasoningTokens = trace.Some(min(r.OutputTokens.Value, int64(math.Round(ratio*out))))
		}
	}
	for _, kind := range []string{"image", "audio", "video"} {
		count, ok := f.length(kind + "_count")
		if !ok || count < 1 {
			continue
		}
		m := trace.Media{Kind: kind, Count: trace.Some(int32(min(count, math.MaxInt32)))}
		if tokens, ok := f.length(kind + "_tokens"); ok {
			m.Tokens = trace.Some(int64(math.Round(tokens)))
			r.InputTokens = trace.Some(r.InputTokens.Value + m.Tokens.Value)
		}
		r.Media = append(r.Media, m)
	}
	s.Read++
	return s.Add(&r)
}

// prompt draws the tokens of the text of a prompt.
func (f *flow) prompt() (int64, bool) {
	for _, field := range []string{"input_tokens", "text_tokens"} {
		if v, ok := f.length(field); ok {
			return int64(math.Round(v)), true
		}
	}
	return 0, false
}

// length draws from the histogram that holds now.
func (f *flow) length(field string) (float64, bool) {
	h := f.at(field, f.next)
	if h == nil {
		return 0, false
	}
	return h.quantile(f.rng.Float64()), true
}

// A flowHeap orders flows by when their next request arrives.
type flowHeap []*flow

func (h flowHeap) Len() int { return len(h) }
func (h flowHeap) Less(i, j int) bool {
	return h[i].next < h[j].next || h[i].next == h[j].next && h[i].order < h[j].order
}
func (h flowHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *flowHeap) Push(x any)   { *h = append(*h, x.(*flow)) }
func (h *flowHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
