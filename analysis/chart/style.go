package chart

import "image/color"

// A style tells one series from another in colour, and in black and white by its
// dashes and the shape of its marks.
type style struct {
	Light color.RGBA // on white
	Dark  string     // on black, as CSS
	Dash  []float64  // px on and off; nil for a line without gaps
	Shape string     // of marks
}

// styles go by the place of a series in its chart, and begin again after the
// last.
var styles = []style{
	{rgb(0x0b5fa5), "#6cb6ff", nil, "circle"},
	{rgb(0xc2410c), "#ff9e64", []float64{9, 4}, "square"},
	{rgb(0x15803d), "#7ee2a0", []float64{2, 3}, "triangle"},
	{rgb(0x7e22ce), "#d2a8ff", []float64{10, 3, 2, 3}, "cross"},
	{rgb(0x52525b), "#c9d1d9", []float64{16, 4}, "ring"},
	{rgb(0xa16207), "#f2cc60", []float64{5, 2, 1, 2, 1, 2}, "plus"},
}

var (
	ink   = rgb(0x1c1c1c)
	faint = rgb(0x5a5a5a)
	rule  = rgb(0xe2e2e2)
	dusk  = rgb(0x08306b) // the darkest cell of a grid
)

// referenceDash tells one reference line from another.
func referenceDash(i int) []float64 {
	return [][]float64{{5, 3}, {1, 3}, {12, 3, 1, 3}}[i%3]
}

func rgb(v uint32) color.RGBA {
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}
}

// mixed returns how c looks on white if it covers a share of it.
func mixed(c color.RGBA, share float64) color.RGBA {
	on := func(v uint8) uint8 { return uint8(255 - share*(255-float64(v)) + 0.5) }
	return color.RGBA{on(c.R), on(c.G), on(c.B), 255}
}

// styleIndex is the style of a series. The first is too near to the shades of a
// grid.
func (c *Chart) styleIndex(i int) int {
	if c.Grid != nil {
		i++
	}
	return i % len(styles)
}

func (c *Chart) style(i int) style { return styles[c.styleIndex(i)] }

// bandShare is how much of what lies below it a band covers.
const bandShare = 0.22

// gridLegend are the counts that the legend of a grid shows: powers of ten and
// the largest.
func gridLegend(g *Grid) []int64 {
	most := g.most()
	counts := []int64{1}
	for n := int64(10); 2*n <= most; n *= 10 {
		counts = append(counts, n)
	}
	if most > 1 {
		counts = append(counts, most)
	}
	return counts
}
