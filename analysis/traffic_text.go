package analysis

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTrafficText writes t for a person, in about 120 columns without colour.
func WriteTrafficText(w io.Writer, t *Traffic) error {
	p := &printer{w: w}
	t.text(p)
	return p.err
}

func (t *Traffic) text(p *printer) {
	p.pair("rows", Grouped(t.Rows))
	p.pair("clock", trafficClock(t))
	p.topic("arrivals")
	t.Arrivals.text(p)
	p.topic("lengths")
	t.lengthText(p)
	t.Dependence.text(p)
	t.Sessions.text(p)
	t.Prefix.text(p)
	t.groupText(p)
	p.section("definitions")
	for _, d := range trafficDefinitions {
		p.wrap(fmt.Sprintf("  %-11s", d[0]), d[1], 13)
	}
}

var trafficDefinitions = [][2]string{
	{"quantiles", "type 7 (linear between neighbours) unless a line says otherwise"},
	{"IDC", "variance / mean of the arrivals in complete windows; 1 for Poisson arrivals at a constant rate, of which 95 % lie in the range beside it"},
	{"count CV", "sqrt(max(0, variance - mean)) / mean: how much the rate itself varies; 0 for Poisson"},
	{"log10 p", "of an IDC that high or higher if arrivals were Poisson"},
	{"NB r", "shape of the negative binomial fit to the counts; n/a where Poisson fits better"},
	{"tau-b", "Kendall's rank correlation, corrected for ties"},
	{"start gap", "between the first arrivals of sessions"},
	{"turn gap", "between arrivals of one session, the response in between included"},
	{"think", "recorded delay of a turn; or from the recorded end of a turn to the next arrival, where that is not earlier"},
	{"growth", "input tokens of a turn less those of the turn before"},
	{"LRU", "a cache of that many blocks that evicts the least recently used; hits are resident blocks"},
}

func trafficClock(t *Traffic) string {
	if t.Clock == "trace" {
		return "one for all rows"
	}
	return clockless(t.Clock)
}

func (a *Arrivals) text(p *printer) {
	if a.RateHz != nil {
		p.pair("arrivals", fmt.Sprintf("%s over %s s, %s requests/s on average", Grouped(a.N), numberText(*a.SpanS), numberText(*a.RateHz)))
	} else {
		p.pair("arrivals", Grouped(a.N))
	}
	if g := a.Gaps; g != nil {
		of := ""
		if a.Within != "" {
			of = "within " + a.Within + ": "
		}
		p.pair("gaps", of+fmt.Sprintf("n %s, mean %s s, CV %s (Poisson 1), lag-1 autocorrelation %s, %s of them 0", Grouped(g.N), numberText(g.Mean), optionalText(g.CV), optionalText(a.Lag1), Grouped(g.Zeros)))
	}
	if a.Times != nil {
		p.pair("batches", fmt.Sprintf("%s, requests at each: %s on average, at most %s", Counted(*a.Times, "distinct time"), numberText(*a.BatchMean), Grouped(*a.BatchMax)))
	}
	if a.TickS != nil {
		text := "times are multiples of " + numberText(*a.TickS) + " s"
		if *a.EffectiveTickS > *a.TickS {
			text += fmt.Sprintf(", but at least 90 %% of the spacings are multiples of %s s within 0.2 %%: the effective tick", numberText(*a.EffectiveTickS))
		}
		p.pair("tick", text)
	}
	if r := a.Rate; r != nil && len(r.Counts) > 1 {
		p.pair("rate", fmt.Sprintf("%s to %s requests in %s of %s s", Grouped(slices.Min(r.Counts)), Grouped(slices.Max(r.Counts)), Counted(int64(len(r.Counts)), "bin"), numberText(r.BinS)))
	}
	p.notes(a.NotMeasurable...)
	if len(a.Burstiness) > 0 {
		a.burstTable(p)
	}
}

func (a *Arrivals) burstTable(p *printer) {
	var rows []table.Row
	for _, b := range a.Burstiness {
		if b.NotMeasurable != "" {
			continue
		}
		rows = append(rows, table.Row{numberText(b.WindowS), Grouped(b.Windows), optionalText(b.Mean), optionalText(b.MaxMean), optionalText(b.IDC),
			optionalText(b.PoissonLo) + "-" + optionalText(b.PoissonHi), optionalText(b.CountCV), optionalText(b.Log10P), optionalText(b.NegBinR), optionalText(b.Lag1)})
	}
	if rows != nil {
		p.table(table.Row{"window, s", "n", "mean", "max/mean", "IDC", "Poisson", "count CV", "log10 p", "NB r", "lag 1"}, rows)
	}
	for _, b := range a.Burstiness {
		p.notes(b.NotMeasurable)
	}
}

