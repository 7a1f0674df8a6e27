package analysis

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// A Profile is what a trace or a workload model says of traffic, in the form in
// which two can be compared.
type Profile struct {
	Name       string
	Kind       string // trace or model
	rows       int64
	quantities []*quantity
	scalars    []scalar
	units      int64 // independent things: sessions, or requests
	blocks     string
}

// A quantity is a distribution over requests, gaps or sessions.
type quantity struct {
	name, unit string
	per        float64             // of the tally's unit in one of unit
	groups     [groups]stats.Tally // of traces: what the bootstrap draws
	sample     stats.Sample        // of all
	merger     *stats.Merger       // of the groups; nil where they are empty
}

// A scalar is one number, with the interval that such traffic has.
type scalar struct {
	name, unit string
	value      float64
	low, high  *float64
}

// groups is into how many parts the sessions of a trace are dealt for the
// bootstrap; those of one part are drawn together.
const groups = 100

// The quantities in the order of every table.
var quantityNames = [...]struct {
	name, unit string
	per        float64
}{{"isl", "tokens", 1}, {"osl", "tokens", 1}, {"gap", "s", 1e9}, {"turns", "turns", 1}, {"turn_gap", "s", 1e9}, {"think", "s", 1e9}}

const (
	quantityISL = iota
	quantityOSL
	quantityGap
	quantityTurns
	quantityTurnGap
	quantityThink
)

// ProfileOfTrace reads the rows that are left of r. Its memory is that of
// AnalyzeTraffic, and counted tables of each quantity.
func ProfileOfTrace(ctx context.Context, r *trace.Reader, name string) (*Profile, error) {
	c, err := NewTrafficCollector(r.Meta(), r.NumRows(), TrafficOptions{})
	if err != nil {
		return nil, err
	}
	p := newProfile(name, "trace")
	b := trace.NewBatch()
	sessions := map[string]*openSession{}
	last := int64(-1)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := r.Read(b, trace.BatchRows)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := c.Add(b); err != nil {
			return nil, err
		}
		for i := range b.Len() {
			p.row(b, i, r.Meta().Clock, sessions, &last)
		}
	}
	t := c.Traffic()
	for id, s := range sessions {
		p.quantities[quantityTurns].groups[groupOf(id, 0)].Add(s.turns)
	}
	p.rows, p.units, p.blocks = t.Rows, t.Rows, "minutes"
	if len(sessions) > 0 {
		p.units, p.blocks = int64(len(sessions)), "sessions"
	}
	for _, q := range p.quantities {
		q.join()
	}
	p.scalarsOf(t)
	return p, nil
}

func newProfile(name, kind string) *Profile {
	p := &Profile{Name: name, Kind: kind}
	for _, q := range quantityNames {
		p.quantities = append(p.quantities, &quantity{name: q.name, unit: q.unit, per: q.per})
	}
	return p
}

// An openSession is what is kept of a session.
type openSession struct{ turns, last, end int64 }

// groupOf deals sessions into parts; rows without one go by minutes.
func groupOf(session string, at int64) int {
	h := uint64(14695981039346656037)
	for i := range len(session) {
		h = (h ^ uint64(session[i])) * 1099511628211
	}
	return int(stats.Hash(h, uint64(at/60e9)) % groups)
}

func (p *Profile) row(b *trace.Batch, i int, clock string, sessions map[string]*openSession, last *int64) {
	at, timed := b.ArrivalNS.Get(i)
	id, named := b.SessionID.Get(i)
	g := groupOf(id, at)
	if named {
		g = groupOf(id, 0)
	}
	if n, ok := b.InputTokens.Get(i); ok {
		p.quantities[quantityISL].groups[g].Add(n)
	}
	if n, ok := b.OutputTokens.Get(i); ok && n > 0 {
		p.quantities[quantityOSL].groups[g].Add(n)
	}
	if timed && clock == trace.ClockTrace {
		if *last >= 0 {
			p.quantities[quantityGap].groups[groupOf("", at)].Add(at - *last)
		}
		*last = at
	}
	if !named {
		return
	}
	s := sessions[id]
	if s == nil {
		s = &openSession{last: -1, end: -1}
		sessions[id] = s
	}
	s.turns++
	if delay, ok := b.DelayNS.Get(i); ok && s.turns > 1 {
		p.quantities[quantityThink].groups[g].Add(delay)
	} else if timed && s.end >= 0 && at >= s.end {
		p.quantities[quantityThink].groups[g].Add(at - s.end)
	}
	if !timed {
		return
	}
	if s.last >= 0 {
		p.quantities[quantityTurnGap].groups[g].Add(at - s.last)
	}
	s.last, s.end = at, -1
	if e2e, ok := b.RecordedE2ENS.Get(i); ok {
		s.end = at + e2e
	}
}

