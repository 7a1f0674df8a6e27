package weka

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// place sets the arrivals. The session begins with its first request at the top
// level; what a sub-agent did before is clamped to that.
func (ses *session) place() error {
	for i, r := range ses.parent {
		if at := toDuration(r.t); i == 0 || at < ses.start {
			ses.start = at
		}
	}
	for i, sub := range ses.subs {
		kept := sub.rows[:0]
		for _, r := range sub.rows {
			if err := ses.possible(r); err != nil {
				if err := ses.bad(r.path, r.raw, err); err != nil {
					return err
				}
				continue
			}
			kept = append(kept, r)
		}
		sub.rows = kept
		if at := ses.earliest(sub); len(ses.parent) == 0 && len(kept) > 0 && (ses.noStart(i) || at < ses.start) {
			ses.start = at
		}
	}
	ses.about.Start = ses.start
	if ses.basis == Absolute && len(ses.subs) > 0 {
		ses.about.Nested = Absolute
	}
	for _, r := range ses.parent {
		r.req.Arrival = trace.Some(toDuration(r.t) - ses.start)
		r.keepExactT(ses.start, 0)
	}
	for _, sub := range ses.subs {
		ses.placeSub(sub)
	}
	return nil
}

// noStart tells whether no sub-agent before i has a request.
func (ses *session) noStart(i int) bool {
	return !slices.ContainsFunc(ses.subs[:i], func(s *subagent) bool { return len(s.rows) > 0 })
}

// earliest returns the earliest recorded time of a sub-agent's requests.
func (ses *session) earliest(sub *subagent) (at time.Duration) {
	for i, r := range sub.rows {
		if t := ses.recorded(r); i == 0 || t < at {
			at = t
		}
	}
	return at
}

// recorded returns the time of a nested row on the session's clock.
func (ses *session) recorded(r *row) time.Duration {
	if ses.basis == Absolute {
		return toDuration(r.t)
	}
	return toDuration(r.sub.t) + toDuration(r.t)
}

// possible refuses a time before the sub-agent was started.
func (ses *session) possible(r *row) error {
	switch {
	case ses.basis == Relative && r.t < -timeSlack:
		return &jsonx.FieldError{Field: "t", Err: fmt.Errorf("%v, though it counts from its sub-agent's start", r.t), Fix: "pass --nested-time absolute if it counts from the session's start"}
	case ses.basis == Absolute && r.t < r.sub.t-timeSlack:
		return &jsonx.FieldError{Field: "t", Err: fmt.Errorf("%v, but its sub-agent starts at %v", r.t, r.sub.t), Fix: "pass --nested-time relative if it counts from there"}
	}
	return nil
}

// placeSub keeps the distances within a sub-agent that counts from its marker,
// when the marker is clamped.
func (ses *session) placeSub(sub *subagent) {
	sub.base = max(toDuration(sub.t), ses.start)
	for _, r := range sub.rows {
		recorded := ses.recorded(r)
		at := recorded
		if ses.basis == Relative {
			at += sub.base - toDuration(sub.t)
		}
		at = max(at, ses.start)
		if recorded < ses.start {
			ses.clamped.rows++
			ses.clamped.earliest = max(ses.clamped.earliest, ses.start-recorded)
			r.rest[attrEarly], _ = json.Marshal(seconds(recorded)) // a finite number always encodes
		}
		r.req.Arrival = trace.Some(at - ses.start)
		if ses.basis == Relative {
			r.keepExactT(ses.start, sub.base)
		} else {
			r.keepExactT(ses.start, 0)
		}
		if end, ok := sub.end.Get(); ok && recorded > end+timeSlack*time.Second {
			ses.note("requests of sub-agents that start after their sub-agent's recorded end", 1)
		}
	}
}

func (r *row) keepExactT(start, base time.Duration) {
	r.keepExact("t", trace.Some(r.req.Arrival.Value+start-base))
}

// link sets turns, dependencies and delays.
func (ses *session) link() {
	parent := ses.chain(ses.parent)
	subs := make([][]*row, len(ses.subs))
	for i, sub := range ses.subs {
		subs[i] = ses.chain(sub.rows)
		ses.note("sub-agents", 1)
		if len(sub.rows) == 0 {
			ses.note("sub-agents without requests", 1)
			continue
		}
		if ses.spawn(sub, parent, subs[i]) {
			ses.join(sub, parent, subs[i])
		}
	}
}

