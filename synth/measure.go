package synth

import (
	"fmt"
	"math"
	"time"

	"reprise/analysis/prefix"
	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// measureGroups is how many parts sessions, and minutes, are dealt into for the
// bands of means.
const measureGroups = 100

// measureWindows are the windows of the burstiness curve.
var measureWindows = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// A Measuring takes the numbers of traffic that a model must answer for: of a
// trace in a fit, and of what is generated. Its memory does not grow with the
// trace, but for the sessions that it counts. The zero value is ready for rows.
type Measuring struct {
	MaxBlocks int // distinct blocks kept for the hit share; 0 = a million

	rows, sessions int64
	first, last    int64 // arrivals, ns
	timed          int64
	gaps           stats.Series
	counters       []*stats.Counter
	open           [minuteWindows]openCount
	input, output  stats.Tally
	groups         [measureGroups]measureSums
	reuse          *prefix.Reuse // of Add
}

// measureSums are sums over a group of sessions, or of minutes.
type measureSums struct {
	rows, starts              float64
	gaps, gapTime, gapSquares float64 // of minutes
	inputs, input             float64
	outputs, output           float64
	asked, hit                float64                                     // tokens in blocks
	counts                    [minuteWindows]struct{ n, squares float64 } // of windows, by minutes
}

// minuteWindows are the first of measureWindows: those that fit into a minute.
const minuteWindows = 4

// An openCount is a window that is being filled.
type openCount struct {
	index int64
	n     float64
}

// A measuredRow is what a Measuring takes of a row. What is below 0 is not known.
type measuredRow struct {
	at, input, output int64
	key               uint64 // of the session
	first             bool   // of the session
	hits              prefix.Hits
}

// Add takes rows of a generated trace, in order.
func (m *Measuring) Add(b *trace.Batch) {
	if m.reuse == nil {
		m.reuse = &prefix.Reuse{MaxBlocks: m.MaxBlocks}
		if m.MaxBlocks == 0 {
			m.reuse.MaxBlocks = 1 << 20
		}
	}
	known := func(v int64, ok bool) int64 {
		if !ok {
			return -1
		}
		return v
	}
	for i := range b.Len() {
		r := measuredRow{at: known(b.ArrivalNS.Get(i)), input: known(b.InputTokens.Get(i)), output: known(b.OutputTokens.Get(i)), first: true}
		r.key = uint64(max(0, r.at) / int64(time.Minute))
		if name, ok := b.SessionID.Get(i); ok {
			turn, _ := b.Turn.Get(i)
			r.key, r.first = textKey(name), turn == 0
		}
		if ids, ok := b.Blocks(i); ok {
			size, _ := b.BlockTokens.Get(i)
			name, _ := b.Model.Get(i)
			r.hits = m.reuse.Observe(prefix.Request{Model: name, IDs: ids, BlockTokens: size, InputTokens: r.input}).Hits
		}
		m.add(r)
	}
}

func (m *Measuring) add(r measuredRow) {
	m.rows++
	g := &m.groups[stats.Hash(r.key)%measureGroups]
	g.rows++
	if r.first {
		m.sessions++
		g.starts++
	}
	if r.input >= 0 {
		m.input.Add(r.input)
		g.inputs, g.input = g.inputs+1, g.input+float64(r.input)
	}
	if r.output > 0 {
		m.output.Add(r.output)
		g.outputs, g.output = g.outputs+1, g.output+float64(r.output)
	}
	g.asked += float64(r.hits.Tokens)
	g.hit += float64(r.hits.HitTokens)
	if r.at >= 0 {
		m.arrive(r.at)
	}
}

func (m *Measuring) arrive(at int64) {
	if m.timed == 0 {
		m.first = at
		for _, w := range measureWindows {
			m.counters = append(m.counters, stats.NewCounter(int64(w)))
		}
	} else {
		gap := at - m.last
		m.gaps.Add(gap)
		s := float64(gap) / 1e9
		g := &m.groups[minuteGroup((at-m.first)/int64(time.Minute))]
		g.gaps, g.gapTime, g.gapSquares = g.gaps+1, g.gapTime+s, g.gapSquares+s*s
	}
	m.timed++
	m.last = at
	for _, c := range m.counters {
		c.Add(at)
	}
	for k := range m.open {
		if i := (at - m.first) / int64(measureWindows[k]); i != m.open[k].index {
			m.close(k)
			m.open[k].index = i
		}
		m.open[k].n++
	}
}

// close adds the open window of a length to its minute.
func (m *Measuring) close(k int) {
	w := &m.open[k]
	c := &m.groups[minuteGroup(w.index*int64(measureWindows[k])/int64(time.Minute))].counts[k]
	c.n += w.n
	c.squares += w.n * w.n
	w.n = 0
}

func minuteGroup(minute int64) int { return int(stats.Hash(uint64(minute)) % measureGroups) }

// dispersionBand is the band of the index of dispersion of counts in windows of
// one length, by a bootstrap over groups of minutes; for windows of more than a
// minute by the chi-squared law of the variance of independent counts.
func (m *Measuring) dispersionBand(k int, idc float64, windows int64) *[2]float64 {
	minutes := (m.last - m.first) / int64(time.Minute)
	const longest = 1 << 20 // some two years
	switch {
	case k < minuteWindows && minutes < 10:
		return nil
	case k >= minuteWindows || minutes > longest:
		by := math.Exp(1.96 * math.Sqrt(2/float64(max(1, windows-1))))
		return &[2]float64{idc / by, idc * by}
	}
	m.close(k)
	var held [measureGroups]float64
	for i := range minutes {
		held[minuteGroup(i)] += float64(time.Minute / measureWindows[k])
	}
	g := -1
	return m.band(func(of measureSums) [3]float64 {
		g++
		return [3]float64{held[g], of.counts[k].n, of.counts[k].squares}
	}, func(s [3]float64) (float64, bool) {
		mean := s[1] / s[0]
		return (s[2] - s[1]*mean) / (s[0] - 1) / mean, s[0] > 1 && mean > 0
	})
}

// Measures returns the numbers, with the bands in which such traffic has them 95 %
// of the time.
func (m *Measuring) Measures() []model.Measure { return m.measures(1) }

// measures corrects sums of hits by a factor.
func (m *Measuring) measures(hitFactor float64) []model.Measure {
	var out []model.Measure
	add := func(name, unit string, value float64, ok bool, band *[2]float64) {
		if ok && !math.IsNaN(value) && !math.IsInf(value, 0) {
			out = append(out, model.Measure{Name: name, Unit: unit, Value: value, Band: band})
		}
	}
	m.ofTime(add)
	for _, l := range []struct {
		name string
		t    *stats.Tally
		of   func(measureSums) (sum, n float64)
	}{
		{"input", &m.input, func(g measureSums) (float64, float64) { return g.input, g.inputs }},
		{"output", &m.output, func(g measureSums) (float64, float64) { return g.output, g.outputs }},
	} {
		mean, ok := l.t.Series().Mean()
		add(l.name+" mean", "tokens", mean, ok, m.ratioBand(l.of))
		for _, p := range []float64{0.5, 0.9, 0.99} {
			if n := min(float64(l.t.N()), float64(m.sessions)); n*(1-p) >= 5 {
				by := 1.96 * math.Sqrt(p*(1-p)/n)
				q := l.t.Sample(1).Quantiles7(p, max(0, p-by), min(1, p+by))
				add(fmt.Sprintf("%s p%g", l.name, 100*p), "tokens", q[0], true, &[2]float64{q[1], q[2]})
			}
		}
	}
	if m.sessions < m.rows {
		add("turns mean", "turns", float64(m.rows)/float64(m.sessions), true, m.ratioBand(func(g measureSums) (float64, float64) { return g.rows, g.starts }))
	}
	var tokens, hits float64
	for _, g := range m.groups {
		tokens, hits = tokens+g.asked, hits+g.hit
	}
	if m.reuse != nil && m.reuse.Rate() < 1 {
		hitFactor = float64(m.reuse.Hits().HitTokens) / max(1, hits)
	}
	band := m.ratioBand(func(g measureSums) (float64, float64) { return g.hit * hitFactor, g.asked })
	add("hit share", "of tokens", min(1, hits*hitFactor/tokens), tokens > 0, band)
	return out
}

// ofTime adds rate, gaps and counts in windows.
func (m *Measuring) ofTime(add func(name, unit string, value float64, ok bool, band *[2]float64)) {
	if m.timed < 2 || m.last == m.first {
		return
	}
	spread := 1.0
	type count struct {
		k   int // of measureWindows
		idc float64
		n   int64
	}
	var counts []count
	for i, c := range m.counters {
		w := c.Counts()
		if idc, ok := w.Dispersion(); ok {
			counts = append(counts, count{i, idc, w.N()})
			spread = max(spread, idc)
		}
	}
	rate := float64(m.timed-1) / (float64(m.last-m.first) / 1e9)
	by := 1.96 * math.Sqrt(spread/float64(m.timed))
	add("rate", "requests/s", rate, true, &[2]float64{rate * max(0, 1-by), rate * (1 + by)})
	cv, ok := m.gaps.CV()
	add("gap CV", "", cv, ok, m.band(func(g measureSums) [3]float64 { return [3]float64{g.gaps, g.gapTime, g.gapSquares} }, func(s [3]float64) (float64, bool) {
		mean := s[1] / s[0]
		return math.Sqrt(max(0, s[2]/s[0]-mean*mean)) / mean, mean > 0
	}))
	for _, c := range counts {
		add(fmt.Sprintf("IDC at %g s", measureWindows[c.k].Seconds()), "", c.idc, true, m.dispersionBand(c.k, c.idc, c.n))
	}
}

// ratioBand is the band of a ratio of two sums.
func (m *Measuring) ratioBand(of func(measureSums) (sum, n float64)) *[2]float64 {
	return m.band(func(g measureSums) (s [3]float64) { s[0], s[1] = of(g); return s }, func(s [3]float64) (float64, bool) { return s[0] / s[1], s[1] > 0 })
}

// band draws groups with replacement; nil where there are too few.
func (m *Measuring) band(of func(measureSums) [3]float64, stat func([3]float64) (float64, bool)) *[2]float64 {
	var used [][3]float64
	for _, g := range m.groups {
		if s := of(g); s != [3]float64{} {
			used = append(used, s)
		}
	}
	if len(used) < 10 {
		return nil
	}
	i, err := stats.BlockBootstrap(len(used), 400, 0.95, 0, func(drawn []int64) (float64, bool) {
		var sum [3]float64
		for g, times := range drawn {
			for k := range sum {
				sum[k] += float64(times) * used[g][k]
			}
		}
		return stat(sum)
	})
	if err != nil {
		return nil
	}
	return &[2]float64{i.Lo, i.Hi}
}