// notes writes sentences; empty ones write nothing.
func (p *printer) notes(sentences ...string) {
	for _, s := range sentences {
		if s != "" {
			p.wrap("  - ", s, 4)
		}
	}
}

// table writes rows, the first column to the left and all others to the right.
func (p *printer) table(header table.Row, rows []table.Row) {
	if p.record {
		p.recordTable(header, rows)
		return
	}
	t := table.NewWriter()
	t.SetStyle(plain)
	t.AppendHeader(header)
	var configs []table.ColumnConfig
	for i := range header[1:] {
		configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	t.AppendRows(rows)
	t.SuppressTrailingSpaces()
	p.line("")
	p.line(t.Render())
}

// textQuantiles are those of DistQuantiles, from p10, that fit into a line; JSON
// has all.
const textQuantiles = 2

// distHeader names the columns of distRow.
func distHeader(title string) table.Row {
	h := table.Row{title, "n", "mean", "CV", "min"}
	for _, q := range DistQuantiles[textQuantiles:] {
		h = append(h, "p"+trimmed(fmt.Sprintf("%.1f", 100*q)))
	}
	return append(h, "max")
}

func distRow(name string, d *Dist) table.Row {
	r := table.Row{name, Grouped(d.N), shortText(d.Mean), optionalText(d.CV), shortText(d.Min)}
	for _, q := range d.Quantiles[textQuantiles:] {
		r = append(r, shortText(q.X))
	}
	return append(r, shortText(d.Max))
}

// dists writes a table of distributions, of those that there are.
func (p *printer) dists(title string, list ...namedDist) {
	var rows []table.Row
	inexact := false
	for _, d := range list {
		if d.dist != nil {
			rows = append(rows, distRow(d.name, d.dist))
			inexact = inexact || d.dist.QuantileError > 0
		}
	}
	if rows == nil {
		return
	}
	p.table(distHeader(title), rows)
	if inexact {
		p.notes(fmt.Sprintf("quantiles are within %s where there are more than 262,144 distinct values", percent(listError(list))))
	}
}

type namedDist struct {
	name string
	dist *Dist
}

func listError(list []namedDist) float64 {
	var most float64
	for _, d := range list {
		if d.dist != nil {
			most = max(most, d.dist.QuantileError)
		}
	}
	return most
}

func (t *Traffic) lengthText(p *printer) {
	var list []namedDist
	for _, l := range t.Lengths {
		list = append(list, namedDist{strings.ReplaceAll(l.Name, "_tokens", ""), l.Dist})
	}
	p.dists("tokens", list...)
	for _, l := range t.Lengths {
		p.notes(l.NotMeasurable)
		if l.Tail != nil {
			p.notes(l.Name + ": " + l.tailText())
		}
	}
}

func (l *Lengths) tailText() string {
	parts := []string{fmt.Sprintf("sum %s; %s 0", numberText(l.Sum), Counted(l.Zeros, "time"))}
	if l.Tail.AtMax != nil {
		at := fmt.Sprintf("%s (%s) the largest length", Counted(*l.Tail.AtMax, "time"), percent(*l.Tail.AtMaxShare))
		if l.Tail.Spike {
			at += ", probably a limit"
		}
		parts = append(parts, at)
	}
	if h := l.Tail.Hill; h != nil {
		parts = append(parts, fmt.Sprintf("tail index %s (Hill, the %s rows above %s)", numberText(*h), Grouped(l.Tail.HillN), numberText(l.Tail.HillFrom)))
	}
	return strings.Join(parts, "; ")
}

func (d *TrafficDependence) text(p *printer) {
	p.section("output by input length")
	if d.Pearson != nil {
		p.pair("  measures", fmt.Sprintf("n %s: Pearson %s, Spearman %s, tau-b %s, normal scores %s, logarithms %s (n %s)",
			Grouped(d.N), optionalText(d.Pearson), optionalText(d.Spearman), optionalText(d.KendallTauB), optionalText(d.NormalScores), optionalText(d.PearsonLog), Grouped(d.PearsonLogN)))
	}
	p.notes(d.NotMeasurable)
	if d.TooLong > 0 {
		p.notes(fmt.Sprintf("%s rows with a length above 4,294,967,295 are left out", Grouped(d.TooLong)))
	}
	var rows []table.Row
	for _, b := range d.ByInput {
		rows = append(rows, table.Row{Grouped(b.FromInput) + " to " + Grouped(b.ToInput), Grouped(b.N), numberText(b.Mean), numberText(b.Median), numberText(b.P90)})
	}
	if rows != nil {
		p.table(table.Row{"input tokens", "n", "output mean", "median", "p90"}, rows)
	}
}
