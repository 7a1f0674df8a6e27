package analysis

import (
	"hash/maphash"

	"reprise/analysis/stats"
	"reprise/trace"
)

// Values of TrafficSessions.Basis.
const (
	SessionsRecorded = "recorded"
	SessionsInferred = "inferred from prefixes"
)

// TrafficSessions describe conversations: as the trace names them, or, where it
// names none, as shared prefixes tell (see prefix.Linker). Sessions that the
// ends of the trace cut count as they are.
type TrafficSessions struct {
	Basis   string `json:"basis,omitempty"`
	N       int64  `json:"n"`
	Rows    int64  `json:"rows"`              // in them
	Without int64  `json:"without,omitempty"` // rows in none
	Single  int64  `json:"single_turn"`       // sessions of one row

	Turns *Dist `json:"turns,omitempty"` // rows of a session
	// Starts are the gaps between the first arrivals of sessions; one clock only.
	Starts *Dist `json:"start_gaps_s,omitempty"`
	// MeanOpen is how many sessions are between first and last arrival, on
	// average over the span; one clock only.
	MeanOpen *float64 `json:"mean_open,omitempty"`

	// Gaps run from one arrival of a session to the next, over all sessions.
	Gaps *Dist `json:"turn_gaps_s,omitempty"`
	// ThinkRecorded is the recorded delay before a row; ThinkMeasured runs from
	// the recorded end of a turn to the next arrival, where that is not earlier.
	ThinkRecorded *Dist `json:"think_recorded_s,omitempty"`
	ThinkMeasured *Dist `json:"think_measured_s,omitempty"`
	// Of EndKnown turns that follow one whose end is known, Overlaps began before
	// it.
	EndKnown int64 `json:"end_known"`
	Overlaps int64 `json:"overlaps"`

	// Growth is the input length of a turn less that of the turn before, without
	// the turns of sub-agents.
	Growth  *Dist `json:"growth_tokens,omitempty"`
	Shrinks int64 `json:"shrinks"` // turns with a shorter input than the one before

	NotMeasurable []string `json:"not_measurable,omitempty"`
}

// sessionNames number sessions by their names, of which it keeps 128-bit hashes:
// names of ten million sessions would not fit.
type sessionNames struct {
	seeds    [2]maphash.Seed
	ordinals map[[2]uint64]int64
}

func (n *sessionNames) ordinal(name string) int64 {
	if n.ordinals == nil {
		n.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
		n.ordinals = map[[2]uint64]int64{}
	}
	key := [2]uint64{maphash.String(n.seeds[0], name), maphash.String(n.seeds[1], name)}
	o, ok := n.ordinals[key]
	if !ok {
		o = int64(len(n.ordinals))
		n.ordinals[key] = o
	}
	return o
}

// A turn is what a session takes of a row.
type turn struct {
	at, end, delay, input known
}

func sessionRow(b *trace.Batch, i int, row flowRow) turn {
	t := turn{at: known{row.at, row.atKnown}, input: row.lengths[inputTokens]}
	if !b.Agent.Null[i] {
		t.input.known = false // a sub-agent has a context of its own
	}
	t.delay.v, t.delay.known = b.DelayNS.Get(i)
	if e2e, ok := b.RecordedE2ENS.Get(i); ok && row.atKnown {
		t.end = known{row.at + e2e, true}
	}
	return t
}

// sessionState is what is kept of a session; times are -1 and lengths -1 where
// not known.
type sessionState struct {
	first, last int64 // arrivals, ns
	end         int64 // of the last row
	input       int64 // of the last row
	turns       int64
}

// sessionStates collect what TrafficSessions say.
type sessionStates struct {
	list                   []sessionState
	rows                   int64
	starts, gaps           stats.Tally
	thinkRecorded          stats.Tally
	thinkMeasured          stats.Tally
	growth                 stats.Tally
	endKnown, overlaps     int64
	shrinks                int64
	lastStart, first, last int64 // arrivals, -1 before the first
}

func newSessionStates() *sessionStates {
	return &sessionStates{lastStart: -1, first: -1, last: -1}
}

