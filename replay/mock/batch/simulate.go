package batch

import (
	"fmt"
	"time"
)

// An Arrival is a request and when it comes, since the start.
type Arrival struct {
	At           time.Duration
	PromptTokens int
	Blocks       []uint64 // as in Request
	OutputTokens int
	Seed         uint64 // as in Request
}

// A Chunk is the tokens of one step for one sequence.
type Chunk struct {
	At     time.Duration // end of the step, since the start
	Tokens int
}

// A Timeline is what became of one arrival. Instants are since the start.
type Timeline struct {
	Arrival      time.Duration
	Admitted     time.Duration // left the queue
	HitBlocks    int           // as in Sequence
	CachedTokens int           // as in Sequence
	Chunks       []Chunk       // at least one; TTFT is Chunks[0].At - Arrival
}

// Emit appends a chunk.
func (t *Timeline) Emit(at time.Duration, tokens int, _ bool) {
	t.Chunks = append(t.Chunks, Chunk{At: at, Tokens: tokens})
}

// TTFT returns the time from arrival to the first token.
func (t *Timeline) TTFT() time.Duration { return t.Chunks[0].At - t.Arrival }

// End returns when the last token came.
func (t *Timeline) End() time.Duration { return t.Chunks[len(t.Chunks)-1].At }

// Tokens returns the number of tokens that came.
func (t *Timeline) Tokens() int {
	n := 0
	for _, c := range t.Chunks {
		n += c.Tokens
	}
	return n
}

// Simulate runs the arrivals, which are in order of time, through an engine in
// virtual time until all have ended. Timelines are in the order of arrivals.
// The error names an arrival that could never run (ErrTooLong).
func Simulate(c Config, arrivals []Arrival) ([]Timeline, error) {
	b := New(c)
	timelines := make([]Timeline, len(arrivals))
	sequences := make([]*Sequence, len(arrivals))
	for next := 0; ; b.Finish() {
		until, busy := b.Next()
		if !busy {
			if next == len(arrivals) {
				break
			}
			until = arrivals[next].At // idle: with all that come at that time
		}
		// What arrives until the step's end is booked before it ends, as in life.
		for ; next < len(arrivals) && arrivals[next].At <= until; next++ {
			a, t := &arrivals[next], &timelines[next]
			s, err := b.Arrive(a.At, Request{PromptTokens: a.PromptTokens, Blocks: a.Blocks, OutputTokens: a.OutputTokens, Seed: a.Seed, Sink: t})
			if err != nil {
				return nil, fmt.Errorf("arrival %d of %d+%d tokens: %w", next, a.PromptTokens, a.OutputTokens, err)
			}
			t.Arrival, t.HitBlocks, t.CachedTokens = s.Arrival, s.HitBlocks, s.CachedTokens
			sequences[next] = s
		}
	}
	for i, s := range sequences {
		timelines[i].Admitted = s.Admitted
	}
	return timelines, nil
}
