package chart

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// A Page is a report as one HTML file: it needs no network, loads nothing, and
// says so to the browser (Content-Security-Policy). It can be read on a narrow
// screen, by keyboard, in the dark, on paper and without scripts, where tables
// stand for the charts.
type Page struct {
	Title    string
	Intro    []string // paragraphs
	Banner   *Banner  // what to know before all else; nil for nothing
	Sections []Section
	Records  []Record
}

// A Banner is a judgement, and why.
type Banner struct {
	Result string // one word, which the style knows: valid, degraded or invalid
	Text   []string
}

// A Record is data for programs that read the page: a script element of type
// application/json.
type Record struct {
	ID    string // of the element
	Value any    // as encoding/json writes it
}

// A Listing is text that is kept as it is, behind its title.
type Listing struct {
	Title string
	Text  string
	Open  bool // shown without being asked for
}

// A Section has a heading, and below it text, tables and charts, in this order.
type Section struct {
	Heading string
	Text    []string // paragraphs
	Tables  []Table
	Charts  []Chart
	Below   []Table // that belong to the charts above them
	Code    []Listing
	Notes   []string // a list below all else: doubts, and what cannot be said
}

// A Table has its first column to the left and all others to the right, or, if it
// is one of words, all to the left.
type Table struct {
	Title  string // "" for none
	Header []string
	Rows   [][]string
	Words  bool
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
	//go:embed uplot/uPlot.iife.min.js
	uplotJS string
	//go:embed uplot/uPlot.min.css
	uplotCSS string
	//go:embed uplot/LICENSE
	uplotLicense string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// Write writes the page. A chart that cannot be drawn, or one whose ID another
// has, is an error.
func (p *Page) Write(w io.Writer) error {
	style := uplotCSS + "\n" + pageCSS + styleCSS()
	v := pageView{Page: p, Policy: contentPolicy(script, style), Script: template.JS(script), Style: template.CSS(style)}
	for _, r := range p.Records {
		text, err := json.Marshal(r.Value) // escapes what could end a script element
		if err != nil {
			return fmt.Errorf("record %s: %w", r.ID, err)
		}
		v.Records = append(v.Records, recordView{r.ID, template.JS(text)})
	}
	var drawings []drawing
	seen := map[string]bool{}
	for i := range p.Sections {
		s := sectionView{Section: &p.Sections[i], ID: fmt.Sprintf("section-%d", i+1)}
		for k := range s.Section.Charts {
			c := &s.Section.Charts[k]
			if err := c.Check(); err != nil {
				return err
			}
			if seen[c.ID] {
				return fmt.Errorf("chart %q: the page has two of them", c.ID)
			}
			seen[c.ID] = true
			s.Charts = append(s.Charts, figure(c, len(drawings)))
			drawings = append(drawings, drawingOf(c))
		}
		v.Sections = append(v.Sections, s)
	}
	data, err := encode(drawings)
	if err != nil {
		return err
	}
	v.Data = template.JS(data)
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, v); err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}

// script is all that runs in a page. The first line of uPlot, which has its
// address, gives way to its licence.
var script = func() string {
	_, code, _ := strings.Cut(uplotJS, "\n")
	return "/* uPlot 1.6.32\n" + uplotLicense + "*/\n" + code + "\n" + pageJS
}()

// contentPolicy allows one script and one style, by their hashes, and nothing from
// elsewhere. What uPlot places, it places through the object model, which needs no
// leave.
func contentPolicy(script, style string) string {
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script)
}

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

type pageView struct {
	*Page
	Policy   string
	Style    template.CSS
	Script   template.JS
	Data     template.JS
	Sections []sectionView
	Records  []recordView
}

type recordView struct {
	ID   string
	Text template.JS
}

type sectionView struct {
	*Section
	ID     string
	Charts []figureView
}

// A figureView is a chart as the template has it.
type figureView struct {
	*Chart
	Index   int
	Legend  []legendView
	Alt     string
	Numbers Table
}

// A legendView is a name beside what it looks like: a line, a mark or a box.
type legendView struct {
	Name    string
	Class   string // of its colour
	Line    bool
	Dash    string
	Mark    string // path of a mark, around (14, 7)
	Fill    bool   // of the mark
	Opacity string // of a box
}

func figure(c *Chart, index int) figureView {
	v := figureView{Chart: c, Index: index, Alt: c.alt(), Numbers: c.numbers()}
	if g := c.Grid; g != nil {
		for i, n := range gridLegend(g) {
			name := grouped(n)
			if i == 0 {
				name = g.Of + ": " + name
			}
			v.Legend = append(v.Legend, legendView{Name: name, Class: "dusk", Opacity: fmt.Sprintf("%.3f", g.shade(n))})
		}
	}
	if c.Lanes != nil {
		for i, name := range c.Lanes.Phases {
			v.Legend = append(v.Legend, legendView{Name: name, Class: fmt.Sprintf("s%d", i), Opacity: fmt.Sprint(laneShares[i])})
		}
		for i, name := range c.Lanes.Marks {
			st := laneMark(i)
			v.Legend = append(v.Legend, legendView{Name: name, Class: "reference", Mark: shapePaths[st.Shape], Fill: filledShapes[st.Shape]})
		}
	}
	for i := range c.Series {
		s, st := &c.Series[i], c.style(i)
		l := legendView{Name: s.Name, Class: fmt.Sprintf("s%d", c.styleIndex(i))}
		switch s.Kind {
		case Band:
			l.Opacity = fmt.Sprint(bandShare)
		case Bars:
			l.Opacity = "1"
		case Points:
			l.Mark, l.Fill = shapePaths[st.Shape], filledShapes[st.Shape]
		default:
			l.Line, l.Dash = true, joined(st.Dash)
			if s.Marks {
				l.Mark, l.Fill = shapePaths[st.Shape], filledShapes[st.Shape]
			}
		}
		v.Legend = append(v.Legend, l)
	}
	for i, l := range c.Lines {
		v.Legend = append(v.Legend, legendView{Name: l.Label, Class: "reference", Line: true, Dash: joined(referenceDash(i))})
	}
	return v
}

// shapePaths are the marks as page.js draws them, around (14, 7).
var shapePaths = map[string]string{
	"circle":   "M11 7a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
	"ring":     "M11 7a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
	"square":   "M11.5 4.5h5v5h-5z",
	"triangle": "M14 3.5l3.5 6h-7z",
	"cross":    "M11.5 4.5l5 5m0-5l-5 5",
	"plus":     "M14 3.5v7m-3.5-3.5h7",
}

var filledShapes = map[string]bool{"circle": true, "square": true, "triangle": true}

func joined(dash []float64) string {
	var parts []string
	for _, d := range dash {
		parts = append(parts, fmt.Sprint(d))
	}
	return strings.Join(parts, " ")
}

// styleCSS are the colours of series, in the light and in the dark.
func styleCSS() string {
	var light, dark, classes strings.Builder
	for i, s := range styles {
		fmt.Fprintf(&light, "--s%d:#%02x%02x%02x;", i, s.Light.R, s.Light.G, s.Light.B)
		fmt.Fprintf(&dark, "--s%d:%s;", i, s.Dark)
		fmt.Fprintf(&classes, ".s%d{color:var(--s%d)}", i, i)
	}
	return fmt.Sprintf(":root{%s}\n@media screen and (prefers-color-scheme:dark){:root:not(.light){%s}}\n@media screen{:root.dark{%s}}\n%s\n", &light, &dark, &dark, &classes)
}
