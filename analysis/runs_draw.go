package analysis

import (
	"iter"
	"math"
	"time"

	"reprise/analysis/stats"
)

// runStats are the numbers of each metric that runs are compared by.
var runStats = [...]struct {
	name string
	q    int64 // thousandths; 0 = mean
}{{"mean", 0}, {"p50", 500}, {"p90", 900}, {"p95", 950}, {"p99", 990}}

type runNumbers [len(runStats)]float64

// numbers computes them with each block counted w times; false without a sample.
func (c *cells) numbers(w []float64, out *runNumbers) bool {
	var n, sum float64
	for b, times := range w {
		n += times * c.count[b]
		sum += times * c.sum[b]
	}
	if n == 0 {
		return false
	}
	out[0] = sum / n
	next, seen := 1, 0.0
	for i := 0; i < len(c.v); i++ {
		// Whole strides without a quantile are passed by their counts.
		for c.stride > 0 && i%c.stride == 0 && i+c.stride <= len(c.v) {
			within := 0.0
			for b, times := range w {
				within += times * c.strides[i/c.stride][b]
			}
			if seen+within >= math.Ceil(n*float64(runStats[next].q)/1000) {
				break
			}
			seen += within
			i += c.stride
		}
		if i == len(c.v) {
			break
		}
		v := c.v[i]
		seen += w[c.block[i]] * float64(c.n[i])
		for seen >= math.Ceil(n*float64(runStats[next].q)/1000) {
			out[next] = float64(v)
			if next++; next == len(runStats) {
				return true
			}
		}
	}
	for ; next < len(runStats); next++ {
		out[next] = float64(c.v[len(c.v)-1])
	}
	return true
}

// A draw says how often each block was drawn, in one replicate.
type draw []float64

// redraw draws as many blocks as there are among those that hold a request.
func (d draw) redraw(used []int, seed uint64, keys ...uint64) {
	clear(d)
	random := stats.Stream(seed, keys...)
	for range used {
		d[used[random.IntN(len(used))]]++
	}
}

// usedBlocks are those with a request of any of the runs.
func usedBlocks(runs []*RunData, byGroup bool, blocks int) []int {
	has := make([]bool, blocks)
	for _, d := range runs {
		for i := range d.rows {
			if byGroup {
				has[d.rows[i].group] = true
			} else {
				has[d.rows[i].block] = true
			}
		}
	}
	var used []int
	for b, h := range has {
		if h {
			used = append(used, b)
		}
	}
	return used
}

// runReplicates is how often blocks are drawn.
const runReplicates = 400

// leastUsed is how many blocks an interval needs.
const leastUsed = 8

// A spread is how much a difference varies: standard deviations of B - A and of
// ln(B / A) over the replicates, with the degrees of freedom that they rest on.
type spread struct {
	difference, ratio float64 // NaN where not known
	df                float64
}

var noSpread = spread{math.NaN(), math.NaN(), 0}

// A scheme is one way to draw blocks: of time or of sessions, together on both
// sides or not.
type scheme struct {
	blocks       int
	usedA, usedB []int
	paired       bool
	byGroup      bool
	seed         uint64
}

