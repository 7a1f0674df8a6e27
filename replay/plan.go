package replay

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"reprise/trace"
)

// A Selection says which rows of a trace are replayed, and when.
type Selection struct {
	Speed           float64       // time compression: 2 = twice as fast; 0 = 1
	From, To        time.Duration // recorded time, start in, end out; To 0 = to the end. Due times begin at From
	Limit           int64         // at most so many rows; 0 = all
	Arrivals        Arrivals      // request starts in row order, instead of the trace's times
	SessionArrivals Arrivals      // session starts, for session clocks; times within a session stay
	Seed            uint64
}

// Streams of the seed, one per purpose.
const (
	streamArrivals uint64 = 1 + iota
	streamSessions
	streamCancel
)

func (s *Selection) speed() float64 {
	if s.Speed == 0 {
		return 1
	}
	return s.Speed
}

// minSpeed keeps due times within what a clock of nanoseconds can hold.
const minSpeed = 1e-6

// check refuses what cannot be done with a trace on the given clock, with the
// way out.
func (s *Selection) check(clock string, paced bool) error {
	placed := s.Arrivals.Kind != "" || s.SessionArrivals.Kind != ""
	windowed := s.From != 0 || s.To != 0
	switch {
	case s.Speed < 0 || math.IsNaN(s.Speed):
		return fmt.Errorf("--speed %v: must be above 0", s.Speed)
	case s.Speed != 0 && (s.Speed < minSpeed || s.Speed > 1/minSpeed):
		return fmt.Errorf("--speed %v: not between %g and %g", s.Speed, minSpeed, 1/minSpeed)
	case s.From < 0:
		return fmt.Errorf("--from %v: must not be below 0", s.From)
	case s.To != 0 && s.To <= s.From:
		return fmt.Errorf("--to %v: not after --from %v", s.To, s.From)
	case s.Arrivals.Kind != "" && s.SessionArrivals.Kind != "":
		return fmt.Errorf("--arrivals and --session-arrivals exclude each other")
	case s.Arrivals.Kind != "" && s.speed() != 1:
		return trace.WithFix(fmt.Errorf("--speed changes recorded times, but --arrivals replaces them"), "give --arrivals the rate you want and leave out --speed")
	case windowed && placed:
		return trace.WithFix(fmt.Errorf("--from and --to choose by recorded time, but arrivals are placed by a law"), "leave out --from and --to, or use --limit")
	case clock == trace.ClockNone && s.Arrivals.Kind == "" && !(paced && s.SessionArrivals.Kind != ""):
		return trace.WithFix(fmt.Errorf("the trace has no clock: its source recorded no times"), "place its conversations and let each turn follow the one before: --pace think --session-arrivals poisson:0.5; or give every request a time of its own: --arrivals poisson:4")
	case clock == trace.ClockSession && windowed:
		return trace.WithFix(fmt.Errorf("--from and --to need one clock, but each session of this trace has its own"), "use --limit")
	case clock == trace.ClockSession && !placed:
		return trace.WithFix(fmt.Errorf("each session of this trace has its own clock, which says nothing of when the others began"), "place the session starts, such as --session-arrivals poisson:0.2 (a session every 5 s) or --session-arrivals at-once")
	case s.SessionArrivals.Kind != "" && clock != trace.ClockSession && !(paced && clock == trace.ClockNone):
		return trace.WithFix(fmt.Errorf("--session-arrivals is for traces whose sessions have clocks of their own; this one has clock %q", clock), "leave it out, or use --arrivals to replace all times")
	}
	return nil
}

// A rowReader is a trace that is being read; *trace.Reader is one.
type rowReader interface {
	Meta() trace.Meta
	Read(b *trace.Batch, n int) error
	Close() error
}

// A rowFunc takes a selected row and when it is due. A row without a time of its
// own has hasDue false and the due time of the row before.
type rowFunc func(b *trace.Batch, row int, due time.Duration, hasDue bool) error

