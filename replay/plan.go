package replay

import (
	"fmt"
	"math"
	"time"

	"reprise/trace"
)

// A Selection says which rows of a trace are replayed, and when.
type Selection struct {
	Speed           float64       // time compression: 2 = twice as fast; 0 = 1
	From, To        time.Duration // recorded time, start in, end out; To 0 = to the end. Due times begin at From
	Limit           int64         // at most so many rows; 0 = all
	Sessions        int64         // at most so many sessions; a row without one is its own; 0 = all
	Duration        time.Duration // nothing begins that late, from the start of the run; 0 = no end
	Recycle         bool          // the trace begins again when it ends, until Limit, Sessions or Duration
	Arrivals        Arrivals      // request starts in row order, instead of the trace's times
	SessionArrivals Arrivals      // session starts; times within a session stay
	Load            Load          // how the load is made, instead of by a clock
	Seed            uint64
}

// Streams of the seed, one per purpose.
const (
	streamArrivals uint64 = 1 + iota
	streamSessions
	streamCancel
	streamTrees
	streamInside
)

func (s *Selection) speed() float64 {
	if s.Speed == 0 {
		return 1
	}
	return s.Speed
}

// minSpeed keeps due times within what a clock of nanoseconds can hold.
const minSpeed = 1e-6

// placed tells that the trace's own times are not used.
func (s *Selection) placed() bool { return s.Arrivals.Kind != "" || s.Load.Kind != "" }

// endless tells that how many requests there are is for the endpoint to say.
func (s *Selection) endless() bool {
	return s.Recycle && s.Load.closed() && s.Limit == 0 && s.Sessions == 0
}

// check refuses what cannot be done with a trace on the given clock, with the
// way out.
func (s *Selection) check(clock string, paced bool) error {
	if err := s.checkTimes(); err != nil {
		return err
	}
	if err := s.checkEnd(); err != nil {
		return err
	}
	placed := s.placed() || s.SessionArrivals.Kind != ""
	switch {
	case (s.From != 0 || s.To != 0) && placed:
		return trace.WithFix(fmt.Errorf("--from and --to choose by recorded time, but the load is placed by a law"), "leave out --from and --to, or cut the trace first: reprise trace cut --from ... --to ...")
	case clock == trace.ClockNone && !s.placed() && !(paced && s.SessionArrivals.Kind != ""):
		return trace.WithFix(fmt.Errorf("the trace has no clock: its source recorded no times"), "place its conversations and let each turn follow the one before: --pace think --session-arrivals poisson:0.5; or give every request a time of its own: --arrivals poisson:4; or keep some in flight: --concurrency 8")
	case clock == trace.ClockSession && (s.From != 0 || s.To != 0):
		return trace.WithFix(fmt.Errorf("--from and --to need one clock, but each session of this trace has its own"), "use --limit")
	case clock == trace.ClockSession && !placed:
		return trace.WithFix(fmt.Errorf("each session of this trace has its own clock, which says nothing of when the others began"), "place the session starts, such as --session-arrivals poisson:0.2 (a session every 5 s), --session-arrivals concurrency:8 (8 at a time) or --session-arrivals at-once")
	case s.SessionArrivals.Kind != "" && clock == trace.ClockNone && !paced:
		return trace.WithFix(fmt.Errorf("the trace has no clock, so a session's start says nothing of its later turns"), "let each turn follow the one before: --pace think --session-arrivals poisson:0.5")
	}
	return nil
}

func (s *Selection) checkTimes() error {
	switch {
	case s.Speed < 0 || math.IsNaN(s.Speed):
		return fmt.Errorf("--speed %v: must be above 0", s.Speed)
	case s.Speed != 0 && (s.Speed < minSpeed || s.Speed > 1/minSpeed):
		return fmt.Errorf("--speed %v: not between %g and %g", s.Speed, minSpeed, 1/minSpeed)
	case s.From < 0:
		return fmt.Errorf("--from %v: must not be below 0", s.From)
	case s.To != 0 && s.To <= s.From:
		return fmt.Errorf("--to %v: not after --from %v", s.To, s.From)
	case s.Duration < 0:
		return fmt.Errorf("--duration %v: must not be below 0", s.Duration)
	case s.Arrivals.Kind != "" && s.SessionArrivals.Kind != "":
		return fmt.Errorf("--arrivals and --session-arrivals exclude each other")
	case s.Arrivals.Kind != "" && s.speed() != 1:
		return trace.WithFix(fmt.Errorf("--speed changes recorded times, but --arrivals replaces them"), "give --arrivals the rate you want and leave out --speed")
	}
	return s.Load.check(s)
}

// checkEnd refuses to begin a trace again where that has no sense, or no end.
func (s *Selection) checkEnd() error {
	switch {
	case s.Recycle && !s.placed():
		return trace.WithFix(fmt.Errorf("a trace that is sent at its own times, or whose sessions are placed by a law, is sent once"), "use --limit for fewer requests, or a shape such as --arrivals poisson:4 or --concurrency 8 for more than it holds")
	case s.Recycle && s.Limit == 0 && s.Sessions == 0 && s.Duration == 0:
		return trace.WithFix(fmt.Errorf("a trace that begins again needs an end"), "give --requests, --sessions or --duration")
	case s.Recycle:
		return s.checkSize()
	}
	return nil
}

// MostRequests is how many requests a run may be made of: it looks at each before the
// start, some microseconds long, and the report keeps some 220 bytes of each.
const MostRequests = 1_000_000_000

const mostText = "1,000,000,000"

// checkSize refuses a plan that no run comes to the end of.
func (s *Selection) checkSize() error {
	const fix = "ask for less, or make several runs one after the other"
	for _, l := range []struct {
		flag string
		n    int64
	}{{"requests", s.Limit}, {"sessions", s.Sessions}} {
		if l.n > MostRequests {
			return trace.WithFix(fmt.Errorf("--%s %d: a run has %s at most", l.flag, l.n, mostText), fix)
		}
	}
	if n := s.expected(); s.Limit == 0 && s.Sessions == 0 && n > MostRequests {
		return trace.WithFix(fmt.Errorf("--duration %v at this rate: some %.3g requests, and a run has %s at most", s.Duration, n, mostText), fix)
	}
	return nil
}

// expected is how many requests are due on average within the duration; 0 where that is
// for the endpoint to say.
func (s *Selection) expected() float64 {
	long := s.Duration.Seconds()
	if s.Load.Kind == LoadUsers {
		return s.Load.Rate * long
	}
	n, begun := 0.0, 0.0
	for _, p := range s.Arrivals.Pieces {
		if p.FromS < long {
			n += p.Mass() * (min(p.ToS, long) - p.FromS) / (p.ToS - p.FromS)
		}
		begun = max(begun, p.ToS)
	}
	return n + s.Arrivals.Rate*max(0, long-begun)
}
