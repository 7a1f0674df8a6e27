package runpage

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/analysis/stats"
)

// level is the confidence of intervals.
const level = 0.95

// A distribution is values with counts, in order.
type distribution struct {
	bars []hdrhistogram.Bar // only To and Count
	n    int64
}

// distributionOf reads a histogram in ns, whose largest value is known exactly.
func distributionOf(h *hdrhistogram.Histogram, most int64) distribution {
	if h == nil {
		return distribution{}
	}
	d := distribution{n: h.TotalCount()}
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			b.To = min(b.To, most)
			d.bars = append(d.bars, b)
		}
	}
	return d
}

// distribution is a metric of the summary.
func (w *writer) distribution(m *analysis.Metric) distribution {
	return distributionOf(w.s.Histogram(m.Name), int64(math.Round(m.Stat("max").Or(0)*1e6)))
}

func sorted(values []int64) distribution {
	d := distribution{n: int64(len(values))}
	for _, v := range values {
		d.bars = append(d.bars, hdrhistogram.Bar{To: v, Count: 1})
	}
	return d
}

// rank returns the value at a rank, from 1.
func (d distribution) rank(r int64) int64 {
	for _, b := range d.bars {
		if r -= b.Count; r <= 0 {
			return b.To
		}
	}
	return d.bars[len(d.bars)-1].To
}

// interval returns the values between which the quantile lies with confidence
// level, if every one of units samples, at most n, is independent: tokens of one
// response are not, its responses are.
func (d distribution) interval(q float64, units int64) (low, high int64, ok bool) {
	l, u, ok := stats.RankInterval(units, q, level)
	if !ok || d.n == 0 {
		return 0, 0, false
	}
	at := func(r int64) int64 {
		return d.rank(min(d.n, max(1, int64(math.Ceil(float64(r)/float64(units)*float64(d.n)-1e-9)))))
	}
	return at(l), at(u), true
}

// farthest is where percentile plots end: p99.99.
const farthest = 1e4

// percentiles draws the quantiles of a distribution in ns over 1/(1-q) as
// HdrHistogram does, up to the last that has a sample beyond it, and p99.99 at most.
func percentiles(id, title, axis, subtitle string, d distribution, units int64) (chart.Chart, bool) {
	if d.n < 2 || d.bars[len(d.bars)-1].To <= 0 {
		return chart.Chart{}, false
	}
	most := min(float64(d.n), farthest)
	c := chart.Chart{
		ID: id, Title: title, Subtitle: subtitle,
		X: chart.Axis{Title: "percentile", Log: true, Percentile: true}, Y: chart.Axis{Title: axis, Unit: "ms", Zero: true},
		Note: "Each percentile is a sample: the smallest that so many do not exceed.",
	}
	line := chart.Series{Name: "measured", Kind: chart.Step}
	below := int64(0)
	for _, b := range d.bars {
		x := float64(d.n) / float64(d.n-below)
		if x > most {
			break
		}
		line.X, line.Y = append(line.X, x), append(line.Y, float64(b.To)/1e6)
		below += b.Count
	}
	if last := len(line.X) - 1; line.X[last] < most {
		line.X, line.Y = append(line.X, most), append(line.Y, line.Y[last])
	}
	c.Series = append(c.Series, line)
	band := chart.Series{Name: "95 % rank interval", Kind: chart.Band}
	for x := 1.0; x <= most; x *= 1.1 {
		if low, high, ok := d.interval(1-1/x, units); ok {
			band.X, band.Low, band.Y = append(band.X, x), append(band.Low, float64(low)/1e6), append(band.Y, float64(high)/1e6)
		}
	}
	if len(band.X) > 1 {
		c.Series = append(c.Series, band)
	} else {
		c.Note += " There are too few samples for an interval."
	}
	c.Numbers = d.table(units)
	return c, true
}

// tableQuantiles are those of the tables, in ten thousandths.
var tableQuantiles = []int64{5000, 9000, 9500, 9900, 9990, 9999}

func quantileName(q int64) string { return "p" + analysis.NumberText(float64(q)/100) }

// table has the quantiles that n allows, with intervals.
func (d distribution) table(units int64) *chart.Table {
	t := &chart.Table{Header: []string{"percentile", "ms", "95 % interval, ms", "samples beyond"}}
	for _, q := range tableQuantiles {
		rank := max(1, (q*d.n+9999)/10000)
		if rank == d.n && q > 5000 {
			break
		}
		t.Rows = append(t.Rows, []string{quantileName(q), analysis.TimeText(float64(d.rank(rank)) / 1e6), d.intervalText(q, units), analysis.Grouped(d.n - rank)})
	}
	t.Rows = append(t.Rows, []string{"largest", analysis.TimeText(float64(d.bars[len(d.bars)-1].To) / 1e6), "n/a", "0"})
	return t
}

