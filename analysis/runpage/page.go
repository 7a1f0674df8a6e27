package runpage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/trace/results"
)

// Page makes the page of a run from its summary and what was collected in the same
// pass. Its sections answer, in this order: can this run be trusted? did it meet its
// objective? where does it hurt? what was sent, and how is it run again?
func (c *Collector) Page(s *analysis.Summary, run *results.Opened) *chart.Page {
	w := writer{c: c, s: s, run: &run.Run, parts: partsOf(s)}
	v := &s.Verdict
	p := &chart.Page{
		Title: "Replay of " + w.subject(), Banner: &chart.Banner{Result: v.Result, Text: append(sentences(v.Because()), sentences(v.Remarks)...)},
		Records: []chart.Record{{ID: "summary", Value: s}},
	}
	if len(v.NotMeasured) > 0 {
		p.Banner.Text = append(p.Banner.Text, "Not measured, and no verdict on it: "+strings.Join(v.NotMeasured, "; ")+".")
	}
	p.Sections = []chart.Section{w.trust(), w.objective()}
	if s.Requests.Recorded > s.Requests.WarmUp {
		p.Sections = append(p.Sections, w.latency(), w.load())
		if server, ok := w.server(); ok {
			p.Sections = append(p.Sections, server)
		}
		p.Sections = append(p.Sections, w.overTime(), w.byInput(), w.byGroup(), w.chunks(), w.errors(), w.timeline(), w.tokens(), w.cache(), w.recorded())
	}
	p.Sections = append(p.Sections, w.doubts(), w.definitions(), w.provenance(run))
	for i := range p.Sections {
		p.Sections[i].Tables = slices.DeleteFunc(p.Sections[i].Tables, func(t chart.Table) bool { return len(t.Rows) == 0 })
	}
	return p
}

// A writer has what sections are made of.
type writer struct {
	c     *Collector
	s     *analysis.Summary
	run   *results.Run
	parts map[string][]analysis.Part // of the text report, by heading
}

func partsOf(s *analysis.Summary) map[string][]analysis.Part {
	parts := map[string][]analysis.Part{}
	heading := ""
	for _, p := range analysis.RunParts(s) {
		if p.Heading != "" {
			heading = p.Heading
			continue
		}
		parts[heading] = append(parts[heading], p)
	}
	return parts
}

// words is the table of a section of the text report.
func (w *writer) words(heading string) chart.Table {
	t := chart.Table{Words: true}
	for _, p := range w.parts[heading] {
		if p.Rows == nil {
			t.Rows = append(t.Rows, []string{p.Name, p.Text})
		}
	}
	return t
}

func (w *writer) subject() string {
	if w.run.Trace != nil {
		return shown(w.run.Trace.Name)
	}
	return "a synthetic workload"
}

// sentences makes them of remarks; a name such as p99 stays as it is.
func sentences(list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		if len(text) > 1 && text[1] > '9' {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		out[i] = text + "."
	}
	return out
}

// add adds a chart, or why there is none.
func add(s *chart.Section, c chart.Chart, ok bool, absent string) {
	if ok {
		s.Charts = append(s.Charts, c)
	} else if absent != "" {
		s.Notes = append(s.Notes, absent)
	}
}

func (w *writer) trust() chart.Section {
	s := chart.Section{Heading: "Can this run be trusted?", Text: []string{"The verdict is on the client: whether it sent when it should have and read in time, so that what it measured is the server."}}
	s.Tables = append(s.Tables, w.words("run"), metricsTable("What the client itself took, ms", w.s.Metrics, "lateness", "hold", "connect"))
	l, ok := w.lateness()
	add(&s, l, ok, "Lateness over time: no chart, since nothing was dispatched.")
	m := w.s.Metrics.Get("lateness")
	p, ok := percentiles("lateness-percentiles", "Lateness by percentile", "lateness", "n "+analysis.Grouped(m.N)+" dispatched requests", w.distribution(m), m.N)
	add(&s, p, ok, "Lateness by percentile: no chart, since fewer than two requests were late at all.")
	return s
}

