package synth

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A Generation makes a trace from a workload model.
type Generation struct {
	Duration time.Duration // of the result; 0 = until Requests, or as long as the model's profile
	Requests int64         // of the result; 0 = until Duration
	Rate     float64       // requests/s on average, instead of the model's; 0 = the model's
	Seed     uint64
	Pin      bool // stretch the gaps so that request n of n comes at n / rate exactly, as vLLM does: gaps are no longer quite of their law, and the count over a long time does not vary
	Warm     bool // sessions may have begun before the trace does, as in a window of traffic that goes on
}

// Purposes of the random streams of a generation.
const (
	genGaps uint64 = 0x100 + iota
	genSession
	genBlock
	genRoot
)

// Run hands the rows to emit in order of arrival, in batches that are used
// again. Its memory grows with the sessions that are open at one time, and not
// with the trace. Equal models and seeds give equal rows; a longer trace begins
// with the shorter one, but for the shift that makes the first arrival 0.
func (g Generation) Run(ctx context.Context, w *model.Workload, emit func(*trace.Batch) error) (trace.Meta, error) {
	if err := w.Check(); err != nil {
		return trace.Meta{}, err
	}
	if err := g.check(w); err != nil {
		return trace.Meta{}, err
	}
	m, err := g.maker(w)
	if err != nil {
		return trace.Meta{}, err
	}
	m.emit = emit
	if err := m.run(ctx); err != nil {
		return trace.Meta{}, err
	}
	meta := trace.Meta{Clock: trace.ClockTrace, Dialect: "generated", OriginNS: m.origin(), Counts: trace.Counts{Read: m.rows, Kept: m.rows}}
	if m.rows == 0 {
		return meta, trace.WithFix(errors.New("no request falls into the time asked for"), "give a longer --duration, or a higher --rate")
	}
	return meta, nil
}

// MostRequests is how many requests are generated at most: some 40 GB of the shortest rows.
const MostRequests = 10_000_000_000

// origin is the time of the first arrival, which became 0.
func (m *maker) origin() trace.Optional[int64] {
	if m.base == 0 {
		return trace.Optional[int64]{}
	}
	return trace.Some(m.base)
}

func (g Generation) check(w *model.Workload) error {
	switch {
	case g.Requests > MostRequests:
		return trace.WithFix(fmt.Errorf("--requests %d: a trace gets 10,000,000,000 at most", g.Requests), "ask for less; a replay can begin a trace again: reprise replay --duration")
	case g.Duration < 0:
		return fmt.Errorf("--duration %v: must be above 0", g.Duration)
	case g.Requests < 0:
		return fmt.Errorf("--requests %d: must be above 0", g.Requests)
	case g.Rate < 0 || math.IsNaN(g.Rate) || math.IsInf(g.Rate, 0):
		return fmt.Errorf("--rate %v: must be above 0", g.Rate)
	}
	if g.Pin {
		switch {
		case g.Requests == 0:
			return trace.WithFix(errors.New("--pin-duration: how many requests?"), "give --requests: the last of N comes at N / rate")
		case g.Duration != 0:
			return trace.WithFix(errors.New("--pin-duration and --duration exclude each other"), "leave out --duration: N requests end at N / rate")
		case len(w.Streams) != 1 || w.Streams[0].Sessions != nil:
			return trace.WithFix(errors.New("--pin-duration: requests of sessions, or of several streams, do not come at the law's gaps"), "leave it out")
		}
	}
	for i := range w.Streams {
		if w.Streams[i].Arrivals == nil {
			return trace.WithFix(errors.New("the model has no arrivals: its trace had no clock"), "give the trace arrivals before the fit: reprise synth TRACE --arrivals poisson:4 -o placed.parquet")
		}
	}
	return nil
}

// A maker generates.
type maker struct {
	g       Generation
	streams []*flow
	due     turnHeap
	rate    float64 // factor on the rates of the model
	end     float64 // s
	out     *trace.Batch
	emit    func(*trace.Batch) error
	rows    int64
	base    int64 // first arrival, which becomes 0
	err     error // why a prompt cannot be made
}