// chain numbers rows by time and links each to the one before.
func (ses *session) chain(rows []*row) []*row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, byTime)
	for i, r := range rows {
		r.req.Turn = trace.Some(int32(i))
		r.req.Delay = r.think
		if i == 0 {
			continue
		}
		before := rows[i-1]
		r.req.After = append(r.req.After, trace.Dependency{ID: before.req.ID, Kind: trace.AfterTurn})
		if end, ok := before.end(); ok && end > r.at()+timeSlack*time.Second {
			ses.note("requests that start over 1 s before the recorded end of the turn before", 1)
		}
	}
	return rows
}

func byTime(a, b *row) int { return cmp.Compare(a.at(), b.at()) }

func (r *row) at() time.Duration { return r.req.Arrival.Value }

func (r *row) end() (time.Duration, bool) {
	return r.at() + r.req.RecordedE2E.Value, r.req.RecordedE2E.Known
}

// follows tells whether the marker comes after a top-level row: later, or at the
// same time and behind it in the list.
func (sub *subagent) follows(r *row) bool { return r.t < sub.t || r.t == sub.t && r.pos < sub.pos }

// spawn links a sub-agent's first request to the last one before its marker, if
// there is one.
func (ses *session) spawn(sub *subagent, parent, rows []*row) bool {
	i := len(parent) - 1
	for i >= 0 && !sub.follows(parent[i]) {
		i--
	}
	if i < 0 {
		ses.note("sub-agents with no request before them", 1)
		return false
	}
	if i > 0 && parent[i-1].t == parent[i].t {
		ses.note("sub-agents whose parent is one of several requests at the same time; the last of these is taken", 1)
	}
	first := rows[0]
	first.req.After = append(first.req.After, trace.Dependency{ID: parent[i].req.ID, Kind: trace.AfterSpawn})
	first.req.Delay = trace.Optional[time.Duration]{}
	first.keepThink()
	if end, ok := parent[i].end(); ok {
		if end > first.at()+timeSlack*time.Second {
			ses.note("sub-agents that start before the recorded end of the request that started them", 1)
		}
		first.req.Delay = trace.Some(max(0, first.at()-end))
	}
	return true
}

// keepThink keeps the think time of a row whose delay says something else.
func (r *row) keepThink() {
	if raw, ok := r.exact["think_time"]; ok {
		r.rest["think_time"] = raw
		delete(r.exact, "think_time")
	}
}

// join links the parent's next request to the sub-agent's last one, if the
// parent waited for it.
func (ses *session) join(sub *subagent, parent, rows []*row) {
	i := slices.IndexFunc(parent, func(r *row) bool { return !sub.follows(r) })
	end, known := sub.end.Get()
	switch {
	case sub.status != "completed":
		ses.note("sub-agents not joined: not recorded as completed", 1)
	case !known:
		ses.note("sub-agents not joined: no recorded duration", 1)
	case i < 0:
		ses.note("sub-agents not joined: no request follows", 1)
	case toDuration(parent[i].t) < end:
		ses.note("sub-agents not joined: the parent went on before the recorded end", 1)
	default:
		ses.note("sub-agents joined", 1)
		last, next := rows[len(rows)-1], parent[i]
		next.req.After = append(next.req.After, trace.Dependency{ID: last.req.ID, Kind: trace.AfterJoin})
		if stop, ok := last.end(); ok {
			end = stop + ses.start
		}
		next.waitFrom(end - ses.start)
	}
}

// waitFrom shortens the delay of a row that waited for a sub-agent too: think
// time counts from the turn before, the delay from the last end.
func (r *row) waitFrom(end time.Duration) {
	r.keepThink()
	if d, ok := r.req.Delay.Get(); ok {
		r.req.Delay = trace.Some(max(0, min(d, r.at()-end)))
	}
}

// cutGaps shortens times in which nothing of the session ran.
func (ses *session) cutGaps(rows []*row) {
	limit := ses.im.GapCap
	if limit == 0 {
		return
	}
	order := slices.Clone(rows)
	slices.SortStableFunc(order, byTime)
	var cut, busy time.Duration
	for _, r := range order {
		at := r.at()
		idle := at - busy
		end, _ := r.end()
		busy = max(busy, end)
		if over := idle - limit; over > 0 {
			cut += over
			ses.gaps.n++
			ses.gaps.sum += over
			if d, ok := r.req.Delay.Get(); ok {
				r.req.Delay = trace.Some(max(0, d-over))
			}
		}
		if cut > 0 {
			r.req.Arrival = trace.Some(at - cut)
			r.rest["t"] = r.exact["t"]
		}
	}
}
