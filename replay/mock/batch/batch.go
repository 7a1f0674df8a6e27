package batch

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// ErrTooLong means that a request could never run: it needs more KV tokens
// than the engine has.
var ErrTooLong = errors.New("prompt and output do not fit into the KV cache")

// A Request is what arrives at the engine.
type Request struct {
	PromptTokens int
	Blocks       []uint64 // names of the prompt's full blocks, chained: equal names mean equal tokens up to there
	OutputTokens int      // tokens to generate; at least 1, less counts as 1
	Seed         uint64   // of this request's own draws (Speculation), whatever else is in the batch
	Sink         Sink     // told of each token
}

// A Sink takes the tokens of one sequence.
type Sink interface {
	// Emit is called once per step that gave the sequence tokens, at the end of
	// the step; last is true with the sequence's last tokens. It must not block
	// or call the Batch.
	Emit(at time.Duration, tokens int, last bool)
}

// A Sequence is a request in the engine. Its fields are fixed at arrival but
// for Admitted.
type Sequence struct {
	Arrival  time.Duration // since the start of the engine
	Admitted time.Duration // when it left the queue; negative before that

	// HitBlocks of its leading blocks had been brought by requests that arrived
	// before. That is fixed at arrival, whether or not their prefill is done, so
	// that hits depend on the order of arrivals alone.
	HitBlocks int

	// CachedTokens is how many prompt tokens need not be computed: whole blocks
	// of the hits, but never the whole prompt, since the last token has to be
	// computed for the first output (as in vLLM).
	CachedTokens int

	request Request
	prefill int   // prompt tokens still to compute
	share   int   // of these, in the planned step
	output  int   // tokens still to generate
	room    int64 // KV tokens it takes
	gone    bool
	draws   *rand.Rand // nil without speculation
}

// A Load is the state of the engine.
type Load struct {
	Running, Waiting int   // sequences
	KVUsed, KVTokens int64 // tokens taken, of how many
	CacheBlocks      int   // blocks in the prefix cache
	QueriedTokens    int64 // prompt tokens looked up in the prefix cache so far
	CachedTokens     int64 // of these found (CachedTokens of all sequences)
}

// A Batch is one engine. It is not safe for concurrent use.
//
// To drive it: Arrive in order of time; Next plans a step and says when it
// ends; at that time Finish hands out its tokens; then Next again.
type Batch struct {
	config  Config
	cache   *cache
	jitter  *rand.Rand
	now     time.Duration // end of the last step
	end     time.Duration // of the planned step
	planned bool
	last    time.Duration // latest arrival
	waiting []*Sequence   // by arrival
	running []*Sequence   // by admission
	load    Load
}

// New returns an idle engine at time 0.
func New(c Config) *Batch {
	c = c.withDefaults()
	b := &Batch{config: c, cache: newCache(c), jitter: rand.New(rand.NewPCG(c.Seed, 0x6a697474))}
	b.load.KVTokens = c.KVTokens
	return b
}

// Config returns the engine's settings, defaults filled in.
func (b *Batch) Config() Config { return b.config }

// Arrive puts a request into the queue and books its blocks in the prefix
// cache. Arrivals come in order of time; an earlier one counts as at the time
// of the latest. The error is ErrTooLong, and then nothing has changed.
func (b *Batch) Arrive(at time.Duration, r Request) (*Sequence, error) {
	r.OutputTokens = max(r.OutputTokens, 1)
	if int64(r.OutputTokens) > b.config.KVTokens-int64(r.PromptTokens) {
		return nil, ErrTooLong
	}
	b.last = max(b.last, at)
	s := &Sequence{Arrival: b.last, Admitted: -1, request: r, output: r.OutputTokens}
	s.HitBlocks = b.cache.bring(r.Blocks)
	size := b.config.BlockTokens
	s.CachedTokens = min(s.HitBlocks, max(r.PromptTokens-1, 0)/size) * size
	s.prefill = max(r.PromptTokens-s.CachedTokens, 1)
	s.room = int64(s.prefill + s.output)
	if len(b.config.Speculation) > 0 {
		s.draws = rand.New(rand.NewPCG(b.config.Seed, r.Seed))
	}
	b.load.QueriedTokens += int64(r.PromptTokens)
	b.load.CachedTokens += int64(s.CachedTokens)
	b.waiting = append(b.waiting, s)
	return s, nil
}