// lateness draws the slices that the summary has.
func (w *writer) lateness() (chart.Chart, bool) {
	late := w.s.Late
	if late == nil {
		return chart.Chart{}, false
	}
	c := chart.Chart{
		ID: "lateness", Title: "Lateness over time", Subtitle: fmt.Sprintf("n %s, slices of %s s", analysis.Counted(w.s.Metrics.Get("lateness").N, "request"), analysis.NumberText(late.WidthMS/1e3)),
		X: chart.Axis{Title: "eligible, since the run began", Unit: "s"}, Y: chart.Axis{Title: "lateness", Unit: "ms", Zero: true},
		Lines: []chart.Line{{Label: "limit for p99 of the run, " + analysis.TimeText(w.s.Verdict.Limit) + " ms", At: w.s.Verdict.Limit}},
		Note:  "Dispatched - eligible: the client's own delay.",
	}
	p50, p99, worst := chart.Series{Name: "p50", Kind: chart.Lines}, chart.Series{Name: "p99", Kind: chart.Lines, Marks: true}, chart.Series{Name: "largest", Kind: chart.Points}
	t := &chart.Table{Title: "Lateness, ms", Header: []string{"from, s", "n", "p50", "p99", "p99.9", "largest"}}
	for i := range late.List {
		l := &late.List[i]
		x := (l.FromMS + late.WidthMS/2) / 1e3
		for _, to := range []struct {
			*chart.Series
			y float64
		}{{&p50, l.P50}, {&p99, l.P99}, {&worst, l.Max}} {
			to.X, to.Y = append(to.X, x), append(to.Y, to.y)
		}
		t.Rows = append(t.Rows, []string{analysis.NumberText(l.FromMS / 1e3), analysis.Grouped(l.N), analysis.TimeText(l.P50), analysis.TimeText(l.P99), analysis.TimeText(l.P999), analysis.TimeText(l.Max)})
	}
	c.Series, c.Numbers = []chart.Series{p50, p99, worst}, t
	return c, true
}

// objective is what became of the goals of the run.
func (w *writer) objective() chart.Section {
	const heading = "Did it meet its objective?"
	r := w.s.SLO
	if r == nil {
		return chart.Section{Heading: heading, Text: []string{"No objective was given for this report (--slo), so there is none to meet."}}
	}
	s := w.part("slo")
	s.Heading = heading
	switch {
	case r.Failed > 0:
		s.Text = append(s.Text, fmt.Sprintf("No: %s of %s gates failed.", analysis.Grouped(r.Failed), analysis.Grouped(r.Gates)))
	case r.Gates > 0:
		s.Text = append(s.Text, fmt.Sprintf("Yes: %s of %s gates are met.", analysis.Grouped(r.Gates), analysis.Grouped(r.Gates)))
	default:
		s.Text = append(s.Text, "No gate was asked for: limits of single requests measure goodput.")
	}
	s.Text = append(s.Text, "Objective: "+r.Text)
	return s
}

// part is a section of the text report.
func (w *writer) part(heading string) chart.Section { return chart.Sections(w.parts[heading])[0] }

