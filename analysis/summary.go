package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/analysis/telemetry"
	"reprise/trace"
	"reprise/trace/results"
)

// SummarySchema is the version of summary.json.
const SummarySchema = 1

// topNames is how many causes, finish reasons and notes a summary names.
const topNames = 10

// A Summary holds the numbers of a run: summary.json. What is not known is null.
// Latency tables, tokens and throughput hold the successful requests; the others
// are counted by outcome and cause. Equal results give equal bytes.
type Summary struct {
	Schema  int     `json:"schema"`
	Verdict Verdict `json:"verdict"`

	Merged []MergedRun `json:"merged,omitempty"` // the runs, where it holds several

	Workers []results.Worker `json:"workers,omitempty"` // the load hosts of a run of several

	Label    string            `json:"label"` // open loop, capped, ...
	Labels   map[string]string `json:"labels"`
	Version  string            `json:"version"` // of the program that ran it
	Trace    *trace.Input      `json:"trace"`
	Pace     string            `json:"pace"`
	Speed    float64           `json:"speed"`
	Seed     uint64            `json:"seed"`
	Protocol string            `json:"protocol"`
	URLs     []string          `json:"urls"`
	HTTP     string            `json:"http"`   // version: 1.1 or 2
	Models   map[string]string `json:"models"` // recorded to sent

	Planned       results.Planned `json:"planned"`
	Requests      Requests        `json:"requests"`
	Outcomes      []Outcome       `json:"outcomes"`
	ErrorRate     *float64        `json:"error_rate"` // failed / ended; cut and cancelled requests have not failed
	Causes        Top             `json:"causes"`     // of what was not successful: "outcome: cause"
	FinishReasons Top             `json:"finish_reasons"`
	NeverSent     []Count         `json:"never_sent"` // of the recorded, by outcome: no byte was written
	HTTPStatuses  []Count         `json:"http_statuses"`
	Notes         Top             `json:"notes"` // doubts about single responses
	Holds         []Count         `json:"holds"` // requests held, by cause

	SLO *SLOResult `json:"slo"` // null where none was asked for

	Metrics    Metrics         `json:"metrics"`
	Failing    Failing         `json:"with_failures"`   // quantiles with failures as worst values
	Late       *Slices         `json:"lateness_slices"` // null if nothing was dispatched
	Sessions   *Sessions       `json:"sessions"`        // null if no request names one
	Throughput Throughput      `json:"throughput"`
	Steady     *Steady         `json:"steady"` // null for merged runs
	Tokens     Tokens          `json:"tokens"`
	Recorded   Recorded        `json:"recorded"`
	Client     *results.Client `json:"client"` // of the workers that came to an end; null where none did, and in a run that was killed

	Telemetry *telemetry.Summary `json:"telemetry,omitempty"` // what servers said of themselves; absent where none was asked

	Warnings Warnings `json:"warnings"`

	run        results.Run
	histograms map[string]*hdrhistogram.Histogram
}

// Warnings are doubts about numbers that stand.
type Warnings []error

// MarshalJSON writes a list of strings.
func (w Warnings) MarshalJSON() ([]byte, error) {
	list := make([]string, 0, len(w))
	for _, err := range w {
		list = append(list, err.Error())
	}
	return json.Marshal(list)
}

// Requests are the requests of a run by how far they came. Those of the warm-up
// count in Recorded, RecordsLost, Unsent, Capped and Overlaps; the rest is without them.
type Requests struct {
	Recorded    int64 `json:"recorded"`   // rows of the results
	WarmUp      int64 `json:"warm_up"`    // of these, in the phases warm-up and cool-down
	Dispatched  int64 `json:"dispatched"` // the client acted
	Sent        int64 `json:"sent"`       // a byte was written
	Successful  int64 `json:"successful"` // outcome ok or not_streamed
	Censored    int64 `json:"censored"`   // failed, timed out, cut or cancelled: their latencies are at least what they were
	Unsent      int64 `json:"unsent"`     // planned, but never sent
	Interrupted bool  `json:"interrupted"`
	Killed      bool  `json:"killed"`           // no end is recorded: the run was killed, or goes on
	Unconcluded bool  `json:"unconcluded"`      // its coordinator did not end it: assembled from what workers had kept
	Recovered   bool  `json:"recovered"`        // read from the parts of the results
	RecordsLost int64 `json:"records_lost"`     // sent, but not in the results
	Capped      int64 `json:"capped"`           // waited for --max-in-flight
	Overlaps    int64 `json:"session_overlaps"` // sent while an earlier request of their session was in flight

	dispatchedAll int64 // warm-up included
	unsentRows    int64
}

// Ended is how many requests came to an end, good or bad.
func (q *Requests) Ended() int64 { return q.Successful + q.Censored }

// An Outcome is one class of outcomes.
type Outcome struct {
	Outcome  string   `json:"outcome"`
	Requests int64    `json:"requests"`
	Share    *float64 `json:"share"` // of all recorded but those of the warm-up
}

// Recorded compares with what production measured.
type Recorded struct {
	TTFT Paired `json:"ttft"`
	E2E  Paired `json:"e2e"`
}

