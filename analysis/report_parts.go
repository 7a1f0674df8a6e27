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
