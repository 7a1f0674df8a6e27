package stats

import (
	"fmt"
	"math"
	"slices"
)

// MinSegmentEvents is how many events a segment of constant rate has at least
// where nothing else is asked for.
const MinSegmentEvents = 50

// ChangeOptions say how readily the rate is taken to change.
type ChangeOptions struct {
	Penalty   float64 // per change; 0 means 2 ln(windows)
	MinEvents int64   // per segment; 0 means MinSegmentEvents, below 0 none
	Silences  bool    // a segment may also hold no event at all: nothing came, however long the windows
}

// Segments are a rate that is constant between changes.
type Segments struct {
	Changes   []int     // first window of each segment but the first
	Rates     []float64 // events per second, one more than Changes
	Objective float64   // sum of costs and penalties, see ChangePoints
}

// ChangePoints cuts the counts of windows of equal length (seconds) into
// segments of constant Poisson rate. It minimises exactly the sum over segments
// of S events in m windows of -(S ln(S/(m window)) - S), 0 for S = 0, plus the
// penalty per change: optimal partitioning, pruned as in PELT (Killick et al.
// 2012). Time grows with windows times the candidates that pruning leaves: close
// to linear where the rate keeps changing, quadratic where it never does.
//
// Where there are fewer events than a segment needs, there is one segment.
func ChangePoints(counts []int64, window float64, o ChangeOptions) (Segments, error) {
	n := len(counts)
	if n == 0 || !(window > 0) || math.IsInf(window, 0) {
		return Segments{}, fmt.Errorf("%d windows of %v s have no rate", n, window)
	}
	if o.Penalty == 0 {
		o.Penalty = 2 * math.Log(float64(n))
	}
	if o.MinEvents == 0 {
		o.MinEvents = MinSegmentEvents
	}
	sums := make([]int64, n+1)
	for i, k := range counts {
		if k < 0 {
			return Segments{}, fmt.Errorf("window %d holds %d events", i, k)
		}
		sums[i+1] = sums[i] + k
	}
	p := &partition{sums: sums, window: window, ChangeOptions: o}
	return p.segments(p.solve()), nil
}

type partition struct {
	ChangeOptions
	sums   []int64
	window float64
	best   []float64 // cost of windows before t, the penalty of its first segment included
}

func (p *partition) cost(from, to int) float64 {
	s := float64(p.sums[to] - p.sums[from])
	if s == 0 {
		return 0
	}
	return -(s*math.Log(s/(float64(to-from)*p.window)) - s)
}

// A candidate is where the last segment may begin. Once it can no longer win at
// some t, it cannot at any later one that leaves the segment from t its events.
type candidate struct {
	start int
	until int64 // it is of no use once this many events have come; 0 = not known to lose
}

// solve returns, for each t, where the last segment before t begins.
func (p *partition) solve() []int {
	n := len(p.sums) - 1
	p.best = make([]float64, n+1)
	p.best[0] = -p.Penalty
	from := make([]int, n+1)
	open := []candidate{{start: 0}}
	for t := 1; t <= n; t++ {
		p.best[t], from[t] = math.Inf(1), 0
		kept := open[:0]
		for _, c := range open {
			if c.until > 0 && p.sums[t] >= c.until {
				continue
			}
			kept = append(kept, c)
			if n := p.sums[t] - p.sums[c.start]; n < p.MinEvents && !(n == 0 && p.Silences) {
				continue
			}
			if v := p.best[c.start] + p.cost(c.start, t) + p.Penalty; v < p.best[t] {
				p.best[t], from[t] = v, c.start
			}
		}
		open = kept
		if math.IsInf(p.best[t], 1) {
			continue // no segment ends here
		}
		for i := range open {
			if c := &open[i]; c.until == 0 && p.best[c.start]+p.cost(c.start, t) > p.best[t] {
				c.until = p.sums[t] + p.MinEvents
				if p.MinEvents < 1 {
					c.until = math.MinInt64
				}
			}
		}
		open = drop(open)
		open = append(open, candidate{start: t})
	}
	return from
}

// drop forgets the candidates that lose at once.
func drop(open []candidate) []candidate {
	kept := open[:0]
	for _, c := range open {
		if c.until != math.MinInt64 {
			kept = append(kept, c)
		}
	}
	return kept
}

// segments walks back from the end.
func (p *partition) segments(from []int) Segments {
	n := len(p.sums) - 1
	if math.IsInf(p.best[n], 1) {
		from[n], p.best[n] = 0, p.cost(0, n) // too few events even for one
	}
	s := Segments{Objective: p.best[n]}
	for end := n; end > 0; end = from[end] {
		start := from[end]
		s.Rates = append(s.Rates, float64(p.sums[end]-p.sums[start])/(float64(end-start)*p.window))
		if start > 0 {
			s.Changes = append(s.Changes, start)
		}
	}
	slices.Reverse(s.Rates)
	slices.Reverse(s.Changes)
	return s
}
