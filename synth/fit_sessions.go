package synth

import (
	"fmt"
	"math"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A fitSession is what is kept of a session. Times (ns) and lengths below 0 are
// not known.
type fitSession struct {
	last, end int64 // last arrival, and the end of the last turn
	input     int64 // of the last turn
	turns     int32
	blocks    int32 // of the last turn; 0 = not known
	stream    int32
	cut       bool // its first turns came before the trace did
}

// fitSessions are in pages, which never move.
type fitSessions struct {
	pages [][]fitSession
	n     int64
}

const sessionPage = 1 << 13

// at returns a session; they come in order of their ordinals.
func (s *fitSessions) at(ordinal int64) (c *fitSession, first bool) {
	for ordinal >= s.n {
		if s.n%sessionPage == 0 {
			s.pages = append(s.pages, make([]fitSession, sessionPage))
		}
		s.pages[s.n/sessionPage][s.n%sessionPage] = fitSession{last: -1, end: -1, input: -1}
		s.n++
	}
	c = &s.pages[ordinal/sessionPage][ordinal%sessionPage]
	return c, c.turns == 0
}

// settleSessions counts turns, and which sessions are open at an end of the trace:
// their last request is nearer to it than nine in ten gaps between turns are long,
// or their first one came before.
func (f *fitting) settleSessions() {
	late := make([]int64, len(f.streams)) // from then on a session may go on
	for i, s := range f.streams {
		late[i] = math.MaxInt64
		if q := s.gaps.tally.Sample(1).Quantiles1(0.9); q != nil && f.meta.Clock == trace.ClockTrace {
			late[i] = f.clock.last - int64(q[0])
		}
	}
	for ordinal := range f.sessions.n {
		c, _ := f.sessions.at(ordinal)
		s := f.streams[c.stream]
		s.turns.Add(int64(c.turns))
		if c.cut || c.last > late[c.stream] {
			s.open++
		}
	}
}

// sessionsResult describes the sessions of a stream in which some have several
// turns.
func (s *fitStream) sessionsResult(f *fitting) *model.Sessions {
	m := &model.Sessions{How: "inferred from prefixes", N: s.starts, Open: s.open, Turns: *empiricalOf(&s.turns, 1)}
	if f.mode.named {
		m.How = "explicit"
	}
	m.TurnFits = turnFits(&s.turns)
	m.Growth = empiricalOf(&s.growth, 1)
	m.Paths, m.Sampled = s.paths.result()
	if s.paths.closed {
		f.noteOn(s, "sessions: one has more than %d turns, so none is kept whole: turns are drawn one by one, and what goes together within a session is lost", maxPath)
	}
	if outputs := empiricalOf(&s.outputs, 1); outputs != nil {
		m.Outputs = *outputs
	} else {
		f.noteOn(s, "no later turn has a known output length")
		m.Outputs = stats.SpecOf(stats.Constant{Value: -1})
	}
	m.Gap = empiricalOf(&s.gaps.tally, 1e-9)
	of := &s.gaps
	switch {
	case s.delays.tally.N() > 0:
		m.ThinkOf, of = "recorded delay", &s.delays
		m.Think = empiricalOf(&of.tally, 1e-9)
	case s.thinks.tally.N() > 0:
		m.ThinkOf, of = "recorded end of a turn to the start of the next", &s.thinks
		m.Think = empiricalOf(&of.tally, 1e-9)
		if s.early > 0 {
			f.noteOn(s, "%d turns began before the one before had ended, and are left out of the think times", s.early)
		}
	case m.Gap != nil:
		m.ThinkOf = "not known: no turn has a recorded end or delay; gap_s is from start to start, the answer included"
	default:
		m.ThinkOf = "not known: turns have neither arrivals nor delays"
	}
	m.ThinkFit = of.fits()
	if s.open > 0 {
		f.noteOn(s, "sessions: %d of %d count as open: their last request is nearer to the end of the trace than nine in ten gaps between turns are long, or their first one came before it; they have the turns that are here", s.open, s.starts)
	}
	return m
}

// turnFits describes the numbers of turns, with the geometric law beside them.
func turnFits(turns *stats.Tally) *model.Fitted {
	m := &model.Fitted{Unit: "turns", N: turns.N(), Mean: number(turns.Series().Mean()), CV: number(turns.Series().CV()), Fits: []stats.Fit{}}
	if fit, err := stats.FitGeometric(turns.Sample(1)); err == nil && turns.Exact() {
		m.Fits, m.Best = []stats.Fit{fit}, fit.Law.Name()
	}
	return m
}

// fitTimes are times in ns, with the session of each where intervals are wanted.
type fitTimes struct {
	tally stats.Tally
	tick  fitTick
	keyed []keyedValue
}

func (t *fitTimes) add(ns, session int64, keyed bool) {
	t.tally.Add(ns)
	t.tick.add(ns)
	if keyed {
		t.keyed = append(t.keyed, keyedValue{session, float64(ns)})
	}
}

// fitTick is the greatest common divisor of times.
type fitTick int64

func (t *fitTick) add(ns int64) {
	a, b := ns, int64(*t)
	for a != 0 {
		a, b = b%a, a
	}
	*t = fitTick(b)
}

// ticks returns the times in whole ticks.
func (t *fitTimes) ticks() (stats.Ticks, error) {
	return ticksOf(t.tally.Sample(1), int64(t.tick))
}

// fits fits the times as multiples of their common divisor; nil without any.
func (t *fitTimes) fits() *model.Fitted {
	if t.tally.N() == 0 {
		return nil
	}
	m := &model.Fitted{Unit: "seconds", N: t.tally.N(), CV: number(t.tally.Series().CV()), Fits: []stats.Fit{}}
	if mean, ok := t.tally.Series().Mean(); ok {
		m.Mean = number(mean/1e9, true)
	}
	if t.tick == 0 {
		m.Refuse = fmt.Sprintf("all %d times are 0", t.tally.N())
		return m
	}
	ticks, err := t.ticks()
	if err != nil {
		m.Refuse = err.Error()
		return m
	}
	fitTicks(m, ticks)
	return m
}
