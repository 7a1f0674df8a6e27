package analysis

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// WriteFidelityText writes f for a person, in about 130 columns without colour:
// first what is lost.
func WriteFidelityText(w io.Writer, f *Fidelity) error {
	p := &printer{w: w}
	f.text(p)
	return p.err
}

// FidelityParts returns what [WriteFidelityText] writes, definitions last.
func FidelityParts(f *Fidelity) []Part {
	p := &printer{record: true}
	f.text(p)
	return p.parts
}

func (f *Fidelity) text(p *printer) {
	count := counter{}
	for _, r := range f.Properties {
		count.add(r.Verdict)
	}
	p.pair("fidelity", countsText(count.list()))
	for _, r := range f.Properties {
		if r.Verdict == Lost {
			p.wrap("  - ", fmt.Sprintf("lost: %s: %s instead of %s (%s)", r.Name, optionalText(r.Achieved), optionalText(r.Target), r.Method), 4)
		}
		if r.Verdict == ByDesign && f.Generated != nil {
			p.wrap("  - ", fmt.Sprintf("changed: %s: %s instead of %s (%s)", r.Name, optionalText(r.Achieved), optionalText(r.Target), r.Method), 4)
		}
	}
	p.topic("properties")
	cell := func(v *float64) string {
		if v == nil {
			return ""
		}
		return numberText(*v)
	}
	var rows []table.Row
	for _, r := range f.Properties {
		name := r.Name
		if r.Unit != "" && !strings.Contains(name, r.Unit) {
			name += ", " + r.Unit
		}
		rows = append(rows, table.Row{name, cell(r.Source), cell(r.Independent), cell(r.Common), cell(r.Target), cell(r.Achieved), r.Verdict})
	}
	head := table.Row{"property", "source", "independent", "common", "target", "achieved", "verdict"}
	if f.Generated != nil {
		head = table.Row{"property", "source", "generated", "verdict"}
		for i, r := range rows {
			rows[i] = table.Row{r[0], r[1], r[5], r[6]}
		}
	}
	p.table(head, rows)
	p.section("verdicts")
	for _, d := range [][2]string{
		{Exact, "the same number, but for rounding"},
		{WithinNoise, "inside the band in which such traffic varies by itself; the JSON has band and method of each line"},
		{ByDesign, "as the flags say, or as the method cannot but do"},
		{Lost, "neither"},
		{NotMeasurable, "the trace does not have it"},
		{"lines", "of a scaled trace; independent: copies that have nothing to do with one another; common: copies that all follow one rate. Growth lies between"},
	} {
		p.wrap(fmt.Sprintf("  %-19s", d[0]), d[1], 21)
	}
}
