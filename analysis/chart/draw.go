package chart

import (
	"bytes"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a picture, and of a PNG's dots.
const (
	width  = 7.2 * vg.Inch
	height = 4.5 * vg.Inch
	dpi    = 150
)

// WritePNG writes the chart as a PNG of 1080 by 675 dots.
func (c *Chart) WritePNG(w io.Writer) error {
	if err := c.Check(); err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	c.draw(draw.New(canvas))
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// WriteSVG writes the chart as SVG. Its text is text, in whatever sans-serif
// font there is.
func (c *Chart) WriteSVG(w io.Writer) error {
	if err := c.Check(); err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	c.draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

// words is a text style of the sans-serif font that gonum/plot carries.
func words(size vg.Length, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = 3 // bold, of golang.org/x/image/font
	}
	return text.Style{Color: ink, Font: f, Handler: plot.DefaultTextHandler, YAlign: draw.YTop}
}

// draw puts title and legend above the plot and the note below it, so that
// nothing lies on the data.
func (c *Chart) draw(dc draw.Canvas) {
	dc.SetColor(rgb(0xffffff))
	dc.Fill(dc.Rectangle.Path())
	dc = draw.Crop(dc, 10, -14, 8, -8)
	small := words(8.5, false)
	small.Color = faint
	dc = paragraph(dc, words(12.5, true), c.Title)
	dc = paragraph(dc, small, c.Subtitle)
	dc = c.legend(draw.Crop(dc, 0, 0, 0, -4))
	if c.Note != "" {
		lines := wrapped(small, c.Note, dc.Size().X)
		below := lineHeight(small) * vg.Length(len(lines))
		foot := dc
		foot.Max.Y = foot.Min.Y + below
		paragraph(foot, small, c.Note)
		dc = draw.Crop(dc, 0, 0, below+6, 0)
	}
	c.plot().Draw(draw.Crop(dc, 0, 0, 0, -4))
}

func lineHeight(s text.Style) vg.Length { return s.Font.Size * 1.25 }

// paragraph writes words at the top and returns what is left below.
func paragraph(dc draw.Canvas, s text.Style, words string) draw.Canvas {
	for _, line := range wrapped(s, words, dc.Size().X) {
		dc.FillText(s, vg.Point{X: dc.Min.X, Y: dc.Max.Y}, line)
		dc = draw.Crop(dc, 0, 0, 0, -lineHeight(s))
	}
	return dc
}

// wrapped breaks words into lines that leave some of a width free: an SVG may be
// shown in a font that is wider than the one that is measured here.
func wrapped(s text.Style, words string, width vg.Length) []string {
	width *= 0.87
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(words) {
		if line != "" && s.Width(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// place is where v lies on an axis of the plot, which is always a linear one:
// gonum/plot takes the arithmetic mean for the middle of a logarithmic one.
func (a Axis) place(v float64) float64 {
	if a.Log {
		return math.Log10(v)
	}
	return v
}

// plot returns axes and data.
func (c *Chart) plot() *plot.Plot {
	p := plot.New()
	x, y := c.bounds()
	for _, a := range []struct {
		to     *plot.Axis
		is     Axis
		bounds [2]float64
		n      int // labels
	}{{&p.X, c.X, x, 9}, {&p.Y, c.Y, y, 7}} {
		a.to.Min, a.to.Max = a.is.place(a.bounds[0]), a.is.place(a.bounds[1])
		a.to.Label.Text = a.is.label()
		a.to.Label.TextStyle.Font = words(9.5, false).Font
		a.to.Tick.Label.Font = words(9, false).Font
		a.to.Padding = 0
		a.to.LineStyle.Color, a.to.Tick.LineStyle.Color = faint, faint
		a.to.Tick.Length = 4
		var ticks plot.ConstantTicks
		for _, t := range a.is.ticks(a.bounds[0], a.bounds[1], a.n) {
			ticks = append(ticks, plot.Tick{Value: a.is.place(t.at), Label: t.label})
		}
		a.to.Tick.Marker = ticks
	}
	p.X.Label.Padding, p.Y.Label.Padding = 3, 3
	p.Add(layer{c})
	return p
}