// join makes the sample of all groups.
func (q *quantity) join() {
	parts := make([]stats.Sample, groups)
	once := make([]int64, groups)
	for i := range q.groups {
		parts[i], once[i] = q.groups[i].Sample(1/q.per), 1
	}
	merger := stats.NewMerger(parts)
	if q.sample = merger.Merge(once); q.sample.N() > 0 {
		q.merger = merger
	}
}

func (p *Profile) scalarsOf(t *Traffic) {
	a := &t.Arrivals
	add := func(name, unit string, v *float64, band *stats.Interval) {
		if v == nil {
			return
		}
		s := scalar{name: name, unit: unit, value: *v}
		if band != nil {
			s.low, s.high = &band.Lo, &band.Hi
		}
		p.scalars = append(p.scalars, s)
	}
	var blocks *countBlocks
	if t.raw != nil {
		blocks = &t.raw.flow.arrivals.blocks
	}
	add("rate", "requests/s", a.RateHz, blocks.rateBand())
	if a.Gaps != nil && a.Within == "" {
		add("gap_cv", "", a.Gaps.CV, p.quantities[quantityGap].cvBand())
	}
	for k, b := range a.Burstiness {
		add("idc_"+numberText(b.WindowS)+"s", "", b.IDC, blocks.band(k, 0).idc)
	}
	add("spearman", "", t.Dependence.Spearman, around(t.Dependence.Spearman, 1.96/math.Sqrt(max(1, t.units()-3))))
	if share := t.Prefix.HitShareTokens; share != nil {
		add("hit_share", "of tokens", share, around(share, 1.96*math.Sqrt(max(0, *share*(1-*share))/t.units())))
	}
}

func around(v *float64, by float64) *stats.Interval {
	if v == nil {
		return nil
	}
	return &stats.Interval{Lo: *v - by, Hi: *v + by}
}

// cvBand is the interval of the coefficient of variation, by a bootstrap over
// the groups.
func (q *quantity) cvBand() *stats.Interval {
	if q.merger == nil {
		return nil
	}
	var drawn []float64
	for replicate := range uint64(compareReplicates) {
		m := q.redrawn(stats.Hash(replicate)).Moments()
		if cv, ok := m.CV(); ok {
			drawn = append(drawn, cv)
		}
	}
	if len(drawn) < compareReplicates {
		return nil
	}
	slices.Sort(drawn)
	lo, _ := stats.Quantile7(drawn, 0.025)
	hi, _ := stats.Quantile7(drawn, 0.975)
	return &stats.Interval{Lo: lo, Hi: hi}
}

// rateBand is the interval of the mean rate, by a bootstrap over minutes.
func (c *countBlocks) rateBand() *stats.Interval {
	if c == nil || len(c.minutes) < 3 {
		return nil
	}
	for j := range blockScales {
		c.close(j)
	}
	blocks := len(c.minutes) - 1
	i, err := stats.BlockBootstrap(blocks, bandReplicates, 0.95, 0, func(drawn []int64) (float64, bool) {
		var n float64
		for b, times := range drawn {
			n += float64(times) * c.minutes[b][0].n
		}
		return n / float64(blocks) / 60, true
	})
	if err != nil {
		return nil
	}
	return &i
}

// A Shape is the distribution of one quantity of a Profile, for a chart.
type Shape struct {
	Name, Unit string
	*Dist
}

