package chart

import (
	"fmt"
	"strings"

	"reprise/analysis"
)

// ComparisonPage is the page of reprise compare: what fails a gate, the numbers of
// both sides, and their distributions over one another.
func ComparisonPage(c *analysis.TrafficComparison, a, b *analysis.Profile) *Page {
	page := &Page{Title: fmt.Sprintf("%s and %s", c.A.Name, c.B.Name), Sections: Sections(analysis.ComparisonParts(c))}
	titles := map[string]string{"isl": "Input lengths", "osl": "Output lengths", "gap": "Gaps between arrivals", "turns": "Turns per session", "turn_gap": "Time between turns", "think": "Think times"}
	var charts []Chart
	for _, x := range a.Shapes() {
		for _, y := range b.Shapes() {
			if x.Name != y.Name {
				continue
			}
			q := Quantity{ID: strings.ReplaceAll(x.Name, "_", "-"), Title: titles[x.Name], Axis: strings.ToLower(titles[x.Name]), Unit: x.Unit}
			if drawn, ok := CDF(q, []Sample{{"a: " + c.A.Name, x.Dist}, {"b: " + c.B.Name, y.Dist}}); ok {
				charts = append(charts, drawn)
			}
		}
	}
	page.insert("distributions", charts)
	return page
}

// GeneratedPage is the page of reprise synth from a model.
func GeneratedPage(f *analysis.Fidelity) *Page {
	g := f.Generated
	return &Page{Title: "Fidelity of a synthesis", Intro: []string{fmt.Sprintf("%s requests generated from %s, a model of %s requests.", grouped(g.Requests), g.Model, grouped(g.Fitted))}, Sections: Sections(analysis.FidelityParts(f))}
}

// FidelityPage is the page of reprise synth: what was kept of the source, and the
// source and the result over one another.
func FidelityPage(f *analysis.Fidelity, source, made *analysis.Traffic) *Page {
	d := f.Design
	page := &Page{Title: "Fidelity of a synthesis", Intro: []string{fmt.Sprintf("%s requests made of %s, %s times by whole %ss.", grouped(d.Rows), grouped(d.SourceRows), analysis.NumberText(d.Factor), d.Unit)}, Sections: Sections(analysis.FidelityParts(f))}
	if d.ShiftWhy != "" {
		page.Intro = append(page.Intro, "Copies: "+d.ShiftWhy+".")
	}
	var charts []Chart
	if c, ok := burstLines(f, "IDC at "); ok {
		c.ID, c.Title = "idc", "Index of dispersion of counts in windows"
		c.Y = Axis{Title: "IDC", Log: true}
		c.Note = "Growth lies between the two lines: copies that are independent of one another, and copies that all follow one rate."
		charts = append(charts, c)
	}
	if c, ok := burstLines(f, "count CV at "); ok {
		c.ID, c.Title = "count-cv", "Variation of the rate over windows"
		c.Y = Axis{Title: "count CV", Zero: true}
		charts = append(charts, c)
	}
	for _, q := range []struct {
		Quantity
		a, b *analysis.Dist
	}{
		{Quantity{"gaps", "Gaps between arrivals", "gap", "s"}, source.Arrivals.Gaps, made.Arrivals.Gaps},
		{Quantity{"input", "Input lengths", "input length", "tokens"}, lengthsOf(source, "input_tokens"), lengthsOf(made, "input_tokens")},
		{Quantity{"output", "Output lengths", "output length", "tokens"}, lengthsOf(source, "output_tokens"), lengthsOf(made, "output_tokens")},
		{Quantity{"turns", "Turns per session", "turns", "turns"}, source.Sessions.Turns, made.Sessions.Turns},
	} {
		if q.a == nil || q.b == nil {
			continue
		}
		if c, ok := CDF(q.Quantity, []Sample{{"source", q.a}, {"made", q.b}}); ok {
			charts = append(charts, c)
		}
	}
	page.insert("properties", charts)
	return page
}

// insert puts charts below a section; at the end if there is no such section.
func (p *Page) insert(heading string, charts []Chart) {
	for i := range p.Sections {
		if strings.EqualFold(p.Sections[i].Heading, heading) {
			p.Sections[i].Charts = append(p.Sections[i].Charts, charts...)
			return
		}
	}
	p.Sections = append(p.Sections, Section{Heading: "Charts", Charts: charts})
}

func lengthsOf(t *analysis.Traffic, name string) *analysis.Dist {
	for i := range t.Lengths {
		if t.Lengths[i].Name == name {
			return t.Lengths[i].Dist
		}
	}
	return nil
}

// burstLines draws one number of all windows: of the source, on both reference
// lines, and as it was made.
func burstLines(f *analysis.Fidelity, prefix string) (Chart, bool) {
	source, independent := Series{Name: "source", Kind: Lines, Marks: true}, Series{Name: "independent copies", Kind: Lines}
	common, made := Series{Name: "copies of one rate", Kind: Lines}, Series{Name: "made", Kind: Lines, Marks: true}
	add := func(s *Series, x float64, y *float64) {
		if y != nil && *y > 0 {
			s.X, s.Y = append(s.X, x), append(s.Y, *y)
		}
	}
	for i := range f.Properties {
		p := &f.Properties[i]
		window, ok := strings.CutPrefix(p.Name, prefix)
		if !ok || p.Achieved == nil {
			continue
		}
		var x float64
		if _, err := fmt.Sscanf(window, "%g s", &x); err != nil {
			continue
		}
		add(&source, x, p.Source)
		add(&independent, x, p.Independent)
		add(&common, x, p.Common)
		add(&made, x, p.Achieved)
	}
	c := Chart{Subtitle: fmt.Sprintf("counts of %s requests made of %s", grouped(f.Design.Rows), grouped(f.Design.SourceRows)), X: Axis{Title: "window", Unit: "s", Log: true}}
	for _, s := range []Series{independent, common, source, made} {
		if len(s.X) > 1 {
			c.Series = append(c.Series, s)
		}
	}
	return c, len(c.Series) > 1
}

// RunsPage is the page of reprise compare of runs: gates, verdicts, all numbers
// and their changes with intervals, and the distributions over one another.
func RunsPage(c *analysis.RunComparison) *Page {
	page := &Page{Title: sideTitle(&c.B) + " against " + sideTitle(&c.A), Sections: Sections(analysis.RunsParts(c))}
	var charts []Chart
	a, b := c.Shapes()
	for i, x := range a {
		q := Quantity{ID: strings.ReplaceAll(x.Name, "_", "-"), Title: x.Name, Axis: x.Name, Unit: x.Unit}
		if drawn, ok := CDF(q, []Sample{{"a: " + sideTitle(&c.A), x.Dist}, {"b: " + sideTitle(&c.B), b[i].Dist}}); ok {
			charts = append(charts, drawn)
		}
	}
	page.insert("effect sizes", charts)
	return page
}

func sideTitle(s *analysis.RunSide) string {
	var names []string
	for _, r := range s.Runs {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}
