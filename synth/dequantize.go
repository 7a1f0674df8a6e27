package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
)

// A Spreading puts quantised arrivals back between the ticks: the rows of a tick
// are spread over it evenly by chance, in their order. Replayed as they are, the
// batches of a tick of seconds would be bursts that never happened; a fit must
// use the likelihood of ticks all the same, and not these arrivals.
type Spreading struct {
	Tick time.Duration // 0 = what the arrivals show, as a fit sees it
	Seed uint64
}

// A Spread is what was done.
type Spread struct {
	TickNS int64 `json:"tick_ns"`
	Rows   int64 `json:"rows"`  // with an arrival
	Ticks  int64 `json:"ticks"` // distinct ticks that hold rows
	Most   int64 `json:"most"`  // rows in one tick
}

// Run spreads the arrivals of the trace and hands the rows to emit in their
// order. Its memory grows with the rows of one tick.
func (s Spreading) Run(ctx context.Context, open Open, emit func(*trace.Batch) error) (trace.Meta, Spread, error) {
	r, err := open()
	if err != nil {
		return trace.Meta{}, Spread{}, err
	}
	defer r.Close()
	meta := r.Meta()
	if meta.Clock != trace.ClockTrace {
		return meta, Spread{}, trace.WithFix(errors.New("the trace has no clock over all rows, so its arrivals are not quantised together"), "give it arrivals with: reprise synth --arrivals")
	}
	tick := int64(s.Tick)
	if tick == 0 {
		if tick, err = effectiveTick(ctx, open); err != nil {
			return meta, Spread{}, err
		}
	}
	if tick <= 1 {
		return meta, Spread{}, trace.WithFix(fmt.Errorf("a tick of %v has nothing to spread over", time.Duration(tick)), "name a longer one with --tick, if the arrivals are coarser than they look")
	}
	w := &spreader{Spread: Spread{TickNS: tick}, seed: s.Seed, group: trace.NewBatch(), emit: emit}
	if err := w.all(ctx, r); err != nil {
		return meta, w.Spread, err
	}
	if w.Rows == 0 {
		return meta, w.Spread, errors.New("no row has an arrival")
	}
	if epoch, ok := meta.EpochNS.Get(); ok {
		meta.EpochNS = trace.Some(epoch + w.base)
	}
	meta.OriginNS = trace.Some(meta.OriginNS.Or(0) + w.base)
	meta.TickNS = trace.Optional[int64]{}
	return meta, w.Spread, nil
}

// effectiveTick reads the arrivals and finds the grid that they lie on, which may
// be coarser than the unit of the timestamps: 3 s in the Mooncake conversation
// trace, which has whole milliseconds.
func effectiveTick(ctx context.Context, open Open) (int64, error) {
	r, err := open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var c fitClock
	err = trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			if at, ok := b.ArrivalNS.Get(i); ok {
				c.add(at)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if c.n == 0 {
		return 0, errors.New("no row has an arrival")
	}
	stated := r.Meta().TickNS.Or(0)
	if c.last == c.first {
		return stated, nil
	}
	c.settle(stated)
	return c.tick, nil
}

// A spreader gathers the rows of a tick.
type spreader struct {
	Spread
	seed  uint64
	group *trace.Batch
	timed int64 // rows of group with an arrival
	index int64 // of the tick of group
	base  int64 // first arrival, which becomes 0
	any   bool
	emit  func(*trace.Batch) error
}

func (w *spreader) all(ctx context.Context, r *trace.Reader) error {
	err := trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			if at, ok := b.ArrivalNS.Get(i); ok {
				if at < 0 || at > math.MaxInt64-2*w.TickNS {
					return trace.WithFix(fmt.Errorf("arrival_ns %d and a tick of %v do not fit: times end at 292 years", at, time.Duration(w.TickNS)), "cut what is wrong with its time off: reprise trace cut --to")
				}
				index := (at + w.TickNS/2) / w.TickNS // stamps may lie a little off the grid
				if w.timed > 0 && index != w.index {
					if err := w.flush(); err != nil {
						return err
					}
				}
				w.index = index
				w.timed++
			}
			w.group.AppendRow(b, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.flush()
}

// flush spreads the rows of one tick.
func (w *spreader) flush() error {
	if w.group.Len() == 0 {
		return nil
	}
	stream := stats.Stream(w.seed, drawSpread, uint64(w.index))
	times := make([]int64, w.timed)
	for i := range times {
		times[i] = w.index*w.TickNS + stream.Int64N(w.TickNS)
	}
	slices.Sort(times)
	if !w.any && len(times) > 0 {
		w.base, w.any = times[0], true
	}
	k := 0
	for i := range w.group.Len() {
		if !w.group.ArrivalNS.Null[i] {
			w.group.ArrivalNS.Values[i] = times[k] - w.base
			k++
		}
	}
	w.Rows += w.timed
	w.Most = max(w.Most, w.timed)
	if w.timed > 0 {
		w.Ticks++
	}
	err := w.emit(w.group)
	w.group.Reset()
	w.timed = 0
	return err
}
