package synth

import (
	"context"
	"math/rand/v2"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A Placing gives the sessions of a trace starts of its own: to a trace without
// a clock, to one whose sessions have each their own, or instead of the times
// that were recorded. Times within a session stay. A row without a session is one
// of its own.
type Placing struct {
	Arrivals *model.Arrivals // of sessions, in the order in which they come in the trace
	Think    stats.Law       // s from one turn to the next where the trace has no times; nil = such turns have no arrival, and follow the turn before (causal pacing)
	Seed     uint64
	Memory   int64 // bytes that sorting may hold; 0 = trace.DefaultMemory
}

// A Placed is what was done.
type Placed struct {
	Sessions int64 `json:"sessions"`
	Unplaced int64 `json:"without_arrival"` // later turns that follow the one before
}

// placedSession is where a session stands.
type placedSession struct {
	offset int64 // to add to its recorded times
	last   int64 // arrival of the row before
	rand   randStream
}

// Run hands the rows to emit in order of arrival. Its memory grows with the
// number of sessions.
func (p Placing) Run(ctx context.Context, open Open, emit func(*trace.Batch) error) (trace.Meta, Placed, error) {
	r, err := open()
	if err != nil {
		return trace.Meta{}, Placed{}, err
	}
	defer r.Close()
	meta := r.Meta()
	sorter := &trace.Sorter{Memory: p.Memory}
	defer sorter.Close()
	w := &placer{Placing: p, clock: newProfileClock(p.Arrivals.Profile), sessions: map[string]*placedSession{}, sorter: sorter}
	if err := w.all(ctx, r); err != nil {
		return meta, w.Placed, err
	}
	err = sorter.Sorted(func(b *trace.Batch) error {
		for i := range b.Len() {
			if at, ok := b.ArrivalNS.Get(i); ok {
				b.ArrivalNS.Values[i] = at - w.first
			}
		}
		return emit(b)
	})
	meta.Clock = trace.ClockTrace
	meta.EpochNS, meta.OriginNS, meta.TickNS = trace.Optional[int64]{}, trace.Optional[int64]{}, trace.Optional[int64]{}
	return meta, w.Placed, err
}

type placer struct {
	Placing
	Placed
	clock    profileClock
	gaps     stats.Law
	rng      *rand.Rand
	mass     float64
	first    int64
	sessions map[string]*placedSession
	sorter   *trace.Sorter
}

func (w *placer) all(ctx context.Context, r *trace.Reader) error {
	w.gaps = stats.Exponential{Rate: 1}
	if w.Arrivals.Gaps != nil {
		var err error
		if w.gaps, err = w.Arrivals.Gaps.Law(); err != nil {
			return err
		}
	}
	w.rng = stats.Stream(w.Seed, genGaps)
	clock := r.Meta().Clock
	return trace.EachBatch(ctx, r, func(b *trace.Batch) error {
		for i := range b.Len() {
			if err := w.sorter.Add(b, i, trace.Key{Major: w.place(b, i, clock)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// place sets the arrival of a row and returns where it stands.
func (w *placer) place(b *trace.Batch, i int, clock string) int64 {
	at, known := b.ArrivalNS.Get(i)
	id, named := b.SessionID.Get(i)
	s := w.sessions[id]
	if !named || s == nil {
		start := w.start()
		s = &placedSession{offset: start - at, last: start}
		s.rand.reset(w.Seed, genSession, uint64(w.Sessions))
		w.Sessions++
		if named {
			w.sessions[id] = s
		}
		set(&b.ArrivalNS, i, start)
		return start
	}
	switch {
	case known && clock != trace.ClockNone:
		at += s.offset
	case w.Think != nil:
		gap := max(0, w.Think.Quantile(s.rand.uniform()))
		if !b.DelayNS.Null[i] {
			gap = max(gap, float64(b.DelayNS.Values[i])/1e9)
		} else {
			set(&b.DelayNS, i, int64(time.Duration(gap*1e9)))
		}
		at = s.last + int64(gap*1e9)
	default:
		w.Unplaced++
		return s.last
	}
	set(&b.ArrivalNS, i, at)
	s.last = max(s.last, at)
	return at
}

func (w *placer) start() int64 {
	w.mass += w.gaps.Rand(w.rng)
	at := int64(w.clock.at(w.mass) * 1e9)
	if w.Sessions == 0 {
		w.first = at
	}
	return at
}
