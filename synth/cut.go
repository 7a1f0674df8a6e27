package synth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
)

// A Cutting takes a part of a trace. The zero value takes all of it. Rows keep
// what they are, but for times, which begin at 0 again, and dependencies on rows
// that are left out.
type Cutting struct {
	From, To time.Duration // of recorded time, start in, end out; To 0 = to the end
	Share    float64       // of the sessions, whole, by hash and Seed; 0 = all
	Seed     uint64        //
	Models   []string      // of these alone; empty = all
	Input    Range         // tokens of the prompt; rows that do not know them stay
	Output   Range         // tokens of the answer; likewise
	Whole    bool          // a session of which one request is left out by its lengths or model is left out whole
	Limit    int64         // first rows that are left; 0 = all
	GapCap   time.Duration // longest time between arrivals of a session: what is longer is cut out; 0 = none
	Memory   int64         // bytes that putting rows in order may hold, for GapCap
}

// A Range is from Least to Most, both included; 0 = no bound.
type Range struct{ Least, Most int64 }

func (r Range) holds(n int64) bool { return n >= r.Least && (r.Most == 0 || n <= r.Most) }

// A Cut is what was done.
type Cut struct {
	Read     int64            `json:"read"`
	Kept     int64            `json:"kept"`
	Left     map[string]int64 `json:"left_out,omitempty"` // by reason
	CutAfter int64            `json:"cut_after"`          // dependencies on rows that are left out
	GapsCut  int64            `json:"gaps_cut"`           // by GapCap
	GapsCutS float64          `json:"gaps_cut_s"`         // in all
}

// check refuses what cannot be cut.
func (c *Cutting) check(clock string) error {
	switch {
	case c.From < 0:
		return fmt.Errorf("--from %v: must not be below 0", c.From)
	case c.To != 0 && c.To <= c.From:
		return fmt.Errorf("--to %v: not after --from %v", c.To, c.From)
	case !(c.Share >= 0 && c.Share <= 1):
		return fmt.Errorf("--share %v: not between 0 and 1", c.Share)
	case c.GapCap < 0:
		return fmt.Errorf("--gap-cap %v: must not be below 0", c.GapCap)
	case c.Limit < 0:
		return fmt.Errorf("--limit %d: must not be below 0", c.Limit)
	case (c.From != 0 || c.To != 0) && clock != trace.ClockTrace:
		return trace.WithFix(errors.New("--from and --to need one clock over all requests, which this trace has not"), "use --limit or --share")
	case c.GapCap != 0 && clock == trace.ClockNone:
		return trace.WithFix(errors.New("--gap-cap: the trace has no times"), "leave it out")
	}
	return nil
}

// A cutter is a Cutting at work. Its memory is a bit a row, and a little for
// each session.
type cutter struct {
	*Cutting
	Cut
	kept   idSet
	broken map[uint64]bool // sessions to leave out whole
	shifts map[uint64]*sessionShift
	base   base
	clock  string
}

// sessionShift is what GapCap has cut out of a session so far.
type sessionShift struct{ last, cut int64 }

// Run hands the rows that are left to emit, in order.
func (c *Cutting) Run(ctx context.Context, open Open, emit func(*trace.Batch) error) (trace.Meta, Cut, error) {
	r, err := open()
	if err != nil {
		return trace.Meta{}, Cut{}, err
	}
	meta := r.Meta()
	r.Close()
	if err := c.check(meta.Clock); err != nil {
		return meta, Cut{}, err
	}
	w := &cutter{Cutting: c, Cut: Cut{Left: map[string]int64{}}, broken: map[uint64]bool{}, shifts: map[uint64]*sessionShift{}, clock: meta.Clock}
	if err := w.choose(ctx, open); err != nil {
		return meta, w.Cut, err
	}
	if w.Kept == 0 {
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(w.Left)) {
			why = append(why, fmt.Sprintf("%d %s", w.Left[reason], reason))
		}
		if len(why) == 0 {
			return meta, w.Cut, errors.New("the trace has no rows")
		}
		return meta, w.Cut, trace.WithFix(fmt.Errorf("no row is left: %s", strings.Join(why, ", ")), "cut less")
	}
	if err := w.write(ctx, open, emit); err != nil {
		return meta, w.Cut, err
	}
	if moved := w.base.at; moved != 0 && meta.Clock == trace.ClockTrace {
		meta.OriginNS = trace.Some(meta.OriginNS.Or(0) + moved)
		if epoch, ok := meta.EpochNS.Get(); ok {
			meta.EpochNS = trace.Some(epoch + moved)
		}
	}
	if w.Kept != w.Read {
		meta.Counts = trace.Counts{Read: w.Read, Kept: w.Kept}
	}
	return meta, w.Cut, nil
}

