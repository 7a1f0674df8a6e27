package replay

import (
	"fmt"
	"time"

	"reprise/trace"
)

// Kinds of load. The zero value sends by a clock: the trace's, or a law's.
const (
	LoadConcurrency = "concurrency" // closed loop: so many requests in flight
	LoadUsers       = "users"       // so many users, who take turns at a rate
	LoadTrees       = "sessions"    // so many sessions in flight
)

// What an error does to the requests that come after it in a session.
const (
	ErrorWait = "wait"      // it counts as an answer: they go on after their wait
	ErrorSkip = "skip"      // those that come after it alone are left out, and theirs; joins go on without it
	ErrorFail = "fail-tree" // nothing more of its session is sent
)

// A Load says how load is made, instead of by a clock. The zero value is none.
type Load struct {
	Kind   string
	N      int           // requests, users or sessions at once
	Ramp   time.Duration // the places open evenly in that time, the first at once
	Rate   float64       // users: turns per second of all together
	Inside [2]float64    // sessions: the first N begin at such a share of their recorded life, drawn by seed; 0, 0 = at their beginning
}

// String names the load for a label.
func (l Load) String() string {
	ramp := ""
	if l.Ramp > 0 {
		ramp = fmt.Sprintf(", reached over %v", l.Ramp)
	}
	switch l.Kind {
	case LoadConcurrency:
		return fmt.Sprintf("closed loop: %d in flight%s", l.N, ramp)
	case LoadUsers:
		return fmt.Sprintf("%s, one turn each %.4g s, %g requests/s in all", trace.Plural(l.N, "user"), float64(l.N)/l.Rate, l.Rate)
	case LoadTrees:
		text := fmt.Sprintf("closed loop over sessions: %d in flight%s", l.N, ramp)
		if l.Inside != [2]float64{} {
			text += fmt.Sprintf(", the first from %g to %g %% of their life", 100*l.Inside[0], 100*l.Inside[1])
		}
		return text
	}
	return ""
}

// closed tells that requests begin when others end, and not when they are due.
func (l Load) closed() bool { return l.Kind == LoadConcurrency || l.Kind == LoadTrees }

// check refuses a load that makes no sense with the rest of the selection.
func (l Load) check(s *Selection) error {
	if l.Kind == "" {
		return nil
	}
	flag := map[string]string{LoadConcurrency: "--concurrency", LoadUsers: "--users", LoadTrees: "--session-arrivals concurrency"}[l.Kind]
	switch {
	case l.N < 1:
		return fmt.Errorf("%s %d: must be above 0", flag, l.N)
	case l.Ramp < 0:
		return fmt.Errorf("--concurrency-ramp %v: must not be below 0", l.Ramp)
	case s.Arrivals.Kind != "" || s.SessionArrivals.Kind != "":
		return trace.WithFix(fmt.Errorf("%s makes the load by itself, and arrivals are a law for it too", flag), "choose one of them; to bound the requests in flight of an open loop, use --max-in-flight")
	case l.Kind == LoadConcurrency && s.speed() != 1:
		return trace.WithFix(fmt.Errorf("--speed changes recorded times, but in a closed loop requests follow one another"), "leave it out")
	case l.Kind == LoadUsers && !(l.Rate >= minRate && l.Rate <= maxRate):
		return trace.WithFix(fmt.Errorf("--users %d: at which rate?", l.N), "give --rate, the requests per second of all users together: each of N users takes a turn every N/rate seconds")
	case l.Inside[1] > 0 && l.Ramp > 0:
		return trace.WithFix(fmt.Errorf("--start-inside begins with all sessions at once, and --concurrency-ramp with one after the other"), "leave one of them out")
	case l.Inside[0] < 0 || l.Inside[1] > 1 || l.Inside[0] > l.Inside[1]:
		return trace.WithFix(fmt.Errorf("--start-inside %g..%g: not a range of shares", l.Inside[0], l.Inside[1]), "write it like 10%..90%")
	}
	return nil
}

// coolDown is when the cool-down begins, in a plan whose last request is due at last.
func (s *Survey) coolDown(c *Config, last time.Duration) (time.Duration, error) {
	end := c.Selection.Duration
	switch {
	case c.CoolDown == 0:
		return 0, nil
	case end == 0 && (c.Selection.Load.closed() || c.pace() == PaceThink):
		return 0, trace.WithFix(fmt.Errorf("--cooldown %v: nobody knows when the last request of this load begins", c.CoolDown), "give it an end: --duration 60s")
	case end == 0:
		end = last
	}
	if begin := end - c.CoolDown; begin > c.WarmUp.For {
		return begin, nil
	}
	return 0, trace.WithFix(fmt.Errorf("--cooldown %v: the run is %v long, so nothing is left to measure", c.CoolDown, end), "make it shorter, or the run longer")
}

// checkLoad refuses what does not go with the load.
func (c *Config) checkLoad() error {
	l := c.Selection.Load
	switch {
	case l.Kind != "" && c.MaxInFlight > 0 && l.closed():
		return trace.WithFix(fmt.Errorf("--max-in-flight caps an open loop, but %s", l), "leave it out")
	case l.Kind == LoadUsers && c.pace() != PaceCausal:
		return trace.WithFix(fmt.Errorf("--users: a turn waits for the answer to the one before, and has a due time: --pace %s is another thing", c.pace()), "leave out --pace")
	case l.Kind == LoadTrees && c.pace() != PaceThink:
		return trace.WithFix(fmt.Errorf("sessions that follow one another have no due times, which --pace %s needs", c.pace()), "leave out --pace, or use --pace think")
	case l.Kind == LoadConcurrency && c.pace() == PaceCausal:
		return trace.WithFix(fmt.Errorf("--concurrency has no due times, which --pace causal needs"), "leave out --pace: turns then follow their answers by the recorded wait; or use --pace schedule, which ignores what comes after what")
	case c.WarmUp.For < 0 || c.WarmUp.Requests < 0 || c.CoolDown < 0:
		return fmt.Errorf("--warmup and --cooldown: must not be below 0")
	}
	switch c.OnError {
	case "", ErrorWait:
	case ErrorSkip, ErrorFail:
		if c.pace() == PaceSchedule {
			return trace.WithFix(fmt.Errorf("--on-error %s: under --pace schedule no request waits for another", c.OnError), "use it with --pace causal, --pace think or --session-arrivals concurrency:N")
		}
	default:
		return trace.WithFix(fmt.Errorf("--on-error %q", c.OnError), "use wait, skip or fail-tree")
	}
	return nil
}
