package chart

import (
	"bytes"
	"flag"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// kinds has a series of every kind, both scales, references and a note.
func kinds() Chart {
	return Chart{
		ID: "kinds", Title: "All kinds of series", Subtitle: "n 5 <made up> & few",
		X: Axis{Title: "window", Unit: "s", Log: true}, Y: Axis{Title: "count", Unit: "requests"},
		Series: []Series{
			{Name: "a band", Kind: Band, X: []float64{1, 10, 100}, Y: []float64{4, 5, 9}, Low: []float64{1, 2, 2}},
			{Name: "some bars", Kind: Bars, X: []float64{20, 30, 40}, Y: []float64{3, 2, 1}},
			{Name: "a line", Kind: Lines, Marks: true, X: []float64{1, 10, 100}, Y: []float64{2, 3, 8}},
			{Name: "a step", Kind: Step, X: []float64{1, 10, 100}, Y: []float64{6, 7, 7}},
			{Name: "points", Kind: Points, X: []float64{2, 2, 50}, Y: []float64{1, 2, 5}},
			{Name: "one point of a line", Kind: Lines, X: []float64{5}, Y: []float64{5}},
		},
		Lines: []Line{{Label: "Poisson, 1", At: 1}, {Label: "tick, 3 s", At: 3, Vertical: true}},
		Note:  "A note that is long enough to need two lines below the picture, since it goes on and on about how to read what is shown above it, and what is not.",
	}
}

func grid() Chart {
	return Chart{
		ID: "grid", Title: "A plane of counts", Subtitle: "n 112",
		X: Axis{Title: "input length", Unit: "tokens", Log: true}, Y: Axis{Title: "output length", Unit: "tokens", Log: true},
		Grid: &Grid{Of: "requests", X: []float64{0.5, 1.5, 10.5, 99.5}, Y: []float64{0.5, 4.5, 20.5}, Cells: []Cell{{0, 0, 1}, {1, 1, 100}, {2, 0, 11}}},
	}
}

func lanes() Chart {
	return Chart{
		ID: "lanes", Title: "Bars in lanes", Subtitle: "n 3 requests", Wide: true,
		X: Axis{Title: "since the run began", Unit: "s"}, Y: Axis{Title: "lane", Zero: true},
		Lanes: &Lanes{Of: "requests", Phases: []string{"held", "waiting", "decoding"}, Marks: []string{"failed", "cut"}, Spans: []Span{
			{Name: "request 1", Lane: 0, At: []float64{0, 0.5, 1, 4}}, {Name: "request 2", Lane: 1, At: []float64{1, 1, 3, 3}, Mark: 1}, {Name: "request <3>", Lane: 0, At: []float64{4.123456789, 4.5, 5, 6}, Mark: 2},
		}},
	}
}

func quantiles() Chart {
	return Chart{
		ID: "quantiles", Title: "Percentiles of names", Subtitle: "n 1,000 requests",
		X: Axis{Title: "percentile", Log: true, Percentile: true}, Y: Axis{Title: "place", Names: []string{"first", "second", "third"}, From: -0.5, To: 2.5},
		Series: []Series{{Name: "measured", Kind: Step, X: []float64{1, 2, 10, 100, 1000}, Y: []float64{0, 0, 1, 1, 2}}, {Name: "below the line", Kind: Band, X: []float64{1, 100}, Y: []float64{1, 2}, Low: []float64{0, 1}}},
	}
}

// TestSVG compares charts with what was looked at.
func TestSVG(t *testing.T) {
	for _, c := range []Chart{kinds(), grid(), lanes(), quantiles()} {
		var got, again bytes.Buffer
		if err := c.WriteSVG(&got); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteSVG(&again); err != nil || !bytes.Equal(got.Bytes(), again.Bytes()) {
			t.Errorf("%s: not the same again (%v)", c.ID, err)
		}
		path := filepath.Join("testdata", c.ID+".svg")
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs from %s; look at the new one (-update) before you keep it", c.ID, path)
		}
		names := []string{c.Title, c.X.label(), c.Y.label(), "Liberation Sans,Arial"}
		for _, s := range c.Series {
			names = append(names, s.Name)
		}
		for _, l := range c.Lines {
			names = append(names, l.Label)
		}
		if c.Lanes != nil {
			names = append(append(names, c.Lanes.Phases...), c.Lanes.Marks...)
		}
		if c.X.Percentile {
			names = append(names, "p50", "p99.9", "second")
		}
		for _, name := range names {
			if !strings.Contains(got.String(), name) {
				t.Errorf("%s: no %q in it", c.ID, name)
			}
		}
	}
}

func TestPNG(t *testing.T) {
	c := grid()
	var out, again bytes.Buffer
	if err := c.WritePNG(&out); err != nil {
		t.Fatal(err)
	}
	if err := c.WritePNG(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("not the same again (%v)", err)
	}
	m, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Bounds(); b.Dx() != 1080 || b.Dy() != 675 {
		t.Errorf("size %v", b)
	}
	dark := 0
	for y := range 675 {
		for x := range 1080 {
			if r, g, b, _ := m.At(x, y).RGBA(); r>>8 == 0x08 && g>>8 == 0x30 && b>>8 == 0x6b {
				dark++
			}
		}
	}
	if dark < 5000 {
		t.Errorf("%d dots of the fullest cell", dark)
	}
}