// Cancel takes a sequence out: at once from the queue, at the end of the
// planned step from the batch. It gets no more tokens.
func (b *Batch) Cancel(s *Sequence) {
	s.gone = true
	if i := slices.Index(b.waiting, s); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
}

// Next plans the next step, unless one is planned, and returns when it ends. It
// begins when the last one ended, or on an idle engine with the first arrival.
// ok is false if there is nothing to do.
func (b *Batch) Next() (end time.Duration, ok bool) {
	if b.planned {
		return b.end, true
	}
	if len(b.running) == 0 {
		if len(b.waiting) == 0 {
			return 0, false
		}
		b.now = max(b.now, b.waiting[0].Arrival)
	}
	b.admit()
	decoding, prefill := 0, 0
	for _, s := range b.running {
		if s.prefill == 0 {
			decoding++
			continue
		}
		s.share = min(s.prefill, b.config.PrefillChunk-prefill)
		prefill += s.share
	}
	b.end = b.now + b.jittered(b.config.step(decoding, prefill))
	b.planned = true
	return b.end, true
}

// admit moves sequences from the queue to the batch, in order, while both the
// batch and the KV cache have room for the next one.
func (b *Batch) admit() {
	n := 0
	for _, s := range b.waiting {
		if s.Arrival > b.now || len(b.running) == b.config.MaxBatch || b.load.KVUsed+s.room > b.config.KVTokens {
			break
		}
		s.Admitted = b.now
		b.load.KVUsed += s.room
		b.running = append(b.running, s)
		n++
	}
	b.waiting = slices.Delete(b.waiting, 0, n)
}

func (b *Batch) jittered(d time.Duration) time.Duration {
	if b.config.Jitter == 0 {
		return d
	}
	return time.Duration(float64(d) * (1 + b.config.Jitter*(2*b.jitter.Float64()-1)))
}

// Finish ends the planned step: every sequence that decoded, and every one
// whose prefill is done, gets its tokens. Without a planned step it does nothing.
func (b *Batch) Finish() {
	if !b.planned {
		return
	}
	b.now, b.planned = b.end, false
	kept := b.running[:0]
	for _, s := range b.running {
		if b.advance(s) {
			kept = append(kept, s)
		} else {
			b.load.KVUsed -= s.room
		}
	}
	clear(b.running[len(kept):])
	b.running = kept
}

// advance gives a sequence what the step has brought it, and reports whether it
// stays in the batch.
func (b *Batch) advance(s *Sequence) bool {
	if s.gone {
		return false
	}
	tokens := 1
	if s.prefill > 0 {
		s.prefill -= s.share
		s.share = 0
		if s.prefill > 0 {
			return true
		}
	} else if s.draws != nil {
		tokens = min(draw(s.draws, b.config.Speculation), s.output)
	}
	s.output -= tokens
	s.request.Sink.Emit(b.now, tokens, s.output == 0)
	return s.output > 0
}

// draw returns 1 + an index drawn by weight.
func draw(r *rand.Rand, weights []float64) int {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	at := r.Float64() * total
	for i, w := range weights {
		if at < w {
			return i + 1
		}
		at -= w
	}
	return len(weights)
}

// Load returns the state of the engine now.
func (b *Batch) Load() Load {
	l := b.load
	l.Running, l.Waiting, l.CacheBlocks = len(b.running), len(b.waiting), b.cache.len()
	return l
}
