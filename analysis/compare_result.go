package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/analysis/stats"
	"reprise/trace"
)

// Verdicts of a comparison.
const (
	Same     = "same"
	Differs  = "differs"
	Unjudged = "no interval" // two numbers, and nothing to say how much such traffic varies
)

// A TrafficComparison says how two traces or models differ, property by property.
type TrafficComparison struct {
	A          Side       `json:"a"`
	B          Side       `json:"b"`
	Seed       uint64     `json:"seed"`
	Quantities []Compared `json:"quantities"`
	Scalars    []Ratio    `json:"scalars"`
	Notes      []string   `json:"notes,omitempty"` // what to know before a verdict is believed
	Gates      []Gate     `json:"gates,omitempty"`
}

// A Side is one of the two.
type Side struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Rows     int64    `json:"rows"`               // of a model: generated from it
	Fitted   int64    `json:"fitted,omitempty"`   // of a model: what it was fitted to
	Sessions string   `json:"sessions,omitempty"` // recorded, or inferred from prefixes; absent where there are none
	TickS    *float64 `json:"tick_s,omitempty"`   // effective resolution of the times
	Units    int64    `json:"units"`              // sessions, or requests where there are none
	Blocks   string   `json:"blocks"`             // what the bootstrap draws
}

// A Compared is one distribution on both sides. Intervals are of 95 %, by a
// bootstrap over blocks of both sides; absent where a side has none.
type Compared struct {
	Name       string   `json:"name"`
	Unit       string   `json:"unit"`
	NA         int64    `json:"n_a"`
	NB         int64    `json:"n_b"`
	KS         *float64 `json:"ks,omitempty"`           // largest difference of the distribution functions
	W1         *float64 `json:"w1,omitempty"`           // area between them, in the unit
	W1OverMean *float64 `json:"w1_over_mean,omitempty"` // over the mean of A
	Stats      []Ratio  `json:"stats"`                  // mean, p50, p90, p99, p99.9
	Verdict    string   `json:"verdict"`
	Why        string   `json:"why"`
}

// A Ratio is one number on both sides, and B / A with its interval.
type Ratio struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit,omitempty"`
	A       *float64 `json:"a"`
	B       *float64 `json:"b"`
	Ratio   *float64 `json:"ratio,omitempty"`
	Lo      *float64 `json:"lo,omitempty"`
	Hi      *float64 `json:"hi,omitempty"`
	Verdict string   `json:"verdict,omitempty"`
	Why     string   `json:"why,omitempty"` // where it is not measurable
}

// A Gate is a condition and what became of it.
type Gate struct {
	Condition string   `json:"condition"`
	Value     *float64 `json:"value"` // null where the property is not there
	Failed    bool     `json:"failed"`
}