// choose finds the rows that stay. Sessions that are to go whole are found in a
// pass of their own.
func (w *cutter) choose(ctx context.Context, open Open) error {
	if w.Whole {
		err := eachRow(ctx, open, func(b *trace.Batch, i int) error {
			if id, ok := b.SessionID.Get(i); ok && w.unfit(b, i) != "" {
				w.broken[textKey(id)] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var last int64
	return eachRow(ctx, open, func(b *trace.Batch, i int) error {
		w.Read++
		if at, ok := b.ArrivalNS.Get(i); ok {
			last = at
		}
		switch why := w.leaves(b, i, last); {
		case why != "":
			w.Left[why]++
		case w.Limit > 0 && w.Kept == w.Limit:
			w.Left["after the first rows"]++
		default:
			w.Kept++
			w.kept.add(b.ID.Values[i])
		}
		return nil
	})
}

// leaves says why a row is left out; "" if it stays.
func (w *cutter) leaves(b *trace.Batch, i int, at int64) string {
	id, named := b.SessionID.Get(i)
	switch {
	case at < int64(w.From), w.To != 0 && at >= int64(w.To):
		return "outside the time window"
	case w.Share > 0 && w.Share < 1 && w.draw(b, i) >= w.Share:
		return "of sessions that were not drawn"
	case named && w.broken[textKey(id)]:
		return "of sessions that go whole"
	}
	return w.unfit(b, i)
}

func (w *cutter) draw(b *trace.Batch, i int) float64 {
	if id, ok := b.SessionID.Get(i); ok {
		return stats.Draw(w.Seed, drawKeep, textKey(id))
	}
	return stats.Draw(w.Seed, drawKeep, stats.Hash(uint64(b.ID.Values[i]), 1))
}

// unfit says which limit a row does not keep.
func (w *cutter) unfit(b *trace.Batch, i int) string {
	if n, ok := b.InputTokens.Get(i); ok && !w.Input.holds(n) {
		return "by input tokens"
	}
	if n, ok := b.OutputTokens.Get(i); ok && !w.Output.holds(n) {
		return "by output tokens"
	}
	if len(w.Models) > 0 {
		name, _ := b.Model.Get(i)
		for _, m := range w.Models {
			if m == name {
				return ""
			}
		}
		return "by model"
	}
	return ""
}

// write emits the rows, put in order again where gaps were cut on one clock.
func (w *cutter) write(ctx context.Context, open Open, emit func(*trace.Batch) error) error {
	var sorter *trace.Sorter
	out := trace.NewBatch()
	put := func() error { return w.flush(out, emit) }
	if w.GapCap > 0 && w.clock == trace.ClockTrace {
		sorter = &trace.Sorter{Memory: w.Memory}
		defer sorter.Close()
	}
	last := int64(math.MinInt64)
	err := eachRow(ctx, open, func(b *trace.Batch, i int) error {
		if !w.kept.has(b.ID.Values[i]) {
			return nil
		}
		w.append(out, b, i)
		if sorter != nil {
			if at, ok := out.ArrivalNS.Get(0); ok {
				last = at
			}
			err := sorter.Add(out, 0, trace.Key{Major: last})
			out.Reset()
			return err
		}
		if out.Len() == trace.BatchRows {
			return put()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sorter == nil {
		return put()
	}
	return sorter.Sorted(func(b *trace.Batch) error {
		w.base.apply(b, false)
		return emit(b)
	})
}

func (w *cutter) flush(out *trace.Batch, emit func(*trace.Batch) error) error {
	if out.Len() == 0 {
		return nil
	}
	w.base.apply(out, w.clock == trace.ClockSession)
	err := emit(out)
	out.Reset()
	return err
}

// append adds a row without dependencies on rows that are left out, and with its
// session's long gaps cut.
func (w *cutter) append(out, b *trace.Batch, i int) {
	after := b.AfterOf(i)
	kept := after[:0:0]
	for _, d := range after {
		if w.kept.has(d.ID) {
			kept = append(kept, d)
		}
	}
	if len(kept) == len(after) {
		out.AppendRow(b, i)
	} else {
		w.CutAfter += int64(len(after) - len(kept))
		row := b.Row(i)
		if row.After = kept; len(kept) == 0 {
			row.After, row.Delay = nil, trace.Optional[time.Duration]{}
		}
		out.Append(&row)
	}
	if w.GapCap > 0 {
		w.capGap(out, out.Len()-1)
	}
}

func (w *cutter) capGap(out *trace.Batch, i int) {
	limit := int64(w.GapCap)
	if delay, ok := out.DelayNS.Get(i); ok {
		out.DelayNS.Values[i] = min(delay, limit)
	}
	id, named := out.SessionID.Get(i)
	at, timed := out.ArrivalNS.Get(i)
	if !named || !timed {
		return
	}
	s := w.shifts[textKey(id)]
	if s == nil {
		s = &sessionShift{last: at}
		w.shifts[textKey(id)] = s
	}
	if gap := at - s.last; gap > limit {
		s.cut += gap - limit
		w.GapsCut++
		w.GapsCutS += float64(gap-limit) / 1e9
	}
	s.last = at
	out.ArrivalNS.Values[i] = at - s.cut
}

// eachRow reads a trace from its start.
func eachRow(ctx context.Context, open Open, f func(b *trace.Batch, i int) error) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	return trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			if err := f(b, i); err != nil {
				return err
			}
		}
		return nil
	})
}
