package analysis

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// WriteWorkloadText writes a workload model for a person: what was decided, and
// how good each law is. Many streams are one line each; JSON has all of them.
func WriteWorkloadText(w io.Writer, m *model.Workload) error {
	p := &printer{w: w}
	rows := Grouped(m.Requests)
	if m.SpanS != nil {
		rows += fmt.Sprintf(" over %s s", numberText(*m.SpanS))
	}
	p.pair("rows", rows)
	if len(m.Streams) == 1 {
		streamText(p, &m.Streams[0])
	} else {
		streamsTable(p, m)
	}
	if len(m.Provenance.Notes) > 0 {
		p.section("notes")
		p.notes(m.Provenance.Notes...)
	}
	p.section("definitions")
	for _, d := range workloadDefinitions {
		p.wrap(fmt.Sprintf("  %-11s", d[0]), d[1], 13)
	}
	return p.err
}

var workloadDefinitions = [][2]string{
	{"grade", "by the KS distance: good below 0.03, usable below 0.08, else a law for comparison only. Sessions are drawn whole from those of the trace, and lengths of requests that stand alone from the pairs themselves; gaps from the residual law, whatever its grade"},
	{"dBIC", "BIC above the best of the table; only fits of one table can be compared"},
	{"W1/mean", "Wasserstein-1 distance of law and values, over the mean of the values"},
	{"p50, p99", "quantile of the law over that of the values (type 1); n/a for gaps whose ticks or changing rate leave no values to take quantiles of, only probabilities of ticks"},
	{"*", "the family of lowest BIC"},
	{"residual", "gaps in units of the mean gap at their time; what is generated: gaps of mean 1, put on the rate over time"},
	{"p", "parametric bootstrap of KS (--bootstrap N); gaps are taken as independent, so it is optimistic; n/a for capped, mixture and spliced laws, which would have to be searched again in each draw: KS and grade judge those"},
}

func streamText(p *printer, s *model.Stream) {
	arrivalsText(p, s.Arrivals)
	sessionsText(p, s.Sessions)
	lengthsText(p, &s.Lengths)
	prefixText(p, s.Prefix)
	if a := s.Arrivals; a != nil {
		what := "request"
		if a.Of == "session" {
			what = "session"
		}
		fittedTable(p, "gaps between "+what+"s, s", a.Gap)
		fittedTable(p, "residual, mean gaps", a.Rest)
		if a.Turns != nil {
			fittedTable(p, "gaps between all requests, s", a.Turns)
		}
	}
	if s.Sessions != nil {
		name := "start to start within sessions, s"
		if s.Sessions.Think != nil {
			name = "think time, s"
		}
		fittedTable(p, name, s.Sessions.ThinkFit)
	}
	of := " of requests"
	if s.Sessions != nil {
		of = " of first turns"
	}
	fittedTable(p, "input tokens"+of, s.Lengths.Input)
	fittedTable(p, "output tokens"+of, s.Lengths.Output)
}

func arrivalsText(p *printer, a *model.Arrivals) {
	if a == nil {
		p.pair("arrivals", "not measurable: see the notes")
		return
	}
	p.pair("arrivals", fmt.Sprintf("of %ss: %s, %s/s on average, %s", a.Of, Grouped(a.N), numberText(a.RateHz), profileText(a.Profile)))
	if g := a.Gap; g != nil {
		p.pair("gaps", fmt.Sprintf("CV %s (Poisson 1), lag-1 autocorrelation %s", optionalText(g.CV), optionalText(g.Lag1)))
	}
	p.pair("law of gaps", gapLawText(a))
}

func profileText(rates []model.Rate) string {
	if len(rates) == 1 {
		return "at a constant rate"
	}
	least, most := rates[0].RateHz, rates[0].RateHz
	for _, r := range rates {
		least, most = min(least, r.RateHz), max(most, r.RateHz)
	}
	return fmt.Sprintf("in %s of constant rate, %s to %s/s", Counted(int64(len(rates)), "piece"), numberText(least), numberText(most))
}

// gapLawText says what gaps are generated from.
func gapLawText(a *model.Arrivals) string {
	if a.Gaps == nil {
		return "refused, taken as exponential: " + a.GapsWhy
	}
	text := specText(*a.Gaps) + " of mean 1 around the rate"
	if a.Gaps.Family == "gamma" {
		text += ": " + burstText(a.Gaps.Params["shape"])
	}
	if a.Rest != nil && len(a.Rest.Fits) > 0 {
		f := a.Rest.Fits[0]
		text += fmt.Sprintf(" (%s, KS %s)", f.Grade, numberText(f.KS))
	}
	return text
}

// burstText says what a shape of gamma gaps means.
func burstText(shape float64) string {
	switch {
	case shape < 0.9:
		return "burstier than Poisson"
	case shape > 1.1:
		return "more regular than Poisson"
	}
	return "Poisson with that rate"
}

