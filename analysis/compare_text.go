package analysis

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
)

// WriteComparisonText writes c for a person, in about 130 columns without
// colour: what fails a gate first.
func WriteComparisonText(w io.Writer, c *TrafficComparison) error {
	p := &printer{w: w}
	c.text(p)
	return p.err
}

// ComparisonParts returns what [WriteComparisonText] writes, definitions last.
func ComparisonParts(c *TrafficComparison) []Part {
	p := &printer{record: true}
	c.text(p)
	return p.parts
}

func (c *TrafficComparison) text(p *printer) {
	for _, g := range c.Gates {
		state := "passed"
		if g.Failed {
			state = "failed"
		}
		p.pair("gate", fmt.Sprintf("%s: %s (%s)", state, g.Condition, optionalText(g.Value)))
	}
	for _, s := range []struct {
		name string
		Side
	}{{"a", c.A}, {"b", c.B}} {
		p.pair(s.name, s.text())
	}
	verdicts := counter{}
	for _, q := range c.Quantities {
		verdicts.add(q.Verdict)
	}
	for _, s := range c.Scalars {
		verdicts.add(s.Verdict)
	}
	p.pair("verdicts", countsText(verdicts.list()))
	for _, note := range c.Notes {
		p.pair("note", note)
	}
	p.topic("numbers")
	c.scalarTable(p)
	p.topic("distributions")
	c.quantityTable(p)
	p.section("definitions")
	for _, d := range [][2]string{
		{"w1", "area between the distribution functions (Wasserstein-1), over the mean of a"},
		{"ks", "largest difference of the distribution functions"},
		{"b/a", "with the 95 % interval of a bootstrap over sessions (minutes where there are none) of both sides"},
		{"within noise", "what as many sessions drawn from one law differ by in 95 of 100 cases"},
		{"no interval", "too little traffic to say how much such a number varies"},
		{"model", "stands for as many requests as it was fitted to, generated from it with one seed: all turns of its sessions, times in whole ticks of its trace"},
		{"gap", "between neighbouring arrivals; turn_gap: between arrivals of one session; think: recorded delay, or end of a turn to the next arrival"},
		{"osl", "of requests with output"},
	} {
		p.wrap(fmt.Sprintf("  %-13s", d[0]), d[1], 15)
	}
}

// text says what a side is.
func (s Side) text() string {
	text := fmt.Sprintf("%s (%s), %s", s.Name, s.Kind, Counted(s.Rows, "request"))
	if s.Kind == "model" {
		text = fmt.Sprintf("%s (%s of %s requests), %s requests generated from it", s.Name, s.Kind, Grouped(s.Fitted), Grouped(s.Rows))
	}
	if s.Sessions != "" {
		text += fmt.Sprintf("; %s, %s", Counted(s.Units, "session"), s.Sessions)
	}
	return text + "; intervals by " + s.Blocks
}

func (c *TrafficComparison) scalarTable(p *printer) {
	var rows []table.Row
	for _, s := range c.Scalars {
		name := s.Name
		if s.Unit != "" {
			name += ", " + s.Unit
		}
		verdict := s.Verdict
		if s.Why != "" {
			verdict += ": " + s.Why
		}
		rows = append(rows, table.Row{name, optionalText(s.A), optionalText(s.B), optionalText(s.Ratio), ratioInterval(s.Lo, s.Hi), verdict})
	}
	p.table(table.Row{"number", "a", "b", "b/a", "95 % interval", "verdict"}, rows)
}

func ratioInterval(lo, hi *float64) string {
	if lo == nil || hi == nil {
		return "n/a"
	}
	return shortText(*lo) + " to " + shortText(*hi)
}

func (c *TrafficComparison) quantityTable(p *printer) {
	var rows []table.Row
	for _, q := range c.Quantities {
		name := fmt.Sprintf("%s, %s", q.Name, q.Unit)
		if q.Verdict == NotMeasurable {
			rows = append(rows, table.Row{name, "", "", "", "", "", "", "", q.Verdict + ": " + q.Why})
			continue
		}
		rows = append(rows, table.Row{name, "n", Grouped(q.NA), Grouped(q.NB), "", "", optionalText(q.W1OverMean), optionalText(q.KS), q.Verdict})
		for _, s := range q.Stats {
			rows = append(rows, table.Row{"", s.Name, optionalText(s.A), optionalText(s.B), optionalText(s.Ratio), ratioInterval(s.Lo, s.Hi), "", "", ""})
		}
	}
	p.table(table.Row{"distribution", "stat", "a", "b", "b/a", "95 % interval", "w1/mean", "ks", "verdict"}, rows)
}
