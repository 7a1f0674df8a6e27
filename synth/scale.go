package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// Run scales the trace and hands the rows to emit in canonical order, in
// batches that are used again. It returns what the result's metadata is, with
// its history still to be extended, and what was done.
//
// One clock: copies of whole sessions are superposed, their starts moved by a
// jitter, on the period of the source (statistics of session copies: mean rate,
// rate over time, lengths, turns and think times stay). Session clocks, or none:
// the copies follow one another in the file.
func (s *Scaling) Run(ctx context.Context, open Open, emit func(*trace.Batch) error) (trace.Meta, *model.Design, error) {
	if err := s.Check(); err != nil {
		return trace.Meta{}, nil, err
	}
	v, err := s.look(ctx, open)
	if err != nil {
		return trace.Meta{}, nil, err
	}
	p, err := s.plan(ctx, open, v)
	if err != nil {
		return trace.Meta{}, nil, err
	}
	if err := p.make(ctx, open, emit); err != nil {
		return trace.Meta{}, nil, err
	}
	if p.rows == 0 {
		return trace.Meta{}, nil, trace.WithFix(fmt.Errorf("no request is left of %d: at a scale of %.3g none of the sessions is drawn", v.rows, p.design.Factor), "give a larger --scale or --rate, or another --seed")
	}
	return p.meta(), &p.design, nil
}

// A plan is a scaling of one trace.
type plan struct {
	s       *Scaling
	v       *survey
	design  model.Design
	period  int64 // ns; copies wrap at it
	total   int64 // length of the result before time compression
	passes  int   // plays of the source, more than one to extend it
	tick    int64
	jitter  int64
	factors map[string]float64 // by model; nil = design.Factor for all
	most    int                // copies that any session has
	rename  renamer
	private float64 // shares, see model.HitRate
	shared  float64
	shift   func(copy int, r *picked) int64
	gaps    *clientGaps // for GrowRate
	lengths lengths
	edge    edges
	rows    int64
	base    base
}

func (s *Scaling) plan(ctx context.Context, open Open, v *survey) (*plan, error) {
	p := &plan{s: s, v: v, tick: v.tick(), passes: 1}
	if p.period = v.span(); p.period > 0 {
		p.period = (p.period + p.tick - 1) / p.tick * p.tick
	}
	p.total = p.period
	if s.Extend != 0 && int64(s.Extend) < v.last {
		return nil, trace.WithFix(fmt.Errorf("--extend %v: the trace is longer, %v", s.Extend, time.Duration(v.last)), "use --to to cut it")
	}
	if p.period == 0 && (s.Extend != 0 || s.Rate != 0) {
		return nil, trace.WithFix(errors.New("--extend and --rate: all requests arrive at one time, so there is no rate"), "give them arrivals with --arrivals, such as --arrivals poisson:4")
	}
	if v.last > math.MaxInt64/4 {
		return nil, trace.WithFix(fmt.Errorf("the last arrival is %.3g s after the first, more than 73 years", float64(v.last)/1e9), "cut what is wrong with its time off: reprise trace cut --to")
	}
	if float64(v.last)/s.speed() > math.MaxInt64/2 {
		return nil, fmt.Errorf("--speed %v: the trace would be longer than 146 years", s.Speed)
	}
	if s.Extend != 0 {
		p.total = int64(s.Extend)
		p.passes = int(max(1, (p.total+p.period-1)/max(1, p.period)))
	}
	factor := orOne(s.Factor)
	if s.Rate != 0 {
		factor = s.Rate * float64(p.period) / 1e9 / float64(v.rows) / orOne(s.Speed)
	}
	if n := factor * float64(p.passes) * float64(v.rows); n > MostRequests {
		return nil, trace.WithFix(fmt.Errorf("some %.3g requests: a trace gets 10,000,000,000 at most", n), "ask for less; a replay can begin a trace again: reprise replay --duration")
	}
	p.mix(factor)
	p.jitter = int64(s.jitter(time.Duration(v.last))) / p.tick * p.tick
	p.design = model.Design{
		Seed: s.Seed, Factor: factor, Speed: s.speed(), Copies: int(factor), Fraction: factor - math.Floor(factor), Unit: v.units.unit(),
		JitterNS: p.jitter, TickNS: p.tick, SourceRows: v.rows, SpanNS: v.last, Dropped: int64(len(v.dropped)), Literal: v.literal,
		From: s.From, To: s.To, Extend: s.Extend, MaxInput: s.MaxInput, Mix: s.Mix,
	}
	if s.Thin == ThinRequests {
		p.design.Unit = "request"
	}
	p.chooseShift()
	if plays := int64(p.most) * int64(p.passes); plays > 1 && v.maxID >= math.MaxInt64/plays {
		return nil, trace.WithFix(fmt.Errorf("ids up to %d leave no room for the ids of copies", v.maxID), "give the requests smaller ids with: reprise trace merge TRACE TRACE, or import them again")
	}
	shared := v.roots.shared()
	p.design.SharedRoots, p.design.RootsBounded = int64(len(shared)), v.roots.bounded
	p.rename = newRenamer(shared, v.maxBlock, 2*p.most*p.passes+1)
	p.lengths = newLengths(s, &p.design)
	p.edge = v.edge
	for _, h := range v.tail.batches {
		for i := range h.rows {
			p.edge.see(h.b.ID.Values[i], h.rows[i].at)
		}
	}
	return p, p.solveHitRate(ctx, open)
}

