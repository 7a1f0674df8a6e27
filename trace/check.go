package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Checker tests the invariants of schema 1 over the rows of one trace, in
// order. Its memory grows with the number of ids (a bit each where they are
// dense) and of sessions.
type Checker struct {
	clock    string
	row      int64
	ids      bitset
	wanted   map[int64]int64 // id that After named and that has not come yet, to the row that named it
	sessions map[string]*sessionState
	open     string // session of the row before
	anyRow   bool
	last     time.Duration
	noClock  bool
}

type sessionState struct {
	last    time.Duration
	started bool
}

// NewChecker returns a checker for rows on the given clock.
func NewChecker(clock string) *Checker {
	return &Checker{clock: clock, wanted: map[int64]int64{}, sessions: map[string]*sessionState{}}
}

// Check reads the trace to its end and hands every violation to report, as a
// *RowError whose Line is the row's position in the file, from 1. It returns
// how many rows it read.
func Check(ctx context.Context, r *Reader, report func(*RowError)) (rows int64, err error) {
	name := func(e *RowError) { e.File = r.name; report(e) }
	switch r.meta.Clock {
	case ClockTrace, ClockSession, ClockNone:
	default:
		name(&RowError{Field: keyClock, Err: fmt.Errorf("%q is none of trace, session, none", r.meta.Clock)})
	}
	c := NewChecker(r.meta.Clock)
	err = EachBatch(ctx, r, func(b *Batch) error {
		for i := range b.Len() {
			req := b.Row(i)
			c.Row(&req, name)
		}
		return nil
	})
	if err != nil {
		return c.row, err
	}
	c.End(name)
	if kept := r.meta.Counts.Kept; kept != c.row {
		name(&RowError{Field: keyCounts, Err: fmt.Errorf("kept %d, but the file holds %d rows", kept, c.row)})
	}
	return c.row, nil
}

// Row checks the next row.
func (c *Checker) Row(r *Request, report func(*RowError)) {
	c.row++
	bad := func(field, format string, args ...any) {
		report(&RowError{Line: c.row, Field: field, Err: fmt.Errorf(format, args...)})
	}
	if !c.ids.add(r.ID) {
		bad("id", "%d occurs twice", r.ID)
	}
	delete(c.wanted, r.ID)
	for _, d := range r.After {
		c.checkAfter(r, d, bad)
	}
	c.checkOrder(r, bad)
	checkRow(r, bad)
}

// CheckRow checks what one row shows by itself.
func CheckRow(r *Request, report func(*RowError)) {
	checkRow(r, func(field, format string, args ...any) {
		report(&RowError{Field: field, Err: fmt.Errorf(format, args...)})
	})
}

func checkRow(r *Request, bad badFunc) {
	checkCounts(r, bad)
	checkBlocks(r, bad)
	checkLiterals(r, bad)
	checkWords(r, bad)
}

// End checks what only the end shows.
func (c *Checker) End(report func(*RowError)) {
	for _, id := range slices.Sorted(maps.Keys(c.wanted)) {
		report(&RowError{Line: c.wanted[id], Field: "after", Err: fmt.Errorf("names id %d, which is not in the file", id)})
	}
	if c.clock == ClockTrace && c.anyRow && c.noClock {
		report(&RowError{Field: "arrival_ns", Err: errors.New("no row has an arrival, but the clock is \"trace\"")})
	}
}

type badFunc = func(field, format string, args ...any)

func (c *Checker) checkAfter(r *Request, d Dependency, bad badFunc) {
	switch d.Kind {
	case AfterTurn, AfterSpawn, AfterJoin:
	default:
		bad("after", "kind %q is none of turn, spawn, join", d.Kind)
	}
	if d.ID == r.ID {
		bad("after", "names its own id %d", d.ID)
		return
	}
	if !c.ids.has(d.ID) {
		if _, ok := c.wanted[d.ID]; !ok {
			c.wanted[d.ID] = c.row
		}
	}
}

// checkOrder holds arrivals against the clock and the order of section 3.
func (c *Checker) checkOrder(r *Request, bad badFunc) {
	first := !c.anyRow
	c.anyRow = true
	at, known := r.Arrival.Get()
	if known && at < 0 {
		bad("arrival_ns", "%d is below 0", at)
	}
	switch c.clock {
	case ClockNone:
		if known {
			bad("arrival_ns", "%d, but the trace has no clock", at)
		}
	case ClockTrace:
		if first {
			c.noClock = true
		}
		if !known {
			return
		}
		if c.noClock && at != 0 {
			bad("arrival_ns", "the earliest is %d, not 0", at)
		}
		if !c.noClock && at < c.last {
			bad("arrival_ns", "%d after %d: rows are not in order of arrival", at, c.last)
		}
		c.noClock = false
		c.last = max(at, c.last)
		return
	}
	c.checkSession(r, at, known, bad)
}

