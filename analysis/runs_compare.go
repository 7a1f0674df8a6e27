package analysis

import (
	"context"
	"math"

	"reprise/analysis/stats"
)

// RunLevel is the level of the intervals, and of the verdicts of a comparison
// taken together.
const RunLevel = 0.95

// A RunComparison says how runs differ, number by number.
type RunComparison struct {
	A       RunSide       `json:"a"`
	B       RunSide       `json:"b"`
	Paired  bool          `json:"paired"` // the same requests on both sides
	Pairs   int64         `json:"pairs"`  // successful on both sides, of the first run of each
	Alone   int64         `json:"alone"`  // successful on one of them only
	Level   float64       `json:"level"`
	Seed    uint64        `json:"seed"`
	Basis   []BasisNote   `json:"basis"` // where the runs themselves differ
	Metrics []RunMetric   `json:"metrics"`
	Scalars []RunNumber   `json:"scalars"`
	Notes   []string      `json:"notes"`
	Gates   []RunGate     `json:"gates"`
	data    [2][]*RunData // of the sides
}

// A RunSide is one of the two sides.
type RunSide struct {
	Runs     []RunOfSide `json:"runs"`
	Blocks   int         `json:"blocks"`   // of time, with a request
	BlockMS  float64     `json:"block_ms"` // length of one
	Sessions int         `json:"session_groups"`
}

// A RunOfSide is one run.
type RunOfSide struct {
	Name       string `json:"name"`
	Verdict    string `json:"verdict"`
	Requests   int64  `json:"requests"` // successful and censored
	Successful int64  `json:"successful"`
}

// A RunMetric is one metric on both sides.
type RunMetric struct {
	Name       string      `json:"name"`
	Unit       string      `json:"unit"`
	Of         string      `json:"of"`
	Definition string      `json:"definition"`
	NA         int64       `json:"n_a"`
	NB         int64       `json:"n_b"`
	Stats      []RunNumber `json:"stats"`
	Delta      *float64    `json:"cliffs_delta"` // P(b > a) - P(b < a)
	Shift      *float64    `json:"shift_ms"`     // Hodges-Lehmann
	ShiftOf    string      `json:"shift_of"`     // pairs or samples
}

// A RunNumber is one number on both sides. Intervals are of Level each; a null
// is not known.
type RunNumber struct {
	Name       string      `json:"name"`
	Unit       string      `json:"unit"`
	A          *float64    `json:"a"`
	B          *float64    `json:"b"`
	Difference *float64    `json:"difference"` // B - A
	Lo         *float64    `json:"difference_lo"`
	Hi         *float64    `json:"difference_hi"`
	Change     *float64    `json:"change"`    // B / A - 1
	ChangeLo   *float64    `json:"change_lo"` // null beyond mostFold: the difference has an interval then
	ChangeHi   *float64    `json:"change_hi"`
	P          *float64    `json:"p"`
	RunsA      *[2]float64 `json:"runs_a"` // least and largest of the side's runs; null for one run
	RunsB      *[2]float64 `json:"runs_b"`
	Verdict    string      `json:"verdict"`

	error, df, ratioError float64 // of the difference and of ln(B / A); NaN where not known
}

// Perhaps is the verdict on a number whose own interval excludes no change, but
// which chance explains among so many.
const Perhaps = "perhaps"

// CompareRuns holds the runs of b against those of a. Equal seeds give equal
// intervals.
func CompareRuns(ctx context.Context, a, b []*RunData, seed uint64) (*RunComparison, error) {
	c := &RunComparison{Level: RunLevel, Seed: seed, data: [2][]*RunData{a, b}, Gates: []RunGate{}, Notes: []string{}}
	c.Basis = Basis(a, b)
	c.Paired = sameTrace(a, b)
	axes := [2]axis{axisOf(a), axisOf(b)}
	both := axisOf(append(append([]*RunData{}, a...), b...))
	axes[0].blocks, axes[1].blocks = both.blocks, both.blocks
	axes[0].groups, axes[1].groups = both.groups, both.groups
	if c.Paired {
		axes[0], axes[1] = both, both
	}
	for i, side := range c.data {
		for _, d := range side {
			if err := d.collect(ctx, &axes[i]); err != nil {
				return nil, err
			}
		}
	}
	p := newPlan(c, axes)
	c.A, c.B = c.side(0, axes[0], p), c.side(1, axes[1], p)
	c.pair()
	for i := range rowMetricNames {
		c.Metrics = append(c.Metrics, p.rowMetric(c, i))
		if i == rowTTFO {
			c.Metrics = append(c.Metrics, p.itl(c))
		}
	}
	c.scalars(p)
	c.judge()
	c.notes()
	return c, nil
}

