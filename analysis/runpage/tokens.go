package runpage

import (
	"fmt"

	"reprise/analysis"
	"reprise/analysis/chart"
)

// tokens sets what was planned against what the server counted.
func (w *writer) tokens() chart.Section {
	s := chart.Section{Heading: "Planned and counted tokens", Text: []string{"Of the successful requests that know both."}, Tables: []chart.Table{w.words("accounts"), metricsTable("Tokens of a request", w.s.Metrics, "input_tokens", "output_tokens"), w.comparison()}}
	for _, a := range []struct {
		*account
		of         *analysis.Comparison
		id, name   string
		whenAbsent string
	}{
		{&w.c.input, &w.s.Tokens.Input, "input-account", "Input tokens", "no request has a planned and a counted input"},
		{&w.c.output, &w.s.Tokens.Output, "output-account", "Output tokens", "no request has a planned and a counted output"},
	} {
		switch {
		case a.of.Requests > 0 && a.of.Exact == a.of.Requests:
			s.Notes = append(s.Notes, fmt.Sprintf("%s: planned and counted are equal in all of %s requests, so there is nothing to draw.", a.name, analysis.Grouped(a.of.Requests)))
			continue
		case a.of.Requests == 0:
			s.Notes = append(s.Notes, a.name+": no chart, since "+a.whenAbsent+".")
			continue
		}
		f := byLog(a.id, a.name+", planned and counted", "requests", chart.Axis{Title: "planned", Unit: "tokens"}, chart.Axis{Title: "counted", Unit: "tokens"}, pairBits, 1, 1)
		f.equal = true
		if a.zeros > 0 {
			f.note = fmt.Sprintf("%s requests with 0 planned or counted are not drawn.", analysis.Grouped(a.zeros))
		}
		u, ok := f.chart(&a.plane)
		add(&s, u, ok, a.name+": no chart, since all pairs have a 0.")
	}
	return s
}

func (w *writer) comparison() chart.Table {
	t := chart.Table{Title: "Requests by planned and counted tokens", Header: []string{"tokens", "requests", "planned", "counted", "exact", "short", "long", "largest difference"}}
	for _, c := range []struct {
		name string
		*analysis.Comparison
	}{{"input", &w.s.Tokens.Input}, {"output", &w.s.Tokens.Output}} {
		largest := "n/a"
		if c.Largest != nil {
			largest = fmt.Sprintf("%+d", *c.Largest)
		}
		t.Rows = append(t.Rows, []string{c.name, analysis.Grouped(c.Requests), analysis.Grouped(c.Planned), analysis.Grouped(c.Counted), analysis.Grouped(c.Exact), analysis.Grouped(c.Short), analysis.Grouped(c.Long), largest})
	}
	return t
}

// cache sets what prompts repeat against what the server took from its cache.
func (w *writer) cache() chart.Section {
	s := chart.Section{Heading: "Cache reuse", Text: []string{"Planned is what the leading blocks of the prompts, or the common text of a conversation, repeat of earlier requests, in the order of due times: what an ideal cache, one without limit, would find. Reported is what the server says of the successful requests."}}
	t := chart.Table{Header: []string{"reuse", "tokens", "of", "share", "requests"}}
	row := func(name string, tokens, of int64, requests string) {
		share := "n/a"
		if of > 0 {
			share = analysis.PercentText(float64(tokens) / float64(of))
		}
		t.Rows = append(t.Rows, []string{name, analysis.Grouped(tokens), analysis.Grouped(of), share, requests})
	}
	p := &w.s.Planned
	if p.ReuseTokens != nil && p.InputTokens != nil {
		row("planned, ideal: a cache without limit", *p.ReuseTokens, *p.InputTokens, analysis.Grouped(p.Requests))
	} else {
		s.Notes = append(s.Notes, "Ideal: the run does not know which of its prompts repeat, as with literal prompts.")
	}
	q := &w.s.Tokens.Cached
	if q.Requests > 0 {
		row("reported by the server", q.Tokens, q.Of, analysis.Grouped(q.Requests))
	} else {
		s.Notes = append(s.Notes, "Reported: the server says nothing of its cache.")
	}
	if len(t.Rows) > 0 {
		s.Tables = append(s.Tables, t)
	}
	if q.Requests == 0 {
		return s
	}
	of, hit := w.c.cachedOf.totals(), w.c.cached.totals()
	shares := make([]float64, len(of))
	for i := range of {
		if of[i] > 0 {
			shares[i] = 100 * hit[i] / of[i]
		} else if i > 0 {
			shares[i] = shares[i-1]
		}
	}
	u, ok := w.c.lines("cached", "Share of the input from the server's cache", "n "+analysis.Grouped(q.Requests)+" requests", "share of input tokens", "%", 1, "By the time at which the request was sent; where none was, the share before holds on.", stroke{"reported", shares})
	if ideal := p.ReuseTokens; ideal != nil && p.InputTokens != nil && *p.InputTokens > 0 {
		share := 100 * float64(*ideal) / float64(*p.InputTokens)
		u.Lines = append(u.Lines, chart.Line{Label: "ideal for the whole run, " + analysis.NumberText(share) + " %", At: share})
	}
	add(&s, u, ok, "")
	return s
}

// recorded sets replayed times against those that production measured.
func (w *writer) recorded() chart.Section {
	s := chart.Section{Heading: "Recorded and replayed", Text: []string{"Each request against what the trace recorded of it. A replay at another load, model or machine is expected to differ."}}
	t := chart.Table{Header: []string{"time", "pairs", "median of replayed / recorded", "recorded p50", "p99", "replayed p50", "p99"}}
	for _, m := range []struct {
		id, name string
		of       *analysis.Paired
		plane    *plane
	}{{"recorded-ttft", "TTFT", &w.s.Recorded.TTFT, w.c.ttftPairs}, {"recorded-e2e", "E2E", &w.s.Recorded.E2E, w.c.e2ePairs}} {
		if m.of.Median == nil {
			s.Notes = append(s.Notes, m.name+": the trace records none, or no request that has one was successful.")
			continue
		}
		f := byLog(m.id, m.name+", recorded and replayed", "requests", chart.Axis{Title: "recorded", Unit: "ms"}, chart.Axis{Title: "replayed", Unit: "ms"}, pairBits, 1e-6, 1e-6)
		f.equal = true
		u, ok := f.chart(m.plane)
		add(&s, u, ok, m.name+": no chart, since all times are 0.")
		cells := []string{m.name + ", ms", analysis.Grouped(m.of.Requests), analysis.NumberText(*m.of.Median), "n/a", "n/a", "n/a", "n/a"}
		if ok {
			x, y := m.plane.along(), m.plane.all()
			for i, v := range []float64{x.quantile(500), x.quantile(990), y.quantile(500), y.quantile(990)} {
				cells[3+i] = analysis.TimeText(v / 1e6)
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	if len(t.Rows) > 0 {
		t.Title = fmt.Sprintf("Pairs; quantiles of what is replayed are at most %s off, of what is recorded %s", analysis.PercentText(quantileError), analysis.PercentText(1.0/(2<<pairBits)))
		s.Tables = append(s.Tables, t)
	}
	return s
}

// along returns the places of x as values, each in the middle of its bucket.
func (p *plane) along() *row {
	var sum row
	for i := range p.rows {
		if n := p.rows[i].n; n > 0 {
			low, next := lowOf(i, pairBits), lowOf(i+1, pairBits)
			sum.add(low+(next-low)/2, n)
		}
	}
	return &sum
}
