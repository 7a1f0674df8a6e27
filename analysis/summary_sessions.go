package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"reprise/trace/results"
)

// Sessions rolls the requests of a run up into conversations and the agents
// within them.
type Sessions struct {
	Sessions   int64      `json:"sessions"` // with at least one request sent
	Complete   int64      `json:"complete"` // all their recorded requests were successful
	Agents     int64      `json:"agents"`   // sub-agents, per session
	Metrics    Metrics    `json:"metrics"`
	TTFTByTurn []TurnTTFT `json:"ttft_by_turn"` // in order of turns; turns without a sample are left out
}

// A TurnTTFT is the TTFT of requests at one place, or a few places, in their
// session.
type TurnTTFT struct {
	Turns string  `json:"turns"` // 0-based: "0", "4-7", "32+"
	TTFT  *Metric `json:"ttft"`
}

const (
	unitTurns = "turns"
	ofSession = "session"
	ofAgent   = "agent"
)

var (
	defTurns         = definition{"turns", unitTurns, ofSession, "requests of a session that were sent, those of its sub-agents included"}
	defMakespan      = definition{"makespan", unitMS, ofSession, "first sent to last end of a session"}
	defAgentMakespan = definition{"agent_makespan", unitMS, ofAgent, "first sent to last end of a sub-agent"}
	defJoinWait      = definition{"join_wait", unitMS, ofRequest, "end of the agent's own turn before to eligible, of turns that a sub-agent held up last (causal and think pacing); recorded delays included"}
)

// rollup gathers sessions. Its memory grows with sessions and agents.
type rollup struct {
	open     map[string]*conversation
	joinWait *collector
	byTurn   []*collector
}

// A conversation is one session of a run.
type conversation struct {
	stretch
	requests, successful, sent int64
	agents                     map[string]*stretch // "" is the session's own thread
}

// A stretch is from the first byte sent to the last end.
type stretch struct {
	first, last time.Duration
	began       bool
	ended       bool
}

func (s *stretch) add(r *results.Result) {
	if r.Sent.Known && (!s.began || r.Sent.Value < s.first) {
		s.first, s.began = r.Sent.Value, true
	}
	if r.Sent.Known && r.End.Known {
		s.last, s.ended = max(s.last, r.End.Value), true
	}
}

func (s *stretch) addTo(c *collector) {
	if s.began && s.ended {
		c.one(int64(s.last - s.first))
	} else {
		c.absent.add("not sent, or no end")
	}
}

func newRollup() *rollup {
	r := &rollup{open: map[string]*conversation{}, joinWait: newCollector(defJoinWait)}
	for range turnBuckets {
		r.byTurn = append(r.byTurn, newCollector(timings[0].definition))
	}
	return r
}

// turnBuckets are the first turns of the rows of TTFTByTurn.
var turnBuckets = []int32{0, 1, 2, 3, 4, 8, 16, 32}

func turnBucket(turn int32) int {
	i, found := slices.BinarySearchFunc(turnBuckets, turn, cmp.Compare[int32])
	if found {
		return i
	}
	return i - 1
}

func turnsText(bucket int) string {
	from := turnBuckets[bucket]
	switch {
	case bucket+1 == len(turnBuckets):
		return strconv.Itoa(int(from)) + "+"
	case turnBuckets[bucket+1] == from+1:
		return strconv.Itoa(int(from))
	}
	return strconv.Itoa(int(from)) + "-" + strconv.Itoa(int(turnBuckets[bucket+1]-1))
}

// add takes one result; results come in the order in which they ended.
func (u *rollup) add(r *results.Result) {
	session, ok := r.Session.Get()
	if !ok {
		return
	}
	if r.Pass > 0 {
		session += fmt.Sprintf("\x00%d", r.Pass) // another play of it
	}
	c := u.open[session]
	if c == nil {
		c = &conversation{agents: map[string]*stretch{}}
		u.open[session] = c
	}
	c.requests++
	if r.Sent.Known {
		c.sent++
	}
	if successful(r) {
		c.successful++
		if turn, ok := r.Turn.Get(); ok && turn >= 0 {
			if ttft, ok := results.TTFT(r); ok {
				u.byTurn[turnBucket(turn)].one(int64(ttft))
			}
		}
	}
	own := c.agents[r.Agent.Or("")]
	if own == nil {
		own = &stretch{}
		c.agents[r.Agent.Or("")] = own
	}
	if r.HoldCause.Known && r.HoldCause.Value == holdJoin && r.Eligible.Known && r.Dispatched.Known {
		if own.ended && own.last <= r.Eligible.Value {
			u.joinWait.one(int64(r.Eligible.Value - own.last))
		} else {
			u.joinWait.absent.add("no earlier turn of its own")
		}
	}
	c.add(r)
	own.add(r)
}

// holdJoin is the hold cause of a request that a sub-agent's end let go.
const holdJoin = "join"

// summary returns nil if no request names a session.
func (u *rollup) summary() *Sessions {
	if len(u.open) == 0 {
		return nil
	}
	s := &Sessions{TTFTByTurn: []TurnTTFT{}}
	turns, makespan, agents := newCollector(defTurns), newCollector(defMakespan), newCollector(defAgentMakespan)
	for _, id := range slices.Sorted(maps.Keys(u.open)) {
		c := u.open[id]
		if c.sent > 0 {
			s.Sessions++
			turns.one(c.sent)
		}
		if c.successful == c.requests {
			s.Complete++
		}
		c.addTo(makespan)
		for _, name := range slices.Sorted(maps.Keys(c.agents)) {
			if name != "" {
				s.Agents++
				c.agents[name].addTo(agents)
			}
		}
	}
	for _, c := range []*collector{turns, makespan, agents, u.joinWait} {
		if c.n > 0 || len(c.absent) > 0 {
			s.Metrics = append(s.Metrics, c.metric())
		}
	}
	for i, c := range u.byTurn {
		if c.n > 0 {
			s.TTFTByTurn = append(s.TTFTByTurn, TurnTTFT{turnsText(i), c.metric()})
		}
	}
	return s
}
