package analysis

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteComparisonText writes c for a person, in about 130 columns without
// colour: what fails a gate first.
func WriteComparisonText(w io.Writer, c *TrafficComparison) error {
	p := &printer{w: w}
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
		p.pair(s.name, fmt.Sprintf("%s (%s), %s requests; intervals by %s", s.Name, s.Kind, Grouped(s.Rows), s.Blocks))
	}
	verdicts := counter{}
	for _, q := range c.Quantities {
		verdicts.add(q.Verdict)
	}
	for _, s := range c.Scalars {
		verdicts.add(s.Verdict)
	}
	p.pair("verdicts", countsText(verdicts.list()))
	p.line("")
	p.line(c.scalarTable())
	p.line("")
	p.line(c.quantityTable())
	p.section("definitions")
	for _, d := range [][2]string{
		{"w1", "area between the distribution functions (Wasserstein-1), over the mean of a"},
		{"ks", "largest difference of the distribution functions"},
		{"b/a", "with the 95 % interval of a bootstrap over sessions (minutes where there are none) of both sides"},
		{"within noise", "what as many sessions drawn from one law differ by in 95 of 100 cases"},
		{"gap", "between neighbouring arrivals; turn_gap: between arrivals of one session; think: recorded delay, or end of a turn to the next arrival"},
		{"osl", "of requests with output"},
	} {
		p.wrap(fmt.Sprintf("  %-13s", d[0]), d[1], 15)
	}
	return p.err
}

func rightAligned(from, to int) []table.ColumnConfig {
	var configs []table.ColumnConfig
	for i := from; i <= to; i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	return configs
}

func (c *TrafficComparison) scalarTable() string {
	t := table.NewWriter()
	t.SetStyle(plain)
	t.AppendHeader(table.Row{"number", "a", "b", "b/a", "95 % interval", "verdict"})
	t.SetColumnConfigs(rightAligned(2, 5))
	for _, s := range c.Scalars {
		name := s.Name
		if s.Unit != "" {
			name += ", " + s.Unit
		}
		t.AppendRow(table.Row{name, optionalText(s.A), optionalText(s.B), optionalText(s.Ratio), ratioInterval(s.Lo, s.Hi), s.Verdict})
	}
	t.SuppressTrailingSpaces()
	return t.Render()
}

func ratioInterval(lo, hi *float64) string {
	if lo == nil || hi == nil {
		return "n/a"
	}
	return shortText(*lo) + " to " + shortText(*hi)
}

func (c *TrafficComparison) quantityTable() string {
	t := table.NewWriter()
	t.SetStyle(plain)
	t.AppendHeader(table.Row{"distribution", "stat", "a", "b", "b/a", "95 % interval", "w1/mean", "ks", "verdict"})
	t.SetColumnConfigs(rightAligned(3, 8))
	for _, q := range c.Quantities {
		name := fmt.Sprintf("%s, %s", q.Name, q.Unit)
		if q.Verdict == NotMeasurable {
			t.AppendRow(table.Row{name, "", "", "", "", "", "", "", q.Verdict + ": " + q.Why})
			continue
		}
		t.AppendRow(table.Row{name, "n", Grouped(q.NA), Grouped(q.NB), "", "", optionalText(q.W1OverMean), optionalText(q.KS), q.Verdict})
		for _, s := range q.Stats {
			t.AppendRow(table.Row{"", s.Name, optionalText(s.A), optionalText(s.B), optionalText(s.Ratio), ratioInterval(s.Lo, s.Hi), "", "", ""})
		}
	}
	t.SuppressTrailingSpaces()
	return t.Render()
}