// open opens the trace from its start.
func (c *Config) open() (rowReader, error) {
	if c.source != nil {
		return c.source(), nil
	}
	return trace.Open(c.Trace)
}

// each hands the selected rows to f in order of their due times; ties keep the
// order of the trace. It opens the trace anew each time, so it can be used more
// than once.
func (c *Config) each(ctx context.Context, f rowFunc) error {
	r, err := c.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := c.Selection.check(r.Meta().Clock, c.paced()); err != nil {
		return fmt.Errorf("%s: %w", c.Trace, err)
	}
	return c.Selection.each(ctx, c.Trace, r, c.paced(), f)
}

func (s *Selection) each(ctx context.Context, path string, r rowReader, paced bool, f rowFunc) error {
	if s.SessionArrivals.Kind != "" {
		return s.eachPlaced(ctx, r, paced, f)
	}
	var start func() time.Duration
	if s.Arrivals.Kind != "" {
		start = s.Arrivals.starts(rand.NewPCG(s.Seed, streamArrivals))
	}
	var n int64
	var last time.Duration
	return s.rows(ctx, r, func(b *trace.Batch, row int) error {
		if s.Limit > 0 && n == s.Limit {
			return io.EOF
		}
		if start != nil {
			n++
			return f(b, row, start(), true)
		}
		at, known := b.ArrivalNS.Get(row)
		switch {
		case !known && paced:
			n++
			return f(b, row, last, false)
		case !known:
			return trace.WithFix(fmt.Errorf("%s: id %d has no arrival: its source gives only a wait after the turn before", path, b.ID.Values[row]), "let it wait for that turn with --pace causal, or replace all times with --arrivals, such as --arrivals poisson:4")
		case time.Duration(at) < s.From:
			return nil
		case s.To != 0 && time.Duration(at) >= s.To:
			return io.EOF
		}
		n++
		last = s.due(time.Duration(at) - s.From)
		return f(b, row, last, true)
	})
}

func (s *Selection) due(at time.Duration) time.Duration {
	if s.speed() == 1 {
		return at
	}
	return time.Duration(float64(at) / s.speed())
}

// rows reads the trace; f ends the reading with io.EOF.
func (s *Selection) rows(ctx context.Context, r rowReader, f func(b *trace.Batch, row int) error) error {
	b := trace.NewBatch()
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		err := r.Read(b, trace.BatchRows)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for row := range b.Len() {
			if err := f(b, row); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
}

// eachPlaced places the sessions of a trace with session clocks and sorts their
// rows by due time, on disk if need be. A row without a session is one of its
// own. Limit counts rows in trace order, so that whole sessions come first.
func (s *Selection) eachPlaced(ctx context.Context, r rowReader, paced bool, f rowFunc) error {
	sorter := &trace.Sorter{}
	defer sorter.Close()
	start := s.SessionArrivals.starts(rand.NewPCG(s.Seed, streamSessions))
	var begin time.Duration
	var open string
	var any bool
	var n int64
	err := s.rows(ctx, r, func(b *trace.Batch, row int) error {
		if s.Limit > 0 && n == s.Limit {
			return io.EOF
		}
		n++
		id, has := b.SessionID.Get(row)
		first := !any || !has || id != open
		if first {
			begin = start()
		}
		any, open = true, id
		at, known := b.ArrivalNS.Get(row)
		switch {
		case known || first:
			b.ArrivalNS.Values[row], b.ArrivalNS.Null[row] = int64(begin+s.due(time.Duration(at))), false
		case !paced:
			return fmt.Errorf("id %d has no arrival within its session", b.ID.Values[row])
		}
		return sorter.Add(b, row, trace.Key{Major: max(int64(begin), b.ArrivalNS.Values[row])})
	})
	if err != nil {
		return err
	}
	var last time.Duration
	return sorter.Sorted(func(b *trace.Batch) error {
		for row := range b.Len() {
			at, known := b.ArrivalNS.Get(row)
			if known {
				last = time.Duration(at)
			}
			if err := f(b, row, last, known); err != nil {
				return err
			}
		}
		return nil
	})
}
