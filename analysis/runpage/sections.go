package runpage

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/analysis/stats"
)

// load is what the server had at hand, over time.
func (w *writer) load() chart.Section {
	c := w.c
	s := chart.Section{Heading: "Load over time", Text: []string{"From the time of every chunk, of all requests that were sent. A request counts for the share of a bin during which it was in flight."}, Tables: []chart.Table{w.words("throughput")}}
	if c.sent == 0 {
		s.Notes = append(s.Notes, "No curves, since no request was sent.")
		return s
	}
	n := "n " + analysis.Grouped(c.sent) + " requests"
	waiting, streaming := c.waiting.perSecond(c.end), c.streaming.perSecond(c.end)
	flight := make([]float64, len(waiting))
	for i := range flight {
		flight[i] = waiting[i] + streaming[i]
	}
	u, ok := c.lines("in-flight", "Requests in flight", n, "requests", "", 1, "Waiting is from sent to the first token: queue and prefill; a request without a token waits until its end. Decoding is from the first token to the end.",
		stroke{"in flight", flight}, stroke{"waiting (prefill)", waiting}, stroke{"decoding", streaming})
	add(&s, u, ok, "")
	unknown := ""
	if c.uncounted > 0 {
		unknown = fmt.Sprintf("Tokens per chunk of %s requests are not known, or they had none: they are not in the output.", analysis.Grouped(c.uncounted))
	}
	out, in, held := c.out.perSecond(c.end), c.in.perSecond(c.end), c.tokens.perSecond(c.end)
	u, ok = c.lines("output-rate", "Output tokens per second", n, "output tokens", "1/s", 1, unknown, stroke{"output tokens", out})
	add(&s, u, ok && c.out.any, "Output tokens per second: no chart, since the tokens of no chunk are known.")
	u, ok = c.lines("input-rate", "Input tokens per second", n, "input tokens", "1/s", 1, "A request's input counts evenly from sent to its first token; as the server counted it, else as planned.", stroke{"input tokens", in})
	add(&s, u, ok && c.in.any, "Input tokens per second: no chart, since the input of no request is known.")
	u, ok = c.lines("tokens-in-flight", "Tokens in flight", n, "tokens", "", 1, "Input and the output so far of the requests in flight: what a server without shared prefixes would hold in its cache.", stroke{"tokens in flight", held})
	add(&s, u, ok && c.tokens.any, "Tokens in flight: no chart, since no token count is known.")
	return s
}

func (w *writer) overTime() chart.Section {
	c := w.c
	s := chart.Section{Heading: "Latency over time", Text: []string{"Shades count requests, by the time at which they were sent; the darker, the more."}}
	for _, f := range []struct {
		p          *plane
		id, of     string
		axis, note string
	}{
		{c.ttft, "ttft-over-time", "requests", "TTFT", ""},
		{c.e2e, "e2e-over-time", "requests", "E2E", "It grows with the length of the answer."},
		{c.itl, "itl-over-time", "tokens", "ITL", "Tokens of chunks that came together have one latency each."},
		{c.stall, "stalls-over-time", "requests", "longest stall", "The longest gap between two chunks of each response."},
	} {
		title := strings.ToUpper(f.axis[:1]) + f.axis[1:] + " over time"
		u, ok := c.overTime(f.p, f.id, title, f.of, f.axis, f.note)
		add(&s, u, ok, title+": no chart, since no successful request has it.")
	}
	return s
}

func (w *writer) byInput() chart.Section {
	c := w.c
	s := chart.Section{Heading: "Latency by input length", Text: []string{"Input as the server counted it, else as it was planned."}}
	x := chart.Axis{Title: "input", Unit: "tokens"}
	u, ok := byLog("ttft-by-input", "TTFT by input length", "requests", x, chart.Axis{Title: "TTFT", Unit: "ms"}, inputBits, 1, 1e-6).chart(c.ttftByInput)
	add(&s, u, ok, "TTFT by input length: no chart, since no successful request has both.")
	u, ok = byLog("e2e-by-input", "E2E by input length", "requests", x, chart.Axis{Title: "E2E", Unit: "ms"}, inputBits, 1, 1e-6).chart(c.e2eByInput)
	add(&s, u, ok, "E2E by input length: no chart, since no successful request has both.")
	if c.withoutInput > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("The input of %s successful requests is not known.", analysis.Grouped(c.withoutInput)))
	}
	return s
}

