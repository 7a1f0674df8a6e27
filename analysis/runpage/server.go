package runpage

import (
	"fmt"
	"strings"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/analysis/telemetry"
)

// mostPoints is how many points a server's curve has at most; more are taken together
// as their mean.
const mostPoints = 600

// server shows what servers said of themselves, beside what the client saw; nil
// if they were not asked.
func (w *writer) server() (chart.Section, bool) {
	t := w.s.Telemetry
	if t == nil {
		return chart.Section{}, false
	}
	s := chart.Section{Heading: "What the servers said", Text: []string{"From their metrics pages (replay --scrape), on the clock of the run. A sample stands at the time at which its scrape began, and may be younger by as long as that took."}}
	s.Tables = append(s.Tables, w.words("servers"))
	for _, part := range w.parts["servers"] {
		if part.Rows != nil {
			s.Tables = append(s.Tables, chart.Table{Title: "Series", Header: part.Header, Rows: part.Rows})
		}
	}
	if len(t.Series) == 0 {
		s.Notes = append(s.Notes, "No curves, since the pages have no series that is known here.")
	}
	for _, name := range telemetry.Names() {
		if list := t.Of(name); len(list) > 0 {
			s.Charts = append(s.Charts, w.serverChart(name, list))
		}
	}
	return s, true
}

// serverChart draws one series of all sources, with the client's own curve of the
// same thing where there is one.
func (w *writer) serverChart(name string, list []telemetry.Series) chart.Chart {
	c := w.c
	first := &list[0]
	n := int64(0)
	u := chart.Chart{
		ID: "server-" + strings.ReplaceAll(name, "_", "-"), Title: first.Title, X: chart.Axis{Title: "since the run began", Unit: "s"}, Y: chart.Axis{Title: first.Title, Unit: first.Unit, Zero: true},
		Numbers: &chart.Table{Title: first.Title + ", " + first.Unit, Header: []string{"page", "as", "n", "mean", "min", "max", "last"}},
	}
	for i := range list {
		v := &list[i]
		n += v.N
		if i < mostCurves {
			u.Series = append(u.Series, pointsOf(fmt.Sprintf("page %d, %s", w.s.Telemetry.Page(v.Source), v.Exporter), v.Points))
		}
		u.Numbers.Rows = append(u.Numbers.Rows, []string{shown(v.Source), shown(v.Metric), analysis.Grouped(v.N), analysis.NumberText(v.Mean), analysis.NumberText(v.Min), analysis.NumberText(v.Max), analysis.NumberText(v.Last)})
	}
	if len(list) > mostCurves {
		u.Note = fmt.Sprintf("%d of %d pages are drawn; the table has the others.", mostCurves, len(list))
	}
	u.Subtitle = "n " + analysis.Grouped(n) + " samples"
	var own *curve
	ownName := ""
	switch name {
	case "running", "waiting":
		own, ownName = c.waiting, "client: waiting for the first token"
		if name == "running" {
			own, ownName = c.streaming, "client: decoding"
		}
	case "output_rate":
		own, ownName = c.out, "client: output tokens/s"
	}
	if own != nil && c.sent > 0 && own.any {
		line := chart.Series{Name: ownName, Kind: chart.Step}
		for i, y := range own.perSecond(c.end) {
			line.X, line.Y = append(line.X, c.clock.seconds(i)), append(line.Y, y)
		}
		u.Series = append(u.Series, line)
		u.Note = join(u.Note, fmt.Sprintf("The client's curve has bins of %s s.", analysis.NumberText(c.clock.seconds(1))))
	}
	return u
}

// pointsOf is the curve of a series.
func pointsOf(name string, points []telemetry.Point) chart.Series {
	line := chart.Series{Name: name, Kind: chart.Lines, Marks: len(points) == 1}
	each := (len(points) + mostPoints - 1) / mostPoints
	for i := 0; i < len(points); i += each {
		some := points[i:min(i+each, len(points))]
		x, y := 0.0, 0.0
		for _, p := range some {
			x, y = x+p.At.Seconds(), y+p.Value
		}
		line.X, line.Y = append(line.X, x/float64(len(some))), append(line.Y, y/float64(len(some)))
	}
	return line
}
