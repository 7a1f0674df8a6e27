package analysis

import (
	"fmt"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// throughput writes the rates, each with its window.
func (s *Summary) throughput(p *printer) {
	t := &s.Throughput
	p.section("throughput")
	if t.WindowMS != nil {
		text := fmt.Sprintf("%s requests/s, %s input tokens/s, %s output tokens/s over %s, first sent to last end",
			rateText(t.RequestsPerS), rateText(t.InputTokensPerS), rateText(t.OutputTokensPerS), spanText(t.WindowMS))
		p.pair("whole", text)
		if t.InputUncounted+t.OutputUncounted > 0 {
			p.pair("", fmt.Sprintf("without the input of %s and the output of %s successful requests, whose count is unknown", Grouped(t.InputUncounted), Grouped(t.OutputUncounted)))
		}
		p.pair("steady", fmt.Sprintf("%s requests/s completed over %s, first to last sent", rateText(t.SteadyPerS), spanText(t.SteadyWindowMS)))
		p.pair("drain", spanText(t.DrainMS)+", last sent to last end")
	}
	s.steady(p)
	if t.ArrivalWindowMS != nil {
		p.pair("arrivals", fmt.Sprintf("%s requests/s due over %s, first to last due", rateText(t.DuePerS), spanText(t.ArrivalWindowMS)))
	}
}

func rateText(rate *float64) string {
	if rate == nil {
		return "n/a"
	}
	return decimals(*rate)
}

func spanText(ms *float64) string {
	if ms == nil {
		return "n/a"
	}
	return time.Duration(*ms * 1e6).Round(time.Millisecond).String()
}

// account writes the token accounts, the reads and the client.
func (s *Summary) account(p *printer) {
	t := &s.Tokens
	p.section("accounts")
	p.pair("input", comparisonText(&t.Input))
	p.pair("output", comparisonText(&t.Output))
	if u := t.Unsuccessful; u.Requests > 0 {
		p.pair("partial", fmt.Sprintf("%s came in %s that did not succeed; they are in no table", Counted(u.Tokens, "output token"), Counted(u.Requests, "request")))
	}
	p.pair("cached", portionText(&t.Cached, "counted input tokens"))
	p.pair("reuse", s.plannedReuse())
	p.pair("reasoning", portionText(&t.Reasoning, "output tokens"))
	p.pair("counted by", countsText(t.OutputSources))
	p.pair("chunks by", countsText(t.LedgerSources))
	if d := &t.LedgerDifference; d.Requests > 0 {
		text := fmt.Sprintf("%s of %s responses add up to their final usage", Grouped(d.Requests-d.NotZero), Grouped(d.Requests))
		if d.NotZero > 0 {
			text += fmt.Sprintf(", largest difference %+d tokens", *d.Largest)
		}
		p.pair("ledger", text)
	}
	if t.Chunks > 0 {
		p.pair("reads", fmt.Sprintf("%s of %s chunks with tokens (%s) came with an earlier event in one read", Grouped(t.SharedReads), Grouped(t.Chunks), percent(*t.SharedShare)))
	}
	p.pair("recorded", s.recordedText())
	p.pair("client", s.clientText())
	p.pair("histograms", s.histogramsText())
}

// histogramsText states the error bound of what is counted in histograms.
func (s *Summary) histogramsText() string {
	var tables, log []string
	for _, m := range s.Metrics {
		if m.QuantileError > 0 {
			tables = append(tables, m.Name)
		}
	}
	for _, name := range histogramsOf {
		if h := s.histograms[name]; h != nil && h.TotalCount() > 0 {
			log = append(log, name)
		}
	}
	text := fmt.Sprintf("quantiles of %s above are of histograms: %d significant digits, at most %s above the sample", strings.Join(tables, ", "), histogramDigits, percent(HistogramError))
	if len(log) > 0 {
		text += fmt.Sprintf("; %s keeps %s with the same bound", results.HistogramsFile, strings.Join(log, ", "))
	}
	return text
}

func comparisonText(c *Comparison) string {
	beside := ""
	if c.Unplanned > 0 {
		beside = fmt.Sprintf("%s counted in %s without a planned count", Grouped(c.Beside), Counted(c.Unplanned, "request"))
	}
	switch {
	case c.Requests == 0 && beside != "":
		return beside
	case c.Requests == 0:
		return "n/a: the server counted no request"
	}
	text := fmt.Sprintf("%s planned, %s counted; exact in %s of %s requests (%s)",
		Grouped(c.Planned), Grouped(c.Counted), Grouped(c.Exact), Grouped(c.Requests), percent(*c.ExactShare))
	if c.Exact < c.Requests {
		text += fmt.Sprintf(", short in %s (%s), long in %s, largest difference %+d", Grouped(c.Short), percent(*c.ShortShare), Grouped(c.Long), *c.Largest)
	}
	if beside != "" {
		text += "; " + beside
	}
	return text
}

func portionText(q *Portion, of string) string {
	if q.Requests == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s %s", Grouped(q.Tokens), Grouped(q.Of), of)
	if q.Share != nil {
		text += fmt.Sprintf(" (%s)", percent(*q.Share))
	}
	return text + "; said by " + Counted(q.Requests, "request")
}

func (s *Summary) recordedText() string {
	var parts []string
	for _, c := range []struct {
		name string
		Paired
	}{{"TTFT", s.Recorded.TTFT}, {"E2E", s.Recorded.E2E}} {
		if c.Median != nil {
			parts = append(parts, fmt.Sprintf("%s %s times the recorded one (median of %s)", c.name, decimals(*c.Median), Counted(c.Requests, "pair")))
		}
	}
	return strings.Join(parts, ", ")
}

func (s *Summary) clientText() string {
	c := s.Client
	if c == nil {
		return ""
	}
	cpu := "CPU time not measured"
	if c.CPUSeconds != nil {
		cpu = decimals(*c.CPUSeconds) + " s CPU"
		if s.run.Ended.DurationNS > 0 && s.run.Host.CPUs > 0 {
			cpu += fmt.Sprintf(" (%s of %d CPUs)", percent(*c.CPUSeconds*1e9/float64(s.run.Ended.DurationNS)/float64(s.run.Host.CPUs)), s.run.Host.CPUs)
		}
	}
	text := fmt.Sprintf("%s, %s with %v of pauses, %s opened, reused by %s",
		cpu, Counted(int64(c.GCCycles), "GC cycle"), time.Duration(c.GCPauseNS).Round(time.Microsecond), Counted(c.ConnsOpened, "connection"), Counted(c.ConnsReused, "request"))
	if q := c.RunQueue; q != nil {
		text += fmt.Sprintf("; run queue p99 %v, max %v", time.Duration(q.P99NS).Round(time.Microsecond), time.Duration(q.MaxNS).Round(time.Microsecond))
	}
	if n := s.run.Said(); n < len(s.run.Workers) {
		text += fmt.Sprintf("; of %d of %s, since the others did not come to an end", n, trace.Plural(len(s.run.Workers), "worker"))
	}
	return text
}
