package chart

import (
	"fmt"
	"strings"

	"reprise/analysis"
	"reprise/synth/model"
)

// TrafficPage is the page of reprise analyze: a summary, then every part of the
// text report with its charts, then definitions. With a model (w may be nil) its
// laws stand beside the data.
func TrafficPage(t *analysis.Traffic, w *model.Workload) *Page {
	p := &Page{Title: "Traffic analysis", Intro: []string{"What the requests of a trace look like. Times are seconds, lengths tokens. What the trace cannot tell is said in words."}}
	if w != nil {
		p.Intro = append(p.Intro, modelIntro(w))
	}
	sections := Sections(analysis.TrafficParts(t))
	sections[0] = Section{Heading: "Summary", Tables: []Table{trafficSummary(t)}}
	for _, topic := range trafficTopics(t, w) {
		for i := range sections {
			if sections[i].Heading == sentence(topic.heading) {
				sections[i].Charts = topic.charts
				sections[i].Notes = append(sections[i].Notes, topic.notes...)
			}
		}
	}
	p.Sections = sections
	return p
}

// modelIntro says where fitted curves come from.
func modelIntro(w *model.Workload) string {
	if len(w.Streams) != 1 {
		return fmt.Sprintf("The model has %s streams, each with laws of its own, so none is drawn.", grouped(int64(len(w.Streams))))
	}
	text := fmt.Sprintf("Fitted curves are those of a model of %s requests; a chart has at most three, best first by BIC.", grouped(w.Requests))
	if of := w.Streams[0].Lengths.Of; of != "" && of != "request" {
		text += " Its laws of lengths are of each " + of + ", not of all requests, and are not drawn."
	}
	return text
}

// trafficSummary is what most readers want first.
func trafficSummary(t *analysis.Traffic) Table {
	out := Table{Words: true}
	row := func(name, text string) { out.Rows = append(out.Rows, []string{name, text}) }
	row("requests", grouped(t.Rows))
	if t.Format != "" {
		row("imported from", t.Format)
	}
	a := &t.Arrivals
	if a.SpanS != nil {
		row("span", analysis.NumberText(*a.SpanS)+" s")
	}
	if a.RateHz != nil {
		row("rate", analysis.NumberText(*a.RateHz)+" requests/s on average")
	}
	for i := range t.Lengths {
		l := &t.Lengths[i]
		name := strings.ReplaceAll(l.Name, "_", " ")
		if l.Dist == nil {
			row(name, l.NotMeasurable)
			continue
		}
		median, _ := l.Quantile(0.5)
		row(name, fmt.Sprintf("%s in all, mean %s, median %s, most %s (n %s)", analysis.NumberText(l.Sum), analysis.NumberText(l.Mean), analysis.NumberText(median), analysis.NumberText(l.Max), grouped(l.N)))
	}
	if t.Sessions.N > 0 {
		row("sessions", fmt.Sprintf("%s (%s)", grouped(t.Sessions.N), t.Sessions.Basis))
	}
	if h := t.Prefix.HitShareTokens; h != nil {
		row("prefix reuse", analysis.PercentText(*h)+" of block tokens with a cache without limit")
	}
	return out
}

// Sections turns the parts of a text report into sections: names with texts
// become a table, notes a list at the end. What comes before the first heading is
// a section without one.
func Sections(parts []analysis.Part) []Section {
	out := []Section{{}}
	for _, p := range parts {
		s := &out[len(out)-1]
		switch {
		case p.Heading != "":
			out = append(out, Section{Heading: sentence(p.Heading)})
		case p.Rows != nil:
			s.Tables = append(s.Tables, Table{Header: p.Header, Rows: p.Rows})
		case p.Name == "":
			s.Notes = append(s.Notes, p.Text)
		default:
			if n := len(s.Tables); n == 0 || !s.Tables[n-1].Words {
				s.Tables = append(s.Tables, Table{Words: true})
			}
			table := &s.Tables[len(s.Tables)-1]
			table.Rows = append(table.Rows, []string{p.Name, p.Text})
		}
	}
	return out
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
