package analysis

import (
	"fmt"
	"math"

	"reprise/analysis/stats"
)

// newRunNumber sets the numbers and what they vary by; judge does the rest.
func newRunNumber(name, unit string, a, b float64, s spread) RunNumber {
	n := RunNumber{Name: name, Unit: unit, A: finite(a), B: finite(b), error: s.difference, ratioError: s.ratio, df: s.df}
	d := math.Round((b-a)*1e6) / 1e6
	n.Difference = &d
	if a > 0 {
		n.Change = finite(b/a - 1)
	}
	return n
}

// runs adds what varies from run to run, where a side has several: the numbers'
// own intervals know one run only, so the wider counts.
func (n *RunNumber) runs(data [2][]*RunData, of func(*RunData) *float64) {
	var m, r [2]moment
	for i, side := range data {
		var least, largest float64
		for k, d := range side {
			v := of(d)
			if v == nil {
				return
			}
			m[i].add(*v)
			if *v > 0 {
				r[i].add(math.Log(*v))
			}
			if k == 0 {
				least, largest = *v, *v
			}
			least, largest = min(least, *v), max(largest, *v)
		}
		if len(side) > 1 {
			*[2]**[2]float64{&n.RunsA, &n.RunsB}[i] = &[2]float64{least, largest}
		}
	}
	ka, kb := float64(len(data[0])), float64(len(data[1]))
	df := ka + kb - 2
	if df < 1 {
		return
	}
	pooled := func(x [2]moment) float64 { return math.Sqrt((x[0].m2 + x[1].m2) / df * (1/ka + 1/kb)) }
	between := spread{pooled(m), math.NaN(), df}
	if r[0].n+r[1].n == int(ka+kb) {
		between.ratio = pooled(r)
	}
	s := between // all that is known of a run with a trend
	if !math.IsNaN(n.error) {
		s = wider(spread{n.error, n.ratioError, n.df}, between, RunLevel)
	}
	n.error, n.ratioError, n.df = s.difference, s.ratio, s.df
}

// numbers are all of a comparison, by the names that conditions give them.
func (c *RunComparison) numbers() (names []string, list []*RunNumber) {
	for i := range c.Metrics {
		m := &c.Metrics[i]
		for k := range m.Stats {
			names, list = append(names, m.Name+"_"+m.Stats[k].Name), append(list, &m.Stats[k])
		}
	}
	for i := range c.Scalars {
		names, list = append(names, c.Scalars[i].Name), append(list, &c.Scalars[i])
	}
	return names, list
}

// interval of a number at a level: of the difference, and of the change.
func (n *RunNumber) interval(level float64) (lo, hi, changeLo, changeHi *float64) {
	if n.Difference == nil || math.IsNaN(n.error) || n.df < 1 {
		return nil, nil, nil, nil
	}
	t := stats.StudentQuantile(level, n.df)
	lo, hi = finite(roundTo(*n.Difference-t*n.error, 1e6)), finite(roundTo(*n.Difference+t*n.error, 1e6))
	if n.Change != nil && !math.IsNaN(n.ratioError) {
		ratio := math.Log1p(*n.Change)
		changeLo, changeHi = finite(roundTo(math.Expm1(ratio-t*n.ratioError), 1e6)), finite(roundTo(math.Expm1(ratio+t*n.ratioError), 1e6))
	}
	return lo, hi, changeLo, changeHi
}

// mostFold is the widest interval of a change, upper over lower end of b / a.
const mostFold = 10_000

// bounded is an interval of a change, or none where it is so wide that it excludes
// nothing, as where a block drawn often enough leaves next to no throughput.
func bounded(lo, hi *float64) (*float64, *float64) {
	if lo == nil || hi == nil || 1+*hi > mostFold*(1+*lo) {
		return nil, nil
	}
	return lo, hi
}

func roundTo(v, unit float64) float64 { return math.Round(v*unit) / unit }

// p is the chance of so large a change where there is none; false where nothing
// says how much the number varies.
func (n *RunNumber) p() (float64, bool) {
	by, size := n.error, 0.0
	if n.Difference != nil {
		size = *n.Difference
	}
	if n.Change != nil && !math.IsNaN(n.ratioError) && *n.Change > -1 {
		by, size = n.ratioError, math.Log1p(*n.Change)
	}
	switch {
	case n.Difference == nil || math.IsNaN(by) || n.df < 1:
		return 0, false
	case size == 0:
		return 1, true
	case by == 0:
		return 0, true
	}
	return stats.StudentT(size/by, n.df), true
}

