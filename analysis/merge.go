package analysis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace/results"
)

// A MergedRun is one of several runs that a summary holds.
type MergedRun struct {
	Name       string `json:"run"`
	Verdict    string `json:"verdict"` // of this run alone
	Requests   int64  `json:"requests"`
	Successful int64  `json:"successful"`

	reasons []string
}

// SummarizeRuns computes the numbers of several runs, or parts of one, as if
// their requests were those of one: every quantile is of the merged samples or,
// per token and chunk, of merged histograms, and none is averaged. Windows of
// throughputs are the sums of those of the runs; equal names of sessions in two
// runs are two sessions. Runs that do not measure the same thing come with an
// error of [Refusal] unless force is set. Limits are those of the verdicts.
func SummarizeRuns(ctx context.Context, runs []*results.Opened, names []string, slo *SLO, limits Limits, force bool) (*Summary, error) {
	var all *collection
	var parts []MergedRun
	var data []*RunData
	for i, run := range runs {
		c := newCollection(slo)
		if err := eachResult(ctx, run, c.add); err != nil {
			return nil, err
		}
		s := c.summary(run)
		s.Judge(limits)
		q := &s.Requests
		parts = append(parts, MergedRun{names[i], s.Verdict.Result, q.Successful + q.Censored, q.Successful, s.Verdict.Reasons})
		data = append(data, &RunData{Name: names[i], Run: run.Run, Summary: s})
		if all == nil {
			all = newCollection(slo)
		}
		all.merge(c, strconv.Itoa(i)+"/")
	}
	basis := slices.DeleteFunc(Basis(data[:1], data[1:]), func(n BasisNote) bool { return n.What == basisVerdict })
	if err := Refusal(basis); err != nil && !force {
		return nil, err
	}
	s := all.summary(mergedRun(runs))
	s.Merged = parts
	s.Judge(limits)
	for i := range basis {
		s.Warnings = append(s.Warnings, fmt.Errorf("the merged runs differ in %s", basis[i].String()))
	}
	return s, nil
}

// merge adds what another run gathered; prefix sets its sessions apart.
func (c *collection) merge(o *collection, prefix string) {
	c.requests.merge(&o.requests)
	mine, theirs := c.counters(), o.counters()
	for i := range mine {
		mine[i].merge(theirs[i])
	}
	collectors := o.collectors()
	for name, m := range c.collectors() {
		m.merge(collectors[name])
	}
	c.late = append(c.late, o.late...)
	c.sessions.merge(o.sessions, prefix)
	c.spans = append(c.spans, o.spans...)
	c.tokens.merge(&o.tokens)
	c.ttft, c.e2e = append(c.ttft, o.ttft...), append(c.e2e, o.e2e...)
	c.uncounts.input += o.uncounts.input
	c.uncounts.output += o.uncounts.output
	c.erroneous += o.erroneous
	for i, g := range c.goodputs {
		g.merge(o.goodputs[i], prefix)
	}
}

func (c *collection) counters() []counter {
	return []counter{c.outcomes, c.unwritten, c.causes, c.finish, c.statuses, c.notes, c.holds, c.outputSources, c.ledgerSources}
}

func (c counter) merge(o counter) {
	for name, n := range o {
		c[name] += n
	}
}

func (q *Requests) merge(o *Requests) {
	q.Recorded += o.Recorded
	q.WarmUp += o.WarmUp
	q.Dispatched += o.Dispatched
	q.Sent += o.Sent
	q.Successful += o.Successful
	q.Censored += o.Censored
	q.dispatchedAll += o.dispatchedAll
	q.unsentRows += o.unsentRows
}

func (c *collector) merge(o *collector) {
	c.moments.merge(&o.moments)
	c.requests += o.requests
	c.absent.merge(o.absent)
	c.values = append(c.values, o.values...)
	if c.hist != nil {
		c.hist.Merge(o.hist) // of one geometry: nothing is dropped
	}
}

