package analysis

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// sloHead says in the head of a report whether the goals were met.
func (s *Summary) sloHead(p *printer) {
	r := s.SLO
	if r == nil {
		return
	}
	text := "no gate asked for: limits of single requests measure goodput"
	switch {
	case r.Failed > 0:
		text = fmt.Sprintf("failed: %s of %s gates", Grouped(r.Failed), Grouped(r.Gates))
	case r.Gates > 0:
		text = fmt.Sprintf("met: %s of %s gates", Grouped(r.Gates), Grouped(r.Gates))
	}
	p.pair("slo", text)
}

// text writes what became of an SLO, tier by tier; nothing if there is none.
func (r *SLOResult) text(p *printer) {
	if r == nil {
		return
	}
	p.section("slo")
	p.pair("over", r.overText())
	for i := range r.Tiers {
		r.Tiers[i].text(p, r.LengthIsGood)
	}
}

func (r *SLOResult) overText() string {
	over := "quantiles of gates are over all requests, censored ones as worst values (--slo-over ok: the successful ones)"
	if r.Over == OverOK {
		over = "quantiles of gates are over the successful requests (--slo-over all: censored ones as worst values)"
	}
	return fmt.Sprintf("%s; %s of %s requests were censored: they failed, timed out, were cut or cancelled", over, Grouped(r.Censored), Grouped(r.Requests))
}

func (t *TierResult) text(p *printer, lengthIsGood bool) {
	var rows []table.Row
	for i := range t.Gates {
		g := &t.Gates[i]
		state := "passed"
		if !g.Passed {
			state = "failed"
		}
		all := g.number(g.All)
		if g.NotReached {
			all = "not reached"
		}
		value := g.number(g.Value)
		if g.NotReached && g.Over == OverAll {
			value = "not reached"
		}
		rows = append(rows, table.Row{g.Gate, state, value, g.Over, all, g.number(g.OK), Grouped(g.N), Grouped(g.Censored)})
	}
	if rows != nil {
		p.table(table.Row{t.Name, "gate", "value", "over", "with censored", "successes", "n", "censored"}, rows)
	}
	t.Goodput.text(p, t.Name, lengthIsGood)
}

// number writes a number of a gate with its unit.
func (g *GateResult) number(v *float64) string {
	switch {
	case v == nil:
		return "n/a"
	case g.Unit == "share":
		return percent(*v)
	case g.Unit == unitMS:
		return decimals(*v) + " ms"
	case g.Unit == unitTokens:
		return numberText(*v)
	}
	return decimals(*v) + " /s"
}

func (g *Goodput) text(p *printer, tier string, lengthIsGood bool) {
	if g == nil {
		return
	}
	var rows []table.Row
	for _, t := range g.Terms {
		rows = append(rows, table.Row{t.Term, Grouped(t.Met), Grouped(t.Missed), Grouped(t.Lacks), Grouped(t.Censored)})
	}
	p.table(table.Row{tier + ", requests", "met", "missed", "lacks", "censored"}, rows)
	p.line("")
	share := "n/a"
	if g.Share != nil {
		share = percent(*g.Share)
	}
	p.pair("good", fmt.Sprintf("%s requests (%s); %s requests/s and %s output tokens/s from first sent to last end, %s requests/s of the arrival window",
		Grouped(g.Good), share, rateText(g.PerS), rateText(g.TokensPer), rateText(g.Arriving)))
	if g.Unknown > 0 {
		p.pair("", fmt.Sprintf("without the output of %s good requests, whose count is unknown", Grouped(g.Unknown)))
	}
	if g.Sessions > 0 {
		p.pair("", fmt.Sprintf("%s of %s sessions (%s), %s sessions/s: all their requests are good", Grouped(g.GoodSessions), Grouped(g.Sessions), percent(*g.SessionShare), rateText(g.SessionsPerS)))
	}
	p.pair("rules", g.rules(lengthIsGood))
}

// rules say how the doubtful cases were counted.
func (g *Goodput) rules(lengthIsGood bool) string {
	var parts []string
	var lacks int64
	for _, t := range g.Terms {
		lacks += t.Lacks
	}
	if lacks > 0 {
		parts = append(parts, "a successful request that lacks a number, as an answer of one token has no TPOT, meets that limit and counts under lacks")
	}
	parts = append(parts, "a censored request is never good")
	switch {
	case g.AtLimit > 0 && lengthIsGood:
		parts = append(parts, fmt.Sprintf("%s good answers ended at their token limit (--length-is-good=false: not good)", Grouped(g.AtLimit)))
	case g.AtLimit > 0:
		parts = append(parts, fmt.Sprintf("%s answers within all limits ended at their token limit and are not good; with --output-length exact, all answers do", Grouped(g.AtLimit)))
	}
	return strings.Join(parts, "; ")
}

// text writes the quantiles of all requests, those that did not succeed as worst
// values.
func (f *Failing) text(p *printer) {
	if f.Censored == 0 || len(f.Metrics) == 0 {
		return
	}
	cell := func(v *float64) string {
		if v == nil {
			return "not reached"
		}
		return decimals(*v)
	}
	var rows []table.Row
	for _, m := range f.Metrics {
		rows = append(rows, table.Row{m.Name, Grouped(m.N), cell(m.P50), cell(m.P90), cell(m.P95), cell(m.P99), cell(m.P999)})
	}
	p.table(table.Row{"with failures, ms", "n", "p50", "p90", "p95", "p99", "p99.9"}, rows)
	p.line("")
	p.wrap("", fmt.Sprintf("%s of %s requests (%s) failed, timed out, were cut or cancelled, and stand here as worst values; a quantile whose rank falls among them is not reached",
		Grouped(f.Censored), Grouped(f.Requests), percent(*f.Share)), 2)
}