func (w *writer) byGroup() chart.Section {
	c := w.c
	s := chart.Section{Heading: "Latency by turn, session, model and URL"}
	w.turns(&s)
	w.sessions(&s)
	for _, g := range []struct {
		groups
		id, what string
	}{{c.models, "model", "model"}, {c.urls, "url", "URL"}} {
		if len(g.groups) == 1 {
			s.Notes = append(s.Notes, fmt.Sprintf("By %s: there is one, %s, so that the tables above are its own.", g.what, shown(g.names()[0])))
			continue
		}
		t := g.table("By "+g.what+", ms", g.what)
		if !exact(g.groups) {
			t.Title += fmt.Sprintf(" (quantiles at most %s off)", analysis.PercentText(stats.TallyError))
		}
		s.Below = append(s.Below, t)
		u, ok := g.chart(g.id, g.what)
		add(&s, u, ok, "TTFT by "+g.what+": no chart, since no request has one.")
	}
	return s
}

func exact(g groups) bool {
	for _, u := range g {
		if !u.ttft.Exact() || !u.tpot.Exact() || !u.e2e.Exact() {
			return false
		}
	}
	return true
}

// mostCurves is how many groups a chart tells apart.
const mostCurves = 6

// chart sets TTFT quantiles of the largest groups beside one another.
func (g groups) chart(id, what string) (chart.Chart, bool) {
	names := g.names()
	c := chart.Chart{
		ID: "ttft-by-" + id, Title: "TTFT by " + what, X: chart.Axis{Title: "percentile", Log: true, Percentile: true}, Y: chart.Axis{Title: "TTFT", Unit: "ms", Zero: true},
	}
	n := int64(0)
	for _, name := range names[:min(mostCurves, len(names))] {
		t := &g[name].ttft
		if t.N() < 2 {
			continue
		}
		n += t.N()
		line := chart.Series{Name: shown(name), Kind: chart.Step}
		sample := t.Sample(1e-6)
		for x := 1.0; x < min(float64(t.N()), farthest); x *= 1.08 {
			line.X, line.Y = append(line.X, x), append(line.Y, sample.Quantiles1(1 - 1/x)[0])
		}
		c.Series = append(c.Series, line)
	}
	c.Subtitle = "n " + analysis.Grouped(n) + " requests"
	if len(names) > mostCurves {
		c.Note = fmt.Sprintf("The %d with the most requests of %d; the table has the others.", mostCurves, len(names))
	}
	return c, len(c.Series) > 0
}

// turns draws TTFT by place in the session, as the summary has it.
func (w *writer) turns(s *chart.Section) {
	if w.s.Sessions == nil {
		s.Notes = append(s.Notes, "By turn and session: no request names a session.")
		return
	}
	s.Tables = append(s.Tables, metricsTable("Sessions, turns", w.s.Sessions.Metrics, "turns"), metricsTable("Sessions, ms", w.s.Sessions.Metrics, "makespan", "agent_makespan", "join_wait"))
	list := w.s.Sessions.TTFTByTurn
	if len(list) == 0 {
		s.Notes = append(s.Notes, "TTFT by turn: no successful request has both.")
		return
	}
	c := chart.Chart{
		ID: "ttft-by-turn", Title: "TTFT by turn", X: chart.Axis{Title: "turn in its session, from 0", From: -0.5, To: float64(len(list)) - 0.5}, Y: chart.Axis{Title: "TTFT", Unit: "ms", Zero: true},
		Numbers: &chart.Table{Title: "TTFT by turn, ms", Header: []string{"turns", "n", "mean", "p50", "p90", "p99", "max"}},
	}
	lines := []chart.Series{{Name: "p50"}, {Name: "p90"}, {Name: "p99"}}
	n := int64(0)
	for i, turn := range list {
		m := turn.TTFT
		n += m.N
		c.X.Names = append(c.X.Names, turn.Turns)
		for k := range lines {
			lines[k].X, lines[k].Y = append(lines[k].X, float64(i)), append(lines[k].Y, m.Stat(lines[k].Name).Value)
		}
		c.Numbers.Rows = append(c.Numbers.Rows, []string{turn.Turns, analysis.Grouped(m.N), m.Text("mean"), m.Text("p50"), m.Text("p90"), m.Text("p99"), m.Text("max")})
	}
	for k := range lines {
		lines[k].Kind, lines[k].Marks = chart.Lines, true
	}
	c.Series, c.Subtitle = lines, "n "+analysis.Grouped(n)+" requests"
	s.Charts = append(s.Charts, c)
}

