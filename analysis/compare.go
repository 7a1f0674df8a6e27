package analysis

import (
	"context"
	"math"
	"slices"
	"time"

	"reprise/analysis/stats"
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
	sessions   string        // how they are known; "" = there are none
	tick       time.Duration // effective resolution of the times; 0 = not known
	fitted     int64         // of a model: the requests that it was fitted to
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
	c, err := NewProfileCollector(r.Meta(), r.NumRows(), name)
	if err != nil {
		return nil, err
	}
	if err := trace.EachBatch(ctx, r, c.Add); err != nil {
		return nil, err
	}
	return c.Profile(), nil
}

func newProfile(name, kind string) *Profile {
	p := &Profile{Name: name, Kind: kind}
	for _, q := range quantityNames {
		p.quantities = append(p.quantities, &quantity{name: q.name, unit: q.unit, per: q.per})
	}
	return p
}

// groupOf deals sessions into parts; rows without one go by minutes.
func groupOf(session string, at int64) int {
	h := uint64(14695981039346656037)
	for i := range len(session) {
		h = (h ^ uint64(session[i])) * 1099511628211
	}
	return int(stats.Hash(h, uint64(at/60e9)) % groups)
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
