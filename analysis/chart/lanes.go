package chart

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lanes are things that last, side by side: each is a bar in a lane, from left to
// right through its phases. X is time, Y the lane.
type Lanes struct {
	Of     string   // what a bar is, as the legend has it
	Phases []string // names in order, at most as many as laneShares
	Marks  []string // what a bar may end with beside nothing
	Spans  []Span
}

// A Span is one bar of Lanes.
type Span struct {
	Name string    // for who asks what it is
	Lane int       // from 0
	At   []float64 // where the first phase begins, and where each phase ends; never falls
	Mark int       // 1-based, of Lanes.Marks; 0 for none
}

// laneShares are the height of a phase as a share of its lane, which tells phases
// apart without colour, and how dark they are.
var laneShares = []float64{0.3, 0.55, 1}

// laneMark is the style of a mark.
func laneMark(i int) style {
	return style{Light: ink, Shape: []string{"cross", "ring", "triangle", "plus"}[i%4]}
}

func (l *Lanes) check() error {
	if len(l.Spans) == 0 || len(l.Phases) == 0 || len(l.Phases) > len(laneShares) {
		return fmt.Errorf("%d bars of %d phases in lanes", len(l.Spans), len(l.Phases))
	}
	for _, s := range l.Spans {
		if len(s.At) != len(l.Phases)+1 || s.Lane < 0 || s.Mark < 0 || s.Mark > len(l.Marks) {
			return fmt.Errorf("bar %+v", s)
		}
		for i, v := range s.At {
			if math.IsNaN(v) || math.IsInf(v, 0) || i > 0 && v < s.At[i-1] {
				return errors.New("times of a bar fall, or are no numbers")
			}
		}
	}
	return nil
}

// bounds returns the first and the last time and the number of lanes.
func (l *Lanes) bounds() (from, to float64, lanes int) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, s := range l.Spans {
		from, to, lanes = min(from, s.At[0]), max(to, s.At[len(s.At)-1]), max(lanes, s.Lane+1)
	}
	return from, to, lanes
}

// plot draws the bars on paper.
func (l *Lanes) plot(dc draw.Canvas, at func(x, y float64) vg.Point) {
	for _, s := range l.Spans {
		for i := range l.Phases {
			half := 0.45 * laneShares[i]
			middle := float64(s.Lane) + 0.5
			a, b := at(s.At[i], middle-half), at(s.At[i+1], middle+half)
			dc.FillPolygon(mixed(styles[i].Light, laneShares[i]), dc.ClipPolygonXY([]vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}}))
		}
		if s.Mark > 0 {
			laneMark(s.Mark-1).mark(dc, at(s.At[len(s.At)-1], float64(s.Lane)+0.5))
		}
	}
}

// A drawingLanes is what page.js reads: of each bar its lane and mark, when it
// begins, and how long each phase lasts.
type drawingLanes struct {
	Of     string     `json:"of"`
	Phases []string   `json:"phases"`
	Shares numbers    `json:"shares"`
	Marks  []string   `json:"marks,omitempty"`
	Shapes []string   `json:"shapes,omitempty"`
	Names  []string   `json:"names"`
	Spans  []spanData `json:"spans"`
}

type spanData struct{ *Span }

// MarshalJSON writes [lane, mark, begin, phase, phase, ...], the begin to 9 digits
// and the phases to 4.
func (s spanData) MarshalJSON() ([]byte, error) {
	out := fmt.Appendf(nil, "[%d,%d,", s.Lane, s.Mark)
	out = strconv.AppendFloat(out, s.At[0], 'g', 9, 64)
	for i := 1; i < len(s.At); i++ {
		out = strconv.AppendFloat(append(out, ','), s.At[i]-s.At[i-1], 'g', 4, 64)
	}
	return append(out, ']'), nil
}

func (l *Lanes) drawing() *drawingLanes {
	d := &drawingLanes{Of: l.Of, Phases: l.Phases, Shares: laneShares[:len(l.Phases)], Marks: l.Marks}
	for i := range l.Marks {
		d.Shapes = append(d.Shapes, laneMark(i).Shape)
	}
	for i := range l.Spans {
		d.Names, d.Spans = append(d.Names, l.Spans[i].Name), append(d.Spans, spanData{&l.Spans[i]})
	}
	return d
}
