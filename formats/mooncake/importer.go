// Package mooncake reads and writes Mooncake traces: JSON lines with arrival,
// lengths and the ids of prefix blocks, as published in kvcache-ai/Mooncake
// (FAST25-release and arxiv-trace), and the dialects of AIPerf (sessions, delays,
// literal content) and Dynamo (other names, agent rows).
//
// The source leaves out: models, users, sessions (but in the dialects), and
// what production measured. The block size is not in the file; it is found from
// the rule that a request has ceil(input/block) ids.
package mooncake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// DefaultBlockTokens is the block size of the published traces.
const DefaultBlockTokens = 512

// BlockSizes are tried in this order when none is given.
var BlockSizes = []int{DefaultBlockTokens, 64, 32, 16}

// Values of Importer.InputLengths.
const (
	Cumulative  = "cumulative"  // input_length is the whole prompt
	Incremental = "incremental" // input_length of a later turn is what is new
)

// sampleRows is how many rows are held back until the block size is known.
const sampleRows = 4096

// An Importer reads Mooncake traces. The zero value reads the published ones.
type Importer struct {
	BlockTokens  int           // tokens per block; 0 = found from the file
	TimeUnit     time.Duration // of timestamp and delay; 0 = milliseconds
	InputLengths string        // Cumulative or Incremental, for turns after the first; "" = decided per row
}

// Import implements formats.Importer. Rows keep their order; a session's turns
// count in file order.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	if im.BlockTokens < 0 {
		return trace.Meta{}, fmt.Errorf("block size %d: must be above 0", im.BlockTokens)
	}
	s := &state{im: im, emit: emit, reject: reject, batch: trace.NewBatch(), block: im.BlockTokens,
		unit: im.TimeUnit, sessions: map[string]*session{}, requests: map[string]int64{}, spawned: map[string][]int64{},
		unknown: map[string]int64{}}
	if s.unit == 0 {
		s.unit = time.Millisecond
	}
	for _, f := range src {
		if err := s.file(ctx, f); err != nil {
			return trace.Meta{}, err
		}
	}
	if err := s.settle(); err != nil {
		return trace.Meta{}, err
	}
	if err := s.flush(); err != nil {
		return trace.Meta{}, err
	}
	return s.meta(), nil
}

// state is one import.
type state struct {
	im     *Importer
	emit   func(*trace.Batch) error
	reject func(*trace.RowError) error

	plain   plain
	base    string // of the file that is being read, without its directory
	batch   *trace.Batch
	held    []*row // until the block size is settled
	settled bool
	block   int
	fits    []int64 // by BlockSizes: rows whose number of ids fits
	sampled int64
	forced  bool

	unit     time.Duration
	sessions map[string]*session
	requests map[string]int64   // request_id to row id
	spawned  map[string][]int64 // request_id to the rows whose branches name it
	uses     idUses
	unknown  map[string]int64

	counts      trace.Counts
	next        int64
	times       int64
	first       time.Duration
	tick        trace.Tick
	dialect     dialect
	incremental int64
	cumulative  int64
	twoSizes    int64
	twoExample  string
	unresolved  int64
}

type session struct {
	turns int32
	last  int64
	mode  string
}

// dialect notes what was seen.
type dialect struct{ session, text, messages, payload, lengths, agent bool }

// row is one parsed line.
type row struct {
	req        trace.Request
	file, raw  string
	line       int64
	ownBlock   int
	requestID  string
	waitFor    []string
	branches   []string
	mode       string
	complete   bool // context_mode says that the row holds the whole context
	hasSession bool
}

func (s *state) file(ctx context.Context, f *source.Source) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	s.base = f.Base()
	lines := source.NewLines(r)
	for {
		line, n, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return f.Wrap(err)
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := s.line(f, line, n); err != nil {
			return err
		}
	}
}