func (d distribution) intervalText(q, units int64) string {
	low, high, ok := d.interval(float64(q)/10000, units)
	if !ok {
		return "n/a"
	}
	return analysis.TimeText(float64(low)/1e6) + " to " + analysis.TimeText(float64(high)/1e6)
}

// A field says how a plane is drawn.
type field struct {
	id, title, of string
	x, y          chart.Axis
	edge          func(i int) float64 // where the i-th place of x begins
	xUnit, yUnit  float64             // of one in the plane, in the axes' units
	equal         bool                // with the line on which y is x
	note          string
	head          string // of the first column of its table
}

// mostCells is how many cells a plane has along y at most.
const mostCells = 56

// plane draws counts as shades, with the median and p99 of each place of x over
// them. False without a value above 0.
func (f *field) chart(p *plane) (chart.Chart, bool) {
	if p.n == 0 {
		return chart.Chart{}, false
	}
	all := p.all()
	floor := int64(1) // a few values far below all others would leave the others no room
	if low := int64(all.quantile(5)); all.least < low/farBelow {
		floor = max(1, low/2)
	}
	first, last, least, most := -1, 0, int64(math.MaxInt64), int64(0)
	for i := range p.rows {
		if r := &p.rows[i]; r.n > 0 && r.most > 0 && f.edge(i+1) > 0 {
			if first < 0 {
				first = i
			}
			last, least, most = i, min(least, max(floor, r.least)), max(most, r.most)
		}
	}
	if first < 0 {
		return chart.Chart{}, false
	}
	keep := 4
	for keep > 0 && bucketOf(most, keep)-bucketOf(least, keep) >= mostCells {
		keep--
	}
	base := bucketOf(min(least, most), keep)
	g := &chart.Grid{Of: f.of}
	for i := first; i <= last+1; i++ {
		g.X = append(g.X, f.edge(i)*f.xUnit)
	}
	if f.x.Log && g.X[0] <= 0 {
		g.X[0] = g.X[1] / 2
	}
	for b := base; b <= bucketOf(most, keep)+1; b++ {
		g.Y = append(g.Y, float64(lowOf(b, keep))*f.yUnit)
	}
	if g.Y[0] <= 0 {
		g.Y[0] = g.Y[1] / 2
	}
	c := chart.Chart{ID: f.id, Title: f.title, Subtitle: "n " + analysis.Grouped(p.n) + " " + f.of, X: f.x, Y: f.y, Grid: g, Note: f.note}
	c.X.From, c.X.To = g.X[0], g.X[len(g.X)-1]
	median, p99 := chart.Series{Name: "median", Kind: chart.Lines}, chart.Series{Name: "p99, or the largest of fewer than 100", Kind: chart.Lines}
	t := &chart.Table{Header: []string{f.head, "n", "smallest", "median", "p99", "largest"}}
	none, under := int64(0), int64(0)
	for i := first; i <= last; i++ {
		r := &p.rows[i]
		if r.n == 0 {
			continue
		}
		zeros, low := f.cells(g, i-first, r, keep, base)
		none, under = none+zeros, under+low
		middle := f.middle(g.X[i-first], g.X[i-first+1])
		for _, s := range []struct {
			to *chart.Series
			q  int64
		}{{&median, 500}, {&p99, 990}} {
			if v := r.quantile(s.q) * f.yUnit; v >= g.Y[0] {
				s.to.X, s.to.Y = append(s.to.X, middle), append(s.to.Y, v)
			}
		}
		text := func(v float64) string { return analysis.NumberText(v * f.yUnit) }
		t.Rows = append(t.Rows, []string{f.rangeText(g.X[i-first], g.X[i-first+1]), analysis.Grouped(r.n), text(float64(r.least)), text(r.quantile(500)), text(r.quantile(990)), text(float64(r.most))})
	}
	if none > 0 {
		c.Note = join(c.Note, fmt.Sprintf("%s of 0 are not drawn.", analysis.Grouped(none)))
	}
	if under > 0 {
		c.Note = join(c.Note, fmt.Sprintf("%s below %s %s are drawn in the lowest row.", analysis.Grouped(under), analysis.NumberText(g.Y[0]), f.y.Unit))
	}
	for _, line := range []chart.Series{median, p99} {
		if len(line.X) > 0 { // else it lies below all that is drawn, as where most values are 0
			c.Series = append(c.Series, line)
		}
	}
	if f.equal {
		low, high := max(g.X[0], g.Y[0]), min(g.X[len(g.X)-1], g.Y[len(g.Y)-1])
		if low < high {
			c.Series = append(c.Series, chart.Series{Name: "equal", Kind: chart.Lines, X: []float64{low, high}, Y: []float64{low, high}})
		}
	}
	t.Title = fmt.Sprintf("%s; medians and p99 are at most %s off", c.Y.Title+", "+c.Y.Unit, analysis.PercentText(quantileError))
	c.Numbers = t
	return c, true
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// farBelow is how many times below nearly all others the least values are where the
// plane does not reach down to them.
const farBelow = 16

// cells adds a column, and returns how many values have no place in it, and how many
// are below it.
func (f *field) cells(g *chart.Grid, x int, r *row, keep, base int) (none, under int64) {
	var sums [mostCells + 1]int64
	for b, n := range r.counts {
		switch low := lowOf(b, fineBits); {
		case n == 0:
		case low < 1:
			none += int64(n)
		case bucketOf(low, keep) < base:
			under += int64(n)
			sums[0] += int64(n)
		default:
			sums[bucketOf(low, keep)-base] += int64(n)
		}
	}
	for y, n := range sums {
		if n > 0 {
			g.Cells = append(g.Cells, chart.Cell{X: x, Y: y, N: n})
		}
	}
	return none, under
}

func (f *field) middle(from, to float64) float64 {
	if f.x.Log {
		return math.Sqrt(from * to)
	}
	return (from + to) / 2
}

func (f *field) rangeText(from, to float64) string {
	return analysis.NumberText(from) + " to " + analysis.NumberText(to)
}

// overTime draws a plane of times in ms by the time of the run, in bins that are wide
// enough to hold some requests each.
func (c *Collector) overTime(p *plane, id, title, of, axis, note string) (chart.Chart, bool) {
	each := 1
	for bins := len(p.rows); bins/each > fewestBins && c.n*int64(each) < perBin*int64(bins); {
		each *= 2
	}
	f := &field{
		id: id, title: title, of: of, x: chart.Axis{Title: "sent, since the run began", Unit: "s"}, y: chart.Axis{Title: axis, Unit: "ms", Log: true},
		edge: func(i int) float64 { return c.clock.seconds(i * each) }, xUnit: 1, yUnit: 1e-6, note: note, head: "sent, s",
	}
	return f.chart(p.joined(each))
}

// perBin is how many requests a bin of a plane over time should hold on average,
// unless that leaves fewer bins than fewestBins.
const (
	perBin     = 10
	fewestBins = 16
)

// byLog is a plane by a number in buckets.
func byLog(id, title, of string, x, y chart.Axis, keep int, xUnit, yUnit float64) *field {
	x.Log, y.Log = true, true
	return &field{id: id, title: title, of: of, x: x, y: y, edge: func(i int) float64 { return float64(lowOf(i, keep)) }, xUnit: xUnit, yUnit: yUnit, head: x.Title + ", " + x.Unit}
}

// A stroke is one line of a chart over time.
type stroke struct {
	name string
	y    []float64
}

// lines draws values as steps, each of so many bins of time.
func (c *Collector) lines(id, title, subtitle, axis, unit string, each int, note string, strokes ...stroke) (chart.Chart, bool) {
	u := chart.Chart{
		ID: id, Title: title, Subtitle: subtitle, X: chart.Axis{Title: "since the run began", Unit: "s"}, Y: chart.Axis{Title: axis, Unit: unit, Zero: true},
		Note: join(note, fmt.Sprintf("Bins of %s s.", analysis.NumberText(c.clock.seconds(each)))),
	}
	t := &chart.Table{Header: []string{"from, s"}}
	for _, s := range strokes {
		line := chart.Series{Name: s.name, Kind: chart.Step}
		for i, v := range s.y {
			line.X, line.Y = append(line.X, c.clock.seconds(i*each)), append(line.Y, v)
		}
		if len(s.y) == 0 {
			return u, false
		}
		end := max(c.end, time.Duration((len(s.y)-1)*each)*c.clock.width).Seconds() // the last value holds until then
		line.X, line.Y = append(line.X, end), append(line.Y, s.y[len(s.y)-1])
		u.Series = append(u.Series, line)
		t.Header = append(t.Header, s.name)
	}
	for i := range strokes[0].y {
		cells := []string{analysis.NumberText(c.clock.seconds(i * each))}
		for _, s := range strokes {
			cells = append(cells, analysis.NumberText(s.y[i]))
		}
		t.Rows = append(t.Rows, cells)
	}
	u.Numbers = t
	return u, true
}