// judge sets intervals and verdicts: differs where the change is one even though
// so many numbers are looked at (Holm).
func (c *RunComparison) judge() {
	_, list := c.numbers()
	var judged []*RunNumber
	var ps []float64
	for _, n := range list {
		n.Lo, n.Hi, n.ChangeLo, n.ChangeHi = n.interval(c.Level)
		n.ChangeLo, n.ChangeHi = bounded(n.ChangeLo, n.ChangeHi)
		if n.Change != nil {
			*n.Change = roundTo(*n.Change, 1e6)
		}
		p, ok := n.p()
		switch {
		case n.A == nil || n.B == nil:
			n.Verdict = NotMeasurable
		case *n.A == *n.B:
			n.Verdict = Same
		case !ok:
			n.Verdict = Unjudged
		default:
			n.P = finite(roundTo(p, 1e9))
			judged, ps = append(judged, n), append(ps, p)
		}
	}
	for i, adjusted := range stats.Holm(ps) {
		switch n := judged[i]; {
		case adjusted <= 1-c.Level:
			n.Verdict = Differs
		case ps[i] <= 1-c.Level:
			n.Verdict = Perhaps
		default:
			n.Verdict = WithinNoise
		}
	}
}

// scalars are the error rate and the throughput.
func (c *RunComparison) scalars(p *plan) {
	a, b := c.data[0], c.data[1]
	whole := ones(p.time.blocks)
	add := func(name, unit string, x, y *tally, s spread, of func(*RunData) *float64) {
		va, okA := x.of(whole)
		vb, okB := y.of(whole)
		if !okA || !okB {
			c.Scalars = append(c.Scalars, RunNumber{Name: name, Unit: unit, error: math.NaN(), ratioError: math.NaN()})
			return
		}
		n := newRunNumber(name, unit, roundTo(va, 1e6), roundTo(vb, 1e6), s)
		n.runs(c.data, of)
		c.Scalars = append(c.Scalars, n)
	}
	x, y := errorTally(a, false, p.time.blocks), errorTally(b, false, p.time.blocks)
	s := p.time.spread(x, y)
	if p.hasGroups {
		s = wider(s, p.group.spread(errorTally(a, true, p.group.blocks), errorTally(b, true, p.group.blocks)), RunLevel)
	}
	add(gateErrorRate, "share", x, y, s, func(d *RunData) *float64 { return d.Summary.ErrorRate })
	for _, r := range []struct {
		name, unit string
		work       func(*runRow) float64
		of         func(*Throughput) *float64
	}{
		{gateRequestsPer, "requests/s", func(*runRow) float64 { return 1 }, func(t *Throughput) *float64 { return t.RequestsPerS }},
		{gateInputPer, "tokens/s", func(r *runRow) float64 { return float64(r.in) }, func(t *Throughput) *float64 { return t.InputTokensPerS }},
		{gateOutputPer, "tokens/s", func(r *runRow) float64 { return float64(r.out) }, func(t *Throughput) *float64 { return t.OutputTokensPerS }},
	} {
		x, y := rateTally(a, p.rates.blocks, r.work), rateTally(b, p.rates.blocks, r.work)
		add(r.name, r.unit, x, y, p.rates.spread(x, y), func(d *RunData) *float64 { return r.of(&d.Summary.Throughput) })
	}
}

// key names a request within a run.
type key struct {
	id   int64
	pass int32
}

// differences are B - A of the requests that have the number on both sides.
func (c *RunComparison) differences(metric int) []int64 {
	before := map[key]int64{}
	for i := range c.data[0][0].rows {
		r := &c.data[0][0].rows[i]
		if v := r.values[metric]; v != absentValue {
			before[key{r.id, r.pass}] = v
		}
	}
	var d []int64
	for i := range c.data[1][0].rows {
		r := &c.data[1][0].rows[i]
		if v, ok := before[key{r.id, r.pass}]; ok && r.values[metric] != absentValue {
			d = append(d, r.values[metric]-v)
		}
	}
	return d
}

// pair counts what the first runs of both sides have in common.
func (c *RunComparison) pair() {
	if !c.Paired {
		return
	}
	ok := map[key]bool{}
	for i := range c.data[0][0].rows {
		if r := &c.data[0][0].rows[i]; r.ok {
			ok[key{r.id, r.pass}] = true
		}
	}
	c.Alone = int64(len(ok))
	for i := range c.data[1][0].rows {
		switch r := &c.data[1][0].rows[i]; {
		case r.ok && ok[key{r.id, r.pass}]:
			c.Pairs++
			c.Alone--
		case r.ok:
			c.Alone++
		}
	}
}

func (c *RunComparison) notes() {
	note := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	if len(c.data[0]) == 1 && len(c.data[1]) == 1 {
		note("one run on each side: what varies from run to run, such as a restart of the server, is in no interval; several runs a side (--baseline) measure it")
	}
	if min(c.A.Blocks, c.B.Blocks) < leastUsed {
		note("too short for intervals: fewer than %d blocks of time hold a request", leastUsed)
	}
	if c.Alone > 0 {
		note("%s requests were successful on one side only; each side's numbers hold its own", Grouped(c.Alone))
	}
}