// comparedStats are the numbers of each distribution.
var comparedStats = [...]struct {
	name string
	p    float64 // 0 = mean
}{{"mean", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

// compareReplicates is how often blocks are drawn.
const compareReplicates = 200

// CompareProfiles holds b against a. Equal seeds give equal intervals.
func CompareProfiles(a, b *Profile, seed uint64) *TrafficComparison {
	c := &TrafficComparison{A: a.side(), B: b.side(), Seed: seed}
	for i := range a.quantities {
		c.Quantities = append(c.Quantities, compareQuantity(a, b, i, seed))
	}
	for _, name := range scalarNames(a, b) {
		c.Scalars = append(c.Scalars, compareScalar(name, a.scalar(name), b.scalar(name)))
	}
	c.ticks(a, b)
	c.basis(a, b)
	return c
}

func (p *Profile) side() Side {
	s := Side{Name: p.Name, Kind: p.Kind, Rows: p.rows, Fitted: p.fitted, Sessions: p.sessions, Units: p.units, Blocks: p.blocks}
	if p.tick > 0 {
		s.TickS = finite(p.tick.Seconds())
	}
	return s
}

func (p *Profile) scalar(name string) *scalar {
	for i := range p.scalars {
		if p.scalars[i].name == name {
			return &p.scalars[i]
		}
	}
	return nil
}

// scalarNames are those of a, then those that only b has.
func scalarNames(a, b *Profile) []string {
	var names []string
	for _, s := range slices.Concat(a.scalars, b.scalars) {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

func compareQuantity(a, b *Profile, i int, seed uint64) Compared {
	x, y := a.quantities[i], b.quantities[i]
	c := Compared{Name: x.name, Unit: x.unit, NA: x.sample.N(), NB: y.sample.N()}
	if x.sample.N() == 0 || y.sample.N() == 0 {
		c.Verdict, c.Why = NotMeasurable, "not on both sides"
		if x.sample.N() == 0 && y.sample.N() == 0 {
			c.Why = "on neither side"
		}
		return c
	}
	d, err := stats.Distances(x.sample, y.sample)
	if err != nil {
		c.Verdict, c.Why = NotMeasurable, err.Error()
		return c
	}
	c.KS, c.W1 = finite(d.KS), finite(d.Wasserstein)
	if mean := meanOf(x.sample); mean > 0 {
		c.W1OverMean = finite(d.Wasserstein / mean)
	}
	c.Stats = compareStats(x, y, stats.Hash(seed, uint64(i)))
	limit := 1.358 * math.Sqrt(1/float64(max(1, a.unitsOf(i)))+1/float64(max(1, b.unitsOf(i))))
	switch {
	case d.KS == 0:
		c.Verdict, c.Why = Same, "the same distribution"
	case d.KS <= limit:
		c.Verdict, c.Why = WithinNoise, fmt.Sprintf("KS %.3g, below %.3g: what samples of as many %s differ by", d.KS, limit, a.unitName())
	default:
		c.Verdict, c.Why = Differs, fmt.Sprintf("KS %.3g, above %.3g: what samples of as many %s differ by", d.KS, limit, a.unitName())
	}
	return c
}

// unitsOf is how many independent things a quantity rests on.
func (p *Profile) unitsOf(i int) int64 { return min(p.units, p.quantities[i].sample.N()) }

func (p *Profile) unitName() string {
	if p.blocks == "sessions" {
		return "sessions"
	}
	return "requests"
}

func meanOf(s stats.Sample) float64 {
	var sum float64
	for i := range s.Distinct() {
		v, n := s.At(i)
		sum += v * float64(n)
	}
	return sum / float64(max(1, s.N()))
}

func statOf(s stats.Sample, p float64) float64 {
	if p == 0 {
		return meanOf(s)
	}
	return s.Quantiles7(p)[0]
}

// compareStats gives the ratios, and their intervals where they rest on enough
// values.
func compareStats(x, y *quantity, seed uint64) []Ratio {
	list := make([]Ratio, len(comparedStats))
	for k, s := range comparedStats {
		r := &list[k]
		r.Name = s.name
		enough := func(of stats.Sample) bool { return s.p < 0.99 || float64(of.N())*(1-s.p) >= 5 }
		if !enough(x.sample) || !enough(y.sample) {
			continue
		}
		r.A, r.B = finite(statOf(x.sample, s.p)), finite(statOf(y.sample, s.p))
		if r.A != nil && r.B != nil && *r.A != 0 {
			r.Ratio = finite(*r.B / *r.A)
		}
	}
	if x.merger == nil && y.merger == nil {
		return list
	}
	drawn := ratioDraws(x, y, seed)
	for k := range list {
		if r := &list[k]; r.Ratio != nil && len(drawn[k]) == compareReplicates {
			slices.Sort(drawn[k])
			lo, _ := stats.Quantile7(drawn[k], 0.025)
			hi, _ := stats.Quantile7(drawn[k], 0.975)
			r.Lo, r.Hi = finite(lo), finite(hi)
		}
	}
	return list
}

// ratioDraws are the ratios of each stat over the replicates in which both
// sides have one.
func ratioDraws(x, y *quantity, seed uint64) [len(comparedStats)][]float64 {
	var out [len(comparedStats)][]float64
	for replicate := range uint64(compareReplicates) {
		a, b := x.redrawn(stats.Hash(seed, replicate, 0)), y.redrawn(stats.Hash(seed, replicate, 1))
		if a.N() == 0 || b.N() == 0 {
			continue
		}
		for k, s := range comparedStats {
			if base := statOf(a, s.p); base > 0 {
				out[k] = append(out[k], statOf(b, s.p)/base)
			}
		}
	}
	return out
}

// redrawn draws the blocks of a quantity with replacement.
func (q *quantity) redrawn(seed uint64) stats.Sample {
	if q.merger == nil {
		return q.sample
	}
	drawn := make([]int64, groups)
	random := stats.Stream(seed)
	for range drawn {
		drawn[random.IntN(groups)]++
	}
	return q.merger.Merge(drawn)
}

func compareScalar(name string, a, b *scalar) Ratio {
	r := Ratio{Name: name, Verdict: NotMeasurable}
	if a != nil {
		r.A, r.Unit = &a.value, a.unit
	}
	if b != nil {
		r.B, r.Unit = &b.value, b.unit
	}
	if a == nil || b == nil {
		return r
	}
	if a.value != 0 {
		r.Ratio = finite(b.value / a.value)
	}
	switch {
	case same(a.value, b.value):
		r.Verdict = Same
	case a.low == nil && b.low == nil:
		r.Verdict = Unjudged
	default:
		lowA, highA := bounds(a)
		lowB, highB := bounds(b)
		if r.Verdict = Differs; lowA <= highB && lowB <= highA {
			r.Verdict = WithinNoise
		}
		if lowA > 0 {
			r.Lo, r.Hi = finite(lowB/highA), finite(highB/lowA)
		}
	}
	return r
}

func bounds(s *scalar) (low, high float64) {
	if s.low == nil {
		return s.value, s.value
	}
	return *s.low, *s.high
}

// Values are the numbers that conditions may name, in order.
func (c *TrafficComparison) values() ([]string, map[string]float64, map[string]float64) {
	var names []string
	plain, change := map[string]float64{}, map[string]float64{}
	add := func(name string, v *float64, to map[string]float64) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if v != nil {
			to[name] = *v
		}
	}
	for _, q := range c.Quantities {
		add(q.Name+"_ks", q.KS, plain)
		add(q.Name+"_w1", q.W1OverMean, plain)
		list := q.Stats
		if list == nil {
			list = make([]Ratio, len(comparedStats))
		}
		for k, s := range list {
			name := q.Name + "_" + strings.ReplaceAll(comparedStats[k].name, ".", "_")
			add(name, s.B, plain)
			add(name, relative(s.Ratio), change)
		}
	}
	for _, s := range c.Scalars {
		add(s.Name, s.B, plain)
		add(s.Name, relative(s.Ratio), change)
	}
	return names, plain, change
}

func relative(ratio *float64) *float64 {
	if ratio == nil {
		return nil
	}
	v := *ratio - 1
	return &v
}

// Gate tests conditions and returns how many hold, which fails the gate: a
// condition says what must not be. A name that no property has is an error; a
// property that is not measurable fails too, since nobody knows.
func (c *TrafficComparison) Gate(conditions []Condition) (failed int, err error) {
	names, plain, change := c.values()
	for _, cond := range conditions {
		if !slices.Contains(names, cond.Name) {
			return failed, trace.WithFix(fmt.Errorf("condition %q: no property is called %s", cond.Text, cond.Name), "use one of: "+strings.Join(names, ", "))
		}
		if err := c.fits(&cond); err != nil {
			return failed, err
		}
		of := plain
		if cond.Change {
			of = change
		}
		g := Gate{Condition: cond.Text}
		if v, ok := of[cond.Name]; ok {
			g.Value, g.Failed = &v, cond.Holds(v)
		} else {
			g.Failed = true
		}
		if g.Failed {
			failed++
		}
		c.Gates = append(c.Gates, g)
	}
	return failed, nil
}