// add takes a row of a session, whose ordinals count up from 0 in order of
// appearance. It returns the time since the session's arrival before, if both
// are known.
func (s *sessionStates) add(session int64, t turn) (gap int64, ok bool) {
	for int64(len(s.list)) <= session {
		s.list = append(s.list, sessionState{first: -1, last: -1, end: -1, input: -1})
	}
	c := &s.list[session]
	c.turns++
	s.rows++
	if t.delay.known && c.turns > 1 {
		s.thinkRecorded.Add(t.delay.v)
	}
	if t.at.known {
		gap, ok = s.arrive(c, t.at.v)
	}
	c.end = -1
	if t.end.known {
		c.end = t.end.v
	}
	if t.input.known {
		if c.input >= 0 {
			s.growth.Add(t.input.v - c.input)
			if t.input.v < c.input {
				s.shrinks++
			}
		}
		c.input = t.input.v
	}
	return gap, ok
}

func (s *sessionStates) arrive(c *sessionState, at int64) (gap int64, ok bool) {
	if s.first < 0 {
		s.first = at
	}
	s.last = max(s.last, at)
	if c.last < 0 {
		c.first, c.last = at, at
		if s.lastStart >= 0 {
			s.starts.Add(at - s.lastStart)
		}
		s.lastStart = at
		return 0, false
	}
	gap = at - c.last
	s.gaps.Add(gap)
	if c.end >= 0 {
		s.endKnown++
		if at < c.end {
			s.overlaps++
		} else {
			s.thinkMeasured.Add(at - c.end)
		}
	}
	c.last = at
	return gap, true
}

// sessionsResult describes the recorded sessions, or else the inferred ones.
func (a *trafficAnalysis) sessionsResult() TrafficSessions {
	_, whole := a.reuse.Sessions()
	switch {
	case a.sessions.rows > 0:
		r := a.sessions.result(a.meta.Clock)
		r.Basis, r.Without = SessionsRecorded, a.flow.rows-r.Rows
		return r
	case a.inferred.rows > 0 && whole:
		r := a.inferred.result(a.meta.Clock)
		r.Basis, r.Without = SessionsInferred, a.flow.rows-r.Rows
		return r
	case a.inferred.rows > 0:
		return TrafficSessions{Without: a.flow.rows, NotMeasurable: []string{notMeasurable + "sessions: none is recorded, and there are too many distinct blocks to infer them"}}
	}
	return TrafficSessions{Without: a.flow.rows, NotMeasurable: []string{notMeasurable + "sessions: none is recorded, and there are no block ids to infer them from"}}
}

func (s *sessionStates) result(clock string) TrafficSessions {
	r := TrafficSessions{N: int64(len(s.list)), Rows: s.rows, EndKnown: s.endKnown, Overlaps: s.overlaps, Shrinks: s.shrinks}
	var turns stats.Tally
	var open float64
	for i := range s.list {
		c := &s.list[i]
		turns.Add(c.turns)
		if c.turns == 1 {
			r.Single++
		}
		open += float64(c.last - c.first)
	}
	r.Turns = distOf(&turns, 1)
	r.Gaps, r.ThinkRecorded, r.ThinkMeasured = distOf(&s.gaps, 1e9), distOf(&s.thinkRecorded, 1e9), distOf(&s.thinkMeasured, 1e9)
	r.Growth = distOf(&s.growth, 1)
	no := func(text string) { r.NotMeasurable = append(r.NotMeasurable, notMeasurable+text) }
	if clock == trace.ClockTrace {
		r.Starts = distOf(&s.starts, 1e9)
		if s.last > s.first {
			r.MeanOpen = finite(open / float64(s.last-s.first))
		}
	} else {
		no("starts of sessions, and how many are open: " + clockless(clock))
	}
	switch {
	case r.Single == r.N:
		no("what happens between turns: every session has one")
	case r.Gaps == nil:
		no("gaps between turns: no session has two arrivals")
	case s.endKnown == 0 && r.ThinkRecorded == nil:
		no("think time and overlap: neither delays nor response times are recorded; gaps between arrivals include the response")
	case s.endKnown == 0:
		no("overlap: no response times are recorded")
	}
	if r.Growth == nil && r.Single < r.N {
		no("growth of the context: no session has two input lengths")
	}
	return r
}
