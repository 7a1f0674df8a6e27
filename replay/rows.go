package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"reprise/trace"
)

// A rowReader is a trace that is being read; *trace.Reader is one.
type rowReader interface {
	trace.BatchReader
	Meta() trace.Meta
	Close() error
}

// A start is when a selected row is to be sent.
type start struct {
	due   time.Duration // of a row without a time of its own, that of the row before
	known bool          // it has one
	pass  int32         // how often the trace had been sent before
	warm  bool          // it stands for what its session has lived through already
	tree  int64         // with LoadTrees: which session, counted from 0
	last  bool          // with LoadTrees: the last of its session
	seq   int           // its place among all that are selected, also those of other shards
}

// A rowFunc takes a selected row.
type rowFunc func(b *trace.Batch, row int, s start) error

// open opens the trace from its start.
func (c *Config) open() (rowReader, error) {
	if c.source != nil {
		return c.source(), nil
	}
	r, err := trace.Open(c.Trace)
	if err != nil {
		return nil, err
	}
	if err := r.Only(sendColumns...); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// each hands the selected rows to f in the order in which they are to be sent;
// ties keep the order of the trace. It opens the trace anew each time, so it can
// be used more than once.
func (c *Config) each(ctx context.Context, f rowFunc) error {
	if c.Times != "" {
		return c.eachDealt(ctx, f)
	}
	d := &drawing{Selection: &c.Selection, mine: c.sieve(), path: c.Trace, paced: c.paced(), open: c.open, f: f}
	return d.all(ctx)
}

// A drawing is one way through the selected rows.
type drawing struct {
	*Selection
	mine  sieve
	path  string
	paced bool
	open  func() (rowReader, error)
	f     rowFunc

	pass     int32
	n        int64                        // rows chosen
	handed   int64                        // of these, with a load by sessions: some stand for what came before
	next     func() (time.Duration, bool) // of Arrivals; nil = the trace's times
	last     time.Duration
	sessions map[string]struct{} // of this pass, with Sessions
	begun    int64               // sessions, of all passes
	seq      int                 // rows that came so far
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough rows")

// all reads the trace, again and again with Recycle.
func (d *drawing) all(ctx context.Context) error {
	if d.Arrivals.Kind != "" {
		d.next = d.Arrivals.starts(rand.NewPCG(d.Seed, streamArrivals))
	}
	if d.bySessions() {
		return enough(d.bySession(ctx))
	}
	for ; ; d.pass++ {
		before := d.n
		d.sessions = map[string]struct{}{}
		err := d.read(ctx)
		if err == nil && d.Recycle && d.n > before && !d.full() {
			continue
		}
		return enough(err)
	}
}

// enough is err, but for the one that says that all is well.
func enough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// full tells that there are as many rows or sessions as are wanted.
func (d *drawing) full() bool {
	return d.Limit > 0 && !d.bySessions() && d.n >= d.Limit || d.Sessions > 0 && d.begun >= d.Sessions
}

// read reads the trace once.
func (d *drawing) read(ctx context.Context) error {
	r, err := d.opened()
	if err != nil {
		return err
	}
	defer r.Close()
	if d.SessionArrivals.Kind != "" {
		return d.eachPlaced(ctx, r, r.Meta().Clock)
	}
	return d.rows(ctx, r, d.row)
}

// opened opens the trace, unless its clock does not go with the selection.
func (d *drawing) opened() (rowReader, error) {
	r, err := d.open()
	if err != nil {
		return nil, err
	}
	if err := d.check(r.Meta().Clock, d.paced); err != nil {
		r.Close()
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	return r, nil
}

// take counts a row; it is errEnough when no more are wanted, and false for one of
// a session too many.
func (d *drawing) take(session string, known bool) (bool, error) {
	if d.Limit > 0 && d.n == d.Limit && !d.bySessions() {
		return false, errEnough
	}
	if d.Sessions > 0 {
		_, seen := d.sessions[session]
		if seen = seen && known; !seen {
			if d.begun == d.Sessions {
				return false, nil
			}
			d.begun++
		}
		if known {
			d.sessions[session] = struct{}{}
		}
	}
	d.n++
	return true, nil
}

// hand gives a row to f, unless it would begin too late.
func (d *drawing) hand(b *trace.Batch, row int, s start) error {
	if d.Duration > 0 && s.due >= d.Duration && !d.Load.closed() {
		return errEnough
	}
	if d.bySessions() && !s.warm {
		if d.Limit > 0 && d.handed == d.Limit {
			return errEnough
		}
		d.handed++
	}
	s.seq = d.seq
	d.seq++
	if !d.mine.has(b, row, s) {
		return nil
	}
	return d.f(b, row, s)
}

// bySessions tells that whole sessions are taken from the trace.
func (d *drawing) bySessions() bool {
	return d.Load.Kind == LoadUsers || d.Load.Kind == LoadTrees
}

// row hands on a row in the order of the trace.
func (d *drawing) row(b *trace.Batch, row int) error {
	at, known := b.ArrivalNS.Get(row)
	if d.next == nil && d.Load.Kind == "" && known {
		if time.Duration(at) < d.From {
			return nil
		}
		if d.To != 0 && time.Duration(at) >= d.To {
			return errEnough
		}
	}
	if ok, err := d.take(b.SessionID.Get(row)); err != nil || !ok {
		return err
	}
	switch {
	case d.next != nil:
		due, ok := d.next()
		if !ok {
			return errEnough
		}
		return d.hand(b, row, start{due: due, known: true, pass: d.pass})
	case d.Load.Kind != "":
		return d.hand(b, row, start{pass: d.pass})
	case !known && d.paced:
		return d.hand(b, row, start{due: d.last})
	case !known:
		return trace.WithFix(fmt.Errorf("%s: id %d has no arrival: its source gives only a wait after the turn before", d.path, b.ID.Values[row]), "let it wait for that turn with --pace causal, or replace all times with --arrivals, such as --arrivals poisson:4")
	}
	d.last = d.due(time.Duration(at) - d.From)
	return d.hand(b, row, start{due: d.last, known: true})
}

func (s *Selection) due(at time.Duration) time.Duration {
	if s.speed() == 1 {
		return at
	}
	return time.Duration(float64(at) / s.speed())
}

// rows reads the trace once.
func (d *drawing) rows(ctx context.Context, r rowReader, f func(b *trace.Batch, row int) error) error {
	return trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for row := range b.Len() {
			if err := f(b, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPlaced places the sessions of a trace and sorts their rows by due time, on
// disk if need be. A row without a session is one of its own. Limit counts rows in
// trace order.
func (d *drawing) eachPlaced(ctx context.Context, r rowReader, clock string) error {
	sorter := &trace.Sorter{}
	defer sorter.Close()
	place := placer{whole: clock != trace.ClockTrace, start: d.SessionArrivals.starts(rand.NewPCG(d.Seed, streamSessions))}
	err := d.rows(ctx, r, func(b *trace.Batch, row int) error {
		id, has := b.SessionID.Get(row)
		if ok, err := d.take(id, has); err != nil || !ok {
			return err
		}
		at, known := b.ArrivalNS.Get(row)
		begin, ok := place.of(id, has, time.Duration(at))
		switch {
		case !ok:
			return nil // the law has no start for it
		case known || begin.first:
			at = int64(begin.at + d.due(time.Duration(at)-begin.recorded))
			b.ArrivalNS.Values[row], b.ArrivalNS.Null[row] = at, false
		case !d.paced:
			return fmt.Errorf("id %d has no arrival within its session", b.ID.Values[row])
		}
		return sorter.Add(b, row, trace.Key{Major: max(int64(begin.at), b.ArrivalNS.Values[row])})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if !place.whole && place.all == nil {
		return trace.WithFix(fmt.Errorf("%s: no request names a session whose start could be placed", d.path), "use --arrivals to replace all times")
	}
	return sorter.Sorted(func(b *trace.Batch) error {
		for row := range b.Len() {
			at, known := b.ArrivalNS.Get(row)
			if known {
				d.last = time.Duration(at)
			}
			if err := d.hand(b, row, start{due: d.last, known: known}); err != nil {
				return err
			}
		}
		return nil
	})
}

// A placer gives sessions their starts, in the order of the trace.
type placer struct {
	start func() (time.Duration, bool)
	whole bool // the rows of a session are together, and begin at 0
	open  string
	any   bool
	now   placement
	ok    bool
	all   map[string]placement // unless whole
}

// A placement is the start of a session.
type placement struct {
	at       time.Duration
	recorded time.Duration // what the trace calls the arrival of its first row
	first    bool          // this is that row
}

// of returns the start of a row's session; false if there is none for it.
func (p *placer) of(id string, has bool, at time.Duration) (placement, bool) {
	if p.whole {
		first := !p.any || !has || id != p.open
		if first {
			p.now.at, p.ok = p.start()
		}
		p.any, p.open, p.now.first = true, id, first
		return p.now, p.ok
	}
	if known, seen := p.all[id]; seen && has {
		known.first = false
		return known, known.at >= 0
	}
	begin, ok := p.start()
	if !ok {
		begin = -1
	}
	now := placement{at: begin, recorded: at, first: true}
	if has {
		if p.all == nil {
			p.all = map[string]placement{}
		}
		p.all[id] = now
	}
	return now, ok
}
