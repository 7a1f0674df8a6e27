package synth

import (
	"context"
	"maps"
	"slices"

	"reprise/analysis/prefix"
	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A fitStream collects what a stream of the model needs. A row that stands alone
// counts as a session of one turn.
type fitStream struct {
	name    string
	ordinal uint64
	rows    int64
	stamps  []int64 // arrivals in ns, twice, plus 1 where a session begins
	clients map[string]int64
	models  map[string]int64

	firsts  fitLengths    // of the first turns of sessions
	outputs stats.Tally   // tokens, of later turns
	gaps    fitTimes      // start to start within sessions
	delays  fitTimes      // recorded
	thinks  fitTimes      // end of a turn to the start of the next
	growth  stats.Tally   // tokens
	early   int64         // turns that began before the one before had ended
	starts  int64         // sessions
	turns   stats.Tally   // of sessions, once all rows are in
	open    int64         // sessions alive at an end of the trace
	keyed   []keyedLength // of first turns, for intervals

	hits      prefix.Hits
	blockRows int64
	sizes     map[int32]int64
	tails     map[string]int64
	kept      stats.Tally // share of the blocks of the turn before, in millionths, as often as these are
	keptTurns int64       // that kept is from
	roots     fitRoots
	paths     fitPaths
}

// maxStreamNames bounds the clients and models of one stream that are counted.
const maxStreamNames = 1000

func newFitStream(o *FitOptions, ordinal int, name string) *fitStream {
	s := &fitStream{name: name, ordinal: uint64(ordinal), clients: map[string]int64{}, models: map[string]int64{}, sizes: map[int32]int64{}, tails: map[string]int64{}}
	s.firsts.begin(o.Seed, s.ordinal)
	s.paths.begin(o.Seed, s.ordinal)
	return s
}

// title is the stream in an error.
func (s *fitStream) title() string { return "stream " + s.name }

// alone takes a row without a session.
func (s *fitStream) alone(f *fitting, r fitRow, hits prefix.Hits) {
	s.common(f, r, hits, true, uint64(f.rows))
	s.turns.Add(1)
}

// common takes what every row has; first says that a session begins, key names
// it.
func (s *fitStream) common(f *fitting, r fitRow, hits prefix.Hits, first bool, key uint64) {
	s.rows++
	count(s.clients, r.client)
	count(s.models, r.model)
	if r.at >= 0 && f.meta.Clock == trace.ClockTrace {
		stamp := r.at << 1
		if first {
			stamp |= 1
		}
		s.stamps = append(s.stamps, stamp)
	}
	if r.size > 0 {
		s.blockRows++
		s.hits.Add(hits)
		s.sizes[r.size]++
		s.tails[r.tail]++
	}
	if !first {
		return
	}
	s.starts++
	s.firsts.add(r)
	if r.size > 0 {
		s.roots.add(r.ids)
	}
	if f.o.Bootstrap > 0 {
		s.keyed = append(s.keyed, keyedLength{int64(key), r.at, r.input, r.known()})
	}
}

// known is the output of a row that did not fail, or below 0.
func (r *fitRow) known() int64 {
	if r.failed {
		return -1
	}
	return r.output
}

// count counts a name, or all that come too late as one.
func count(names map[string]int64, name string) {
	if _, seen := names[name]; !seen && len(names) >= maxStreamNames {
		name = othersStream
	}
	names[name]++
}

// turn takes what a row says of its session.
func (s *fitStream) turn(f *fitting, r fitRow, ordinal int64, c *fitSession) {
	first := c.turns == 0
	if first && r.turn > 0 {
		c.cut = true
	}
	c.turns++
	if !first {
		if r.output >= 0 && !r.failed {
			s.outputs.Add(r.output)
		}
		s.times(f, r, ordinal, c)
		if r.input >= 0 && c.input >= 0 && !r.agent {
			s.growth.Add(r.input - c.input)
		}
	}
	if r.input >= 0 && !r.agent {
		c.input = r.input
	}
	c.end = r.end
	if r.at >= 0 {
		c.last = r.at
	}
}

// keep takes how much of the blocks of the turn before are the beginning of a
// turn: what a cache without limit serves of it, so that a branch from an earlier
// turn counts too.
func (s *fitStream) keep(f *fitting, r fitRow, hits prefix.Hits, c *fitSession) {
	if r.size == 0 {
		c.blocks = 0
		return
	}
	if before := int64(c.blocks); before > 0 && f.reuse.Rate() == 1 {
		s.kept.AddN(min(before, hits.HitBlocks)*1e6/before, before)
		s.keptTurns++
	}
	c.blocks = int32(len(r.ids))
}

// times takes what lies between a turn and the one before.
func (s *fitStream) times(f *fitting, r fitRow, ordinal int64, c *fitSession) {
	keyed := f.o.Bootstrap > 0
	if r.delay >= 0 {
		s.delays.add(r.delay, ordinal, keyed)
	}
	if r.at < 0 || c.last < 0 {
		return
	}
	s.gaps.add(max(0, r.at-c.last), ordinal, keyed)
	switch {
	case c.end < 0:
	case r.at < c.end:
		s.early++
	default:
		s.thinks.add(r.at-c.end, ordinal, keyed)
	}
}

// stream returns the stream of the model.
func (f *fitting) stream(ctx context.Context, s *fitStream) (*model.Stream, error) {
	m := &model.Stream{Name: s.name, Requests: s.rows, Lengths: s.lengthsResult(f)}
	if f.o.By == FitClient && s.name != othersStream {
		m.Client = onlyName(s.clients)
	}
	if m.Model = onlyName(s.models); m.Model == "" {
		m.Models = namedShares(s.models)
	}
	of := "request"
	if s.conversing() {
		of = "session"
		m.Sessions = s.sessionsResult(f)
	}
	m.Lengths.Of = map[string]string{"request": "request", "session": "first turn of a session"}[of]
	var err error
	if m.Arrivals, err = f.arrivals(s, of); err != nil {
		return nil, err
	}
	m.Prefix = s.prefixResult(f)
	if f.o.Bootstrap > 0 {
		return m, f.intervals(ctx, s, m)
	}
	return m, nil
}

// conversing tells whether sessions have several turns.
func (s *fitStream) conversing() bool { return s.starts < s.rows }

// onlyName returns the name that all rows have.
func onlyName(names map[string]int64) string {
	if len(names) == 1 {
		for name := range names {
			return name
		}
	}
	return ""
}

// namedShares returns the shares of the names, the largest first; nil without any
// name.
func namedShares(names map[string]int64) []model.Share {
	var total int64
	for _, n := range names {
		total += n
	}
	if len(names) == 0 || len(names) == 1 && names[""] > 0 {
		return nil
	}
	order := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(order, func(a, b string) int { return int(names[b] - names[a]) })
	var out []model.Share
	for _, name := range order {
		out = append(out, model.Share{Name: name, Share: float64(names[name]) / float64(total)})
	}
	return out
}
