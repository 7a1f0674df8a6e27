package replay

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// Slots is how many parts the requests of a run are hashed to. A slot is the
// least that goes from one worker to another: enough of them that each of a
// thousand workers has a fair share.
const Slots = 1 << 14

// A Shard is the share of a run's requests that one of several workers sends.
// What is selected, and when it is due, is that of the whole run: each worker
// goes through all rows and passes over those of others, or has a share that was made
// where they all are (Deal). The zero value is the whole run.
//
// What is taken over from another worker begins somewhere: at a due time, or in a closed
// loop, which has none, at a place among all that are selected.
type Shard struct {
	Owns     func(slot uint16) bool // nil = all
	Sessions bool                   // sessions stay together; else requests are spread one by one
	From     time.Duration          // what is due before that is not this one's; in a closed loop, when its places are free
	FromSeq  int                    // in a closed loop: likewise what comes before, by its place
	Whole    bool                   // what has a session begins with it: one that began before is not this one's at all
}

// all tells that the shard is the whole run.
func (s *Shard) all() bool { return s.Owns == nil && s.From == 0 && s.FromSeq == 0 }

// A sieve lets the requests of a shard through, of those that come in their order.
type sieve struct {
	*Shard
	closed bool
	think  bool
	begun  map[session]bool // with Whole: those that have come; true = before the shard begins
}

func (c *Config) sieve() sieve {
	return sieve{Shard: &c.Shard, closed: c.Selection.Load.closed(), think: c.pace() == PaceThink}
}

// has tells whether a row of the batch is in the shard.
func (s *sieve) has(b *trace.Batch, row int, at start) bool {
	if s.all() {
		return true
	}
	if s.Owns != nil && !s.Owns(s.slot(b, row)) {
		return false
	}
	early := at.due < s.From
	switch {
	case s.closed:
		early = at.seq < s.FromSeq
	case s.think: // what comes after another may have begun before it was recorded
		early = early || len(b.AfterOf(row)) > 0
	}
	name, known := b.SessionID.Get(row)
	switch {
	case s.From == 0 && s.FromSeq == 0:
		return true
	case !s.Whole || !known:
		return !early
	}
	of := session{name, at.pass}
	before, seen := s.begun[of]
	if !seen {
		if s.begun == nil {
			s.begun = map[session]bool{}
		}
		before = early
		s.begun[of] = before
	}
	return !before
}

func (s *Shard) slot(b *trace.Batch, row int) uint16 {
	session, known := b.SessionID.Get(row)
	return Slot(b.ID.Values[row], session, known && s.Sessions)
}

// Slot returns the slot of a request: that of its session where sessions stay
// together, or of its id. It is FNV-1a, mixed, since the low bits of FNV-1a of
// consecutive numbers are not spread.
func Slot(id int64, session string, bySession bool) uint16 {
	key := uint64(id)
	if bySession {
		h := fnv.New64a()
		h.Write([]byte(session))
		key = h.Sum64()
	}
	return uint16(mix(key+0x9e3779b97f4a7c15) % Slots)
}

// bySession tells whether sessions have to stay together: their turns wait for one
// another, or their texts are made of one another.
func (c *Config) bySession(s *Survey) bool {
	return c.paced() || c.History == HistoryLive || len(s.turns) > 0
}

// Weigh returns the requests and the expected load of each slot, and whether
// sessions have to stay together. A request weighs as much as requestWeight output
// tokens, since what a client does for one is to write it, and to read its chunks.
func Weigh(ctx context.Context, c *Config, s *Survey) (requests, weights []int64, sessions bool, err error) {
	shard := Shard{Sessions: c.bySession(s)}
	requests, weights = make([]int64, Slots), make([]int64, Slots)
	once := *c
	if s.Endless {
		once.Selection.Recycle = false
	}
	err = once.each(ctx, func(b *trace.Batch, row int, _ start) error {
		out, _ := b.OutputTokens.Get(row)
		slot := shard.slot(b, row)
		requests[slot]++
		weights[slot] += requestWeight + out
		return nil
	})
	return requests, weights, shard.Sessions, err
}

// requestWeight is what a request costs the client beside its chunks, in chunks.
const requestWeight = 10

// CheckShared refuses what several workers cannot share yet: loads whose next
// request depends on what all of them have in flight.
func (c *Config) CheckShared(workers int) error {
	l := c.Selection.Load
	switch {
	case l.Kind == LoadTrees:
		return trace.WithFix(fmt.Errorf("--session-arrivals concurrency: which session begins next depends on all in flight, which workers cannot share"), "leave out --workers, or place the sessions: --session-arrivals poisson:0.5")
	case l.Kind == LoadConcurrency && l.N < workers:
		return trace.WithFix(fmt.Errorf("--concurrency %d: fewer than --workers %d", l.N, workers), "use no more workers than places")
	case c.MaxInFlight > 0 && c.MaxInFlight < workers:
		return trace.WithFix(fmt.Errorf("--max-in-flight %d: fewer than --workers %d", c.MaxInFlight, workers), "use no more workers than places")
	}
	return nil
}

// ShareWarmUp gives a worker its part of a warm-up in requests, where turns wait for one
// another: which are sent first is known of those that it sends itself alone. What it
// takes over later has none.
func (c *Config) ShareWarmUp(worker, of int, later bool) {
	switch {
	case c.pace() == PaceSchedule:
	case later:
		c.WarmUp.Requests = 0
	default:
		c.WarmUp.Requests = int64(Part(int(c.WarmUp.Requests), worker, of))
	}
}

// Places returns how many places a worker has of those of the whole run; 0 where there
// are none to share.
func (c *Config) Places(worker, of int) int {
	n := c.MaxInFlight
	if c.Selection.Load.Kind == LoadConcurrency {
		n = c.Selection.Load.N
	}
	return Part(n, worker, of)
}

// Part is the i-th of so many parts of n, which differ by one at most.
func Part(n, i, of int) int {
	part := n / of
	if i < n%of {
		part++
	}
	return part
}

// SetPlaces gives c so many places instead of those of the whole run.
func (c *Config) SetPlaces(n int) {
	if c.Selection.Load.Kind == LoadConcurrency {
		c.Selection.Load.N = n
	} else {
		c.MaxInFlight = n
	}
}

// Closed tells that requests have no due times, and begin when others end.
func (c *Config) Closed() bool { return c.Selection.Load.closed() }

// WholeSessions tells that a session cannot be taken over in its midst: when its turns
// begin is for the answers to those before, or their texts are made of them.
func (c *Config) WholeSessions(s *Survey) bool {
	return c.pace() == PaceThink || len(s.turns) > 0
}

// Endless tells that how many requests there are is for the endpoint to say.
func (c *Config) Endless() bool { return c.Selection.endless() }

// begin returns the instant of time 0 of the run. Where it is given, the run waits
// for it.
func (r *run) begin(ctx context.Context) (time.Time, error) {
	if r.c.Start == nil {
		return time.Now(), nil
	}
	return r.c.Start(ctx)
}

// Describe says what run.json of a run holds before it begins, without what the
// endpoint says.
func Describe(c *Config, s *Survey) (*results.Run, error) {
	r := &run{c: c, survey: s}
	r.record = r.describe()
	for _, base := range c.URLs {
		u, err := endpoint(base, c.protocol().Path())
		if err != nil {
			return nil, err
		}
		r.record.URLs = append(r.record.URLs, publicURL(u))
	}
	return r.record, r.provenance()
}