func (m *moments) merge(o *moments) {
	switch {
	case o.n == 0:
		return
	case m.n == 0:
		*m = *o
		return
	}
	m.n += o.n
	m.sum.add(o.sum)
	m.squares.add(o.squares)
	m.min, m.max = min(m.min, o.min), max(m.max, o.max)
}

func (u *rollup) merge(o *rollup, prefix string) {
	for id, c := range o.open {
		u.open[prefix+id] = c
	}
	u.joinWait.merge(o.joinWait)
	for i, c := range u.byTurn {
		c.merge(o.byTurn[i])
	}
}

func (g *goodput) merge(o *goodput, prefix string) {
	for i := range g.terms {
		t, p := &g.terms[i], &o.terms[i]
		t.Met, t.Missed, t.Lacks, t.Censored = t.Met+p.Met, t.Missed+p.Missed, t.Lacks+p.Lacks, t.Censored+p.Censored
	}
	g.good += o.good
	g.limited += o.limited
	g.tokens += o.tokens
	g.unknown += o.unknown
	for id, good := range o.sessions {
		g.sessions[prefix+id] = good
	}
}

func (t *Tokens) merge(o *Tokens) {
	t.Input.merge(&o.Input)
	t.Output.merge(&o.Output)
	for p, q := range map[*Portion]*Portion{&t.Cached: &o.Cached, &t.Reasoning: &o.Reasoning} {
		p.Requests += q.Requests
		p.Tokens += q.Tokens
		p.Of += q.Of
	}
	t.Unsuccessful.Requests += o.Unsuccessful.Requests
	t.Unsuccessful.Tokens += o.Unsuccessful.Tokens
	t.Chunks += o.Chunks
	t.SharedReads += o.SharedReads
	d, e := &t.LedgerDifference, &o.LedgerDifference
	d.Requests += e.Requests
	d.NotZero += e.NotZero
	if e.Largest != nil {
		d.Largest = larger(d.Largest, *e.Largest)
	}
}

func (c *Comparison) merge(o *Comparison) {
	c.Requests += o.Requests
	c.Planned += o.Planned
	c.Counted += o.Counted
	c.Exact += o.Exact
	c.Short += o.Short
	c.Long += o.Long
	c.Unplanned += o.Unplanned
	c.Beside += o.Beside
	if o.Largest != nil {
		c.Largest = larger(c.Largest, *o.Largest)
	}
}

// mergedRun is what run.json would say of several runs: what they have in common,
// and sums.
func mergedRun(runs []*results.Opened) *results.Opened {
	first := runs[0].Run
	run := results.Run{
		Schema: first.Schema, Version: first.Version, Trace: first.Trace, Pace: first.Pace, Speed: first.Speed, Seed: first.Seed, HTTP: first.HTTP,
		Protocol: first.Protocol, Models: maps.Clone(first.Models), Labels: first.Labels, Host: first.Host, Ended: &results.Ended{},
	}
	var labels []string
	out := results.InMemory(run, nil)
	for i, o := range runs {
		r := &o.Run
		out.Recovered = out.Recovered || o.Recovered
		if !slices.Contains(labels, r.Label) {
			labels = append(labels, r.Label)
		}
		for _, url := range r.URLs {
			if !slices.Contains(run.URLs, url) {
				run.URLs = append(run.URLs, url)
			}
		}
		run.Warnings = append(run.Warnings, r.Warnings...)
		if r.Trace == nil || run.Trace == nil || r.Trace.SHA256 != run.Trace.SHA256 {
			run.Trace = nil
		}
		if !maps.Equal(r.Labels, run.Labels) {
			run.Labels = nil
		}
		mergePlanned(&run.Planned, &r.Planned, i == 0)
		mergeEnded(&run, r.Ended, i == 0)
	}
	run.Label = fmt.Sprintf("%s merged: %s", Counted(int64(len(runs)), "run"), strings.Join(labels, "; "))
	out.Run = run
	return out
}