func (s *state) line(f *source.Source, line []byte, n int64) error {
	if s.plain.scan(line, s.unit) {
		s.counts.Read++
		if s.settled {
			return s.addPlain(f, line, n)
		}
		return s.hold(f, line, n, s.plain.row())
	}
	fields, err := jsonx.Parse(line)
	if err == nil && isHeader(fields) {
		s.note("header lines", 1)
		return nil
	}
	s.counts.Read++
	var r *row
	if err == nil {
		r, err = s.parse(fields)
	}
	if err != nil {
		return s.bad(f.Name, n, string(line), err)
	}
	return s.hold(f, line, n, r)
}

// hold adds a row, once the block size is known.
func (s *state) hold(f *source.Source, line []byte, n int64, r *row) error {
	r.file, r.line, r.raw = f.Name, n, string(line)
	r.req.SourceFile, r.req.SourceRow = trace.Some(s.base), trace.Some(n)
	if s.settled {
		return s.add(r)
	}
	s.held = append(s.held, r)
	s.sample(r)
	if len(s.held) >= sampleRows {
		return s.settle()
	}
	return nil
}

// isHeader tells the schema line of newer Dynamo files.
func isHeader(r jsonx.Row) bool {
	_, schema := r["schema"]
	for _, k := range []string{"input_length", "input_tokens", "text_input", "messages", "payload"} {
		if _, ok := r[k]; ok {
			return false
		}
	}
	return schema
}

func (s *state) bad(file string, line int64, raw string, err error) error {
	e := &trace.RowError{File: file, Line: line, Err: err, Raw: raw}
	if f, ok := errors.AsType[*jsonx.FieldError](err); ok {
		e.Field, e.Err, e.Fix = f.Field, f.Err, f.Fix
	}
	if e.Reason = e.Field; e.Reason == "" {
		e.Reason = "not JSON"
	}
	return s.reject(e)
}

func (s *state) note(what string, n int64) {
	if s.counts.Notes == nil {
		s.counts.Notes = map[string]int64{}
	}
	s.counts.Notes[what] += n
}

// sample counts which block sizes a row fits.
func (s *state) sample(r *row) {
	if r.req.Blocks == nil || r.ownBlock > 0 || !r.req.InputTokens.Known {
		return
	}
	if s.fits == nil {
		s.fits = make([]int64, len(BlockSizes))
	}
	s.sampled++
	for i, size := range BlockSizes {
		if ceil(r.req.InputTokens.Value, size) == int64(len(r.req.Blocks)) {
			s.fits[i]++
		}
	}
}

func ceil(n int64, size int) int64 { return (n + int64(size) - 1) / int64(size) }