func sessionsText(p *printer, s *model.Sessions) {
	if s == nil {
		p.pair("sessions", "none: each request stands alone")
		return
	}
	text := fmt.Sprintf("%s (%s)", Grouped(s.N), s.How)
	if s.TurnFits != nil && s.TurnFits.Mean != nil {
		text += fmt.Sprintf(", %s turns on average", numberText(*s.TurnFits.Mean))
	}
	if s.Open > 0 {
		text += fmt.Sprintf("; open at an end of the trace: %s", Grouped(s.Open))
	}
	p.pair("sessions", text)
	switch {
	case s.Sampled:
		p.pair("", fmt.Sprintf("drawn whole from a sample of %s of them", Grouped(int64(len(s.Paths)))))
	case len(s.Paths) > 0:
		p.pair("", fmt.Sprintf("drawn whole from %s of the trace", Grouped(int64(len(s.Paths)))))
	}
	if fit, ok := bestOf(s.TurnFits); ok {
		p.pair("", fmt.Sprintf("law of turns: %s %s: %s (KS %s), for export", familyOf(fit), paramsText(fit), fit.Grade, numberText(round4(fit.KS))))
	}
	p.pair("think time", s.ThinkOf+medianText(s.Think, " s"))
	p.pair("growth", strings.TrimPrefix(medianText(s.Growth, " tokens from turn to turn"), ": "))
}

// medianText writes mean and median of a law that may be missing.
func medianText(spec *stats.LawSpec, unit string) string {
	if spec == nil {
		return ""
	}
	law, err := spec.Law()
	if err != nil {
		return ""
	}
	mean, _ := law.Mean()
	return fmt.Sprintf(": mean %s, median %s%s", numberText(mean), numberText(law.Quantile(0.5)), unit)
}

func lengthsText(p *printer, l *model.Lengths) {
	for _, side := range []struct {
		name string
		f    *model.Fitted
	}{{"input", l.Input}, {"output", l.Output}} {
		p.pair(side.name, fittedText(side.f, "tokens"))
	}
	if !slices.ContainsFunc(l.Pairs, func(pair model.Pair) bool { return pair.Input >= 0 || pair.Output >= 0 }) {
		p.pair("lengths", "not known")
		return
	}
	text := fmt.Sprintf("drawn from %s of input and output", Counted(int64(len(l.Pairs)), "distinct pair"))
	if l.Sampled {
		text += ", a sample of the rows"
	}
	if c := l.Copula; c != nil {
		text += fmt.Sprintf("; correlation of normal scores %s", numberText(c.Rho))
		if !c.Monotone {
			text += ", but medians of output do not rise or fall with input: a copula hides that, the bins of the model show it"
		}
	}
	p.pair("lengths", text)
}

// fittedText says how good the best law is.
func fittedText(f *model.Fitted, unit string) string {
	if f == nil {
		return "not measurable: see the notes"
	}
	text := fmt.Sprintf("mean %s %s, CV %s", optionalText(f.Mean), unit, optionalText(f.CV))
	best, ok := bestOf(f)
	switch {
	case ok:
		return text + fmt.Sprintf("; best law %s: %s (KS %s)", f.Best, best.Grade, numberText(best.KS))
	case f.Refuse != "":
		return text + "; no law: " + f.Refuse
	}
	return text
}

func bestOf(f *model.Fitted) (stats.Fit, bool) {
	if f == nil || f.Best == "" {
		return stats.Fit{}, false
	}
	for _, fit := range f.Fits {
		if familyOf(fit) == f.Best {
			return fit, true
		}
	}
	return stats.Fit{}, false
}

// familyOf names the law below a cap too.
func familyOf(f stats.Fit) string {
	if c, ok := f.Law.(stats.Capped); ok {
		return c.Of.Name()
	}
	return f.Law.Name()
}

func prefixText(p *printer, x *model.Prefix) {
	if x == nil {
		p.pair("prefix", "no block ids")
		return
	}
	shared := 0.0
	for _, r := range x.Roots {
		shared += r.Share
	}
	p.pair("prefix", fmt.Sprintf("blocks of %d tokens (last block: %s); %s of the tokens are served by a cache without limit; beginnings that at least 10 sessions share: %s, with %s of the sessions",
		x.BlockTokens, x.Tail, percent(x.HitShare), Grouped(int64(len(x.Roots))), percent(shared)))
}

// fittedTable writes every family, best first or as fitted, and what was refused.
func fittedTable(p *printer, title string, f *model.Fitted) {
	if f == nil {
		return
	}
	header := table.Row{title, "parameters", "dBIC", "KS", "W1/mean", "p50", "p99", "grade"}
	if f.BootstrapP != nil {
		header = append(header, "p")
	}
	var rows []table.Row
	for _, fit := range f.Fits {
		rows = append(rows, fitRow(f, fit))
	}
	if rows != nil {
		p.table(header, rows)
	} else {
		p.section(title)
	}
	if f.Refuse != "" {
		p.notes("refused: " + f.Refuse)
	}
	if t := f.Ticks; t != nil {
		p.notes(fmt.Sprintf("per tick of %s s: n %s, mean %s, IDC %s (Poisson 1), log10 p %s, NB r %s", numberText(t.TickS), Grouped(t.N), numberText(t.Mean), optionalText(t.IDC), optionalText(t.Log10P), optionalText(t.NegBinR)))
	}
	for _, fit := range f.Fits {
		if !fit.Identified && fit.Reason != f.Refuse {
			p.notes(familyOf(fit) + ": " + fit.Reason)
		}
	}
	p.notes(f.Notes...)
	intervalText(p, f)
}