// A flow is one stream of the model, ready to draw from.
type flow struct {
	*model.Stream
	ordinal uint64
	gaps    stats.Law // of mean 1
	clock   profileClock
	rand    randStream
	rng     *rand.Rand // on rand
	mass    float64    // operational time of the next session start
	next    float64    // s
	number  uint64     // of the next session
	stretch float64    // of the gaps
	lengths lengthLaw
	turns   stats.Law // nil = 1
	think, gap, growth, outputs,
	kept stats.Law
	paths  []model.Path // drawn whole, instead of turns, think, gap, growth, outputs and kept
	models []float64    // cumulated shares
}

func (g Generation) maker(w *model.Workload) (*maker, error) {
	m := &maker{g: g, rate: 1, out: trace.NewBatch(), end: g.Duration.Seconds()}
	var perSecond float64 // requests, as the model has them
	var longest float64
	for i := range w.Streams {
		s, err := newFlow(&w.Streams[i], uint64(i))
		if err != nil {
			return nil, fmt.Errorf("stream %q: %w", w.Streams[i].Name, err)
		}
		m.streams = append(m.streams, s)
		perSecond += s.Arrivals.RateHz * s.perSession()
		longest = max(longest, s.clock.length())
	}
	if g.Rate != 0 {
		m.rate = g.Rate / perSecond
		perSecond = g.Rate
	}
	if perSecond > model.MaxRate {
		return nil, fmt.Errorf("a rate of %.3g requests/s: times have a resolution of 1 ns", perSecond)
	}
	if g.Duration == 0 && g.Requests == 0 {
		m.end = longest
	}
	if n := perSecond * m.end; g.Requests == 0 && n > MostRequests {
		return nil, trace.WithFix(fmt.Errorf("%.3g requests/s over %.4g s: some %.3g requests, and a trace gets 10,000,000,000 at most", perSecond, m.end, n), "give a lower rate, a shorter --duration, or --requests")
	}
	if m.end == 0 {
		m.end = math.Inf(1)
	}
	for _, s := range m.streams {
		s.begin(m)
	}
	return m, nil
}

func newFlow(of *model.Stream, ordinal uint64) (s *flow, err error) {
	s = &flow{Stream: of, ordinal: ordinal, clock: newProfileClock(of.Arrivals.Profile)}
	law := func(spec *stats.LawSpec) (l stats.Law) {
		if spec == nil || err != nil {
			return nil
		}
		l, err = spec.Law()
		return l
	}
	if s.gaps = law(of.Arrivals.Gaps); s.gaps == nil {
		s.gaps = stats.Exponential{Rate: 1}
	}
	if c := of.Sessions; c != nil {
		s.turns, s.think, s.gap, s.growth, s.outputs = law(&c.Turns), law(c.Think), law(c.Gap), law(c.Growth), law(&c.Outputs)
		s.paths = c.Paths
	}
	if of.Prefix != nil {
		s.kept = law(of.Prefix.Kept)
	}
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, m := range of.Models {
		sum += m.Share
		s.models = append(s.models, sum)
	}
	s.lengths, err = newLengthLaw(&of.Lengths)
	return s, err
}

// perSession is the mean number of requests of an arrival.
func (s *flow) perSession() float64 {
	switch {
	case len(s.paths) > 0:
		turns := 0
		for _, p := range s.paths {
			turns += len(p)
		}
		return float64(turns) / float64(len(s.paths))
	case s.turns == nil:
		return 1
	}
	mean, _ := s.turns.Mean()
	return max(1, mean)
}

// lasting is how long (s) all but a few sessions last.
func (s *flow) lasting() float64 {
	if len(s.paths) == 0 {
		return s.turns.Quantile(0.99) * s.gap.Quantile(0.9)
	}
	lengths := make([]float64, 0, len(s.paths))
	for _, p := range s.paths {
		length := 0.0
		for _, step := range p[1:] {
			length += float64(max(0, step.GapNS, step.DelayNS)) / 1e9
		}
		lengths = append(lengths, length)
	}
	slices.Sort(lengths)
	return lengths[int(0.999*float64(len(lengths)-1))]
}