func (w *writer) sessions(s *chart.Section) {
	if w.s.Sessions == nil {
		return
	}
	t, means := w.c.sessions.table()
	if len(means) == 0 {
		s.Notes = append(s.Notes, "By session: no request of a session has a TTFT.")
		return
	}
	s.Below = append(s.Below, t)
	u, ok := percentiles("sessions", "Mean TTFT of a session", "mean TTFT", "n "+analysis.Grouped(int64(len(means)))+" sessions", sorted(means), int64(len(means)))
	add(s, u, ok, "Mean TTFT of a session: no plot of one session.")
	if more := w.c.sessions.more; more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("Only the first %s sessions are followed by name: %s requests belong to others.", analysis.Grouped(mostSessions), analysis.Grouped(more)))
	}
}

// chunks shows how tokens came.
func (w *writer) chunks() chart.Section {
	c := w.c
	s := chart.Section{Heading: "Chunks and stalls", Text: []string{"A chunk is one event and not one token. A stall is the longest gap between two chunks of a response."}}
	s.Tables = append(s.Tables, metricsTable("Tokens of a chunk", w.s.Metrics, "tokens_per_chunk"), metricsTable("Gaps, ms", w.s.Metrics, "chunk_gap", "longest_stall"))
	u, ok := c.chunkSizes()
	add(&s, u, ok, "Tokens per chunk: no chart, since they are known of no chunk.")
	gap := w.s.Metrics.Get("chunk_gap")
	u, ok = percentiles("chunk-gap-percentiles", "Gap between chunks", "chunk gap", fmt.Sprintf("n %s of %s, which the interval counts", analysis.Counted(gap.N, "gap"), analysis.Counted(gap.Requests, "response")), w.distribution(gap), min(gap.N, gap.Requests))
	add(&s, u, ok, "Gap between chunks: no plot, since no response has two chunks.")
	u, ok = percentiles("stall-percentiles", "Longest stall of a response", "longest stall", "n "+analysis.Grouped(c.stalls.TotalCount())+" responses", distributionOf(c.stalls, int64(math.Round(w.s.Metrics.Get("longest_stall").Stat("max").Or(0)*1e6))), c.stalls.TotalCount())
	add(&s, u, ok, "Longest stall of a response: no plot, since fewer than two responses have two chunks.")
	if t := &w.s.Tokens; t.SharedShare != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("%s of %s chunks with tokens (%s) came with an earlier one in one read: their gap says nothing of the server.", analysis.Grouped(t.SharedReads), analysis.Grouped(t.Chunks), analysis.PercentText(*t.SharedShare)))
	}
	return s
}