// draws are the replicates, of both sides; each is valid until the next.
func (s *scheme) draws() iter.Seq2[draw, draw] {
	return func(yield func(a, b draw) bool) {
		a, b := make(draw, s.blocks), make(draw, s.blocks)
		for replicate := range uint64(runReplicates) {
			a.redraw(s.usedA, s.seed, replicate, 0)
			if s.paired {
				copy(b, a)
			} else {
				b.redraw(s.usedB, s.seed, replicate, 1)
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

// spreads draws and says how much each number varies.
func (s *scheme) spreads(a, b *cells) [len(runStats)]spread {
	var out [len(runStats)]spread
	var d, r [len(runStats)]moment
	for k := range out {
		out[k] = noSpread
	}
	if min(len(s.usedA), len(s.usedB)) < leastUsed {
		return out
	}
	for wa, wb := range s.draws() {
		var x, y runNumbers
		if !a.numbers(wa, &x) || !b.numbers(wb, &y) {
			continue
		}
		for k := range x {
			d[k].add(y[k] - x[k])
			if x[k] > 0 && y[k] > 0 {
				r[k].add(math.Log(y[k] / x[k]))
			}
		}
	}
	mean := s.common(a.series(0), b.series(0))
	for k := range out {
		out[k] = s.corrected(spread{d[k].std(), r[k].std(), 0}, max(mean, s.common(a.series(k), b.series(k))))
	}
	return out
}

// common is the correlation of neighbouring blocks of time: of B - A where the
// same blocks are drawn on both sides, else the larger of the two. Sessions have
// no neighbours.
func (s *scheme) common(a, b []float64) float64 {
	switch {
	case s.byGroup:
		return 0
	case !s.paired:
		return max(lagOne(a, s.usedA), lagOne(b, s.usedB))
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = b[i] - a[i]
	}
	return lagOne(d, s.usedA)
}

// corrected sets the degrees of freedom, and widens a spread by what neighbouring
// blocks have in common: n blocks with a correlation of rho from one to the next
// are worth n (1 - rho) / (1 + rho) independent ones, as in an autoregressive
// process. Above mostCommon a run has a trend rather than a level, as of a
// growing queue, and hardly says how much its numbers vary: it counts as leastDF
// does.
func (s *scheme) corrected(sp spread, rho float64) spread {
	trend := rho > mostCommon
	if trend {
		rho = trendCommon
	}
	worth := (1 - rho) / (1 + rho)
	sp.difference, sp.ratio = sp.difference/math.Sqrt(worth), sp.ratio/math.Sqrt(worth)
	sp.df = float64(len(s.usedA))*worth - 1
	if !s.paired {
		sp.df += float64(len(s.usedB))*worth - 1
	}
	if sp.df = max(sp.df, leastDF); trend {
		sp.df = leastDF
	}
	return sp
}

// lagOne is the correlation of a series with itself one block later, corrected
// for the bias of short series (Marriott and Pope 1954), from 0 to 1.
func lagOne(series []float64, used []int) float64 {
	var m moment
	for _, b := range used {
		if !math.IsNaN(series[b]) {
			m.add(series[b])
		}
	}
	if m.m2 == 0 {
		return 0
	}
	var sum float64
	for i := 1; i < len(used); i++ {
		if x, y := series[used[i-1]], series[used[i]]; !math.IsNaN(x) && !math.IsNaN(y) {
			sum += (x - m.mean) * (y - m.mean)
		}
	}
	n := float64(m.n)
	return min(max((sum/m.m2+1/n)/(1-4/n), 0), 1)
}

const (
	mostCommon  = 0.7 // largest correlation that is taken as it is
	trendCommon = 0.9 // what stands for a larger one
	leastDF     = 2
)

// series is a number by block, for the correlation of neighbours: the mean, or
// the share of samples up to the quantile of all; NaN in a block without one.
func (c *cells) series(stat int) []float64 {
	out := make([]float64, len(c.count))
	if stat == 0 {
		for b := range out {
			out[b] = c.sum[b] / c.count[b]
		}
		return out
	}
	var all runNumbers
	c.numbers(ones(len(c.count)), &all)
	for i, v := range c.v {
		if float64(v) > all[stat] {
			break
		}
		out[c.block[i]] += float64(c.n[i])
	}
	for b := range out {
		out[b] /= c.count[b]
	}
	return out
}

func (t *tally) series() []float64 {
	out := make([]float64, len(t.work))
	for b := range out {
		out[b] = t.work[b] / t.base[b]
	}
	return out
}

// wider is the one with the wider interval, number by number.
func wider(a, b spread, level float64) spread {
	width := func(s spread) float64 {
		if s.df < 1 || math.IsNaN(s.difference) {
			return -1
		}
		return s.difference * stats.StudentQuantile(level, s.df)
	}
	if width(b) > width(a) {
		return b
	}
	return a
}

// A moment sums up numbers for their standard deviation (Welford 1962).
type moment struct {
	n        int
	mean, m2 float64
}

func (m *moment) add(v float64) {
	m.n++
	delta := v - m.mean
	m.mean += delta / float64(m.n)
	m.m2 += delta * (v - m.mean)
}

// std is NaN unless nearly all replicates had the number.
func (m *moment) std() float64 {
	if m.n < runReplicates*9/10 {
		return math.NaN()
	}
	return math.Sqrt(m.m2 / float64(m.n-1))
}

// A tally is work by block: its sum over the drawn blocks, per second or per
// request.
type tally struct{ work, base []float64 }

func (t *tally) of(w draw) (float64, bool) {
	var work, base float64
	for b, times := range w {
		work += times * t.work[b]
		base += times * t.base[b]
	}
	return work / base, base > 0
}

// spread draws the blocks of both sides.
func (s *scheme) spread(a, b *tally) spread {
	if min(len(s.usedA), len(s.usedB)) < leastUsed {
		return noSpread
	}
	var d, r moment
	for wa, wb := range s.draws() {
		x, okA := a.of(wa)
		y, okB := b.of(wb)
		if !okA || !okB {
			continue
		}
		d.add(y - x)
		if x > 0 && y > 0 {
			r.add(math.Log(y / x))
		}
	}
	return s.corrected(spread{d.std(), r.std(), 0}, s.common(a.series(), b.series()))
}

// errorTally counts failed of all requests by block.
func errorTally(runs []*RunData, byGroup bool, blocks int) *tally {
	t := &tally{make([]float64, blocks), make([]float64, blocks)}
	for _, d := range runs {
		for i := range d.rows {
			r := &d.rows[i]
			block := r.block
			if byGroup {
				block = r.group
			}
			t.base[block]++
			if r.bad {
				t.work[block]++
			}
		}
	}
	return t
}

// rateTally sums the work that successful requests had done when they ended, in
// parts of equal length of each run's window, and the seconds of these.
func rateTally(runs []*RunData, blocks int, work func(*runRow) float64) *tally {
	t := &tally{make([]float64, blocks), make([]float64, blocks)}
	for _, d := range runs {
		w := d.Summary.Throughput.WindowMS
		if w == nil || *w <= 0 {
			continue
		}
		window := time.Duration(*w * 1e6)
		last := time.Duration(0)
		for i := range d.rows {
			last = max(last, d.rows[i].end)
		}
		first := last - window
		for b := range t.base {
			t.base[b] += window.Seconds() / float64(blocks)
		}
		for i := range d.rows {
			if r := &d.rows[i]; r.ok && r.end >= 0 {
				b := int64(r.end-first) * int64(blocks) / int64(window+1)
				t.work[min(max(b, 0), int64(blocks-1))] += work(r)
			}
		}
	}
	return t
}
