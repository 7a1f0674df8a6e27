package synth

import (
	"fmt"
	"math"
	"time"

	"reprise/analysis/prefix"
	"reprise/analysis/stats"
	"reprise/trace"
)

// Purposes of the random streams of a fit.
const (
	fitReservoir uint64 = 0x200 + iota
	fitCheck
	fitPhase
	fitTest
	fitBlocks
	fitPath
)

// A fitting collects what a model needs, in one pass over a trace.
type fitting struct {
	o      FitOptions
	groups *fitGroups
	mode   fitMode
	again  *fitMode // a pass in this mode is needed
	meta   trace.Meta
	notes  []string

	rows     int64
	unnamed  int64 // rows without a session, where sessions are named
	moved    int64
	inferred bool // some session was inferred
	streams  []*fitStream
	ordinals map[uint64]uint32 // of named sessions, by hash
	sessions fitSessions
	reuse    prefix.Reuse
	clock    fitClock
	measured Measuring
}

func newFitting(o FitOptions, groups *fitGroups, mode fitMode) *fitting {
	f := &fitting{o: o, groups: groups, mode: mode, streams: groups.streams(&o), ordinals: map[uint64]uint32{}}
	f.reuse.MaxBlocks = o.MaxBlocks
	for _, s := range f.streams {
		s.roots.limit = maxFitRoots / len(f.streams)
	}
	if mode.named || !mode.infer {
		f.boundBlocks()
	}
	return f
}

// boundedBlocks is how many distinct blocks are kept where they are only for the
// hit share: beyond, that is an estimate.
const boundedBlocks = 8_000_000

// boundBlocks is for traces in which no session is inferred.
func (f *fitting) boundBlocks() {
	if f.o.MaxBlocks == 0 {
		f.reuse.MaxBlocks = boundedBlocks
	}
}

// A fitRow is what a fit takes of a row. A length or a time below 0 is not
// known.
type fitRow struct {
	at, end, delay int64 // ns
	input, output  int64
	turn           int32
	failed         bool
	agent          bool
	model, client  string
	ids            []uint64
	size           int32 // of a block; 0 without ids
	tail           string
}

func (f *fitting) readRow(b *trace.Batch, i int) fitRow {
	known := func(v int64, ok bool) int64 {
		if !ok {
			return -1
		}
		return v
	}
	r := fitRow{end: -1, at: -1, turn: -1}
	if f.meta.Clock != trace.ClockNone {
		r.at = known(b.ArrivalNS.Get(i))
	}
	if e2e, ok := b.RecordedE2ENS.Get(i); ok && r.at >= 0 {
		r.end = r.at + e2e
	}
	r.delay = known(b.DelayNS.Get(i))
	r.input, r.output = known(b.InputTokens.Get(i)), known(b.OutputTokens.Get(i))
	if turn, ok := b.Turn.Get(i); ok {
		r.turn = turn
	}
	status, _ := b.Status.Get(i)
	r.failed = status == trace.StatusError || status == trace.StatusEmpty || r.output == 0 && b.Operation.Values[i] != trace.OpEmbedding
	r.agent = !b.Agent.Null[i]
	r.model, _ = b.Model.Get(i)
	r.client, _ = b.ClientID.Get(i)
	if ids, ok := b.Blocks(i); ok {
		if size, ok := b.BlockTokens.Get(i); ok && size > 0 {
			r.ids, r.size = ids, size
			r.tail, _ = b.BlockTail.Get(i)
		}
	}
	return r
}

func (f *fitting) row(b *trace.Batch, i int) error {
	r := f.readRow(b, i)
	if f.meta.Clock == trace.ClockTrace && r.at >= 0 {
		if f.clock.n > 0 && r.at < f.clock.last {
			return trace.WithFix(fmt.Errorf("row %d: arrival_ns %d comes after %d: the trace is not in order", f.rows+1, r.at, f.clock.last), "see what else is wrong: reprise trace check")
		}
		f.clock.add(r.at)
	}
	f.rows++
	ordinal, named := f.named(b, i)
	hits := f.blocks(r, &ordinal, named)
	if f.again != nil {
		return nil
	}
	group := f.groups.of(f.o.group(b, i))
	f.measure(r, ordinal, hits)
	if ordinal < 0 {
		if f.mode.named {
			f.unnamed++
		}
		f.streams[group].alone(f, r, hits)
		f.streams[group].paths.add(-f.rows, r, hits, &fitSession{last: -1, end: -1})
		return nil
	}
	c, first := f.sessions.at(ordinal)
	if first {
		c.stream = group
	} else if c.stream != group {
		f.moved++
	}
	s := f.streams[c.stream]
	s.common(f, r, hits, first, uint64(ordinal))
	s.paths.add(ordinal, r, hits, c)
	s.turn(f, r, ordinal, c)
	s.keep(f, r, hits, c)
	return nil
}

