package analysis

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/results"
)

// WriteText writes s for a person, in up to 120 columns without colour: the
// verdict first.
func WriteText(w io.Writer, s *Summary) error {
	p := &printer{w: w}
	s.head(p)
	s.outcomes(p)
	s.SLO.text(p)
	if s.Requests.Recorded > 0 {
		s.Metrics.table(p, "latency, ms", unitMS)
		s.Failing.text(p)
		s.Metrics.table(p, "tokens", unitTokens)
		s.Metrics.absences(p)
		s.Sessions.text(p)
		s.throughput(p)
		s.telemetryText(p)
		s.account(p)
	}
	if len(s.Warnings) > 0 {
		p.section("warnings")
		for _, warning := range s.Warnings {
			p.wrap("  - ", warning.Error(), 4)
		}
	}
	if s.Requests.Recorded > 0 {
		s.definitions(p)
	}
	return p.err
}

// Because returns why the result is what it is, in words; never empty.
func (v *Verdict) Because() []string {
	switch {
	case len(v.Reasons) > 0:
		return v.Reasons
	case v.LatenessP99 != nil:
		return []string{fmt.Sprintf("p99 lateness %s ms, limit %s ms", decimals(*v.LatenessP99), decimals(v.Limit))}
	}
	return []string{"no lateness is recorded"}
}

// head writes the verdict, and what was planned, sent and late.
func (s *Summary) head(p *printer) {
	v := &s.Verdict
	p.wrap("", v.Result+": "+strings.Join(v.Because(), "; "), 2)
	for _, remark := range v.Remarks {
		p.wrap("  ", remark, 2)
	}
	if len(v.NotMeasured) > 0 {
		p.wrap("  ", "not measured: "+strings.Join(v.NotMeasured, ", ")+" (no verdict on it)", 2)
	}
	p.line("")
	s.sloHead(p)
	s.facts(p)
}

// facts writes what was run, and how far it came.
func (s *Summary) facts(p *printer) {
	v, q := &s.Verdict, &s.Requests
	s.mergedText(p)
	s.workersText(p)
	p.pair("label", s.Label)
	target := strings.Join(s.URLs, ", ") + ", " + s.Protocol
	if s.HTTP != results.HTTP1 {
		target += ", HTTP/" + s.HTTP
	}
	p.pair("target", target)
	if s.Trace != nil {
		p.pair("trace", fmt.Sprintf("%s (sha256 %.12s)", s.Trace.Name, s.Trace.SHA256))
	}
	p.pair("planned", fmt.Sprintf("%s%s, %s input and %s output tokens",
		Counted(s.Planned.Requests, "request"), s.plannedTime(), plannedTokens(s.Planned.InputTokens), plannedTokens(s.Planned.OutputTokens)))
	sent := fmt.Sprintf("%s, %s recorded", Counted(q.Sent, "request"), Grouped(q.Recorded))
	if q.WarmUp > 0 {
		sent += fmt.Sprintf(", %s of the warm-up or cool-down, in none of the numbers", Grouped(q.WarmUp))
	}
	if q.Killed {
		sent += fmt.Sprintf(", %s without a record", Grouped(s.Planned.Requests-q.Recorded))
	}
	sent += s.neverSent()
	if q.Capped > 0 {
		sent += fmt.Sprintf(", %s held by --max-in-flight", Grouped(q.Capped))
	}
	p.pair("sent", sent)
	if v.LatenessP99 != nil {
		m := s.Metrics.Get("lateness")
		p.pair("lateness", fmt.Sprintf("p50 %s ms, p99 %s ms, p99.9 %s ms, max %s ms (n %s); limit for p99 %s ms, the larger of %s ms and %s of the median TTFT",
			m.cell(m.Stat("p50")), m.cell(m.Stat("p99")), m.cell(m.Stat("p99_9")), m.cell(m.Stat("max")), Grouped(m.N), decimals(v.Limit), plainNumber(v.LateLimit), percent(v.LateShare)))
		p.pair("", s.Late.worst())
	}
}

// neverSent says of how many requests no byte was written, and why; "" if there are none.
func (s *Summary) neverSent() string {
	q, n, e := &s.Requests, int64(0), s.run.Ended
	var why []Count
	for _, c := range s.NeverSent {
		if c.Name != results.OutcomeUnsent {
			why = append(why, c)
		}
	}
	if q.Unsent > 0 && e != nil {
		name := "never begun"
		switch {
		case e.Aborted != "":
			name = "aborted before"
		case e.Interrupted:
			name = "interrupted before"
		case e.Unconcluded:
			name = "the coordinator was gone before"
		}
		why = append(why, Count{name, q.Unsent})
	}
	for _, c := range why {
		n += c.N
	}
	text := ""
	if n > 0 {
		text = fmt.Sprintf(", %s never sent (%s)", Grouped(n), countsText(why))
	}
	if e != nil && e.Lost > 0 {
		text += fmt.Sprintf(", %s lost with their workers", Grouped(e.Lost))
	}
	return text
}