// Shapes returns the distributions that the profile has, in the order of every
// table.
func (p *Profile) Shapes() []Shape {
	var out []Shape
	for _, q := range p.quantities {
		n := q.sample.N()
		if n == 0 {
			continue
		}
		d := &Dist{N: n, Mean: meanOf(q.sample), CDF: cdfOf(q.sample, 1)}
		d.Min, _ = q.sample.At(0)
		d.Max, _ = q.sample.At(q.sample.Distinct() - 1)
		for i, x := range q.sample.Quantiles7(DistQuantiles...) {
			d.Quantiles = append(d.Quantiles, Quantile{DistQuantiles[i], x})
		}
		out = append(out, Shape{q.name, q.unit, d})
	}
	return out
}

// ProfileOfModel says what a workload model says. Its lengths and turns are
// those that it generates from; it has no sampling error of its own.
func ProfileOfModel(w *model.Workload, name string) (*Profile, error) {
	p := newProfile(name, "model")
	p.rows, p.units, p.blocks = w.Requests, w.Requests, "none: a model has no sampling error"
	var isl, osl, turns, think, gap merged
	var rate float64
	for i := range w.Streams {
		s := &w.Streams[i]
		weight := float64(s.Requests)
		if a := s.Arrivals; a != nil {
			requests := a.RateHz
			if s.Sessions != nil {
				if law, err := s.Sessions.Turns.Law(); err == nil {
					mean, _ := law.Mean()
					requests *= mean
				}
			}
			rate += requests
		}
		for _, l := range s.Lengths.Pairs {
			isl.add(float64(l.Input), weightOf(l, s))
			osl.add(float64(l.Output), weightOf(l, s))
		}
		laws := []weightedLaw{{s.Lengths.InputLaw, &isl, weight}, {s.Lengths.OutputLaw, &osl, weight}}
		if c := s.Sessions; c != nil {
			n := float64(c.N)
			laws = append(laws, weightedLaw{&c.Turns, &turns, n}, weightedLaw{c.Think, &think, n}, weightedLaw{c.Gap, &gap, n})
			p.units = c.N
		}
		for _, l := range laws {
			if err := l.to.law(l.spec, l.weight); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for q, m := range map[int]*merged{quantityISL: &isl, quantityOSL: &osl, quantityTurns: &turns, quantityThink: &think, quantityTurnGap: &gap} {
		p.quantities[q].sample = m.sample()
	}
	if rate > 0 {
		p.scalars = append(p.scalars, scalar{name: "rate", unit: "requests/s", value: rate})
	}
	return p, nil
}

func weightOf(l model.Pair, s *model.Stream) float64 {
	var n int64
	for _, p := range s.Lengths.Pairs {
		n += p.N
	}
	return float64(l.N) / float64(n) * float64(max(1, s.Requests))
}

// A weightedLaw is a law of a stream and where it goes.
type weightedLaw struct {
	spec   *stats.LawSpec
	to     *merged
	weight float64
}

// merged gathers weighted values of several streams.
type merged struct {
	weights map[float64]float64
	sum     float64
}

func (m *merged) add(v, weight float64) {
	if v < 0 {
		return
	}
	if m.weights == nil {
		m.weights = map[float64]float64{}
	}
	m.weights[v] += weight
	m.sum += weight
}

// lawPoints are the quantiles by which a law is shown.
const lawPoints = 2000

func (m *merged) law(spec *stats.LawSpec, weight float64) error {
	if spec == nil {
		return nil
	}
	law, err := spec.Law()
	if err != nil {
		return err
	}
	for i := range lawPoints {
		m.add(law.Quantile((float64(i)+0.5)/lawPoints), max(1, weight)/lawPoints)
	}
	return nil
}

// sample counts each value in millionths of the whole.
func (m *merged) sample() stats.Sample {
	if m.sum == 0 {
		return stats.Sample{}
	}
	values := make([]float64, 0, len(m.weights))
	for v := range m.weights {
		values = append(values, v)
	}
	slices.Sort(values)
	counts := make([]int64, len(values))
	for i, v := range values {
		counts[i] = max(1, int64(math.Round(m.weights[v]/m.sum*1e6)))
	}
	s, err := stats.CountedSample(values, counts)
	if err != nil {
		return stats.Sample{}
	}
	return s
}