// measure takes the numbers that what is generated will be held against.
func (f *fitting) measure(r fitRow, ordinal int64, hits prefix.Hits) {
	m := measuredRow{at: r.at, input: r.input, output: r.known(), first: true, key: uint64(max(0, r.at) / int64(time.Minute)), hits: hits}
	if f.meta.Clock != trace.ClockTrace {
		m.at = -1
	}
	if ordinal >= 0 {
		c, first := f.sessions.at(ordinal)
		m.key, m.first = uint64(ordinal), first || c.turns == 0
	}
	f.measured.add(m)
}

// named returns the ordinal of the session that a row names; below 0 if none.
func (f *fitting) named(b *trace.Batch, i int) (ordinal int64, named bool) {
	name, ok := b.SessionID.Get(i)
	if !ok {
		return -1, false
	}
	if f.inferred {
		f.again = &fitMode{named: true}
		return -1, true
	}
	if !f.mode.named {
		f.mode.named = true
		f.boundBlocks()
	}
	key := textKey(name)
	o, seen := f.ordinals[key]
	if !seen {
		o = uint32(len(f.ordinals))
		f.ordinals[key] = o
	}
	return int64(o), true
}

// blocks looks up the prefix of a row, which gives one without a session one.
func (f *fitting) blocks(r fitRow, ordinal *int64, named bool) prefix.Hits {
	if r.size == 0 {
		return prefix.Hits{}
	}
	q := prefix.Request{Model: r.model, IDs: r.ids, BlockTokens: r.size, InputTokens: r.input, Session: max(0, *ordinal)}
	infer := !named && f.mode.infer && !f.mode.named
	if infer {
		q.Session = -1
	}
	seen := f.reuse.Observe(q)
	if infer {
		if !seen.Inferred {
			f.again = &fitMode{}
			return seen.Hits
		}
		f.inferred = true
		*ordinal = seen.Session
	}
	return seen.Hits
}

// A fitClock is the clock of all rows. Times are ns.
type fitClock struct {
	n           int64
	ties        int64 // arrivals at the same time as the one before
	first, last int64
	gcd         trace.Tick
	spacings    stats.Tally

	exact  int64   // greatest common divisor of the times; 0 = all are equal
	tick   int64   // effective
	period float64 // s: first to last, and one mean gap; 0 without a rate
}

func (c *fitClock) add(at int64) {
	if c.n == 0 {
		c.first = at
	} else {
		c.spacings.Add(at - c.last)
		if at == c.last {
			c.ties++
		}
	}
	c.n++
	c.last = at
	c.gcd.Add(time.Duration(at))
}

// settle finds the tick, of which the trace says stated, and the period.
func (c *fitClock) settle(stated int64) {
	c.exact = c.gcd.NS().Or(0)
	c.tick = max(c.exact, min(stated, c.last-c.first))
	if c.exact > 0 && c.tick%c.exact != 0 { // the metadata of another clock
		c.tick = c.exact
	}
	if c.spacings.Exact() {
		if mode, ok := stats.ModalSpacing(c.spacings.Sample(1)); ok {
			c.tick = max(c.tick, int64(math.Round(mode)))
		}
	}
	if c.n > 1 && c.last > c.first {
		span := float64(c.last-c.first) / 1e9
		c.period = span * float64(c.n) / float64(c.n-1)
	}
}

// index returns the tick of a time.
func (c *fitClock) index(at int64) int64 { return (at - c.first + c.tick/2) / c.tick }

func (c *fitClock) tickS() float64 { return float64(c.tick) / 1e9 }
