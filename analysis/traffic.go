package analysis

import (
	"context"
	"fmt"

	"reprise/analysis/prefix"
	"reprise/trace"
)

// Traffic is what the requests of a trace look like: reprise analyze. Times are
// seconds, lengths tokens, shares 0 to 1. What the trace does not say is left
// out, or a sentence that begins "not measurable: " stands for it. Every part
// has its n.
type Traffic struct {
	Clock  string `json:"clock"` // trace, session or none
	Format string `json:"format,omitempty"`

	Flow
	Density  *LengthDensity  `json:"length_density,omitempty"`
	Sessions TrafficSessions `json:"sessions"`
	Prefix   TrafficPrefix   `json:"prefix"`

	By     string         `json:"by,omitempty"` // what Groups are by
	Groups []TrafficGroup `json:"groups,omitempty"`
	Pooled int64          `json:"pooled_groups,omitempty"` // beyond MaxGroups, in the group "others"

	raw *trafficAnalysis // what it was made of, for comparisons
}

// A Flow is a stream of requests: when they come, and how long they are.
type Flow struct {
	Rows       int64             `json:"rows"`
	Arrivals   Arrivals          `json:"arrivals"`
	Lengths    []Lengths         `json:"lengths"`
	Dependence TrafficDependence `json:"dependence"`
}

// What TrafficOptions.By may be.
const (
	ByModel  = "model"
	ByClient = "client"
	ByHour   = "hour"
)

// MaxGroups is how many groups are kept apart.
const MaxGroups = 1000

// TrafficOptions say how to analyse a trace.
type TrafficOptions struct {
	By        string // ByModel, ByClient, ByHour, or "" for no groups
	MaxBlocks int    // distinct blocks kept exactly; 0 means prefix.DefaultMaxBlocks
}

// AnalyzeTraffic reads the rows that are left of r, once. Its memory grows with
// 8 bytes a row for the dependence of lengths, and with the numbers of sessions
// and, up to MaxBlocks, of distinct blocks. Rows that are out of order are an
// error.
func AnalyzeTraffic(ctx context.Context, r *trace.Reader, o TrafficOptions) (*Traffic, error) {
	c, err := NewTrafficCollector(r.Meta(), r.NumRows(), o)
	if err != nil {
		return nil, err
	}
	if err := trace.EachBatch(ctx, r, c.Add); err != nil {
		return nil, err
	}
	return c.Traffic(), nil
}

// A TrafficCollector gathers Traffic from rows that are at hand anyway, such as
// those that are being written. Memory is that of AnalyzeTraffic.
type TrafficCollector struct{ a *trafficAnalysis }

// NewTrafficCollector starts with the metadata of the trace, of which the clock
// counts; rows is how many come, 0 where that is not known.
func NewTrafficCollector(meta trace.Meta, rows int64, o TrafficOptions) (*TrafficCollector, error) {
	if o.By == ByHour && meta.Clock != trace.ClockTrace {
		return nil, trace.WithFix(fmt.Errorf("no hours: %s", clockless(meta.Clock)), "group by model or client")
	}
	a := &trafficAnalysis{
		meta: meta, by: o.By,
		flow:     newFlow(meta.Clock, rows),
		sessions: newSessionStates(), inferred: newSessionStates(),
		groups: map[string]*trafficGroup{},
	}
	a.reuse.MaxBlocks = o.MaxBlocks
	a.held.clock = meta.Clock
	return &TrafficCollector{a}, nil
}

// Add takes the rows of b, which come in the order of the trace.
func (c *TrafficCollector) Add(b *trace.Batch) error {
	for i := range b.Len() {
		if err := c.a.row(b, i); err != nil {
			return err
		}
	}
	return nil
}

// Traffic returns what the rows so far look like.
func (c *TrafficCollector) Traffic() *Traffic {
	t := c.a.result()
	t.raw = c.a
	return t
}

type trafficAnalysis struct {
	meta trace.Meta
	by   string

	flow     *flow
	sessions *sessionStates // as recorded
	inferred *sessionStates
	names    sessionNames

	reuse      prefix.Reuse
	blockRows  int64
	noTokens   int64 // rows with ids but without a block length
	groups     map[string]*trafficGroup
	groupOrder []*trafficGroup
	pooled     map[string]struct{}
	seen       prefix.Seen // of the row at hand; zero without block ids
	held       heldTokens
}

func (a *trafficAnalysis) row(b *trace.Batch, i int) error {
	row := flowRow{}
	a.seen = prefix.Seen{}
	row.at, row.atKnown = b.ArrivalNS.Get(i)
	row.atKnown = row.atKnown && a.meta.Clock != trace.ClockNone
	if a.meta.Clock == trace.ClockTrace && row.atKnown && a.flow.arrivals.n > 0 && row.at < a.flow.arrivals.last {
		return trace.WithFix(fmt.Errorf("row %d: arrival_ns %d comes after %d: the trace is not in order", a.flow.rows+1, row.at, a.flow.arrivals.last), "see what else is wrong: reprise trace check")
	}
	session := int64(-1)
	if id, ok := b.SessionID.Get(i); ok {
		session = a.names.ordinal(id)
	}
	row.readLengths(b, i)
	hits, known := a.blocks(b, i, row, session)
	if session >= 0 {
		row.gap, row.gapKnown = a.sessions.add(session, sessionRow(b, i, row))
	}
	a.flow.add(row)
	a.held.add(b, i, row)
	if a.by != "" {
		a.group(b, i, row.at).add(row, hits, known)
	}
	return nil
}

// blocks takes the prefix of a row, which gives a row without a session one.
func (a *trafficAnalysis) blocks(b *trace.Batch, i int, row flowRow, session int64) (prefix.Hits, bool) {
	ids, known := b.Blocks(i)
	if !known {
		return prefix.Hits{}, false
	}
	size, ok := b.BlockTokens.Get(i)
	if !ok || size <= 0 {
		a.noTokens++
		return prefix.Hits{}, false
	}
	a.blockRows++
	q := prefix.Request{IDs: ids, BlockTokens: size, InputTokens: -1, At: row.at, AtKnown: row.atKnown && a.meta.Clock == trace.ClockTrace, Session: session}
	q.Model, _ = b.Model.Get(i)
	if in := row.lengths[inputTokens]; in.known {
		q.InputTokens = in.v
	}
	a.seen = a.reuse.Observe(q)
	if a.seen.Inferred {
		a.inferred.add(a.seen.Session, sessionRow(b, i, row))
	}
	return a.seen.Hits, true
}

func (a *trafficAnalysis) result() *Traffic {
	t := &Traffic{Clock: a.meta.Clock, Format: a.meta.Format, Flow: a.flow.result(), By: a.by}
	t.Density = densityOf(a.flow.pairs)
	t.Sessions = a.sessionsResult()
	t.Prefix = a.prefixResult()
	t.Groups = a.groupsResult()
	t.Pooled = int64(len(a.pooled))
	return t
}

// notMeasurable is how every sentence begins that stands for a number.
const notMeasurable = "not measurable: "

// clockless says why there is no common time.
func clockless(clock string) string {
	if clock == trace.ClockSession {
		return "each session has its own clock, so the trace has no common one"
	}
	return "the trace has no times"
}
