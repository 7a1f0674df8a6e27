package stats

import (
	"fmt"
	"math"
	"slices"
)

// A Counter counts events in windows of equal length, in one pass over integer
// times. Window k is [k w, (k+1) w) from the first event; only windows that
// end before or at the last event are complete and count. Its memory does not
// grow with the number of windows: distinct counts are at most the root of
// twice the number of events.
type Counter struct {
	width   int64
	started bool
	origin  int64
	last    int64 // time of the last event
	window  int64 // index of the window being filled
	count   int64 // events in it
	series  Series
	of      map[int64]int64 // windows by count, empty ones left out
}

// NewCounter counts in windows of width ticks, which must be above 0.
func NewCounter(width int64) *Counter {
	if width <= 0 {
		panic(fmt.Sprintf("window of %d ticks", width))
	}
	return &Counter{width: width, of: map[int64]int64{}}
}

// Add counts an event at time at, which is not before the last.
func (c *Counter) Add(at int64) {
	if !c.started {
		c.started, c.origin, c.last = true, at, at
	}
	if at < c.last {
		panic(fmt.Sprintf("event at %d after one at %d", at, c.last))
	}
	c.last = at
	if k := (at - c.origin) / c.width; k != c.window {
		c.close()
		c.series.AddN(0, k-c.window-1)
		c.window = k
	}
	c.count++
}

func (c *Counter) close() {
	c.series.Add(c.count)
	if c.count > 0 {
		c.of[c.count]++
	}
	c.count = 0
}

// Counts returns what the complete windows hold.
func (c *Counter) Counts() WindowCounts {
	return WindowCounts{Series: c.series, sample: countedSample(c.of, c.series.zeros)}
}

// CountsOf returns the description of the counts of given windows, in order.
func CountsOf(counts []int64) (WindowCounts, error) {
	var s Series
	of := map[int64]int64{}
	for i, n := range counts {
		if n < 0 {
			return WindowCounts{}, fmt.Errorf("window %d holds %d events", i, n)
		}
		s.Add(n)
		if n > 0 {
			of[n]++
		}
	}
	return WindowCounts{Series: s, sample: countedSample(of, s.zeros)}, nil
}

// countedSample makes a sample of positive counts and zeros.
func countedSample(of map[int64]int64, zeros int64) Sample {
	var s Sample
	if zeros > 0 {
		s.add(0, zeros)
	}
	keys := make([]int64, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		s.add(float64(k), of[k])
	}
	return s
}

// WindowCounts describe counts of events in complete windows of equal length:
// how many windows (N), their mean, variance over n - 1, zeros and range, and
// lag-1 autocorrelation, all of the embedded Series.
type WindowCounts struct {
	Series
	sample Sample
}

// Sample returns the counts without their order.
func (c *WindowCounts) Sample() Sample { return c.sample }

// Dispersion returns variance / mean, the index of dispersion for counts (IDC),
// which is 1 for Poisson arrivals; false below two windows or without events.
func (c *WindowCounts) Dispersion() (float64, bool) {
	v, ok := c.Variance()
	mean, _ := c.Mean()
	if !ok || mean == 0 {
		return 0, false
	}
	return v / mean, true
}

// RateCV returns c(w) = sqrt(max(0, variance - mean)) / mean: how much the rate
// itself varies from window to window, without the noise that Poisson arrivals
// at a constant rate have. False where Dispersion is.
func (c *WindowCounts) RateCV() (float64, bool) {
	v, ok := c.Variance()
	mean, _ := c.Mean()
	if !ok || mean == 0 {
		return 0, false
	}
	return math.Sqrt(max(0, v-mean)) / mean, true
}

// PoissonTest returns chi2 = (windows - 1) x dispersion and the decimal
// logarithm of its upper tail with windows - 1 degrees of freedom: the chance
// that Poisson arrivals at a constant rate disperse that much. False where
// Dispersion is.
func (c *WindowCounts) PoissonTest() (chi2, log10P float64, ok bool) {
	d, ok := c.Dispersion()
	if !ok {
		return 0, 0, false
	}
	free := float64(c.n - 1)
	return free * d, LogChi2Tail(free*d, free) / math.Ln10, true
}

// PoissonLogLik returns the log-likelihood of the counts under a Poisson law
// with their mean; false without events.
func (c *WindowCounts) PoissonLogLik() (float64, bool) {
	mean, ok := c.Mean()
	if !ok || mean == 0 {
		return 0, false
	}
	var t total
	t.add(c.Sum() * math.Log(mean))
	t.add(-float64(c.n) * mean)
	for i, v := range c.sample.values {
		lg, _ := math.Lgamma(v + 1)
		t.add(-float64(c.sample.counts[i]) * lg)
	}
	return t.value(), true
}