// metricsTable has all stats of metrics by name; of all of one unit without names.
func metricsTable(title string, list analysis.Metrics, names ...string) chart.Table {
	t := chart.Table{Title: title, Header: []string{"metric", "n"}}
	for _, stat := range analysis.Stats {
		t.Header = append(t.Header, strings.ReplaceAll(stat, "_", "."))
	}
	for _, name := range names {
		m := list.Get(name)
		if m == nil {
			continue
		}
		cells := []string{m.Name, analysis.Grouped(m.N)}
		for _, stat := range analysis.Stats {
			cells = append(cells, m.Text(stat))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// percentilePlots are the metrics with a plot of their own.
var percentilePlots = []struct{ metric, title string }{
	{"ttft", "TTFT, time to first token"},
	{"itl", "ITL, inter-token latency"},
	{"tpot", "TPOT, time per output token"},
	{"e2e", "E2E, from sent to the end"},
	{"response_time", "Response time, from due to the end"},
}

func (w *writer) latency() chart.Section {
	s := chart.Section{Heading: "Latency", Text: []string{
		"Of the successful requests; the others are counted below by cause. TTFT and E2E run from sent, response time from due, so that only the last holds what a late or capped client added.",
	}}
	s.Tables = append(s.Tables,
		metricsTable("Latency, ms", w.s.Metrics, "ttft", "ttfo", "ttst", "itl", "chunk_gap", "longest_stall", "tpot", "tpot_osl1", "time_to_90", "e2e", "response_time"), w.quantiles())
	failing := w.part("failing")
	s.Tables, s.Notes = append(s.Tables, failing.Tables...), failing.Notes
	for _, plot := range percentilePlots {
		m := w.s.Metrics.Get(plot.metric)
		subtitle := fmt.Sprintf("n %s %ss", analysis.Grouped(m.N), m.Of)
		units := m.N
		if m.Requests < m.N {
			units = m.Requests
			subtitle += fmt.Sprintf(" of %s, which the interval counts: tokens of one are not independent", analysis.Counted(units, "response"))
		}
		name, _, _ := strings.Cut(plot.title, ",")
		c, ok := percentiles(strings.ReplaceAll(plot.metric, "_", "-")+"-percentiles", plot.title, name, subtitle, w.distribution(m), units)
		add(&s, c, ok, absence(m, plot.title))
	}
	s.Notes = append(s.Notes, w.s.Metrics.Absences()...)
	return s
}

// absence says why a metric has no plot.
func absence(m *analysis.Metric, title string) string {
	if m.N == 0 {
		return title + ": no plot, since no request has it."
	}
	return title + ": no plot of one sample or of zeros."
}

// quantiles is the table of quantiles with intervals. Those that the summary has
// are the summary's.
func (w *writer) quantiles() chart.Table {
	t := chart.Table{Title: "Quantiles with 95 % rank intervals, ms", Header: []string{"metric", "n"}}
	for _, q := range tableQuantiles {
		t.Header = append(t.Header, quantileName(q))
	}
	for _, plot := range percentilePlots {
		m := w.s.Metrics.Get(plot.metric)
		d := w.distribution(m)
		cells := []string{m.Name, analysis.Grouped(m.N)}
		for _, q := range tableQuantiles {
			text := m.Text(strings.ReplaceAll(quantileName(q), ".", "_"))
			if q == 9999 && d.n >= farthest {
				text = analysis.TimeText(float64(d.rank((q*d.n+9999)/10000)) / 1e6)
			}
			if interval := d.intervalText(q, min(m.N, m.Requests)); interval != "n/a" && text != "n/a" {
				text += " (" + interval + ")"
			}
			cells = append(cells, text)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func (w *writer) doubts() chart.Section {
	s := chart.Section{Heading: "Doubts"}
	for _, warning := range w.s.Warnings {
		s.Notes = append(s.Notes, warning.Error())
	}
	if len(s.Notes) == 0 {
		s.Text = []string{"Nothing speaks against these numbers that this report knows of."}
	}
	return s
}

func (w *writer) definitions() chart.Section {
	s := chart.Section{Heading: "Definitions"}
	t := chart.Table{Words: true}
	for _, p := range w.parts["definitions"] {
		if name := strings.TrimSpace(p.Name); name != "" {
			t.Rows = append(t.Rows, []string{name, p.Text})
		} else {
			s.Text = append(s.Text, p.Text)
		}
	}
	s.Text = append(s.Text, fmt.Sprintf("Rank intervals hold the quantile with 95 %% confidence whatever the law, if requests are independent (order statistics, binomial). Percentile plots come from histograms, at most %s above the sample; what is drawn over time is at most %s off. Curves over time are weighted by time.",
		analysis.PercentText(analysis.HistogramError), analysis.PercentText(quantileError)))
	if len(t.Rows) > 0 {
		s.Tables = []chart.Table{t}
	}
	return s
}

// duration writes ns for a person.
func duration(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }

func orNone(text string) string { return cmp.Or(text, "not recorded") }
