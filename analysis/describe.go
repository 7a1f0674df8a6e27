// Package analysis says what traces and runs hold: descriptions, run metrics
// and reports.
package analysis

import (
	"context"

	"reprise/analysis/prefix"
	"reprise/trace"
)

// An Info describes a canonical trace. A pointer is nil where the trace does
// not know.
type Info struct {
	Rows     int64            `json:"rows"`
	Clock    string           `json:"clock"`               // trace, session or none
	SpanNS   *int64           `json:"span_ns,omitempty"`   // first to last arrival on the trace's clock; the longest session on session clocks
	RateHz   *float64         `json:"rate_hz,omitempty"`   // (rows with an arrival - 1) / span; one clock only
	Sessions *int64           `json:"sessions,omitempty"`  // distinct; nil if no row has one
	MaxTurns *int64           `json:"max_turns,omitempty"` // rows of the longest session
	Agents   int64            `json:"agents,omitempty"`    // distinct sub-agents, per session
	Models   map[string]int64 `json:"models,omitempty"`    // rows by recorded model
	Status   map[string]int64 `json:"status,omitempty"`    // rows by recorded status
	Literal  int64            `json:"literal"`             // rows with literal content
	After    map[string]int64 `json:"after,omitempty"`     // dependencies by kind

	InputTokens     Sum `json:"input_tokens"`
	NewInputTokens  Sum `json:"new_input_tokens"`
	OutputTokens    Sum `json:"output_tokens"`
	ReasoningTokens Sum `json:"reasoning_tokens"`
	CachedTokens    Sum `json:"cached_tokens"`

	BlockTokens map[int32]int64  `json:"block_tokens,omitempty"` // rows by block size in tokens
	BlockTail   map[string]int64 `json:"block_tail,omitempty"`   // rows by rule for the last block
	Reuse       *Reuse           `json:"reuse,omitempty"`        // nil if no row has block ids

	Meta trace.Meta `json:"-"`

	Format  string        `json:"format,omitempty"`
	Dialect string        `json:"dialect,omitempty"`
	EpochNS *int64        `json:"epoch_ns,omitempty"` // Unix time of arrival 0
	TickNS  *int64        `json:"tick_ns,omitempty"`  // effective resolution of arrivals
	Counts  trace.Counts  `json:"counts"`
	Guesses []trace.Guess `json:"guesses,omitempty"`
	History []trace.Step  `json:"history,omitempty"`
}

// A Sum adds up a count over the rows that know it.
type Sum struct {
	Rows int64 `json:"rows"`
	Sum  int64 `json:"sum"`
	Max  int64 `json:"max"`
}

func (s *Sum) add(v int64, known bool) {
	if known {
		s.Rows++
		s.Sum += v
		s.Max = max(s.Max, v)
	}
}

// A Reuse is what a prefix cache without limit would have served, by DESIGN.md's
// reuse key: model, id and length of a block.
type Reuse struct {
	Blocks         int64   `json:"blocks"`
	DistinctBlocks int64   `json:"distinct_blocks"`
	HitBlocks      int64   `json:"hit_blocks"`
	Tokens         int64   `json:"tokens"` // in blocks
	HitTokens      int64   `json:"hit_tokens"`
	HitShare       float64 `json:"hit_share"` // hit tokens / tokens
}

// Describe reads the rows that are left of r. Its memory grows with the number
// of sessions and of distinct blocks.
func Describe(ctx context.Context, r *trace.Reader) (*Info, error) {
	d := newDescription(r.Meta())
	err := trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			d.row(b, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.info(), nil
}

type description struct {
	Info
	turns    map[string]int64
	agents   map[[2]string]struct{}
	arrivals int64
	span     int64
	hits     prefix.Hits
	cache    prefix.Infinite
}

func newDescription(m trace.Meta) *description {
	d := &description{turns: map[string]int64{}, agents: map[[2]string]struct{}{}}
	d.Meta, d.Clock, d.Format, d.Dialect = m, m.Clock, m.Format, m.Dialect
	d.Counts, d.Guesses, d.History = m.Counts, m.Guesses, m.History
	if v, ok := m.EpochNS.Get(); ok {
		d.EpochNS = &v
	}
	if v, ok := m.TickNS.Get(); ok {
		d.TickNS = &v
	}
	d.Models, d.Status, d.After = map[string]int64{}, map[string]int64{}, map[string]int64{}
	d.BlockTokens, d.BlockTail = map[int32]int64{}, map[string]int64{}
	return d
}

func (d *description) row(b *trace.Batch, i int) {
	d.Rows++
	if at, ok := b.ArrivalNS.Get(i); ok {
		d.arrivals++
		d.span = max(d.span, at)
	}
	session, has := b.SessionID.Get(i)
	if has {
		d.turns[session]++
	}
	if agent, ok := b.Agent.Get(i); ok {
		d.agents[[2]string{session, agent}] = struct{}{}
	}
	if model, ok := b.Model.Get(i); ok {
		d.Models[model]++
	}
	if status, ok := b.Status.Get(i); ok {
		d.Status[status]++
	}
	if !b.Prompt.Null[i] || !b.Messages.Null[i] || !b.Body.Null[i] {
		d.Literal++
	}
	d.InputTokens.add(b.InputTokens.Get(i))
	d.NewInputTokens.add(b.NewInputTokens.Get(i))
	d.OutputTokens.add(b.OutputTokens.Get(i))
	d.ReasoningTokens.add(b.ReasoningTokens.Get(i))
	d.CachedTokens.add(b.CachedTokens.Get(i))
	d.afters(b, i)
	d.blocks(b, i)
}

func (d *description) afters(b *trace.Batch, i int) {
	for _, dep := range b.AfterOf(i) {
		d.After[dep.Kind]++
	}
}

func (d *description) blocks(b *trace.Batch, i int) {
	ids, known := b.Blocks(i)
	if !known {
		return
	}
	size, _ := b.BlockTokens.Get(i)
	d.BlockTokens[size]++
	if tail, ok := b.BlockTail.Get(i); ok {
		d.BlockTail[tail]++
	}
	in, ok := b.InputTokens.Get(i)
	if !ok {
		in = -1
	}
	model, _ := b.Model.Get(i)
	d.hits.Add(d.cache.Observe(model, ids, size, in))
}

func (d *description) info() *Info {
	info := &d.Info
	if d.arrivals > 0 {
		info.SpanNS = &d.span
		if d.Clock == trace.ClockTrace && d.span > 0 {
			rate := float64(d.arrivals-1) / (float64(d.span) / 1e9)
			info.RateHz = &rate
		}
	}
	if n := int64(len(d.turns)); n > 0 {
		var longest int64
		for _, turns := range d.turns {
			longest = max(longest, turns)
		}
		info.Sessions, info.MaxTurns = &n, &longest
	}
	info.Agents = int64(len(d.agents))
	if len(d.BlockTokens) > 0 {
		h := d.hits
		info.Reuse = &Reuse{Blocks: h.Blocks, DistinctBlocks: int64(d.cache.Distinct()), HitBlocks: h.HitBlocks, Tokens: h.Tokens, HitTokens: h.HitTokens}
		if h.Tokens > 0 {
			info.Reuse.HitShare = float64(h.HitTokens) / float64(h.Tokens)
		}
	}
	return info
}