// TestCheck: what cannot be drawn is an error that says so, in both drawings.
func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Chart){
		"its id is not":        func(c *Chart) { c.ID = "Rate/1" },
		"no title":             func(c *Chart) { c.Y.Title = "" },
		"shows nothing":        func(c *Chart) { c.Series = nil },
		"3 values of x and 2":  func(c *Chart) { c.Series[2].Y = c.Series[2].Y[:2] },
		"x falls from 10 to 1": func(c *Chart) { c.Series[2].X = []float64{10, 1, 2} },
		"NaN is not a number":  func(c *Chart) { c.Series[2].Y[1] = math.NaN() },
		"+Inf is not a number": func(c *Chart) { c.Series[0].Low[1] = math.Inf(1) },
		"0 has no place":       func(c *Chart) { c.Series[2].X[0] = 0 },
		"band of 3 points has": func(c *Chart) { c.Series[0].Low = nil },
		"bars begin at 0":      func(c *Chart) { c.Y.Log = true; c.Series = c.Series[1:2] },
		"called \"pie\"":       func(c *Chart) { c.Series[0].Low, c.Series[0].Kind = nil, "pie" },
		"it has no name":       func(c *Chart) { c.Series[0].Name = "" },
		"line \"Poisson, 1\"":  func(c *Chart) { c.Lines[0].At = math.NaN() },
		"the grid has no cell": func(c *Chart) { c.Grid = &Grid{Of: "x", X: []float64{1, 2}, Y: []float64{1, 2}} },
		"grid: cell": func(c *Chart) {
			c.Grid = &Grid{Of: "x", X: []float64{1, 2}, Y: []float64{1, 2}, Cells: []Cell{{1, 0, 1}}}
		},
		"grid: edge 1 of y": func(c *Chart) {
			c.Grid = &Grid{Of: "x", X: []float64{1, 2}, Y: []float64{2, 1}, Cells: []Cell{{0, 0, 1}}}
		},
	} {
		c := kinds()
		change(&c)
		p := Page{Title: "t", Sections: []Section{{Heading: "h", Charts: []Chart{c}}}}
		var out bytes.Buffer
		for _, err := range []error{c.Check(), c.WriteSVG(&out), c.WritePNG(&out), p.Write(&out)} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "chart ") {
				t.Errorf("want %q, got %v", want, err)
			}
		}
		if out.Len() > 0 {
			t.Errorf("%q: %d bytes written", want, out.Len())
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis     Axis
		from, to float64
		n        int
		want     string
	}{
		{Axis{}, 0, 10, 6, "0 2 4 6 8 10"},
		{Axis{}, -1, 1, 5, "-1 -0.5 0 0.5 1"},
		{Axis{}, 0, 2.5e6, 6, "0 500k 1M 1.5M 2M 2.5M"},
		{Axis{}, 1000000.1, 1000000.5, 5, "1.0000001M 1.0000002M 1.0000003M 1.0000004M 1.0000005M"},
		{Axis{Log: true}, 2.99, 3.01, 5, "2.99 2.995 3 3.005 3.01"},
		{Axis{Log: true}, 1e-5, 2, 9, "1e-5 0.0001 0.001 0.01 0.1 1"},
		{Axis{Log: true}, 0.9, 120, 9, "1 2 5 10 20 50 100"},
		{Axis{Log: true}, 1, 10, 9, "1 2 3 5 7 10"},
		{Axis{Log: true}, 17, 425, 4, "20 50 100 200"},
		{Axis{Log: true}, 17, 425, 3, "30 100 300"},
		{Axis{Log: true}, 17, 425, 2, "200 400"},
		{Axis{Log: true}, 1e-9, 1e9, 9, "1e-8 1e-6 0.0001 0.01 1 100 10k 1M 100M"},
	} {
		var labels []string
		for _, k := range c.axis.ticks(c.from, c.to, c.n) {
			if k.at < c.from-1e-9*(c.to-c.from) || k.at > c.to+1e-9*(c.to-c.from) {
				t.Errorf("%v to %v: a tick at %v", c.from, c.to, k.at)
			}
			if k.label != "" {
				labels = append(labels, k.label)
			}
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

// TestThinned: a line of very many points is drawn from few that stray nowhere
// by more than a dot.
func TestThinned(t *testing.T) {
	s := Series{Name: "wave", Kind: Lines}
	for i := range 100000 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, math.Sin(float64(i)/1e4))
	}
	c := Chart{Series: []Series{s}}
	x, y := c.bounds()
	got := c.thinned(&s, x, y)
	if len(got.X) > 3000 || got.X[0] != 0 || got.X[len(got.X)-1] != 99999 {
		t.Errorf("%d points from %v to %v", len(got.X), got.X[0], got.X[len(got.X)-1])
	}
	j := 0
	for i, k := range s.X {
		for j < len(got.X)-1 && got.X[j+1] <= k {
			j++
		}
		if math.Abs(got.Y[j]-s.Y[i]) > 2*thinShare*(y[1]-y[0]) {
			t.Fatalf("at %v the picture is at %v, not %v", k, got.Y[j], s.Y[i])
		}
	}
}
