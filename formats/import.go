package formats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"reprise/formats/source"
	"reprise/trace"
)

// An Importer reads one foreign trace format.
type Importer interface {
	// Import reads the sources in the order given and hands batches to emit, in
	// source order; emit may not keep a batch. Request.ID counts the emitted
	// rows from 0, unless the source is canonical itself. Request.Arrival is on the source's own clock (any origin; a
	// Unix time if Meta.EpochNS is known), or, on session clocks, since the
	// session's start. A row that cannot be used, or that was merged into
	// another, goes to reject as a *trace.RowError and reading goes on, unless
	// reject returns an error. Meta holds what is only known at the end: clock,
	// tick, block size, counts, guesses.
	Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error)
}

// A Sequencer is an importer that sets columns which follow from the final
// order, such as turns by arrival. Sequence gets the rows in that order and may
// change them, but not their number.
type Sequencer interface {
	Sequence(b *trace.Batch)
}

// A SessionClock is an importer whose sessions each may have their own clock. It is
// asked when the first batch comes.
type SessionClock interface{ SessionClock() bool }

// Import runs an importer: it sorts rows into canonical order, puts the
// earliest arrival at 0, and writes the trace to w. step says how it came to
// be; its Inputs are filled in here. Rejected and merged rows go to reject,
// which may stop the import with an error. memory bounds what sorting holds, in
// bytes (0 = trace.DefaultMemory).
//
// Rows that are nearly in order are written as they come, if w is a *trace.File and
// the sources can be read again: should a row come later than memory reaches back,
// the import begins anew and sorts by way of the disk.
func Import(ctx context.Context, imp Importer, src []*source.Source, w io.Writer, memory int64, step trace.Step, reject func(*trace.RowError) error) (trace.Meta, error) {
	r := &run{imp: imp, src: src, memory: memory, step: step, reject: reject}
	file, _ := w.(*trace.File)
	again := !slices.ContainsFunc(src, func(s *source.Source) bool { return !s.Again() })
	if file == nil || !again {
		return r.once(ctx, w, false)
	}
	meta, err := r.once(ctx, w, true)
	if !errors.Is(err, trace.ErrLate) {
		return meta, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return meta, err
	}
	if err := file.Truncate(0); err != nil {
		return meta, err
	}
	return r.once(ctx, w, false)
}

// A run is an import that may begin anew.
type run struct {
	imp    Importer
	src    []*source.Source
	memory int64
	step   trace.Step
	reject func(*trace.RowError) error

	told int64 // rows that reject has got
}

func (r *run) once(ctx context.Context, w io.Writer, stream bool) (trace.Meta, error) {
	p := &pipeline{imp: r.imp, sorter: &trace.Sorter{Memory: r.memory}, sessions: map[string]*sessionKey{}, out: trace.NewWriter(w)}
	if stream {
		p.sorter.Stream = p.stream
	}
	defer p.sorter.Close()
	rejected, merged, seen := map[string]int64{}, map[string]int64{}, int64(0)
	meta, err := r.imp.Import(ctx, r.src, p.add, func(e *trace.RowError) error {
		reason := e.Reason
		if reason == "" {
			reason = e.Field
		}
		if e.Merged {
			merged[reason]++
		} else {
			rejected[reason]++
		}
		if seen++; seen <= r.told {
			return nil
		}
		r.told = seen
		return r.reject(e)
	})
	if err != nil {
		return meta, err
	}
	meta.Counts.Rejected, meta.Counts.Merged = rejected, merged
	meta.Counts.Kept = p.rows
	if p.rows == 0 {
		return meta, trace.WithFix(fmt.Errorf("no row of %d could be used", meta.Counts.Read), "see the rejected rows for the reasons, or name another --format")
	}
	if moved := p.sorter.Moved(); moved > 0 && meta.Clock == trace.ClockTrace {
		note(&meta, "rows moved into order of arrival", moved)
	}
	p.origin(&meta)
	step := r.step
	for _, s := range r.src {
		in, err := s.Input()
		if err != nil {
			return meta, err
		}
		step.Inputs = append(step.Inputs, in)
	}
	meta.History = append(meta.History, step)
	if err := p.write(meta); err != nil {
		return meta, err
	}
	return meta, p.out.Close(meta)
}

func note(meta *trace.Meta, what string, n int64) {
	if meta.Counts.Notes == nil {
		meta.Counts.Notes = map[string]int64{}
	}
	meta.Counts.Notes[what] += n
}

// A pipeline puts rows in order. Its memory beside the sorter's grows with the
// number of sessions.
type pipeline struct {
	imp          Importer
	sorter       *trace.Sorter
	keys         []trace.Key // of the rows that are being added
	own          sessionKey  // of a row without a session
	sessionClock bool
	sessions     map[string]*sessionKey
	rows         int64
	min          int64 // earliest arrival seen
	anyArrival   bool
	lastArrival  int64

	out     *trace.Writer
	streams bool
	base    int64 // arrival that became 0 in what was streamed
}

