package analysis

import (
	"math"
	"time"

	"reprise/analysis/stats"
)

// countBlocks keep the sums over windows of counts that a bootstrap over blocks
// of time needs: of windows of up to a minute in each minute, and the counts of
// five minutes. Their memory is some 80 bytes a minute, up to maxMinutes; a trace
// beyond that, be it of one wrong timestamp, has no bands.
type countBlocks struct {
	over    bool
	open    [blockScales]openWindow
	minutes []blockSums
	fives   []float64
}

// maxMinutes is some two years.
const maxMinutes = 1 << 20

// blockScales are the first of burstWindows: those that fit into a minute.
const blockScales = 4

// blockSums are sums over the windows of one minute: of counts and squares.
type blockSums [blockScales]struct{ n, squares float64 }

type openWindow struct {
	index int64
	count float64
}

func (c *countBlocks) add(at int64) {
	if c.over || at/int64(time.Minute) >= maxMinutes {
		*c = countBlocks{over: true}
		return
	}
	for k := range blockScales {
		w := &c.open[k]
		if i := at / int64(burstWindows[k]); i != w.index {
			c.close(k)
			w.index = i
		}
		w.count++
	}
	i := int(at / int64(burstWindows[blockScales]))
	for len(c.fives) <= i {
		c.fives = append(c.fives, 0)
	}
	c.fives[i]++
}

// close adds the open window of scale k to its minute.
func (c *countBlocks) close(k int) {
	w := &c.open[k]
	if w.count == 0 {
		return
	}
	i := int(w.index * int64(burstWindows[k]) / int64(time.Minute))
	for len(c.minutes) <= i {
		c.minutes = append(c.minutes, blockSums{})
	}
	c.minutes[i][k].n += w.count
	c.minutes[i][k].squares += w.count * w.count
	w.count = 0
}

// bandReplicates is how often blocks of time are drawn for a band.
const bandReplicates = 400

// A countBand is where IDC and count CV of traffic like this one lie 95 % of the
// time: a bootstrap over minutes, or over five minutes for the longest windows.
type countBand struct{ idc, cv *stats.Interval }

// band returns the band of burstWindows[k]; empty where there are too few blocks.
func (c *countBlocks) band(k int, seed uint64) countBand {
	for j := range blockScales {
		c.close(j)
	}
	blocks := len(c.minutes) - 1 // the last may be cut
	if k == blockScales {
		blocks = len(c.fives) - 1
	}
	of := func(stat func(n, squares, windows float64) (float64, bool)) *stats.Interval {
		i, err := stats.BlockBootstrap(blocks, bandReplicates, 0.95, seed, func(drawn []int64) (float64, bool) {
			n, squares, windows := 0.0, 0.0, 0.0
			for b, times := range drawn {
				x, y, per := c.sums(k, b)
				n, squares, windows = n+float64(times)*x, squares+float64(times)*y, windows+float64(times)*per
			}
			return stat(n, squares, windows)
		})
		if err != nil {
			return nil
		}
		return &i
	}
	return countBand{idc: of(dispersionOf), cv: of(rateCVOf)}
}

// sums returns counts, squares and windows of block b.
func (c *countBlocks) sums(k, b int) (n, squares, windows float64) {
	if k == blockScales {
		return c.fives[b], c.fives[b] * c.fives[b], 1
	}
	s := c.minutes[b][k]
	return s.n, s.squares, float64(time.Minute / burstWindows[k])
}

func dispersionOf(n, squares, windows float64) (float64, bool) {
	if n == 0 || windows < 2 {
		return 0, false
	}
	mean := n / windows
	return (squares - n*mean) / (windows - 1) / mean, true
}

func rateCVOf(n, squares, windows float64) (float64, bool) {
	idc, ok := dispersionOf(n, squares, windows)
	if !ok {
		return 0, false
	}
	mean := n / windows
	return math.Sqrt(max(0, (idc-1)/mean)), true
}