// plannedTime says how long the plan is, if it says that.
func (s *Summary) plannedTime() string {
	switch p := s.Planned; {
	case p.UntilNS != nil:
		return fmt.Sprintf(", as many as there was time for in %v", time.Duration(*p.UntilNS).Round(time.Millisecond))
	case p.DurationNS > 0 || !strings.Contains(s.Label, "closed loop"):
		return fmt.Sprintf(" in %v", time.Duration(p.DurationNS).Round(time.Millisecond))
	}
	return ""
}

// receive writes how late the client read.
func (s *Summary) receive(p *printer) {
	if s.Client == nil || s.Client.ReceiveDelay == nil {
		return
	}
	d := s.Client.ReceiveDelay
	ms := func(ns int64) string { return decimals(float64(ns) / 1e6) }
	text := fmt.Sprintf("p50 %s ms, p99 %s ms, max %s ms (n %s), from the kernel's receipt to our read", ms(d.P50NS), ms(d.P99NS), ms(d.MaxNS), Counted(d.N, "read"))
	if limit := s.Verdict.ReceiveLimit; limit != nil {
		text += fmt.Sprintf("; limit for p99 %s ms, %s of the median ITL", decimals(*limit), percent(s.Verdict.ReceiveShare))
	}
	p.pair("receive", text)
}

func (s *Summary) outcomes(p *printer) {
	s.receive(p)
	var parts []string
	for _, o := range s.Outcomes {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", o.Outcome, Grouped(o.Requests), percent(*o.Share)))
	}
	p.pair("outcomes", strings.Join(parts, ", "))
	for _, c := range s.Causes.First {
		p.pair("", fmt.Sprintf("%s x %s", Grouped(c.N), c.Name))
	}
	if s.Causes.Rest > 0 {
		p.pair("", fmt.Sprintf("%s x %s", Grouped(s.Causes.Rest), Counted(s.Causes.Names, "other cause")))
	}
	p.pair("held", countsText(s.Holds))
	p.pair("http status", countsText(s.HTTPStatuses))
	p.pair("finish", topText(s.FinishReasons))
	p.pair("notes", topText(s.Notes))
}

func topText(t Top) string {
	text := countsText(t.First)
	if t.Rest > 0 {
		text += fmt.Sprintf(", %s %s", Counted(t.Names, "other"), Grouped(t.Rest))
	}
	return text
}

// table writes the metrics of one unit.
func (list Metrics) table(p *printer, title, unit string) {
	t := table.NewWriter()
	t.SetStyle(plain)
	header := table.Row{title, "n"}
	configs := []table.ColumnConfig{{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight}}
	for i, name := range Stats {
		header = append(header, strings.ReplaceAll(name, "_", "."))
		configs = append(configs, table.ColumnConfig{Number: i + 3, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, m := range list {
		if m.Unit != unit {
			continue
		}
		row := table.Row{m.Name, Grouped(m.N)}
		for _, v := range m.stats {
			row = append(row, m.cell(v))
		}
		t.AppendRow(row)
	}
	t.SuppressTrailingSpaces()
	p.line("")
	p.line(t.Render())
}

// plain is a table without lines, borders and colour.
var plain = table.Style{
	Name:    "plain",
	Box:     table.BoxStyle{PaddingRight: "  ", MiddleHorizontal: "-"},
	Format:  table.FormatOptions{},
	Options: table.Options{SeparateHeader: true},
}

// absences says which requests a metric does not hold, and why.
func (list Metrics) absences(p *printer) {
	var order []string
	names := map[string][]string{}
	for _, m := range list {
		if len(m.Absent) == 0 || m.Name == "hold" && m.N > 0 || m.Name == "connect" && m.N > 0 {
			continue
		}
		var requests int64
		for _, c := range m.Absent {
			requests += c.N
		}
		why := fmt.Sprintf("absent in %s: %s", Counted(requests, "request"), countsText(m.Absent))
		if m.N == 0 {
			why = "n/a (0 samples): " + countsText(m.Absent)
		}
		if names[why] == nil {
			order = append(order, why)
		}
		names[why] = append(names[why], m.Name)
	}
	if order != nil {
		p.line("")
	}
	for _, why := range order {
		p.wrap("", strings.Join(names[why], ", ")+": "+why, 2)
	}
}

// definitions writes what each metric is.
func (s *Summary) definitions(p *printer) {
	p.section("definitions")
	p.wrap("  ", fmt.Sprintf("Tables hold the successful requests (ok, not_streamed) unless a line says otherwise. Quantiles are nearest-rank; those of tokens and chunks are at most %s above the sample, all others exact. std is over n - 1.", percent(HistogramError)), 2)
	list := s.Metrics
	if s.Sessions != nil {
		list = append(list[:len(list):len(list)], s.Sessions.Metrics...)
	}
	for _, m := range list {
		p.wrap(fmt.Sprintf("  %-17s", m.Name), fmt.Sprintf("%s; n counts %ss", m.Definition, m.Of), 19)
	}
}

// plannedTokens is a sum, or says that no request of the plan knows.
func plannedTokens(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return Grouped(*n)
}
