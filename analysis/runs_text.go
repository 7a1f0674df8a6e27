package analysis

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// WriteRunsText writes c for a person, in up to about 120 columns without
// colour: what fails a gate first.
func WriteRunsText(w io.Writer, c *RunComparison) error {
	p := &printer{w: w}
	c.text(p)
	return p.err
}

// RunsParts returns what [WriteRunsText] writes, definitions last.
func RunsParts(c *RunComparison) []Part {
	p := &printer{record: true}
	c.text(p)
	return p.parts
}

func (c *RunComparison) text(p *printer) {
	for i := range c.Gates {
		p.pair("gate", c.Gates[i].text())
	}
	for i, s := range []*RunSide{&c.A, &c.B} {
		for _, r := range s.Runs {
			p.pair("ab"[i:i+1], fmt.Sprintf("%s: %s, %s, %s of them successful", r.Name, r.Verdict, Counted(r.Requests, "request"), Grouped(r.Successful)))
		}
	}
	p.pair("intervals", c.blocksText())
	p.pair("verdicts", c.verdictsText())
	for i := range c.Basis {
		p.pair("basis", c.Basis[i].String())
	}
	for _, note := range c.Notes {
		p.pair("note", note)
	}
	p.topic("numbers")
	header, rows := c.numberRows()
	p.table(cellsOf(header), rowsOf(rows))
	p.topic("effect sizes")
	header, rows = c.effectRows()
	p.table(cellsOf(header), rowsOf(rows))
	p.section("definitions")
	for _, d := range c.definitions() {
		p.wrap(fmt.Sprintf("  %-13s", d[0]), d[1], 15)
	}
}

func cellsOf(row []string) (out table.Row) {
	for _, cell := range row {
		out = append(out, cell)
	}
	return out
}

func rowsOf(rows [][]string) (out []table.Row) {
	for _, row := range rows {
		out = append(out, cellsOf(row))
	}
	return out
}

// blocksText says what was drawn, and how.
func (c *RunComparison) blocksText() string {
	var parts []string
	for i, s := range []*RunSide{&c.A, &c.B} {
		text := fmt.Sprintf("%s of %s", Counted(int64(s.Blocks), "block"), shortTime(s.BlockMS))
		if s.Sessions > 0 {
			text += fmt.Sprintf(" or %s of sessions, whichever is wider", Counted(int64(s.Sessions), "group"))
		}
		if c.Paired {
			return fmt.Sprintf("paired: the same requests on both sides, %s of them successful on both; %s drawn on both at once", Grouped(c.Pairs), text)
		}
		parts = append(parts, "ab"[i:i+1]+" "+text)
	}
	return "unpaired: the sides have other requests; " + strings.Join(parts, ", ")
}

func (c *RunComparison) verdictsText() string {
	verdicts := counter{}
	_, list := c.numbers()
	for _, n := range list {
		verdicts.add(n.Verdict)
	}
	return countsText(verdicts.list())
}

func (g *RunGate) text() string {
	state := "passed"
	if g.Failed {
		state = "failed"
	}
	text := state + ": " + g.Condition
	switch {
	case g.Value == nil:
	case g.Rule == "value":
		text += fmt.Sprintf(" (b is %s)", numberText(*g.Value))
	default:
		text += fmt.Sprintf(" (%s", changeText(g.Value))
		if g.Lo != nil && g.Hi != nil {
			text += fmt.Sprintf(", interval %s to %s", changeText(g.Lo), changeText(g.Hi))
		}
		text += ")"
	}
	if g.Why != "" {
		text += ": " + g.Why
	}
	return text
}

// changeText writes a relative change with its sign.
func changeText(v *float64) string {
	if v == nil {
		return "n/a"
	}
	return fmt.Sprintf("%+.2f %%", 100**v)
}

func (n *RunNumber) cell(v *float64) string {
	switch {
	case v == nil:
		return "n/a"
	case n.Unit == "share":
		return percent(*v)
	case n.Unit == unitMS:
		return decimals(*v)
	}
	return decimals(*v)
}

func (n *RunNumber) intervalText() string {
	switch {
	case n.ChangeLo != nil && n.ChangeHi != nil:
		return changeText(n.ChangeLo) + " to " + changeText(n.ChangeHi)
	case n.Lo != nil && n.Hi != nil && n.Unit == "share":
		return fmt.Sprintf("%+.3f to %+.3f points", 100**n.Lo, 100**n.Hi)
	case n.Lo != nil && n.Hi != nil:
		return fmt.Sprintf("%+.4g to %+.4g %s", *n.Lo, *n.Hi, n.Unit)
	}
	return "n/a"
}

// numberRows are the table of all numbers: with the spread of the runs where a
// side has several.
func (c *RunComparison) numberRows() (header []string, rows [][]string) {
	header = []string{"number", "a", "b", "change", "95 % interval", "verdict"}
	several := len(c.A.Runs) > 1 || len(c.B.Runs) > 1
	if several {
		header = append(header, "runs of a", "runs of b")
	}
	add := func(name string, n *RunNumber) {
		row := []string{name, n.cell(n.A), n.cell(n.B), changeText(n.Change), n.intervalText(), n.Verdict}
		if several {
			row = append(row, n.spreadText(n.RunsA), n.spreadText(n.RunsB))
		}
		rows = append(rows, row)
	}
	for i := range c.Metrics {
		m := &c.Metrics[i]
		if m.NA == 0 && m.NB == 0 {
			continue
		}
		for k := range m.Stats {
			add(m.Name+"_"+m.Stats[k].Name+", "+m.Unit, &m.Stats[k])
		}
	}
	for i := range c.Scalars {
		n := &c.Scalars[i]
		name := n.Name
		if n.Unit == "share" {
			name += ", share"
		}
		add(name, n)
	}
	return header, rows
}

