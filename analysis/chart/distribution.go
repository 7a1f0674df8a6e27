package chart

import (
	"fmt"
	"math"
	"sort"

	"reprise/analysis"
	"reprise/analysis/stats"
)

// A Quantity says what a distribution is of.
type Quantity struct {
	ID    string // of its charts, such as "gaps": they are "gaps-cdf" and "gaps-qq"
	Title string // such as "Gaps between arrivals"
	Axis  string // title of its axis, such as "gap"
	Unit  string // such as "s"
}

// A Sample is a distribution under a name.
type Sample struct {
	Name string // "" for "observed"
	*analysis.Dist
}

// A Law is a law to draw beside a sample, in the unit of the sample.
type Law struct {
	Name string
	stats.Law
}

// curvePoints is how many points a law is drawn with.
const curvePoints = 240

// CDF draws the distribution functions of samples and of laws, over a
// logarithmic axis. Values of 0 lie to its left, and the curve begins at their
// share. False if no value is above 0. Samples that are nil are left out.
func CDF(q Quantity, samples []Sample, laws ...Law) (Chart, bool) {
	c := Chart{ID: q.ID + "-cdf", Title: q.Title + ": distribution", X: Axis{Title: q.Axis, Unit: q.Unit, Log: true}, Y: Axis{Title: "share at or below", To: 1.02}}
	samples = above0(samples)
	if len(samples) == 0 {
		return c, false
	}
	c.X.From, c.X.To = logRange(samples)
	for i, s := range samples {
		name := s.Name
		if name == "" {
			name = "observed"
		}
		if len(samples) > 1 {
			name += fmt.Sprintf(" (n %s)", grouped(s.N))
		}
		c.Series = append(c.Series, s.steps(name, c.X.From, c.X.To))
		if i > 0 {
			c.Subtitle += "; "
		}
		c.Subtitle += s.says()
	}
	for _, l := range laws {
		if curve, ok := l.curve(c.X.From, c.X.To); ok {
			c.Series = append(c.Series, curve)
		}
	}
	c.Numbers = quantileTable(q, samples, laws)
	return c, true
}

// above0 returns the samples that a logarithmic axis can show.
func above0(samples []Sample) []Sample {
	var out []Sample
	for _, s := range samples {
		if s.Dist != nil && s.Max > 0 {
			out = append(out, s)
		}
	}
	return out
}

// says names n, and what lies left of the axis.
func (s Sample) says() string {
	text := "n " + grouped(s.N)
	if s.Name != "" {
		text = s.Name + ": " + text
	}
	switch {
	case s.Min < 0:
		text += ", those at or below 0 are left of the axis"
	case s.Zeros > 0:
		text += fmt.Sprintf(", %s of them 0, left of the axis", grouped(s.Zeros))
	}
	return text
}

// logRange returns what an axis shows of samples: from the smallest value above 0
// to the largest, with a margin.
func logRange(samples []Sample) (from, to float64) {
	var ends []float64
	for _, s := range samples {
		ends = append(ends, leastAbove0(s.Dist), s.Max)
	}
	b := Axis{Log: true}.bounds(ends, 0.03)
	return b[0], b[1]
}

// leastAbove0 is the smallest value above 0 that is a point of the distribution
// function; there is one if the largest value is above 0.
func leastAbove0(d *analysis.Dist) float64 {
	for _, p := range d.CDF {
		if p.X > 0 {
			return p.X
		}
	}
	return d.Max
}

// steps is the distribution function from one end of the axis to the other.
func (s Sample) steps(name string, from, to float64) Series {
	out := Series{Name: name, Kind: Step, X: []float64{from}, Y: []float64{0}}
	for _, p := range s.CDF {
		if p.X <= 0 {
			out.Y[0] = p.P
			continue
		}
		out.X, out.Y = append(out.X, p.X), append(out.Y, p.P)
	}
	out.X, out.Y = append(out.X, to), append(out.Y, 1)
	return out
}

// curve is the distribution function of a law; false if it is no number
// somewhere.
func (l Law) curve(from, to float64) (Series, bool) {
	out := Series{Name: l.Name, Kind: Lines}
	for i := range curvePoints {
		x := from * math.Pow(to/from, float64(i)/(curvePoints-1))
		y := l.CDF(x)
		if !(y >= 0 && y <= 1) {
			return out, false
		}
		out.X, out.Y = append(out.X, x), append(out.Y, y)
	}
	return out, true
}

