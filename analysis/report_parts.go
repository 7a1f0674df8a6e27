package analysis

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// A Part is a piece of a report as data, for other forms than text: a heading, a
// name with its text, a note without one, or a table. The text form and the
// parts come from the same code, so that no number differs.
type Part struct {
	Heading string // what follows belongs to it
	Name    string // of Text; "" for a note
	Text    string
	Header  []string // of a table: names of columns; the first column is to the left
	Rows    [][]string
}

// TrafficParts returns what [WriteTrafficText] writes, definitions last.
func TrafficParts(t *Traffic) []Part {
	p := &printer{record: true}
	t.text(p)
	return p.parts
}

// RunParts returns what [WriteText] writes but for the tables of metrics and the
// first line, the verdict: the sections run, slo (if there is one), failing,
// throughput, accounts and definitions.
func RunParts(s *Summary) []Part {
	p := &printer{record: true}
	p.section("run")
	s.sloHead(p)
	s.facts(p)
	s.outcomes(p)
	s.SLO.text(p)
	p.section("failing")
	s.Failing.text(p)
	s.throughput(p)
	s.telemetryText(p)
	s.account(p)
	s.definitions(p)
	return p.parts
}

// Absences returns in words which requests the metrics do not hold, and why.
func (list Metrics) Absences() []string {
	p := &printer{record: true}
	list.absences(p)
	var out []string
	for _, part := range p.parts {
		out = append(out, part.Text)
	}
	return out
}

// TimeText writes a time in ms as tables do.
func TimeText(ms float64) string { return decimals(ms) }

// Text writes one of [Stats] as tables do, n/a where there is none.
func (m *Metric) Text(stat string) string { return m.cell(m.Stat(stat)) }

// topic begins a part that text sets apart by nothing but its place.
func (p *printer) topic(title string) {
	if p.record {
		p.section(title)
	}
}

// recordWords keeps a text under its name; a list's dash is none.
func (p *printer) recordWords(head, text string) {
	name := strings.TrimSpace(head)
	if name == "-" {
		name = ""
	}
	p.parts = append(p.parts, Part{Name: name, Text: strings.Map(printable, text)})
}

func (p *printer) recordTable(header table.Row, rows []table.Row) {
	part := Part{Header: cellTexts(header)}
	for _, r := range rows {
		part.Rows = append(part.Rows, cellTexts(r))
	}
	p.parts = append(p.parts, part)
}

func cellTexts(r table.Row) []string {
	out := make([]string, len(r))
	for i, c := range r {
		out[i] = fmt.Sprint(c)
	}
	return out
}

// NumberText writes a number as reports do: four digits that count and no
// exponent, whole numbers with all digits.
func NumberText(v float64) string { return numberText(v) }

// PercentText writes a share of 0 to 1 as reports do.
func PercentText(share float64) string { return percent(share) }
