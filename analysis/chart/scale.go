package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// bounds returns what each axis shows: both drawings show the same.
func (c *Chart) bounds() (x, y [2]float64) {
	var xs, ys []float64
	for _, s := range c.Series {
		xs, ys = append(xs, s.X...), append(append(ys, s.Y...), s.Low...)
		if s.Kind == Bars {
			ys = append(ys, 0)
			half := s.barWidth() / 2
			xs = append(xs, s.X[0]-half, s.X[len(s.X)-1]+half)
		}
	}
	if c.Grid != nil {
		xs, ys = append(xs, c.Grid.X...), append(ys, c.Grid.Y...)
	}
	if c.Lanes != nil {
		from, to, lanes := c.Lanes.bounds()
		xs, ys = append(xs, from, to), append(ys, 0, float64(lanes))
	}
	for _, l := range c.Lines {
		if l.Vertical {
			xs = append(xs, l.At)
		} else {
			ys = append(ys, l.At)
		}
	}
	return c.X.bounds(xs, 0.02), c.Y.bounds(ys, 0.05)
}

// bounds returns what the axis shows of values: all of them, with a margin that
// is a share of their range.
func (a Axis) bounds(values []float64, margin float64) [2]float64 {
	if a.From != 0 || a.To != 0 {
		return [2]float64{a.From, a.To}
	}
	low, high := slices.Min(values), slices.Max(values)
	if a.Zero && !a.Log {
		low = min(low, 0)
	}
	if a.Log {
		if low == high {
			return [2]float64{low / 2, high * 2}
		}
		pad := math.Pow(high/low, margin)
		return [2]float64{low / pad, high * pad}
	}
	switch {
	case low == high && low == 0:
		return [2]float64{-1, 1}
	case low == high:
		return [2]float64{low - math.Abs(low)/2, high + math.Abs(high)/2}
	}
	pad := margin * (high - low)
	switch {
	case low >= 0 && low < pad: // what begins at 0 is shown from there
		return [2]float64{0, high + pad}
	case high <= 0 && -high < pad:
		return [2]float64{low - pad, 0}
	}
	return [2]float64{low - pad, high + pad}
}

// barWidth is that of one bar, in units of X.
func (s *Series) barWidth() float64 {
	width := math.Inf(1)
	for i := 1; i < len(s.X); i++ {
		if d := s.X[i] - s.X[i-1]; d > 0 {
			width = min(width, d)
		}
	}
	if math.IsInf(width, 1) {
		return 1
	}
	return width
}

// A tick is a place on an axis; without a label it is a minor one.
type tick struct {
	at    float64
	label string
}

// ticks returns at most about n labelled ticks from one value to another.
func (a Axis) ticks(from, to float64, n int) []tick {
	switch {
	case a.Percentile:
		return percentileTicks(from, to, n)
	case a.Names != nil:
		return nameTicks(a.Names, from, to, n)
	}
	if a.Log {
		return logTicks(from, to, n)
	}
	return linearTicks(from, to, n)
}

// percentiles are what an axis of them labels, the densest first.
var percentiles = [][]float64{{0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99}, {0, 50, 90, 99, 99.9, 99.99}, {50, 99, 99.99}}

func percentileTicks(from, to float64, n int) []tick {
	var out []tick
	for _, list := range percentiles {
		out = nil
		for _, p := range list {
			if at := 100 / (100 - p); at >= from && at <= to {
				out = append(out, tick{at, "p" + strconv.FormatFloat(p, 'f', -1, 64)})
			}
		}
		if len(out) <= n {
			break
		}
	}
	return out
}

// nameTicks labels every name that there is room for.
func nameTicks(names []string, from, to float64, n int) []tick {
	each := max(1, (len(names)+n-1)/n)
	var out []tick
	for i, name := range names {
		if at := float64(i); i%each == 0 && at >= from && at <= to {
			out = append(out, tick{at, name})
		}
	}
	return out
}

// linearTicks is at 1, 2 or 5 times a power of ten; below three, there might be
// none.
func linearTicks(from, to float64, n int) []tick {
	n = max(n, 3)
	step := math.Pow(10, math.Floor(math.Log10((to-from)/float64(n))))
	for _, k := range []float64{1, 2, 5, 10} {
		if (to-from)/(k*step) <= float64(n) {
			step *= k
			break
		}
	}
	// as many digits as tell one tick from the next
	digits := min(15, max(tickDigits, 1+int(math.Ceil(math.Log10(max(math.Abs(from), math.Abs(to))/step)))))
	var out []tick
	for k := math.Ceil(from/step - 1e-9); k*step <= to+1e-9*step; k++ {
		out = append(out, tick{k * step, numberText(k*step, digits)})
	}
	return out
}

// logLeads are the leading digits that a logarithmic axis labels, the densest
// first.
var logLeads = [][]int{{1, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}}

// logTicks labels as many leading digits of each decade as there is room for,
// else every second decade or fewer; an axis too short for two of them is
// labelled like a linear one.
func logTicks(from, to float64, n int) []tick {
	for _, leads := range logLeads {
		if out, labels := decadeTicks(from, to, leads, 1); labels >= 2 && labels <= n {
			return out
		}
	}
	decades := math.Log10(to / from)
	if decades < 2 {
		return linearTicks(from, to, n)
	}
	out, _ := decadeTicks(from, to, logLeads[len(logLeads)-1], max(1, int(math.Ceil(decades/float64(n)))))
	return out
}

// decadeTicks returns ticks at all digits of each decade, with labels at the
// leads of every so many decades.
func decadeTicks(from, to float64, leads []int, each int) (out []tick, labels int) {
	for k := int(math.Floor(math.Log10(from))); k <= int(math.Ceil(math.Log10(to))); k++ {
		for lead := 1; lead < 10; lead++ {
			at, _ := strconv.ParseFloat(strconv.Itoa(lead)+"e"+strconv.Itoa(k), 64)
			if at < from || at > to {
				continue
			}
			t := tick{at: at}
			if k%each == 0 && slices.Contains(leads, lead) {
				t.label = tickText(at)
				labels++
			}
			out = append(out, t)
		}
	}
	return out, labels
}

// tickDigits is how many digits of a number count where one tick is far from the
// next.
const tickDigits = 5

// tickText writes a number as short as an axis needs: 0.001, 250, 10k, 2M.
func tickText(v float64) string { return numberText(v, tickDigits) }

func numberText(v float64, digits int) string {
	size := math.Abs(v)
	switch {
	case size < 1e-12:
		return "0"
	case size < 1e-4:
		return strings.Replace(significant(v, 'e', digits), "e-0", "e-", 1)
	}
	for _, unit := range []struct {
		from, size float64
		name       string
	}{{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}} {
		if size >= unit.from*0.9999999 {
			return significant(v/unit.size, 'f', digits) + unit.name
		}
	}
	if v == math.Trunc(v) {
		return grouped(int64(v))
	}
	return significant(v, 'f', digits)
}

// significant writes v with at most so many digits that count.
func significant(v float64, format byte, digits int) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	return strconv.FormatFloat(rounded, format, -1, 64)
}