// settle decides the block size and lets go of the rows held back.
func (s *state) settle() error {
	if s.settled {
		return nil
	}
	s.settled, s.forced = true, s.block > 0
	if s.block == 0 {
		best := 0
		for i := range s.fits {
			if s.fits[i] > s.fits[best] {
				best = i
			}
		}
		s.block = BlockSizes[best]
	}
	for _, r := range s.held {
		if err := s.add(r); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

// add checks a row against the block size and its session, and emits it.
func (s *state) add(r *row) error {
	if err := s.blocks(r); err != nil {
		return s.bad(r.file, r.line, r.raw, err)
	}
	if err := s.session(r); err != nil {
		return s.bad(r.file, r.line, r.raw, err)
	}
	r.req.ID = s.next
	s.next++
	s.edges(r)
	if at, ok := r.req.Arrival.Get(); ok {
		s.clock(at)
	}
	s.seen(r)
	s.batch.Pad()
	s.batch.Append(&r.req)
	if s.batch.Len() >= trace.BatchRows {
		return s.flush()
	}
	return nil
}

// clock notes an arrival.
func (s *state) clock(at time.Duration) {
	if s.times == 0 {
		s.first = at
	}
	s.times++
	s.tick.Add(at)
}

func (s *state) flush() error {
	if s.batch.Len() == 0 {
		return nil
	}
	s.batch.Pad()
	err := s.emit(s.batch)
	s.batch.Reset()
	return err
}

// blocks sets the block columns of a row with ids.
func (s *state) blocks(r *row) error {
	if r.req.Blocks == nil {
		return nil
	}
	size, tail, err := s.fit(r.req.InputTokens.Value, int64(len(r.req.Blocks)), r.ownBlock)
	if err != nil {
		return err
	}
	r.req.BlockTail, r.req.BlockTokens = trace.Some(tail), trace.Some(int32(size))
	s.lengths(r.line, r.req.InputTokens.Value, r.req.Blocks, size)
	return nil
}

// fit returns the block size of a row with so many ids and how they end; own is
// the size that the row itself names, or 0.
func (s *state) fit(in, ids int64, own int) (size int, tail string, err error) {
	size = s.block
	if own > 0 {
		size = own
	}
	switch need := ceil(in, size); {
	case ids > need:
		return 0, "", &jsonx.FieldError{Field: "hash_ids", Err: fmt.Errorf("%d ids of %d tokens, but input_length is %d, which has room for %d", ids, size, in, need), Fix: blockFix}
	case ids == need:
		return size, trace.TailPartial, nil
	case ids == in/int64(size):
		return size, trace.TailDropped, nil
	case s.forced || own > 0 || ids == 0:
		return size, trace.TailOther, nil
	}
	return 0, "", &jsonx.FieldError{Field: "hash_ids", Err: fmt.Errorf("room for %d tokens, but input_length is %d", ids*int64(size), in), Fix: blockFix}
}

const blockFix = "pass --block-tokens if the trace was made with another block size"

// session sets turn, dependency and context of a row of a session.
func (s *state) session(r *row) error {
	id, ok := r.req.Session.Get()
	if !ok {
		if r.mode == trace.MessagesDelta {
			r.req.MessagesMode = trace.Some(trace.MessagesDelta)
		}
		return nil
	}
	ses := s.sessions[id]
	if ses == nil {
		ses = &session{mode: r.mode, last: -1}
		s.sessions[id] = ses
	}
	if r.req.Messages.Known && ses.mode != r.mode && ses.turns > 0 {
		return &jsonx.FieldError{Field: "message_mode", Err: fmt.Errorf("%s, but the session began as %s", r.mode, ses.mode), Fix: "a session must be all delta or all history"}
	}
	r.req.Turn = trace.Some(ses.turns)
	if ses.turns > 0 {
		r.req.After = append(r.req.After, trace.Dependency{ID: ses.last, Kind: trace.AfterTurn})
		s.increment(r)
	} else if r.req.InputTokens.Known {
		r.req.NewInputTokens = r.req.InputTokens
	}
	ses.turns++
	ses.last = s.next
	return nil
}

// increment decides whether input_length of a later turn is the whole prompt:
// it is if the row says so, or if its ids cover that length; AIPerf's multi-turn
// form without ids counts what is new.
func (s *state) increment(r *row) {
	if !r.req.InputTokens.Known {
		return
	}
	how := s.im.InputLengths
	if how == "" {
		how = Incremental
		if r.complete || len(r.req.Blocks) > 0 {
			how = Cumulative
		}
	}
	if how == Cumulative {
		s.cumulative++
		return
	}
	s.incremental++
	r.req.NewInputTokens, r.req.InputTokens = r.req.InputTokens, trace.Optional[int64]{}
}

// edges resolves the requests that agent rows name.
func (s *state) edges(r *row) {
	for _, want := range r.waitFor {
		if id, ok := s.requests[want]; ok {
			r.req.After = appendAfter(r.req.After, trace.Dependency{ID: id, Kind: trace.AfterJoin})
		} else {
			s.unresolved++
		}
	}
	if r.requestID != "" {
		for _, parent := range s.spawned[r.requestID] {
			r.req.After = appendAfter(r.req.After, trace.Dependency{ID: parent, Kind: trace.AfterSpawn})
		}
		s.requests[r.requestID] = r.req.ID
	}
	for _, child := range r.branches {
		s.spawned[child] = append(s.spawned[child], r.req.ID)
	}
}

// appendAfter adds d unless its request is named already.
func appendAfter(list []trace.Dependency, d trace.Dependency) []trace.Dependency {
	if slices.ContainsFunc(list, func(o trace.Dependency) bool { return o.ID == d.ID }) {
		return list
	}
	return append(list, d)
}