// mix finds how often sessions of each model are there, so that the models have
// the shares asked for and the total is what the factor says.
func (p *plan) mix(factor float64) {
	p.most = int(math.Ceil(factor))
	if len(p.s.Mix) == 0 {
		return
	}
	p.factors = map[string]float64{}
	for name, rows := range p.v.models {
		f := factor * p.s.Mix[name] * float64(p.v.rows) / float64(rows)
		p.factors[name] = f
		p.most = max(p.most, int(math.Ceil(f)))
	}
}

// factor is how often a session is there.
func (p *plan) factor(b *trace.Batch, i int) float64 {
	if p.factors == nil {
		return p.design.Factor
	}
	name, _ := b.Model.Get(i)
	return p.factors[name]
}

// keeps tells whether a copy of a factor's session is there: whole copies, and
// of one more the sessions whose number is below the fraction, so that a larger
// fraction has all that a smaller one has.
func (p *plan) keeps(factor float64, copy int, b *trace.Batch, r *picked) bool {
	whole := math.Floor(factor)
	switch {
	case float64(copy) < whole:
		return true
	case float64(copy) > whole:
		return false
	}
	key := r.session
	if p.s.Thin == ThinRequests {
		key = uint64(b.ID.Values[r.row])
	}
	return stats.Draw(p.s.Seed, drawKeep, key) < factor-whole
}