func (c *Checker) checkSession(r *Request, at time.Duration, known bool, bad badFunc) {
	id, ok := r.Session.Get()
	if !ok {
		c.open = ""
		return
	}
	s := c.sessions[id]
	if s == nil {
		s = &sessionState{}
		c.sessions[id] = s
	} else if c.open != id {
		bad("session_id", "%q comes in two places: sessions are not in source order", id)
	}
	c.open = id
	if !known {
		return
	}
	if !s.started && at != 0 && c.clock == ClockSession {
		bad("arrival_ns", "the session begins at %d, not 0", at)
	}
	if s.started && at < s.last {
		bad("arrival_ns", "%d after %d in one session", at, s.last)
	}
	s.started, s.last = true, at
}

func checkCounts(r *Request, bad badFunc) {
	for _, f := range []struct {
		name string
		v    Optional[int64]
	}{
		{"input_tokens", r.InputTokens}, {"new_input_tokens", r.NewInputTokens}, {"output_tokens", r.OutputTokens},
		{"reasoning_tokens", r.ReasoningTokens}, {"max_output_tokens", r.MaxOutputTokens},
		{"cached_tokens", r.CachedTokens}, {"cache_write_tokens", r.CacheWriteTokens},
	} {
		if f.v.Known && f.v.Value < 0 {
			bad(f.name, "%d is below 0", f.v.Value)
		}
	}
	for _, f := range []struct {
		name string
		v    Optional[time.Duration]
	}{
		{"delay_ns", r.Delay}, {"recorded_ttft_ns", r.RecordedTTFT}, {"recorded_e2e_ns", r.RecordedE2E}, {"cancel_ns", r.Cancel},
	} {
		if f.v.Known && f.v.Value < 0 {
			bad(f.name, "%d is below 0", f.v.Value)
		}
	}
	if r.ReasoningTokens.Known && r.OutputTokens.Known && r.ReasoningTokens.Value > r.OutputTokens.Value {
		bad("reasoning_tokens", "%d of %d output tokens", r.ReasoningTokens.Value, r.OutputTokens.Value)
	}
	if r.Turn.Known && r.Turn.Value < 0 {
		bad("turn", "%d is below 0", r.Turn.Value)
	}
	if r.Choices.Known && r.Choices.Value < 1 {
		bad("choices", "%d is below 1", r.Choices.Value)
	}
}

// checkBlocks holds the number of blocks against the rule the row names.
func checkBlocks(r *Request, bad badFunc) {
	if r.Blocks == nil {
		return
	}
	size, known := r.BlockTokens.Get()
	if len(r.Blocks) > 0 && (!known || size <= 0) {
		bad("block_tokens", "unknown, though the row has %d block ids", len(r.Blocks))
		return
	}
	in, known := r.InputTokens.Get()
	if !known || size <= 0 {
		return
	}
	n, whole := int64(len(r.Blocks)), in/int64(size)
	switch tail := r.BlockTail.Or(""); {
	case tail == TailPartial && n != (in+int64(size)-1)/int64(size):
		bad("block_ids", "%d ids of %d tokens for %d input tokens, but block_tail is partial", n, size, in)
	case tail == TailDropped && n != whole:
		bad("block_ids", "%d ids of %d tokens for %d input tokens, but block_tail is dropped", n, size, in)
	}
}

func checkLiterals(r *Request, bad badFunc) {
	for _, f := range []struct {
		name  string
		v     Optional[string]
		first byte
	}{{"messages", r.Messages, '['}, {"tools", r.Tools, '['}, {"body", r.Body, '{'}, {"extra", r.Extra, '{'}, {"output_message", r.OutputMessage, '{'}} {
		if text, ok := f.v.Get(); ok && (len(text) == 0 || text[0] != f.first || !json.Valid([]byte(text))) {
			bad(f.name, "not a JSON value that begins with %q", f.first)
		}
	}
	for k, v := range r.Attributes {
		if !json.Valid([]byte(v)) {
			bad("attributes", "%s: %q is not JSON text", k, v)
		}
	}
}

func checkWords(r *Request, bad badFunc) {
	if r.Operation == "" {
		bad("operation", "empty")
	}
	for _, f := range []struct {
		name string
		v    Optional[string]
		ok   []string
	}{
		{"block_tail", r.BlockTail, []string{TailPartial, TailDropped, TailOther}},
		{"messages_mode", r.MessagesMode, []string{MessagesFull, MessagesDelta}},
		{"status", r.Status, []string{StatusOK, StatusError, StatusCancelled, StatusEmpty}},
	} {
		if text, known := f.v.Get(); known && !slices.Contains(f.ok, text) {
			bad(f.name, "%q is none of %v", text, f.ok)
		}
	}
}

// A bitset holds int64 ids, densely where they are dense.
type bitset map[int64]uint64

func (s *bitset) add(id int64) bool {
	if *s == nil {
		*s = bitset{}
	}
	word, bit := id>>6, uint64(1)<<(id&63)
	if (*s)[word]&bit != 0 {
		return false
	}
	(*s)[word] |= bit
	return true
}

func (s *bitset) has(id int64) bool { return (*s)[id>>6]&(1<<(id&63)) != 0 }
