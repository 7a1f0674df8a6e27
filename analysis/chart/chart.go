package chart

import (
	"errors"
	"fmt"
	"math"
	"regexp"
)

// A Chart is a picture as data. Nothing in it is NaN or infinite, and what lies
// on a logarithmic axis is above 0: see [Chart.Check].
type Chart struct {
	ID       string // name of its file and its place in a page: lower case, digits and hyphens
	Title    string // what is shown, without unit
	Subtitle string // n, and of what
	X, Y     Axis
	Series   []Series // drawn in this order, so later ones lie on top, and on all bands
	Lines    []Line
	Grid     *Grid  // below the series; nil for none
	Lanes    *Lanes // likewise
	Wide     bool   // takes the whole width of a page
	Note     string // how to read it, and what is left out; "" for nothing
	Numbers  *Table // its text alternative; nil for a table of what every series spans
}

// An Axis has a title with its unit, and a linear or logarithmic scale.
type Axis struct {
	Title string
	Unit  string // as it stands behind the title; "" for a number without one
	Log   bool
	Zero  bool // shown from 0 on, where no value is below
	// Percentile makes values of 1/(1-q) be read as q: 100 is p99. It goes with Log,
	// as in the plots of HdrHistogram.
	Percentile bool
	// Names label 0, 1, 2, ... where the axis is of names.
	Names []string
	// From and To bound what is shown; both 0 for what the data need.
	From, To float64
}

// label is the title with its unit.
func (a Axis) label() string {
	if a.Unit == "" {
		return a.Title
	}
	return a.Title + ", " + a.Unit
}

// Kind is how a series is drawn.
type Kind string

// The kinds of series.
const (
	Lines  Kind = "line"   // straight from point to point
	Step   Kind = "step"   // each value holds until the next X
	Points Kind = "points" // a mark each, not connected
	Band   Kind = "band"   // the area from Low to Y
	Bars   Kind = "bars"   // from 0 to Y, around X
)

// A Series is one thing that is shown. X and Y are equally long, and X never
// decreases.
type Series struct {
	Name string // as the legend has it
	Kind Kind
	X, Y []float64
	Low  []float64 // of a Band: its lower side
	// Marks puts a mark on each point of a line that has few.
	Marks bool
}

// A Line is a reference: a value to compare with, drawn across. The legend has
// its label.
type Line struct {
	Label    string
	At       float64
	Vertical bool // At is on the X axis
}

// A Grid is a plane of counts: cell (i, j) runs from X[i] to X[i+1] and from Y[j]
// to Y[j+1], and is darker the more it holds.
type Grid struct {
	Of    string // what is counted, as the legend has it
	X, Y  []float64
	Cells []Cell // those that are not empty
}

// A Cell is one place of a Grid.
type Cell struct {
	X, Y int // from 0
	N    int64
}

// most returns the largest count.
func (g *Grid) most() int64 {
	var n int64
	for _, c := range g.Cells {
		n = max(n, c.N)
	}
	return n
}

// shade returns how dark a count is, above 0 and up to 1, by its logarithm.
func (g *Grid) shade(n int64) float64 {
	most := g.most()
	if most <= 1 {
		return 1
	}
	return 0.18 + 0.82*math.Log(float64(n))/math.Log(float64(most))
}

var chartID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check returns an error that names what cannot be drawn.
func (c *Chart) Check() error {
	err := c.check()
	if err != nil {
		return fmt.Errorf("chart %q: %w", c.ID, err)
	}
	return nil
}

func (c *Chart) check() error {
	switch {
	case !chartID.MatchString(c.ID):
		return errors.New("its id is not of lower case letters, digits and hyphens")
	case c.Title == "" || c.X.Title == "" || c.Y.Title == "":
		return errors.New("it or an axis has no title")
	case len(c.Series) == 0 && c.Grid == nil && c.Lanes == nil:
		return errors.New("it shows nothing")
	}
	for _, s := range c.Series {
		if err := s.check(c); err != nil {
			return fmt.Errorf("series %q: %w", s.Name, err)
		}
	}
	for _, l := range c.Lines {
		axis := c.Y
		if l.Vertical {
			axis = c.X
		}
		if err := axis.check(l.At); err != nil {
			return fmt.Errorf("line %q: %w", l.Label, err)
		}
	}
	if c.Lanes != nil {
		if err := c.Lanes.check(); err != nil {
			return err
		}
	}
	if c.Grid != nil {
		return c.Grid.check(c)
	}
	return nil
}

func (s *Series) check(c *Chart) error {
	switch {
	case s.Name == "":
		return errors.New("it has no name")
	case len(s.X) == 0 || len(s.X) != len(s.Y):
		return fmt.Errorf("%d values of x and %d of y", len(s.X), len(s.Y))
	case (s.Kind == Band) != (len(s.Low) > 0) || s.Kind == Band && len(s.Low) != len(s.X):
		return fmt.Errorf("%s of %d points has %d lower ones", s.Kind, len(s.X), len(s.Low))
	}
	switch s.Kind {
	case Lines, Step, Points, Band:
	case Bars:
		if c.Y.Log {
			return errors.New("bars begin at 0, which a logarithmic axis has not")
		}
	default:
		return fmt.Errorf("no kind of series is called %q", s.Kind)
	}
	for i := range s.X {
		if i > 0 && s.X[i] < s.X[i-1] {
			return fmt.Errorf("x falls from %v to %v", s.X[i-1], s.X[i])
		}
		err := errors.Join(c.X.check(s.X[i]), c.Y.check(s.Y[i]))
		if s.Kind == Band {
			err = errors.Join(err, c.Y.check(s.Low[i]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a Axis) check(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%v is not a number of %s", v, a.Title)
	case a.Log && v <= 0:
		return fmt.Errorf("%v has no place on a logarithmic axis", v)
	}
	return nil
}

func (g *Grid) check(c *Chart) error {
	if len(g.X) < 2 || len(g.Y) < 2 || len(g.Cells) == 0 {
		return errors.New("the grid has no cells")
	}
	for i, v := range g.X {
		if err := c.X.check(v); err != nil || i > 0 && v <= g.X[i-1] {
			return fmt.Errorf("grid: edge %v of x", v)
		}
	}
	for i, v := range g.Y {
		if err := c.Y.check(v); err != nil || i > 0 && v <= g.Y[i-1] {
			return fmt.Errorf("grid: edge %v of y", v)
		}
	}
	for _, cell := range g.Cells {
		if cell.X < 0 || cell.Y < 0 || cell.X >= len(g.X)-1 || cell.Y >= len(g.Y)-1 || cell.N <= 0 {
			return fmt.Errorf("grid: cell %+v", cell)
		}
	}
	return nil
}