func (c *RunComparison) side(i int, a axis, p *plan) RunSide {
	s := RunSide{Blocks: len([2][]int{p.time.usedA, p.time.usedB}[i]), BlockMS: math.Round(float64(a.extent)/float64(a.blocks)) / 1e6}
	if a.groups > 0 {
		s.Sessions = len([2][]int{p.group.usedA, p.group.usedB}[i])
	}
	for _, d := range c.data[i] {
		q := &d.Summary.Requests
		s.Runs = append(s.Runs, RunOfSide{d.Name, d.Summary.Verdict.Result, q.Successful + q.Censored, q.Successful})
	}
	return s
}

// A plan is how the blocks of a comparison are drawn.
type plan struct {
	time, group, rates scheme
	hasGroups          bool
}

func newPlan(c *RunComparison, axes [2]axis) *plan {
	a, b := c.data[0], c.data[1]
	p := &plan{hasGroups: axes[0].groups > 0}
	p.time = scheme{blocks: axes[0].blocks, usedA: usedBlocks(a, false, axes[0].blocks), usedB: usedBlocks(b, false, axes[1].blocks), paired: c.Paired, seed: stats.Hash(c.Seed, 0)}
	if p.hasGroups {
		p.group = scheme{blocks: sessionGroups, usedA: usedBlocks(a, true, sessionGroups), usedB: usedBlocks(b, true, sessionGroups), paired: c.Paired, byGroup: true, seed: stats.Hash(c.Seed, 1)}
	}
	if c.Paired { // blocks of either side, the same for both
		p.time.usedA = usedBlocks(append(append([]*RunData{}, a...), b...), false, axes[0].blocks)
		p.time.usedB = p.time.usedA
		if p.hasGroups {
			p.group.usedA = usedBlocks(append(append([]*RunData{}, a...), b...), true, sessionGroups)
			p.group.usedB = p.group.usedA
		}
	}
	all := make([]int, axes[0].blocks)
	for i := range all {
		all[i] = i
	}
	p.rates = scheme{blocks: len(all), usedA: all, usedB: all, seed: stats.Hash(c.Seed, 2)}
	return p
}

// spreads is the wider of blocks of time and of sessions, number by number.
func (p *plan) spreads(of func(side []*RunData, s *scheme) *cells, a, b []*RunData) [len(runStats)]spread {
	out := p.time.spreads(of(a, &p.time), of(b, &p.time))
	if p.hasGroups {
		by := p.group.spreads(of(a, &p.group), of(b, &p.group))
		for k := range out {
			out[k] = wider(out[k], by[k], RunLevel)
		}
	}
	return out
}

func (p *plan) rowMetric(c *RunComparison, i int) RunMetric {
	a, b := c.data[0], c.data[1]
	d := definitionOf(rowMetricNames[i])
	m := RunMetric{Name: d.name, Unit: d.unit, Of: d.of, Definition: d.text}
	x, y := rowCells(a, i, false, p.time.blocks), rowCells(b, i, false, p.time.blocks)
	m.NA, m.NB = int64(len(x.v)), int64(len(y.v))
	if m.NA == 0 || m.NB == 0 {
		m.Stats = absentStats(d.unit)
		return m
	}
	var va, vb runNumbers
	x.numbers(ones(p.time.blocks), &va)
	y.numbers(ones(p.time.blocks), &vb)
	spreads := p.spreads(func(side []*RunData, s *scheme) *cells { return rowCells(side, i, s.byGroup, s.blocks) }, a, b)
	m.Stats = c.statsOf(&m, va, vb, spreads)
	m.Delta = finite(roundTo(stats.CliffsDelta(sampleOf(x), sampleOf(y)), 1e9))
	m.shift(c, i, x.v, y.v)
	return m
}

