package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"reprise/analysis"
)

// A layer draws the data of a chart between the axes of a plot.
type layer struct{ *Chart }

// Plot implements plot.Plotter.
func (l layer) Plot(dc draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&dc)
	at := func(vx, vy float64) vg.Point { return vg.Point{X: x(l.X.place(vx)), Y: y(l.Y.place(vy))} }
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if t.Label != "" {
			dc.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.5}, x(t.Value), dc.Min.Y, x(t.Value), dc.Max.Y)
		}
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Label != "" {
			dc.StrokeLine2(draw.LineStyle{Color: rule, Width: 0.5}, dc.Min.X, y(t.Value), dc.Max.X, y(t.Value))
		}
	}
	if g := l.Grid; g != nil {
		for _, c := range g.Cells {
			a, b := at(g.X[c.X], g.Y[c.Y]), at(g.X[c.X+1], g.Y[c.Y+1])
			dc.FillPolygon(mixed(dusk, g.shade(c.N)), dc.ClipPolygonXY([]vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}}))
		}
	}
	if l.Lanes != nil {
		l.Lanes.plot(dc, at)
	}
	for _, bands := range []bool{true, false} {
		for i := range l.Series {
			if (l.Series[i].Kind == Band) == bands {
				l.Series[i].plot(dc, l.style(i), at)
			}
		}
	}
	l.lines(dc, at)
}

func (s *Series) plot(dc draw.Canvas, st style, at func(x, y float64) vg.Point) {
	points := make([]vg.Point, len(s.X))
	for i := range s.X {
		points[i] = at(s.X[i], s.Y[i])
	}
	if len(points) == 1 && (s.Kind == Lines || s.Kind == Step) {
		st.mark(dc, points[0])
		return
	}
	switch s.Kind {
	case Lines:
		dc.StrokeLines(st.line(), dc.ClipLinesXY(points)...)
	case Step:
		dc.StrokeLines(st.line(), dc.ClipLinesXY(stairs(points))...)
	case Band:
		for i := len(s.X) - 1; i >= 0; i-- {
			points = append(points, at(s.X[i], s.Low[i]))
		}
		dc.FillPolygon(mixed(st.Light, bandShare), dc.ClipPolygonXY(points))
	case Bars:
		half := s.barWidth() * 0.45
		for i := range s.X {
			a, b := at(s.X[i]-half, 0), at(s.X[i]+half, s.Y[i])
			dc.FillPolygon(st.Light, dc.ClipPolygonXY([]vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}}))
		}
	}
	if s.Kind == Points || s.Marks {
		for _, p := range points {
			if dc.Contains(p) {
				st.mark(dc, p)
			}
		}
	}
}

// stairs adds the corners between points of which each holds until the next.
func stairs(points []vg.Point) []vg.Point {
	out := make([]vg.Point, 0, 2*len(points))
	for i, p := range points {
		if i > 0 {
			out = append(out, vg.Point{X: p.X, Y: points[i-1].Y})
		}
		out = append(out, p)
	}
	return out
}

func (st style) line() draw.LineStyle {
	return draw.LineStyle{Color: st.Light, Width: 1.3, Dashes: dashes(st.Dash)}
}

func dashes(px []float64) []vg.Length {
	var out []vg.Length
	for _, d := range px {
		out = append(out, vg.Length(d)*0.75)
	}
	return out
}

// mark draws the shape of a style. Those of gonum/plot that are not filled have
// lines too thin to see.
func (st style) mark(dc draw.Canvas, at vg.Point) {
	const r = 2.4
	stroke := func(points ...vg.Point) {
		dc.StrokeLines(draw.LineStyle{Color: st.Light, Width: 1.1}, points)
	}
	to := func(x, y vg.Length) vg.Point { return vg.Point{X: at.X + x*r, Y: at.Y + y*r} }
	switch st.Shape {
	case "circle":
		dc.DrawGlyphNoClip(draw.GlyphStyle{Color: st.Light, Radius: r, Shape: draw.CircleGlyph{}}, at)
	case "square":
		dc.FillPolygon(st.Light, []vg.Point{to(-1, -1), to(1, -1), to(1, 1), to(-1, 1)})
	case "triangle":
		dc.FillPolygon(st.Light, []vg.Point{to(-1.1, -1), to(1.1, -1), to(0, 1.2)})
	case "cross":
		stroke(to(-1, -1), to(1, 1))
		stroke(to(-1, 1), to(1, -1))
	case "plus":
		stroke(to(-1.2, 0), to(1.2, 0))
		stroke(to(0, -1.2), to(0, 1.2))
	case "ring":
		var ring []vg.Point
		for i := range 25 {
			sin, cos := math.Sincos(float64(i) * math.Pi / 12)
			ring = append(ring, to(vg.Length(cos), vg.Length(sin)))
		}
		stroke(ring...)
	}
}