// begin finds the first session start; in a warm trace that lies as far before
// it as sessions are long.
func (s *flow) begin(m *maker) {
	s.rand.reset(m.g.Seed, genGaps, s.ordinal)
	s.rng = rand.New(&s.rand.source)
	if m.g.Warm && s.turns != nil && s.gap != nil {
		s.mass = -s.clock.total() / s.clock.length() * min(s.lasting(), s.clock.length())
	}
	s.stretch = 1
	if m.g.Pin {
		s.pin(m)
	}
	s.advance(m)
}

// pin finds the stretch of the gaps that ends the requests at n / rate.
func (s *flow) pin(m *maker) {
	sum := 0.0
	for range m.g.Requests {
		sum += s.gaps.Rand(s.rng)
	}
	if sum > 0 {
		s.stretch = float64(m.g.Requests) / sum
	}
	s.rand.reset(m.g.Seed, genGaps, s.ordinal)
}

// advance draws the next session start.
func (s *flow) advance(m *maker) {
	s.mass += s.gaps.Rand(s.rng) * s.stretch / m.rate
	if n := m.g.Requests; m.g.Pin && s.number+1 == uint64(n) { // but for rounding
		s.mass = float64(n) / m.rate
	}
	s.next = s.clock.at(s.mass)
}

func (m *maker) run(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%trace.BatchRows == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
		}
		t := m.pop()
		if m.err != nil {
			return m.err
		}
		if t == nil {
			break
		}
		if t.at >= 0 {
			if err := m.row(t); err != nil {
				return err
			}
			if m.g.Requests > 0 && m.rows == m.g.Requests {
				break
			}
		}
		if m.follow(t); m.err != nil {
			return m.err
		}
	}
	if m.out.Len() == 0 {
		return nil
	}
	return m.emit(m.out)
}

// pop returns the next turn, a new session's or a later one; nil at the end.
func (m *maker) pop() *turn {
	var first *flow
	for _, s := range m.streams {
		if first == nil || s.next < first.next {
			first = s
		}
	}
	if len(m.due) > 0 && m.due[0].at <= first.next {
		if m.due[0].at >= m.end {
			return nil
		}
		return heap.Pop(&m.due).(*turn)
	}
	if first.next >= m.end {
		return nil
	}
	t := first.session(m)
	first.advance(m)
	return t
}

// row appends the request of a turn.
func (m *maker) row(t *turn) error {
	s := t.flow
	if !(t.at*1e9 < model.MaxTime) {
		return trace.WithFix(fmt.Errorf("request %d comes after %.3g s, more than 292 years", m.rows, t.at), "ask for fewer --requests, or a higher --rate")
	}
	at := int64(t.at * 1e9)
	if m.rows == 0 {
		m.base = at
	}
	r := trace.Request{ID: m.rows, Operation: trace.OpChat, Arrival: trace.Some(time.Duration(at - m.base)), Streaming: trace.Some(true)}
	if s.Stream.Client != "" {
		r.ClientID = trace.Some(s.Stream.Client)
	}
	if t.model != "" {
		r.Model = trace.Some(t.model)
	}
	if t.input >= 0 {
		r.InputTokens = trace.Some(t.input)
	}
	if t.output >= 0 {
		r.OutputTokens = trace.Some(t.output)
	}
	if s.turns != nil {
		r.Session, r.Turn = trace.Some(t.name), trace.Some(t.number)
		if t.before >= 0 {
			r.After = []trace.Dependency{{ID: t.before, Kind: trace.AfterTurn}}
			if t.delay >= 0 {
				r.Delay = trace.Some(time.Duration(t.delay * 1e9))
			}
		}
	}
	if p := s.Prefix; p != nil && t.input >= 0 {
		r.Blocks, r.BlockTokens, r.BlockTail = t.blocks, trace.Some(p.BlockTokens), trace.Some(p.Tail)
		if r.Blocks == nil {
			r.Blocks = []uint64{}
		}
	}
	t.before = m.rows
	m.rows++
	m.out.Append(&r)
	if m.out.Len() < trace.BatchRows {
		return nil
	}
	err := m.emit(m.out)
	m.out.Reset()
	return err
}