// quantileTable has the quantiles of samples (as they are reported) and laws.
func quantileTable(q Quantity, samples []Sample, laws []Law) *Table {
	t := &Table{Header: []string{"quantile of " + Axis{Title: q.Axis, Unit: q.Unit}.label()}}
	for _, s := range samples {
		name := s.Name
		if name == "" {
			name = "observed"
		}
		t.Header = append(t.Header, name)
	}
	for _, l := range laws {
		t.Header = append(t.Header, l.Name)
	}
	for _, p := range analysis.DistQuantiles {
		row := []string{"p" + analysis.NumberText(100*p)}
		for _, s := range samples {
			cell := "n/a"
			if x, ok := s.Quantile(p); ok {
				cell = analysis.NumberText(x)
			}
			row = append(row, cell)
		}
		for _, l := range laws {
			cell := "n/a"
			if x := l.Quantile(p); !math.IsNaN(x) && !math.IsInf(x, 0) {
				cell = analysis.NumberText(x)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// QQ draws the quantiles of a sample against those of laws, on logarithmic axes:
// where a law fits, its marks lie on the diagonal. Quantiles are shown that have
// at least five values on either side; they are type 1 from the points of the
// sample's distribution function. Marks far off the values (beyond a hundredth of
// the least or a hundred times the largest) are left out and counted. False if
// there are no laws or no such quantiles above 0.
func QQ(q Quantity, d *analysis.Dist, laws ...Law) (Chart, bool) {
	c := Chart{
		ID: q.ID + "-qq", Title: q.Title + ": quantiles of laws and of the sample",
		X:    Axis{Title: q.Axis + " as the law has it", Unit: q.Unit, Log: true},
		Y:    Axis{Title: q.Axis + " observed", Unit: q.Unit, Log: true},
		Note: "One mark per quantile, at most 103 of them. Above the diagonal the observed value is larger than the law's.",
	}
	if d == nil {
		return c, false
	}
	c.Subtitle = "n " + grouped(d.N)
	low, high := math.Inf(1), 0.0
	least, most := leastAbove0(d), d.Max
	var marks []Series
	var far int64
	t := &Table{Header: []string{"law", "marks", "observed over law, least", "most"}}
	for _, l := range laws {
		s := Series{Name: l.Name, Kind: Points}
		lowest, highest := math.Inf(1), 0.0 // observed over law
		for _, p := range qqLevels(d.N) {
			x, y := l.Quantile(p), quantile1(d, p)
			switch {
			case !(y > 0) || math.IsNaN(x) || len(s.X) > 0 && x < s.X[len(s.X)-1]:
				continue
			case x < least/100 || x > most*100:
				far++
				continue
			}
			s.X, s.Y = append(s.X, x), append(s.Y, y)
			low, high = min(low, x, y), max(high, x, y)
			lowest, highest = min(lowest, y/x), max(highest, y/x)
		}
		if len(s.X) > 0 {
			marks = append(marks, s)
			t.Rows = append(t.Rows, []string{l.Name, grouped(int64(len(s.X))), analysis.NumberText(lowest), analysis.NumberText(highest)})
		}
	}
	if len(marks) == 0 {
		return c, false
	}
	if far > 0 {
		c.Note += fmt.Sprintf(" %s marks too far to the side are left out.", grouped(far))
	}
	b := Axis{Log: true}.bounds([]float64{low, high}, 0.03)
	c.X.From, c.X.To, c.Y.From, c.Y.To = b[0], b[1], b[0], b[1]
	c.Series = append([]Series{{Name: "equal quantiles", Kind: Lines, X: b[:], Y: b[:]}}, marks...)
	c.Numbers = t
	return c, true
}

// qqLevels are the whole percents, and the ends of which n values can tell.
func qqLevels(n int64) []float64 {
	levels := []float64{0.001, 0.005}
	for i := 1; i < 100; i++ {
		levels = append(levels, float64(i)/100)
	}
	levels = append(levels, 0.995, 0.999)
	var out []float64
	for _, p := range levels {
		if float64(n)*min(p, 1-p) >= 5 {
			out = append(out, p)
		}
	}
	return out
}

// quantile1 is the smallest value that at least the share p does not exceed.
func quantile1(d *analysis.Dist, p float64) float64 {
	i := sort.Search(len(d.CDF), func(i int) bool { return d.CDF[i].P >= p })
	return d.CDF[min(i, len(d.CDF)-1)].X
}