// mergePlanned adds up plans; a sum that one of them does not know is not known.
func mergePlanned(to, p *results.Planned, first bool) {
	if first {
		*to = *p
		return
	}
	to.Requests += p.Requests
	to.DurationNS += p.DurationNS
	for a, b := range map[**int64]*int64{&to.InputTokens: p.InputTokens, &to.OutputTokens: p.OutputTokens, &to.ReuseTokens: p.ReuseTokens} {
		if *a == nil || b == nil {
			*a = nil
			continue
		}
		sum := **a + *b
		*a = &sum
	}
}

// mergeEnded adds how a run ended; without that of one, nobody knows that of all.
func mergeEnded(run *results.Run, e *results.Ended, first bool) {
	switch {
	case e == nil || run.Ended == nil:
		run.Ended = nil
	case first:
		ended := *e
		run.Ended = &ended
	default:
		to := run.Ended
		to.DurationNS += e.DurationNS
		to.Sent += e.Sent
		to.Unsent += e.Unsent
		to.Interrupted, to.Unconcluded = to.Interrupted || e.Interrupted, to.Unconcluded || e.Unconcluded
		to.Capped += e.Capped
		to.Overlaps += e.Overlaps
		to.RecordsLost += e.RecordsLost
		to.RecordError = strings.Trim(to.RecordError+"; "+e.RecordError, "; ")
		to.Aborted = strings.Trim(to.Aborted+"; "+e.Aborted, "; ")
		mergeClient(&to.Client, &e.Client)
	}
}

func mergeClient(to, c *results.Client) {
	if to.CPUSeconds != nil && c.CPUSeconds != nil {
		sum := *to.CPUSeconds + *c.CPUSeconds
		to.CPUSeconds = &sum
	} else {
		to.CPUSeconds = nil
	}
	to.Realtime = to.Realtime && c.Realtime
	to.GCCycles += c.GCCycles
	to.GCPauseNS += c.GCPauseNS
	to.ConnsOpened += c.ConnsOpened
	to.ConnsReused += c.ConnsReused
	to.OutOfDescriptors += c.OutOfDescriptors
	to.OutOfPorts += c.OutOfPorts
	to.ReceiveDelay, to.RunQueue = mergeDelay(to.ReceiveDelay, c.ReceiveDelay), mergeDelay(to.RunQueue, c.RunQueue)
}

// mergeDelay merges histograms; nil where one side has none, since quantiles do
// not add up.
func mergeDelay(a, b *results.Delay) *results.Delay {
	if a == nil || b == nil {
		return nil
	}
	x, errA := hdrhistogram.Decode([]byte(a.Histogram))
	y, errB := hdrhistogram.Decode([]byte(b.Histogram))
	if a.Histogram == "" || b.Histogram == "" || errA != nil || errB != nil {
		return nil
	}
	h := newHistogram()
	h.Merge(x)
	h.Merge(y)
	n, bars := h.TotalCount(), h.Distribution()
	if n == 0 {
		return nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil
	}
	most := max(a.MaxNS, b.MaxNS)
	at := func(q int64) int64 { return min(histogramQuantile(bars, q, n), most) }
	return &results.Delay{N: n, P50NS: at(500), P99NS: at(990), P999NS: at(999), MaxNS: most, Histogram: string(text)}
}

// parts make the merged verdict no better than that of any run.
func (v *Verdict) parts(s *Summary) {
	for _, r := range s.Merged {
		if r.Verdict != Valid {
			v.worsen(r.Verdict, "%s alone is %s: %s", r.Name, r.Verdict, strings.Join(r.reasons, "; "))
		}
	}
}

// mergedText names the runs of a merged report.
func (s *Summary) mergedText(p *printer) {
	for _, r := range s.Merged {
		p.pair("merged", fmt.Sprintf("%s: %s, %s, %s of them successful", r.Name, r.Verdict, Counted(r.Requests, "request"), Grouped(r.Successful)))
	}
}