func fitRow(f *model.Fitted, fit stats.Fit) table.Row {
	name := familyOf(fit)
	grade := string(fit.Grade)
	if !fit.Identified {
		grade = "not identified"
	}
	if name == f.Best {
		name += " *"
	}
	row := table.Row{name, paramsText(fit), numberText(round4(fit.DeltaBIC)), numberText(round4(fit.KS)), optionalText(fit.W1OverMean), ratioText(fit, 0.5), ratioText(fit, 0.99), grade}
	if f.BootstrapP != nil {
		if v, ok := f.BootstrapP[familyOf(fit)]; ok {
			return append(row, numberText(round4(v)))
		}
		return append(row, "n/a")
	}
	return row
}

// round4 drops what rounding leaves of a 0.
func round4(v float64) float64 {
	if v > -5e-5 && v < 5e-5 {
		return 0
	}
	return v
}

func ratioText(f stats.Fit, p float64) string {
	for _, q := range f.QuantileRatios {
		if q.P == p {
			return shortText(q.Ratio)
		}
	}
	return "n/a"
}

// paramsText writes the parameters of a fit whose family is named beside them.
func paramsText(f stats.Fit) string {
	spec := stats.SpecOf(f.Law)
	if spec.Of != nil {
		return "cap " + numberText(spec.Params["cap"]) + ", " + strings.TrimPrefix(specText(*spec.Of), spec.Of.Family+" ")
	}
	return strings.TrimPrefix(specText(spec), spec.Family+" ")
}

// specText writes a law in short.
func specText(s stats.LawSpec) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		parts = append(parts, name+" "+shortText(s.Params[name]))
	}
	for _, part := range []*stats.LawSpec{s.Of, s.Body, s.Tail} {
		if part != nil {
			parts = append(parts, specText(*part))
		}
	}
	for i, law := range s.Laws {
		parts = append(parts, percent(s.Weights[i])+" "+specText(law))
	}
	return strings.TrimSpace(s.Family + " " + strings.Join(parts, ", "))
}

func intervalText(p *printer, f *model.Fitted) {
	if f.Intervals == nil {
		return
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(f.Intervals)) {
		i := f.Intervals[name]
		parts = append(parts, fmt.Sprintf("%s %s to %s", name, shortText(i[0]), shortText(i[1])))
	}
	p.notes(f.IntervalsHow + ": " + strings.Join(parts, "; "))
}

// streamsTable writes a line for each stream.
func streamsTable(p *printer, m *model.Workload) {
	p.pair("streams", Grouped(int64(len(m.Streams))))
	var rows []table.Row
	for i := range m.Streams {
		s := &m.Streams[i]
		row := table.Row{strings.Map(printable, s.Name), Grouped(s.Requests)}
		row = append(row, arrivalCells(s.Arrivals)...)
		for _, f := range []*model.Fitted{s.Lengths.Input, s.Lengths.Output} {
			if f == nil {
				row = append(row, "n/a", "n/a")
				continue
			}
			law := "refused"
			if best, ok := bestOf(f); ok {
				law = fmt.Sprintf("%s, %s", f.Best, best.Grade)
			}
			row = append(row, optionalText(f.Mean), law)
		}
		turns, hit := "1", "n/a"
		if s.Sessions != nil && s.Sessions.TurnFits != nil {
			turns = optionalText(s.Sessions.TurnFits.Mean)
		}
		if s.Prefix != nil {
			hit = percent(s.Prefix.HitShare)
		}
		rows = append(rows, append(row, turns, hit))
	}
	p.table(table.Row{"stream", "rows", "rate/s", "CV", "residual", "input", "law", "output", "law", "turns", "tokens hit"}, rows)
	for i := range m.Streams {
		if a := m.Streams[i].Arrivals; a != nil && a.Gaps == nil {
			p.notes(m.Streams[i].Name + ": shape of the gaps refused: " + a.GapsWhy)
		}
	}
}

func arrivalCells(a *model.Arrivals) []any {
	if a == nil {
		return []any{"n/a", "n/a", "n/a"}
	}
	law := "refused"
	if a.Gaps != nil {
		law = specFamily(a)
	}
	cv := "n/a"
	if a.Gap != nil {
		cv = optionalText(a.Gap.CV)
	}
	return []any{numberText(a.RateHz), cv, law}
}

func specFamily(a *model.Arrivals) string {
	text := a.Gaps.Family
	if shape, ok := a.Gaps.Params["shape"]; ok {
		text += " " + shortText(shape)
	}
	if a.Rest != nil && len(a.Rest.Fits) > 0 {
		text += ", " + string(a.Rest.Fits[0].Grade)
	}
	return text
}
