package baseten

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"reprise/trace"
)

// checkedSessions bounds the memory of the search for sessions that repeat.
const checkedSessions = 1 << 21

// An account is what an import notes on the way.
type account struct {
	counts trace.Counts
	tick   trace.Tick

	kinds    []string // containers seen
	units    []string // types of the arrival seen
	sessions []string // session columns used, by file
	zoneless bool     // a timestamp column without a zone

	earliest              time.Duration
	kept, inSession       int64
	partial, dropped, odd int64 // rows with hashes, by rule
	givenBlock            int64
	repeated              map[string]*repeats // by session column
	unknown               map[string]int64
}

// repeats looks for a value that comes twice. Memory is let go once one does.
type repeats struct {
	seen  map[uint64]struct{}
	found bool
	full  bool // stopped looking
}

func (r *repeats) add(id string) {
	if r.found || r.full {
		return
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	key := h.Sum64()
	if _, r.found = r.seen[key]; r.found {
		r.seen = nil
		return
	}
	if r.seen == nil {
		r.seen = map[uint64]struct{}{}
	}
	if r.seen[key] = struct{}{}; len(r.seen) >= checkedSessions {
		r.seen, r.full = nil, true
	}
}

func (a *account) note(what string, n int64) {
	if a.counts.Notes == nil {
		a.counts.Notes = map[string]int64{}
	}
	a.counts.Notes[what] += n
}

func addOnce(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// opened notes a table and its columns.
func (a *account) opened(t table, l *layout) {
	if a.repeated == nil {
		a.repeated, a.unknown = map[string]*repeats{}, map[string]int64{}
	}
	a.kinds = addOnce(a.kinds, t.kind())
	a.units = addOnce(a.units, l.unit)
	name := l.session
	if name == "" {
		name = SessionNone
	}
	a.sessions = addOnce(a.sessions, name)
	for _, c := range []string{colProvided, colPoor} {
		if _, ok := l.at[c]; ok && a.repeated[c] == nil {
			a.repeated[c] = &repeats{}
		}
	}
	for _, c := range l.extra {
		name := l.sc.Field(c).Name
		if !isDocumented(name) {
			a.unknown[name] = 0
		}
	}
	a.zoneless = a.zoneless || strings.HasPrefix(l.unit, "timestamp") && !strings.Contains(l.unit, "tz=")
}

func isDocumented(name string) bool {
	for _, d := range documented {
		if d == name {
			return true
		}
	}
	return false
}

// seen counts an accepted row.
func (a *account) seen(l *layout, r *trace.Request) {
	at := r.Arrival.Value
	if a.kept == 0 || at < a.earliest {
		a.earliest = at
	}
	a.kept++
	a.tick.Add(at)
	if r.Session.Known {
		a.inSession++
	}
	for c, rep := range a.repeated {
		if v, ok := r.Attributes[c]; ok {
			rep.add(v)
		}
	}
	for name := range a.unknown {
		if _, ok := r.Attributes[name]; ok {
			a.unknown[name]++
		}
	}
	a.ended(r)
	switch r.BlockTail.Or("") {
	case trace.TailPartial:
		a.partial++
	case trace.TailDropped:
		a.dropped++
	case trace.TailOther:
		a.odd++
	}
}

func (a *account) ended(r *trace.Request) {
	switch r.Status.Value {
	case trace.StatusCancelled:
		a.note("cancelled requests, kept with status cancelled", 1)
		if !r.Cancel.Known {
			a.note("cancelled requests without duration_e2e_ms: when is unknown", 1)
		}
	case trace.StatusEmpty:
		a.note("requests with output_tokens 0 that were not cancelled, kept with status empty", 1)
	}
}

// meta says what was found.
func (s *state) meta() trace.Meta {
	m := trace.Meta{Clock: trace.ClockTrace, Format: "baseten", Dialect: strings.Join(s.kinds, " and "), EpochNS: trace.Some(int64(0)), Zone: "Unix time", TickNS: s.tick.NS()}
	guess := func(what, value, flag, evidence string, args ...any) {
		m.Guesses = append(m.Guesses, trace.Guess{What: what, Value: value, Evidence: fmt.Sprintf(evidence, args...), Flag: flag})
	}
	guess("session key", strings.Join(s.sessions, " and "), "--session-column", "%s; %d of %d rows have a session", s.sessionEvidence(), s.inSession, s.kept)
	why := "the name of the column says so"
	if strings.HasPrefix(s.units[0], "timestamp") {
		why = "the type of the column says so"
	}
	if s.zoneless {
		m.Zone = "Unix time; a timestamp without a zone is taken as UTC"
	}
	guess("unit of "+colTime, strings.Join(s.units, " and "), "", "%s; the earliest is %s", why, time.Unix(0, int64(s.earliest)).UTC().Format(time.RFC3339Nano))
	if n := s.partial + s.dropped + s.odd; n > 0 {
		guess("last block of total_hashes", s.tailRule(), "", "rows with ceil(input_tokens/block_size) hashes: %d, floor: %d, neither: %d", s.partial, s.dropped, s.odd)
	}
	if s.givenBlock > 0 {
		guess("block size", fmt.Sprint(s.im.BlockTokens), "--block-tokens", "given, for %d rows with hashes and a null block_size", s.givenBlock)
	}
	if s.im.Recount != nil {
		guess("token counts", "prompt and output_text, without a chat template", "--recount", "counted by %s", s.im.Counter)
	}
	for k, n := range s.unknown {
		if n > 0 {
			s.note("unknown column "+k+" kept in attributes", n)
		}
	}
	m.Counts = s.counts
	return m
}

func (s *state) tailRule() string {
	switch {
	case s.odd > s.partial+s.dropped:
		return trace.TailOther
	case s.dropped > s.partial:
		return trace.TailDropped
	}
	return trace.TailPartial
}

// sessionEvidence says why the session column was chosen, and what the first
// version of the format's reader would have chosen by repeating values.
func (s *state) sessionEvidence() string {
	why := "no session column is there"
	switch {
	case s.im.SessionColumn != "":
		why = "given"
	case len(s.sessions) > 1:
		why = "by the columns of each file"
	case s.sessions[0] == colProvided:
		why = "the column is there"
	case s.sessions[0] == colPoor:
		why = colProvided + " is not there"
	}
	if older := s.byRepeats(); older != "" && (len(s.sessions) > 1 || older != s.sessions[0]) {
		why += "; by values that repeat it would be " + older
	}
	return why
}

func (s *state) byRepeats() string {
	provided, poor := s.repeated[colProvided], s.repeated[colPoor]
	switch {
	case provided != nil && provided.found:
		return colProvided
	case poor != nil && poor.found:
		return colPoor
	case provided != nil:
		return colProvided
	case poor != nil:
		return colPoor
	}
	return ""
}
