// Package weka reads and writes WEKA traces, also known as AgentX: coding
// agents' sessions as published in callanjfox/kv-cache-tester (docs/
// trace_replay_tester.md, three generations of traces/) and, as rows, in the
// cc-traces-weka corpora. A session is one JSON object with its requests in
// order of time; a sub-agent is an entry among them that holds requests of its
// own.
//
// The source leaves out: texts, users, when a session began (each has its own
// clock), tokens taken from the cache, and in its first generation also
// latencies and think times.
package weka

import (
	"context"
	"fmt"
	"time"

	"reprise/formats/source"
	"reprise/trace"
)

// DefaultBlockTokens is the block size of every file measured; it holds where a
// session does not state its own.
const DefaultBlockTokens = 64

// Values of Importer.NestedTime.
const (
	Relative = "relative" // t of a sub-agent's request counts from its marker
	Absolute = "absolute" // it counts from the session's start
)

// An Importer reads WEKA traces. The zero value is the default.
type Importer struct {
	BlockTokens int           // where a session has no block_size; 0 = DefaultBlockTokens
	NestedTime  string        // Relative or Absolute; "" = decided per file
	KeepPairs   bool          // do not merge an s row with the n row that repeats it
	GapCap      time.Duration // idle time between requests of a session is cut to this; 0 = never
}

// SessionClock implements formats.SessionClock.
func (*Importer) SessionClock() bool { return true }

// Import implements formats.Importer. A request that cannot be used is rejected
// by itself; a session that cannot be read counts as one row.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	if err := im.check(); err != nil {
		return trace.Meta{}, err
	}
	s := &state{im: im, emit: emit, reject: reject, batch: trace.NewBatch(),
		names: map[string]bool{}, seen: map[[32]byte]bool{}, scopes: map[string]int64{}, files: map[string][]string{}, why: map[string]votes{}}
	for _, f := range src {
		if err := s.source(ctx, f); err != nil {
			return trace.Meta{}, err
		}
	}
	if err := s.flush(); err != nil {
		return trace.Meta{}, err
	}
	return s.meta(), nil
}

func (im *Importer) check() error {
	switch {
	case im.BlockTokens < 0:
		return fmt.Errorf("block size %d: must be above 0", im.BlockTokens)
	case im.GapCap < 0:
		return fmt.Errorf("gap cap %v: must be above 0", im.GapCap)
	case im.NestedTime != "" && im.NestedTime != Relative && im.NestedTime != Absolute:
		return trace.WithFix(fmt.Errorf("--nested-time %q", im.NestedTime), "use relative or absolute")
	}
	return nil
}

// state is one import. Its memory beside one session grows with the number of
// sessions.
type state struct {
	im     *Importer
	emit   func(*trace.Batch) error
	reject func(*trace.RowError) error
	batch  *trace.Batch

	next   int64           // ID of the next row
	names  map[string]bool // session ids given
	seen   map[[32]byte]bool
	spaces namespaces

	counts  trace.Counts
	tick    trace.Tick
	scopes  map[string]int64    // hash_id_scope: sessions
	files   map[string][]string // nested time basis: files
	why     map[string]votes    // nested time basis: evidence
	pairs   int64
	sizes   int64 // sessions without a block_size
	e2e     int64 // rows with api_time
	think   int64 // rows with think_time
	parquet bool
	clamped clamped
	gaps    gaps
}

type clamped struct {
	rows     int64
	earliest time.Duration // how long before its session's start
}

type gaps struct {
	n   int64
	sum time.Duration
}

func (s *state) note(what string, n int64) {
	if n == 0 {
		return
	}
	if s.counts.Notes == nil {
		s.counts.Notes = map[string]int64{}
	}
	s.counts.Notes[what] += n
}

func (s *state) flush() error {
	if s.batch.Len() == 0 {
		return nil
	}
	err := s.emit(s.batch)
	s.batch.Reset()
	return err
}

// source decides the basis of nested times, then imports the sessions of f.
func (s *state) source(ctx context.Context, f *source.Source) error {
	basis := s.im.NestedTime
	if basis == "" {
		var v votes
		err := each(ctx, f, func(o object) error {
			o.vote(&v)
			return nil
		})
		if err != nil {
			return err
		}
		basis = v.decide()
		s.decided(basis, f.Base(), v)
	}
	ids := map[string]bool{}
	return each(ctx, f, func(o object) error {
		s.parquet = s.parquet || o.nulls
		return s.session(o, basis, ids)
	})
}
