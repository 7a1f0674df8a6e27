package chart

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/analysis"
)

func grouped(n int64) string { return analysis.Grouped(n) }

// A drawing is a chart as page.js reads it.
type drawing struct {
	X      drawingAxis     `json:"x"`
	Y      drawingAxis     `json:"y"`
	Series []drawingSeries `json:"series"`
	Lines  []drawingLine   `json:"lines,omitempty"`
	Grid   *drawingGrid    `json:"grid,omitempty"`
	Lanes  *drawingLanes   `json:"lanes,omitempty"`
	Wide   bool            `json:"wide,omitempty"`
}

type drawingAxis struct {
	Title string  `json:"title"`
	Unit  string  `json:"unit,omitempty"`
	Log   bool    `json:"log,omitempty"`
	Range numbers `json:"range"`

	Percentile bool     `json:"percentile,omitempty"`
	Names      []string `json:"names,omitempty"`
}

func axisOf(a Axis, bounds [2]float64) drawingAxis {
	return drawingAxis{a.Title, a.Unit, a.Log, bounds[:], a.Percentile, a.Names}
}

type drawingSeries struct {
	Name  string  `json:"name"`
	Kind  Kind    `json:"kind"`
	Style int     `json:"style"`
	Dash  numbers `json:"dash,omitempty"`
	Shape string  `json:"shape"`
	Marks bool    `json:"marks,omitempty"`
	X     numbers `json:"x"`
	Y     numbers `json:"y"`
	Low   numbers `json:"low,omitempty"`
	Width float64 `json:"width,omitempty"` // of a bar
}

type drawingLine struct {
	At       float64 `json:"at"`
	Vertical bool    `json:"vertical,omitempty"`
	Dash     numbers `json:"dash"`
}

type drawingGrid struct {
	Of     string          `json:"of"`
	X      numbers         `json:"x"`
	Y      numbers         `json:"y"`
	Cells  [][3]int64      `json:"cells"`  // column, row, count
	Shades map[int64]shade `json:"shades"` // by count
}

// A shade is how dark a cell is.
type shade float64

// MarshalJSON writes three digits, which is more than can be seen.
func (s shade) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'g', 3, 64), nil
}

// numbers are written with six digits that count, which no screen can tell from
// more.
type numbers []float64

// MarshalJSON writes an array.
func (n numbers) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, v, 'g', 6, 64)
	}
	return append(out, ']'), nil
}

// encode writes drawings for a script element: json.Marshal escapes what could
// end it.
func encode(drawings []drawing) ([]byte, error) {
	if drawings == nil {
		drawings = []drawing{}
	}
	return json.Marshal(drawings)
}

func drawingOf(c *Chart) drawing {
	x, y := c.bounds()
	d := drawing{X: axisOf(c.X, x), Y: axisOf(c.Y, y), Series: []drawingSeries{}, Wide: c.Wide}
	for i := range c.Series {
		s, st := c.thinned(&c.Series[i], x, y), c.style(i)
		out := drawingSeries{Name: s.Name, Kind: s.Kind, Style: c.styleIndex(i), Marks: s.Marks, Dash: st.Dash, Shape: st.Shape, X: s.X, Y: s.Y, Low: s.Low}
		if s.Kind == Bars {
			out.Width = s.barWidth()
		}
		d.Series = append(d.Series, out)
	}
	for i, l := range c.Lines {
		d.Lines = append(d.Lines, drawingLine{l.At, l.Vertical, referenceDash(i)})
	}
	if c.Lanes != nil {
		d.Lanes = c.Lanes.drawing()
	}
	if g := c.Grid; g != nil {
		d.Grid = &drawingGrid{Of: g.Of, X: g.X, Y: g.Y, Shades: map[int64]shade{}}
		for _, cell := range g.Cells {
			d.Grid.Cells = append(d.Grid.Cells, [3]int64{int64(cell.X), int64(cell.Y), cell.N})
			d.Grid.Shades[cell.N] = shade(g.shade(cell.N))
		}
	}
	return d
}

// thinShare is how far, as a share of the picture, a point of a line moves on
// at least; the first and the last are always there.
const thinShare = 1.0 / 700

func (c *Chart) thinned(s *Series, x, y [2]float64) *Series {
	if s.Kind != Lines && s.Kind != Step || len(s.X) < 3 {
		return s
	}
	out := *s
	out.X, out.Y = nil, nil
	px, py := math.Inf(-1), math.Inf(-1)
	for i := range s.X {
		vx, vy := c.X.share(s.X[i], x), c.Y.share(s.Y[i], y)
		if i == 0 || i == len(s.X)-1 || math.Abs(vx-px) >= thinShare || math.Abs(vy-py) >= thinShare {
			out.X, out.Y = append(out.X, s.X[i]), append(out.Y, s.Y[i])
			px, py = vx, vy
		}
	}
	return &out
}

// share returns how far along the axis v is.
func (a Axis) share(v float64, bounds [2]float64) float64 {
	if a.Log {
		return math.Log(v/bounds[0]) / math.Log(bounds[1]/bounds[0])
	}
	return (v - bounds[0]) / (bounds[1] - bounds[0])
}

// alt says in words what the chart shows.
func (c *Chart) alt() string {
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
	}
	if c.Grid != nil {
		names = append(names, c.Grid.Of+" as shades")
	}
	if c.Lanes != nil {
		names = append(names, c.Lanes.Of+" as bars from left to right: "+strings.Join(c.Lanes.Phases, ", "))
	}
	text := fmt.Sprintf("Chart: %s. %s. Across: %s%s. Up: %s%s. Shown: %s.", c.Title, c.Subtitle, c.X.label(), scaleWord(c.X), c.Y.label(), scaleWord(c.Y), strings.Join(names, "; "))
	for _, l := range c.Lines {
		text += " Reference: " + l.Label + "."
	}
	return text + " The numbers are in the table below."
}

func scaleWord(a Axis) string {
	if a.Log {
		return " (logarithmic)"
	}
	return ""
}

// numbers is the table that stands for the chart.
func (c *Chart) numbers() Table {
	if c.Numbers != nil {
		return *c.Numbers
	}
	t := Table{Header: []string{"shown", "points", "x from", "x to", "y lowest", "y highest"}}
	for _, s := range c.Series {
		low := s.Y
		if s.Kind == Band {
			low = s.Low
		}
		t.Rows = append(t.Rows, []string{s.Name, grouped(int64(len(s.X))), tickText(s.X[0]), tickText(s.X[len(s.X)-1]), tickText(slices.Min(low)), tickText(slices.Max(s.Y))})
	}
	if l := c.Lanes; l != nil {
		from, to, lanes := l.bounds()
		t.Rows = append(t.Rows, []string{l.Of, grouped(int64(len(l.Spans))), tickText(from), tickText(to), "0", tickText(float64(lanes))})
	}
	if g := c.Grid; g != nil {
		t.Rows = append(t.Rows, []string{g.Of, grouped(int64(len(g.Cells))), tickText(g.X[0]), tickText(g.X[len(g.X)-1]), tickText(g.Y[0]), tickText(g.Y[len(g.Y)-1])})
	}
	return t
}
