package runpage

import (
	"math"
	"time"
)

// mostBins is how many bins of time a page has at most.
const mostBins = 240

// A clock cuts the time of a run into bins of one width, which doubles when a time
// lies beyond the last bin: the end of a run that was killed is not known before.
type clock struct {
	width time.Duration
	last  int // bin of the latest time
	folds []func()
}

// newClock returns bins of 1, 2 or 5 times a power of ten that reach as far as the
// run is thought to have lasted.
func newClock(length time.Duration) *clock {
	width := time.Millisecond
	for k := 0; length >= width*mostBins; k++ {
		width = width * []time.Duration{2, 5, 2}[k%3] / []time.Duration{1, 2, 1}[k%3]
	}
	return &clock{width: width}
}

// bin returns the bin of t; what is before the start is in the first.
func (c *clock) bin(t time.Duration) int {
	for t >= c.width*mostBins {
		for _, fold := range c.folds {
			fold()
		}
		c.width *= 2
		c.last /= 2
	}
	i := int(max(0, t) / c.width)
	c.last = max(c.last, i)
	return i
}

func (c *clock) seconds(bin int) float64 { return (time.Duration(bin) * c.width).Seconds() }

// A curve sums weights over time: of spans, as weight times seconds in each bin, or
// of instants.
type curve struct {
	clock *clock
	sum   [mostBins]float64     // from spans that begin or end within the bin, and from instants
	step  [mostBins + 1]float64 // change of the weight that covers whole bins, at their begin
	any   bool
}

func (c *clock) curve() *curve {
	u := &curve{clock: c}
	c.folds = append(c.folds, u.fold)
	return u
}

// fold halves the bins.
func (u *curve) fold() {
	covered, width := 0.0, u.clock.width.Seconds()
	for i := range u.sum {
		covered += u.step[i]
		u.sum[i] += covered * width
	}
	u.step = [mostBins + 1]float64{}
	for i := range u.sum {
		v := 0.0
		if 2*i+1 < mostBins {
			v = u.sum[2*i] + u.sum[2*i+1]
		}
		u.sum[i] = v
	}
}

// instant adds a weight at t.
func (u *curve) instant(t time.Duration, weight float64) {
	u.sum[u.clock.bin(t)] += weight
	u.any = true
}

// span adds a weight from one time to another, as weight times seconds.
func (u *curve) span(from, to time.Duration, weight float64) {
	if to <= from {
		return
	}
	u.any = true
	j := u.clock.bin(to)
	i, w := u.clock.bin(from), u.clock.width
	if i == j {
		u.sum[i] += weight * (to - from).Seconds()
		return
	}
	u.sum[i] += weight * (time.Duration(i+1)*w - from).Seconds()
	u.sum[j] += weight * (to - time.Duration(j)*w).Seconds()
	u.step[i+1] += weight
	u.step[j] -= weight
}

// spread adds a total evenly from one time to another.
func (u *curve) spread(from, to time.Duration, total float64) {
	if to <= from {
		u.instant(from, total)
		return
	}
	u.span(from, to, total/(to-from).Seconds())
}

// totals returns the sum of each bin up to the last.
func (u *curve) totals() []float64 {
	out := make([]float64, u.clock.last+1)
	covered, width := 0.0, u.clock.width.Seconds()
	for i := range out {
		covered += u.step[i]
		out[i] = u.sum[i] + covered*width
	}
	return out
}

// perSecond returns the mean over each bin: the time-weighted mean of spans, the
// rate of instants. The last bin counts up to the end of the run.
func (u *curve) perSecond(end time.Duration) []float64 {
	out := u.totals()
	for i := range out {
		length := u.clock.width
		if i == len(out)-1 {
			if rest := end - time.Duration(i)*length; rest > 0 {
				length = min(length, rest)
			}
		}
		out[i] = math.Max(0, math.Round(out[i]/length.Seconds()*1e6)/1e6)
	}
	return out
}