func ones(n int) draw {
	w := make(draw, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

func sampleOf(c *cells) stats.Sample {
	var values []float64
	var counts []int64
	for i, v := range c.v {
		if i == 0 || v != c.v[i-1] {
			values, counts = append(values, float64(v)), append(counts, 0)
		}
		counts[len(counts)-1] += c.n[i]
	}
	s, err := stats.CountedSample(values, counts)
	if err != nil {
		panic(err) // rising numbers, of at least one
	}
	return s
}

// itl takes the numbers from merged histograms and exact sums, and the spreads
// from counted cells.
func (p *plan) itl(c *RunComparison) RunMetric {
	a, b := c.data[0], c.data[1]
	m := RunMetric{Name: defITL.name, Unit: defITL.unit, Of: defITL.of, Definition: defITL.text}
	x, y := itlCellsOf(a, false, p.time.blocks), itlCellsOf(b, false, p.time.blocks)
	var va, vb runNumbers
	var okA, okB bool
	va, m.NA, okA = mergedITL(a)
	vb, m.NB, okB = mergedITL(b)
	if !okA || !okB {
		m.Stats = absentStats(m.Unit)
		return m
	}
	spreads := p.spreads(func(side []*RunData, s *scheme) *cells { return itlCellsOf(side, s.byGroup, s.blocks) }, a, b)
	m.Stats = c.statsOf(&m, va, vb, spreads)
	m.Delta = finite(roundTo(stats.CliffsDelta(sampleOf(x), sampleOf(y)), 1e9))
	return m
}

// mergedITL returns the numbers of several runs in ns.
func mergedITL(runs []*RunData) (out runNumbers, n int64, ok bool) {
	h := newHistogram()
	var sum float64
	for _, d := range runs {
		m := d.Summary.Metrics.Get(defITL.name)
		n += m.N
		sum += m.Stat("mean").Or(0) * 1e6 * float64(m.N)
		h.Merge(d.Summary.histograms[defITL.name])
	}
	if n == 0 {
		return out, 0, false
	}
	out[0] = sum / float64(n)
	bars := h.Distribution()
	for k, s := range runStats[1:] {
		out[k+1] = float64(min(histogramQuantile(bars, s.q, n), h.Max()))
	}
	return out, n, true
}

func absentStats(unit string) []RunNumber {
	var list []RunNumber
	for _, s := range runStats {
		list = append(list, RunNumber{Name: s.name, Unit: unit, Verdict: NotMeasurable, error: math.NaN(), ratioError: math.NaN()})
	}
	return list
}

// statsOf are the numbers of a metric; va and vb are in ns.
func (c *RunComparison) statsOf(m *RunMetric, va, vb runNumbers, spreads [len(runStats)]spread) []RunNumber {
	var list []RunNumber
	for k, s := range runStats {
		sp := spreads[k]
		if s.q > 0 && restsOnFew(s.q, min(m.NA, m.NB)) {
			sp = noSpread
		}
		sp.difference /= 1e6
		n := newRunNumber(s.name, m.Unit, msOf(va[k]), msOf(vb[k]), sp)
		n.runs(c.data, func(d *RunData) *float64 {
			v, ok := d.Summary.Metrics.Get(m.Name).Stat(s.name).Get()
			if !ok {
				return nil
			}
			return &v
		})
		list = append(list, n)
	}
	return list
}

// restsOnFew says whether fewer than five samples lie above the q/1000 quantile:
// then nothing says how much it varies.
func restsOnFew(q, n int64) bool { return n*(1000-q) < 5*1000 }

// msOf turns ns into ms, to the nanosecond.
func msOf(ns float64) float64 { return math.Round(ns) / 1e6 }

// shift is the Hodges-Lehmann shift, of pairs where both sides have the same
// requests and one run each.
func (m *RunMetric) shift(c *RunComparison, metric int, a, b []int64) {
	if c.Paired && len(c.data[0]) == 1 && len(c.data[1]) == 1 {
		if d := c.differences(metric); len(d) > 0 {
			m.Shift, m.ShiftOf = finite(math.Round(stats.ShiftOfPairs(d))/1e6), "pairs"
			return
		}
	}
	m.Shift, m.ShiftOf = finite(float64(stats.ShiftOfSamples(a, b))/1e6), "samples"
}

// Shapes returns the distributions of both sides that a chart can lay over one
// another: the metrics of requests that both have, in ms.
func (c *RunComparison) Shapes() (a, b []Shape) {
	for i, name := range rowMetricNames {
		x, y := rowCells(c.data[0], i, false, mostBlocks), rowCells(c.data[1], i, false, mostBlocks)
		if len(x.v) == 0 || len(y.v) == 0 {
			continue
		}
		a, b = append(a, shapeOf(name, x)), append(b, shapeOf(name, y))
	}
	return a, b
}

func shapeOf(name string, c *cells) Shape {
	s := sampleOf(c)
	d := &Dist{N: s.N(), Mean: meanOf(s) / 1e6, CDF: cdfOf(s, 1e6)}
	d.Min, d.Max = float64(c.v[0])/1e6, float64(c.v[len(c.v)-1])/1e6
	for i, x := range s.Quantiles1(DistQuantiles...) {
		d.Quantiles = append(d.Quantiles, Quantile{DistQuantiles[i], x / 1e6})
	}
	return Shape{name, unitMS, d}
}
