package analysis

import (
	"math"
	"strconv"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A ProfileCollector gathers a Profile from rows that are at hand anyway, such as
// those that a model generates. Memory is that of ProfileOfTrace.
type ProfileCollector struct {
	p        *Profile
	traffic  *TrafficCollector
	clock    string
	last     int64 // arrival, ns; -1 before the first
	named    sessionSide
	inferred sessionSide
}

// NewProfileCollector starts with the metadata of the trace, of which the clock
// counts; rows is how many come, 0 where that is not known.
func NewProfileCollector(meta trace.Meta, rows int64, name string) (*ProfileCollector, error) {
	c, err := NewTrafficCollector(meta, rows, TrafficOptions{})
	if err != nil {
		return nil, err
	}
	return &ProfileCollector{p: newProfile(name, "trace"), traffic: c, clock: meta.Clock, last: -1, named: newSessionSide(), inferred: newSessionSide()}, nil
}

// Add takes the rows of b, which come in the order of the trace.
func (c *ProfileCollector) Add(b *trace.Batch) error {
	for i := range b.Len() {
		if err := c.traffic.a.row(b, i); err != nil {
			return err
		}
		c.row(b, i)
	}
	return nil
}

// Profile returns what the rows say.
func (c *ProfileCollector) Profile() *Profile {
	p, t := c.p, c.traffic.Traffic()
	p.rows, p.units, p.blocks = t.Rows, t.Rows, "minutes"
	if p.sessions = t.Sessions.Basis; p.sessions != "" {
		side := &c.named
		if p.sessions == SessionsInferred {
			side = &c.inferred
		}
		side.close(p)
		p.units, p.blocks = int64(len(side.open)), "sessions"
	}
	if tick := t.Arrivals.EffectiveTickS; tick != nil && c.clock == trace.ClockTrace {
		p.tick = time.Duration(math.Round(*tick * 1e9))
		p.quantities[quantityGap].roundTo(int64(p.tick))
	}
	for _, q := range p.quantities {
		q.join()
	}
	p.scalarsOf(t)
	return p
}

// ProfileOfModel returns the profile of w, from what was generated of it.
func (c *ProfileCollector) ProfileOfModel(w *model.Workload) *Profile {
	p := c.Profile()
	p.Kind, p.fitted = "model", w.Requests
	return p
}

func (c *ProfileCollector) row(b *trace.Batch, i int) {
	at, timed := b.ArrivalNS.Get(i)
	timed = timed && c.clock != trace.ClockNone
	id, named := b.SessionID.Get(i)
	side := &c.named
	if seen := c.traffic.a.seen; !named && seen.Inferred {
		id, named, side = strconv.FormatInt(seen.Session, 10), true, &c.inferred
	}
	g := groupOf(id, at)
	if named {
		g = groupOf(id, 0)
	}
	q := c.p.quantities
	if n, ok := b.InputTokens.Get(i); ok {
		q[quantityISL].groups[g].Add(n)
	}
	if n, ok := b.OutputTokens.Get(i); ok && n > 0 {
		q[quantityOSL].groups[g].Add(n)
	}
	if timed && c.clock == trace.ClockTrace {
		if c.last >= 0 {
			q[quantityGap].groups[groupOf("", at)].Add(at - c.last)
		}
		c.last = at
	}
	if named {
		side.row(b, i, id, g, timed)
	}
}

// A sessionSide collects what is measured within sessions: those that rows name,
// or those that prefixes tell.
type sessionSide struct {
	open                  map[string]*openSession
	turns, turnGap, think *[groups]stats.Tally
}

// An openSession is what is kept of a session.
type openSession struct{ turns, last, end int64 }

func newSessionSide() sessionSide {
	return sessionSide{open: map[string]*openSession{}, turns: new([groups]stats.Tally), turnGap: new([groups]stats.Tally), think: new([groups]stats.Tally)}
}

func (c *sessionSide) row(b *trace.Batch, i int, id string, g int, timed bool) {
	s := c.open[id]
	if s == nil {
		s = &openSession{last: -1, end: -1}
		c.open[id] = s
	}
	s.turns++
	at := b.ArrivalNS.Values[i]
	if delay, ok := b.DelayNS.Get(i); ok && s.turns > 1 {
		c.think[g].Add(delay)
	} else if timed && s.end >= 0 && at >= s.end {
		c.think[g].Add(at - s.end)
	}
	if !timed {
		return
	}
	if s.last >= 0 {
		c.turnGap[g].Add(at - s.last)
	}
	s.last, s.end = at, -1
	if e2e, ok := b.RecordedE2ENS.Get(i); ok {
		s.end = at + e2e
	}
}

// close hands over to the profile.
func (c *sessionSide) close(p *Profile) {
	for id, s := range c.open {
		c.turns[groupOf(id, 0)].Add(s.turns)
	}
	p.quantities[quantityTurns].groups = *c.turns
	p.quantities[quantityTurnGap].groups = *c.turnGap
	p.quantities[quantityThink].groups = *c.think
}

// roundTo puts values on whole ticks, where stamps are next to them.
func (q *quantity) roundTo(tick int64) {
	if tick <= int64(time.Microsecond) {
		return
	}
	for i := range q.groups {
		var on stats.Tally
		s := q.groups[i].Sample(1)
		for k := range s.Distinct() {
			v, n := s.At(k)
			on.AddN((int64(v)+tick/2)/tick*tick, n)
		}
		q.groups[i] = on
	}
}