// A Paired is the median over requests of replayed / recorded, of the
// successful requests that have both.
type Paired struct {
	Requests int64    `json:"requests"`
	Median   *float64 `json:"median_ratio"`
}

func (s ratios) paired() Paired {
	p := Paired{Requests: int64(len(s))}
	if len(s) > 0 {
		m := math.Round(median(s)*1e6) / 1e6
		p.Median = &m
	}
	return p
}

// Summarize computes the numbers of a run in one pass over its results, with
// the default limits of the verdict ([Summary.Judge] applies others). Its
// memory grows by about 220 bytes a request, and not with tokens. Each watcher
// sees every result too, those of the warm-up included, in the order of the file.
func Summarize(ctx context.Context, run *results.Opened, watchers ...func(*results.Result)) (*Summary, error) {
	return SummarizeSLO(ctx, run, nil, watchers...)
}

// SummarizeSLO is [Summarize] that also holds the run against an SLO, unless it
// is nil.
func SummarizeSLO(ctx context.Context, run *results.Opened, slo *SLO, watchers ...func(*results.Result)) (*Summary, error) {
	c := newCollection(slo)
	said := telemetry.Collector{}
	err := eachResult(ctx, run, func(r *results.Result) {
		c.add(r)
		said.Add(r)
		for _, watch := range watchers {
			watch(r)
		}
	})
	if err != nil {
		return nil, err
	}
	s := c.summary(run)
	if s.Telemetry, err = said.Summary(run); err != nil {
		s.Warnings = append(s.Warnings, fmt.Errorf("no telemetry: %w", err))
	}
	return s, nil
}

// eachResult reads the results of a run, until ctx ends.
func eachResult(ctx context.Context, run *results.Opened, do func(*results.Result)) error {
	for r, err := range run.Results() {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		do(&r)
	}
	return nil
}

// Histogram returns a latency as histograms.hlog has it, in ns; nil if it is not
// one of its metrics. Its quantiles are at most HistogramError above the sample.
func (s *Summary) Histogram(name string) *hdrhistogram.Histogram { return s.histograms[name] }

func (c *collection) summary(run *results.Opened) *Summary {
	r := run.Run
	s := &Summary{
		Schema: SummarySchema, Label: r.Label, Labels: r.Labels, Version: r.Version, Trace: r.Trace, Pace: r.Pace, Speed: r.Speed, Seed: r.Seed,
		Protocol: r.Protocol, URLs: r.URLs, HTTP: cmp.Or(r.HTTP, results.HTTP1), Models: r.Models, Planned: r.Planned,
		Requests: c.requests, Causes: c.causes.top(topNames), FinishReasons: c.finish.top(topNames),
		HTTPStatuses: c.statuses.list(), Notes: c.notes.top(topNames), Holds: c.holds.list(),
		Sessions: c.sessions.summary(), Throughput: c.throughput(), Tokens: c.tokens, Late: sliced(c.late),
		Recorded: Recorded{c.ttft.paired(), c.e2e.paired()},
		Workers:  r.Workers,
		run:      r, histograms: map[string]*hdrhistogram.Histogram{},
	}
	s.Requests.end(run)
	if r.Ended != nil && (len(r.Workers) == 0 || r.Said() > 0) {
		s.Client = &r.Ended.Client
	}
	measured := c.requests.Recorded - c.requests.WarmUp
	s.NeverSent = c.unwritten.list()
	s.Outcomes = make([]Outcome, 0, len(c.outcomes))
	for _, o := range c.outcomes.list() {
		s.Outcomes = append(s.Outcomes, Outcome{o.Name, o.N, share(o.N, measured)})
	}
	s.Tokens.close(c)
	all := c.collectors()
	for _, name := range tableOrder {
		s.Metrics = append(s.Metrics, all[name].metric())
	}
	for _, name := range histogramsOf {
		s.histograms[name] = all[name].histogram()
	}
	s.Failing, s.ErrorRate = c.failing(), c.errorRate()
	s.SLO = c.sloResult(s, all)
	if len(c.spans) == 1 {
		s.Steady = steadyOf(c.flown)
	}
	s.Judge(Limits{})
	s.Warnings = s.warnings()
	return s
}

// end adds what run.json says of the end of the run. Without it, all that was
// planned and not recorded counts as unsent: whether it was sent is not known.
func (q *Requests) end(run *results.Opened) {
	q.Recovered = run.Recovered
	e := run.Run.Ended
	if e == nil {
		q.Killed = true
		q.Unsent = max(q.unsentRows, run.Run.Planned.Requests-q.dispatchedAll)
		return
	}
	q.Interrupted, q.Unconcluded, q.Capped, q.Overlaps = e.Interrupted, e.Unconcluded, e.Capped, e.Overlaps
	q.Unsent = max(q.unsentRows, e.Unsent)
	q.RecordsLost = max(e.RecordsLost, e.Sent-q.dispatchedAll)
}

// milliseconds returns d in ms.
func milliseconds(d time.Duration) *float64 {
	ms := float64(d) / 1e6
	return &ms
}