// make makes the rows.
func (p *plan) make(ctx context.Context, open Open, emit func(*trace.Batch) error) error {
	if p.v.meta.Clock != trace.ClockTrace {
		return p.copyAfterCopy(ctx, open, emit)
	}
	if p.gaps == nil && p.fits() {
		return p.window(ctx, open, emit)
	}
	sorter := &trace.Sorter{Memory: p.s.Memory}
	defer sorter.Close()
	out := trace.NewBatch()
	for pass := range p.passes {
		if p.gaps != nil {
			p.gaps.last = map[uint64]int64{}
		}
		sel := newSelector(p.s)
		err := sel.each(ctx, open, func(b *trace.Batch, rows []picked) error {
			for i := range rows {
				if err := p.copies(b, &rows[i], pass, out, sorter); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return sorter.Sorted(func(b *trace.Batch) error { return p.emit(b, emit) })
}

// rowBytes is about what a row takes in memory, without its blocks and text.
const rowBytes = 450

// fits tells whether the rows within two jitters fit into memory.
func (p *plan) fits() bool {
	per := rowBytes + p.v.bytes/max(1, p.v.rows)
	return 3*p.v.tail.rows*per < cmp.Or(p.s.Memory, trace.DefaultMemory)
}

func (p *plan) isDropped(b *trace.Batch, r *picked) bool {
	if len(p.v.dropped) == 0 {
		return false
	}
	_, dropped := p.v.dropped[b.ID.Values[r.row]]
	return dropped
}

// copies adds all copies of a row in one pass.
func (p *plan) copies(b *trace.Batch, r *picked, pass int, out *trace.Batch, sorter *trace.Sorter) error {
	if p.isDropped(b, r) {
		return nil
	}
	if p.gaps != nil {
		p.gaps.note(p, r)
		p.edge.see(b.ID.Values[r.row], r.at)
	}
	factor := p.factor(b, int(r.row))
	for copy := range int(math.Ceil(factor)) {
		if !p.keeps(factor, copy, b, r) {
			continue
		}
		play := pass*p.most + copy
		at, wrapped, inside := p.place(r, copy, pass)
		if !inside {
			p.design.CutAtEnd++
			continue
		}
		out.Reset()
		p.add(out, b, r, link{play, wrapped, factor})
		if r.timed {
			out.ArrivalNS.Values[0] = at
		}
		if wrapped {
			p.design.Wrapped++
		}
		if err := sorter.Add(out, 0, trace.Key{Major: at, Minor: int64(play)}); err != nil {
			return err
		}
	}
	return nil
}

// place returns when a row of a copy arrives. What crosses an end of the result
// comes back at the other one; past the end of an extension it is cut.
func (p *plan) place(r *picked, copy, pass int) (at int64, wrapped, inside bool) {
	at = r.at + int64(pass)*p.period
	if pass*p.most+copy > 0 {
		at += p.shift(pass*p.most+copy, r)
	}
	switch {
	case at < 0:
		return at + p.total, true, p.s.Extend == 0 || at+p.total >= 0
	case at >= p.total && p.total > 0 && (copy > 0 || pass > 0 || p.s.Extend != 0):
		if p.s.Extend != 0 {
			return at, false, false
		}
		return at - p.total, true, true
	}
	return at, false, true
}

// base moves the first arrival to 0, where what came before it is not there: of
// the trace, or of each session.
type base struct {
	at      int64
	any     bool
	session string
}

func (t *base) apply(b *trace.Batch, perSession bool) {
	for i := range b.Len() {
		at, ok := b.ArrivalNS.Get(i)
		if !ok {
			continue
		}
		session, _ := b.SessionID.Get(i)
		if !t.any || perSession && session != t.session {
			*t = base{at: at, any: true, session: session}
		}
		b.ArrivalNS.Values[i] = at - t.at
	}
}

// emit compresses time and scales lengths on the way out.
func (p *plan) emit(b *trace.Batch, emit func(*trace.Batch) error) error {
	p.rows += int64(b.Len())
	p.base.apply(b, p.v.meta.Clock == trace.ClockSession)
	p.lengths.apply(b)
	if speed := p.s.speed(); speed != 1 {
		for _, c := range []struct {
			values []int64
			null   []bool
		}{{b.ArrivalNS.Values, b.ArrivalNS.Null}, {b.DelayNS.Values, b.DelayNS.Null}} {
			for i := range c.values {
				if !c.null[i] {
					c.values[i] = int64(float64(c.values[i]) / speed)
				}
			}
		}
	}
	return emit(b)
}

// copyAfterCopy makes the rows of a trace without a clock over all sessions.
func (p *plan) copyAfterCopy(ctx context.Context, open Open, emit func(*trace.Batch) error) error {
	for copy := range p.most {
		sel := newSelector(p.s)
		err := sel.each(ctx, open, func(b *trace.Batch, rows []picked) error {
			out := trace.NewBatch()
			for i := range rows {
				r := &rows[i]
				factor := p.factor(b, int(r.row))
				if p.isDropped(b, r) || !p.keeps(factor, copy, b, r) {
					continue
				}
				p.add(out, b, r, link{copy, false, factor})
			}
			return p.emit(out, emit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// meta is the metadata of the result.
func (p *plan) meta() trace.Meta {
	p.design.Rows = p.rows
	m := p.v.meta
	if moved := int64(p.s.From) + p.base.at; moved != 0 && m.Clock == trace.ClockTrace {
		m.OriginNS = trace.Some(m.OriginNS.Or(0) + moved)
		if epoch, ok := m.EpochNS.Get(); ok {
			m.EpochNS = trace.Some(epoch + moved)
		}
	}
	if tick, ok := m.TickNS.Get(); ok && p.s.speed() != 1 {
		m.TickNS = trace.Optional[int64]{}
		if fast := float64(tick) / p.s.speed(); fast == math.Trunc(fast) && fast >= 1 {
			m.TickNS = trace.Some(int64(fast))
		}
	}
	if p.rows != m.Counts.Kept {
		m.Counts = trace.Counts{Read: m.Counts.Kept, Kept: p.rows}
	}
	return m
}