// stream lets the sorter hand rows on before all have come. Without any time so far
// their order is that of sessions, which only the end shows.
func (p *pipeline) stream() (emit func(*trace.Batch) error) {
	if !p.sessionClock && !p.anyArrival {
		return nil
	}
	p.streams = true
	if !p.sessionClock {
		p.base = p.min
	}
	return func(b *trace.Batch) error { return p.emit(b, p.base) }
}

// emit writes rows in their final order.
func (p *pipeline) emit(b *trace.Batch, base int64) error {
	if base != 0 {
		for i, null := range b.ArrivalNS.Null {
			if !null {
				b.ArrivalNS.Values[i] -= base
			}
		}
	}
	if seq, ok := p.imp.(Sequencer); ok {
		seq.Sequence(b)
	}
	return p.out.Write(b)
}

type sessionKey struct {
	ordinal int64
	last    int64 // arrival that a row without one inherits
	known   bool
}

func (p *pipeline) add(b *trace.Batch) error {
	if c, ok := p.imp.(SessionClock); ok && p.rows == 0 {
		p.sessionClock = c.SessionClock()
	}
	p.keys = p.keys[:0]
	if !p.sessionClock && b.SessionID.Unknown() {
		p.plainKeys(b)
		return p.sorter.AddRows(b, 0, p.keys)
	}
	for i := range b.Len() {
		at, known := b.ArrivalNS.Get(i)
		if known && (!p.anyArrival || at < p.min) {
			p.min, p.anyArrival = at, true
		}
		p.keys = append(p.keys, p.key(b, i, at, known))
		p.rows++
	}
	return p.sorter.AddRows(b, 0, p.keys)
}

// plainKeys are the keys of rows without sessions on one clock.
func (p *pipeline) plainKeys(b *trace.Batch) {
	at, null := b.ArrivalNS.Values, b.ArrivalNS.Null
	for i, t := range at {
		switch {
		case !null[i]:
			if !p.anyArrival || t < p.min {
				p.min, p.anyArrival = t, true
			}
			p.lastArrival = t
		case p.anyArrival:
			t = p.lastArrival
		default:
			t = math.MinInt64
		}
		p.keys = append(p.keys, trace.Key{Major: t})
	}
	p.rows += int64(len(at))
}

// key orders by arrival on one clock, else by session, arrival and turn. A row
// without an arrival stays behind the row of its session before it.
func (p *pipeline) key(b *trace.Batch, i int, at int64, known bool) trace.Key {
	s := p.session(b, i)
	if !known {
		at = s.last
		if !s.known {
			at = p.lastArrival
			if !p.anyArrival {
				at = math.MinInt64
			}
		}
	} else {
		p.lastArrival = at
	}
	s.last, s.known = at, s.known || known
	if !p.sessionClock {
		return trace.Key{Major: at}
	}
	turn, _ := b.Turn.Get(i)
	return trace.Key{Major: s.ordinal, Minor: at, Tie: int64(turn)}
}

// session returns the state of the row's session; a row without one is its own.
func (p *pipeline) session(b *trace.Batch, i int) *sessionKey {
	id, ok := b.SessionID.Get(i)
	if !ok {
		p.own = sessionKey{ordinal: p.rows}
		return &p.own
	}
	s := p.sessions[id]
	if s == nil {
		s = &sessionKey{ordinal: p.rows}
		p.sessions[id] = s
	}
	return s
}

// origin moves the source's time of arrival 0 into the metadata.
func (p *pipeline) origin(meta *trace.Meta) {
	if meta.Clock != trace.ClockTrace || !p.anyArrival {
		p.min = 0
		return
	}
	if epoch, ok := meta.EpochNS.Get(); ok {
		meta.EpochNS = trace.Some(epoch + p.min)
	}
	if p.min != 0 {
		meta.OriginNS = trace.Some(meta.OriginNS.Or(0) + p.min)
	}
}

func (p *pipeline) write(meta trace.Meta) error {
	if p.streams && (p.base != p.min || meta.Clock == trace.ClockNone && !p.sessionClock) {
		return trace.ErrLate // the end shows that they were no times of one clock
	}
	sorter := p.sorter
	if meta.Clock == trace.ClockNone && !p.sessionClock {
		bySession := &trace.Sorter{Memory: sorter.Memory}
		defer bySession.Close()
		rows := int64(0)
		err := sorter.Sorted(func(b *trace.Batch) error {
			for i := range b.Len() {
				if err := bySession.Add(b, i, p.clocklessKey(b, i, rows)); err != nil {
					return err
				}
				rows++
			}
			return nil
		})
		if err != nil {
			return err
		}
		sorter = bySession
	}
	return sorter.Sorted(func(b *trace.Batch) error { return p.emit(b, p.min) })
}

// clocklessKey keeps sessions in the order of their first row; row counts rows in
// source order, as ordinals do.
func (p *pipeline) clocklessKey(b *trace.Batch, i int, row int64) trace.Key {
	turn, _ := b.Turn.Get(i)
	if id, ok := b.SessionID.Get(i); ok {
		return trace.Key{Major: p.sessions[id].ordinal, Minor: int64(turn)}
	}
	return trace.Key{Major: row}
}