func (n *RunNumber) spreadText(v *[2]float64) string {
	if v == nil {
		return "one run"
	}
	return n.cell(&v[0]) + " to " + n.cell(&v[1])
}

func (c *RunComparison) effectRows() (header []string, rows [][]string) {
	header = []string{"metric", "n of a", "n of b", "Cliff's delta", "shift, ms", "of"}
	for i := range c.Metrics {
		m := &c.Metrics[i]
		if m.NA == 0 && m.NB == 0 {
			continue
		}
		delta, shift := "n/a", "n/a"
		if m.Delta != nil {
			delta = fmt.Sprintf("%+.3f", *m.Delta)
		}
		if m.Shift != nil {
			shift = signed(*m.Shift)
		}
		rows = append(rows, []string{m.Name, Grouped(m.NA), Grouped(m.NB), delta, shift, m.ShiftOf})
	}
	return header, rows
}

func signed(ms float64) string {
	if ms < 0 {
		return decimals(ms)
	}
	return "+" + decimals(ms)
}

// definitions say what the tables hold.
func (c *RunComparison) definitions() [][2]string {
	list := [][2]string{
		{"change", "b / a - 1, of numbers of all requests that were successful on the side (lateness: all dispatched); quantiles are nearest-rank, several runs of a side are one sample"},
		{"interval", fmt.Sprintf("95 %% for each number alone: bootstrap of blocks (%d replicates), Student's t with the degrees of freedom of the blocks; the wider of blocks of time and of sessions, and of what varies from run to run where a side has several; widened by what neighbouring blocks have in common, most of all where a run has a trend rather than a level, as of a growing queue; of b - a, in its unit, where a has 0 or the ends of b / a are more than %s-fold apart, as where blocks without work may be drawn", runReplicates, Grouped(mostFold))},
		{"differs", "at most 5 % of comparisons of equal runs have any number that does (Holm, over all numbers)"},
		{"perhaps", "its own interval excludes no change, but among so many numbers chance does that too"},
		{"no interval", "too few blocks, or fewer than 5 samples above the quantile; several runs a side give one"},
		{"rates", "error_rate: failed / ended, without cut and cancelled requests; others: successful requests and their tokens over first sent to last end, blocks drawn on each side apart"},
		{"Cliff's delta", "P(b > a) - P(b < a) for a sample of each: 0 no tendency, 1 all of b above all of a"},
		{"shift", "Hodges-Lehmann: median of the means of any two differences of pairs, or median of all differences of a sample of b and one of a"},
	}
	for i := range c.Metrics {
		list = append(list, [2]string{c.Metrics[i].Name, c.Metrics[i].Definition})
	}
	return list
}

// WriteRunsMarkdown writes c for a pull request: gates and what differs first,
// all numbers folded away below.
func WriteRunsMarkdown(w io.Writer, c *RunComparison) error {
	var b strings.Builder
	b.WriteString("### " + sideName(&c.B) + " against " + sideName(&c.A) + "\n\n")
	for i := range c.Gates {
		mark := "passed"
		if c.Gates[i].Failed {
			mark = "**failed**"
		}
		_, text, _ := strings.Cut(c.Gates[i].text(), ": ")
		b.WriteString("- gate " + mark + ": " + markdownText(text) + "\n")
	}
	for i := range c.Basis {
		b.WriteString("- " + markdownText(c.Basis[i].String()) + "\n")
	}
	for _, note := range c.Notes {
		b.WriteString("- " + markdownText(note) + "\n")
	}
	b.WriteString("- " + markdownText(c.verdictsText()) + "; " + markdownText(c.blocksText()) + "\n\n")
	header, rows := c.numberRows()
	var first [][]string
	for _, row := range rows {
		if row[5] == Differs || row[5] == Perhaps {
			first = append(first, row)
		}
	}
	if first == nil {
		b.WriteString("No number differs beyond noise.\n\n")
	} else {
		markdownTable(&b, header, first)
	}
	b.WriteString("<details><summary>All numbers</summary>\n\n")
	markdownTable(&b, header, rows)
	header, rows = c.effectRows()
	markdownTable(&b, header, rows)
	for _, d := range c.definitions() {
		b.WriteString("- " + markdownText(d[0]+": "+d[1]) + "\n")
	}
	b.WriteString("\n</details>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func sideName(s *RunSide) string {
	if len(s.Runs) == 1 {
		return markdownText(s.Runs[0].Name)
	}
	return fmt.Sprintf("%s (%s, ...)", Counted(int64(len(s.Runs)), "run"), markdownText(s.Runs[0].Name))
}

// markdownText keeps what a name may hold from being read as Markdown or HTML.
func markdownText(text string) string {
	text = strings.Map(printable, text)
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "*", `\*`, "_", `\_`).Replace(text)
}

func markdownTable(b *strings.Builder, header []string, rows [][]string) {
	line := func(row []string) {
		for _, cell := range row {
			b.WriteString("| " + markdownText(cell) + " ")
		}
		b.WriteString("|\n")
	}
	line(header)
	b.WriteString("| --- |" + strings.Repeat(" ---: |", len(header)-1) + "\n")
	for _, row := range rows {
		line(row)
	}
	b.WriteString("\n")
}