func (c *Collector) chunkSizes() (chart.Chart, bool) {
	u := chart.Chart{ID: "chunk-sizes", Title: "Tokens per chunk", X: chart.Axis{Title: "tokens in a chunk"}, Y: chart.Axis{Title: "chunks", Zero: true}, Numbers: &chart.Table{Header: []string{"tokens", "chunks", "share"}}}
	all, last := int64(0), 0
	for size, n := range c.perChunk {
		if all += n; n > 0 {
			last = size
		}
	}
	if all == 0 {
		return u, false
	}
	bars := chart.Series{Name: "chunks", Kind: chart.Bars}
	for size := 1; size <= min(last, mostTokensPerChunk); size++ {
		bars.X, bars.Y = append(bars.X, float64(size)), append(bars.Y, float64(c.perChunk[size]))
	}
	for size, n := range c.perChunk {
		if n > 0 {
			name := fmt.Sprint(size)
			if size > mostTokensPerChunk {
				name = fmt.Sprintf("more than %d", mostTokensPerChunk)
				u.Note = fmt.Sprintf("%s chunks of more than %d tokens are not drawn.", analysis.Grouped(n), mostTokensPerChunk)
			}
			u.Numbers.Rows = append(u.Numbers.Rows, []string{name, analysis.Grouped(n), analysis.PercentText(float64(n) / float64(all))})
		}
	}
	u.Series, u.Subtitle = []chart.Series{bars}, "n "+analysis.Grouped(all)+" chunks of successful requests"
	u.X.From, u.X.To = 0.4, float64(max(min(last, mostTokensPerChunk), 8))+0.6
	return u, len(bars.X) > 0
}

func (w *writer) errors() chart.Section {
	s := chart.Section{Heading: "Errors"}
	t := chart.Table{Title: "Outcomes", Header: []string{"outcome", "requests", "share"}}
	for _, o := range w.s.Outcomes {
		t.Rows = append(t.Rows, []string{shown(o.Outcome), analysis.Grouped(o.Requests), analysis.PercentText(*o.Share)})
	}
	s.Tables = append(s.Tables, t)
	if len(w.s.Causes.First) == 0 {
		s.Text = append(s.Text, "Every request was successful.")
		return s
	}
	causes := chart.Table{Title: "What was not successful", Header: []string{"cause", "requests"}}
	for _, c := range w.s.Causes.First {
		causes.Rows = append(causes.Rows, []string{shown(c.Name), analysis.Grouped(c.N)})
	}
	if rest := w.s.Causes.Rest; rest > 0 {
		causes.Rows = append(causes.Rows, []string{fmt.Sprintf("%s other causes", analysis.Grouped(w.s.Causes.Names)), analysis.Grouped(rest)})
	}
	s.Tables = append(s.Tables, causes)
	u, ok := w.c.errorLines()
	add(&s, u, ok, "Errors over time: no chart, since nothing that failed has a time.")
	return s
}

// errorBins is about how many bins errors are counted in: they are few.
const errorBins = 40

// inBins sums so many values to one.
func inBins(values []float64, each int) []float64 {
	out := make([]float64, (len(values)+each-1)/each)
	for i, v := range values {
		out[i/each] += v
	}
	return out
}

// errorLines draws the most frequent causes over time, and the rest as one.
func (c *Collector) errorLines() (chart.Chart, bool) {
	names := slices.Sorted(maps.Keys(c.causes))
	totals := map[string]float64{}
	all := 0.0
	for _, name := range names {
		for _, v := range c.causes[name].totals() {
			totals[name] += v
		}
		all += totals[name]
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(totals[b], totals[a]) })
	each := max(1, (c.clock.last+1)/errorBins)
	var strokes []stroke
	for i, name := range names {
		y := inBins(c.causes[name].totals(), each)
		if i < mostCurves-1 || len(names) == mostCurves {
			strokes = append(strokes, stroke{shown(name), y})
			continue
		}
		if i == mostCurves-1 {
			strokes = append(strokes, stroke{fmt.Sprintf("%d other causes", len(names)-i), make([]float64, len(y))})
		}
		rest := strokes[len(strokes)-1].y
		for k := range y {
			rest[k] += y[k]
		}
	}
	if len(strokes) == 0 {
		return chart.Chart{}, false
	}
	u, ok := c.lines("errors", "Errors by cause over time", "n "+analysis.Grouped(int64(all))+" requests that were not successful", "requests in a bin", "", each, "By the time at which each ended; of those that were never sent, by when they were due.", strokes...)
	u.Wide = true
	return u, ok
}

func (w *writer) timeline() chart.Section {
	s := chart.Section{Heading: "Timeline"}
	c, ok := w.c.timeline.chart()
	add(&s, c, ok, "No timeline, since no request was sent.")
	if ok {
		s.Below = append(s.Below, *c.Numbers)
	}
	return s
}