// lines draws the references; the legend has their labels, where they hide
// nothing.
func (l layer) lines(dc draw.Canvas, at func(x, y float64) vg.Point) {
	x, y := l.bounds()
	for i, r := range l.Lines {
		p := at(x[0], y[0])
		if r.Vertical {
			p = at(r.At, y[0])
			dc.StrokeLine2(lineStyle(i), p.X, dc.Min.Y, p.X, dc.Max.Y)
		} else {
			p = at(x[0], r.At)
			dc.StrokeLine2(lineStyle(i), dc.Min.X, p.Y, dc.Max.X, p.Y)
		}
	}
}

func lineStyle(i int) draw.LineStyle {
	return draw.LineStyle{Color: ink, Width: 0.9, Dashes: dashes(referenceDash(i))}
}

// legend writes the names beside what they look like, in as many lines as they
// need, and returns what is left below.
func (c *Chart) legend(dc draw.Canvas) draw.Canvas {
	s := words(9, false)
	const swatch, gap = 26, 14
	x := dc.Min.X
	next := func(name string, paint func(left, middle vg.Length)) {
		if w := swatch + 4 + s.Width(name); x > dc.Min.X && x+w > dc.Max.X {
			dc = draw.Crop(dc, 0, 0, 0, -lineHeight(s)-1)
			x = dc.Min.X
		}
		paint(x, dc.Max.Y-lineHeight(s)/2)
		dc.FillText(s, vg.Point{X: x + swatch + 4, Y: dc.Max.Y}, name)
		x += swatch + 4 + s.Width(name) + gap
	}
	if c.Grid != nil {
		for i, n := range gridLegend(c.Grid) {
			name := analysis.Grouped(n)
			if i == 0 {
				name = c.Grid.Of + ": " + name
			}
			next(name, func(left, middle vg.Length) { swatchBox(dc, mixed(dusk, c.Grid.shade(n)), left, middle) })
		}
	}
	if c.Lanes != nil {
		for i, name := range c.Lanes.Phases {
			next(name, func(left, middle vg.Length) { swatchBox(dc, mixed(styles[i].Light, laneShares[i]), left, middle) })
		}
		for i, name := range c.Lanes.Marks {
			next(name, func(left, middle vg.Length) { laneMark(i).mark(dc, vg.Point{X: left + swatch/2, Y: middle}) })
		}
	}
	for i, series := range c.Series {
		st := c.style(i)
		next(series.Name, func(left, middle vg.Length) {
			switch series.Kind {
			case Band:
				swatchBox(dc, mixed(st.Light, bandShare), left, middle)
			case Bars:
				swatchBox(dc, st.Light, left, middle)
			case Points:
				st.mark(dc, vg.Point{X: left + swatch/2, Y: middle})
			default:
				dc.StrokeLine2(st.line(), left, middle, left+swatch, middle)
				if series.Marks {
					st.mark(dc, vg.Point{X: left + swatch/2, Y: middle})
				}
			}
		})
	}
	for i, l := range c.Lines {
		next(l.Label, func(left, middle vg.Length) { dc.StrokeLine2(lineStyle(i), left, middle, left+swatch, middle) })
	}
	return draw.Crop(dc, 0, 0, 0, -lineHeight(s)-2)
}

func swatchBox(dc draw.Canvas, fill color.Color, left, middle vg.Length) {
	box := vg.Rectangle{Min: vg.Point{X: left + 4, Y: middle - 4}, Max: vg.Point{X: left + 24, Y: middle + 4}}
	dc.SetColor(fill)
	dc.Fill(box.Path())
	dc.StrokeLines(draw.LineStyle{Color: faint, Width: 0.4}, []vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max, {X: box.Min.X, Y: box.Max.Y}, box.Min})
}
