// Package telemetry reads what was scraped from servers during a run: series that
// have one name and unit here, whatever the exporter calls them, and the energy of a
// token where power is known.
package telemetry

import (
	"math"
	"slices"
	"strings"
	"time"

	"reprise/trace/results"
)

// A Summary is what servers said during a run. What is not known is absent.
type Summary struct {
	Sources []Source `json:"sources"`
	Series  []Series `json:"series"`           // known ones, in the order of the table in METRICS.md, sources within
	Energy  []Energy `json:"energy,omitempty"` // of the kinds of power that are known
	Other   int64    `json:"other_names"`      // names of samples that are in no series; they are in telemetry.parquet
}

// A Source is one page that was scraped.
type Source struct {
	URL        string  `json:"url"`
	Exporters  string  `json:"exporters"` // whose series it has; "" = none that is known
	Scrapes    int64   `json:"scrapes"`
	Failed     int64   `json:"failed"`
	Skipped    *int64  `json:"skipped"`     // since the one before was not over; null in a run that was killed
	FirstError *string `json:"first_error"` // null without one, and in a run that was killed
	Unusable   int64   `json:"unusable"`    // samples of series below that are NaN, infinite or negative, which none of these can be
	SlowestMS  float64 `json:"slowest_ms"`  // longest scrape: a sample may be younger than its time by that
}

// A Series is one quantity of one source over the run. Samples before the first
// request and after the last answer are in it.
type Series struct {
	Name     string  `json:"name"`
	Title    string  `json:"-"`
	Unit     string  `json:"unit"`
	Source   string  `json:"source"`
	Exporter string  `json:"exporter"`
	Metric   string  `json:"metric"` // as the exporter names it
	N        int64   `json:"n"`      // samples; of rates and shares of counters, pairs of samples
	Mean     float64 `json:"mean"`   // of the samples
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Last     float64 `json:"last"`

	Points []Point `json:"-"`
}

// A Point is a sample of a series.
type Point struct {
	At    time.Duration // since the start of the run; of rates, the later of the two samples
	Value float64
}

// An Energy is the integral of power over the run.
type Energy struct {
	Power    string   `json:"power"`            // series: gpu_power or host_power
	N        int64    `json:"n"`                // samples of power
	Joules   float64  `json:"joules"`           // trapezoids between samples, first to last of each source
	Covered  float64  `json:"covered"`          // share of the run, first sent to last end, between samples that are no more than 5 intervals apart; the least of the sources
	Tokens   int64    `json:"output_tokens"`    // of all requests whose count is known, warm-up and failures included
	PerToken *float64 `json:"joules_per_token"` // null without tokens, or where less than 90 % of the run is covered
}

// Bounds of an energy per token.
const (
	mostGaps     = 5
	leastCovered = 0.9
)

// A Collector takes the results of a run for what telemetry needs of them.
type Collector struct {
	tokens     int64
	first, end time.Duration
	any        bool
}

// Add takes a result.
func (c *Collector) Add(r *results.Result) {
	c.tokens += r.OutputTokens.Or(0)
	if r.Sent.Known && r.End.Known {
		if !c.any {
			c.first, c.end, c.any = r.Sent.Value, r.End.Value, true
		}
		c.first, c.end = min(c.first, r.Sent.Value), max(c.end, r.End.Value)
	}
}

// Summary reads the telemetry of a run; nil if it has none. Memory grows by 16 bytes a
// scrape and series.
func (c *Collector) Summary(run *results.Opened) (*Summary, error) {
	r := &reader{pages: map[string]*page{}}
	for s, err := range run.Telemetry() {
		if err != nil {
			return nil, err
		}
		r.add(&s)
	}
	if len(r.pages) == 0 && len(run.Run.Telemetry) == 0 {
		return nil, nil
	}
	r.end()
	s := &Summary{Sources: []Source{}, Series: []Series{}, Other: r.others()}
	order := r.order(run.Run.Telemetry)
	for _, url := range order {
		s.Sources = append(s.Sources, r.source(url, run.Run.Telemetry))
	}
	for i := range known {
		for _, url := range order {
			if p := r.pages[url]; p != nil {
				if found := p.series(i); found != nil {
					found.Source = url
					s.Series = append(s.Series, *found)
				}
			}
		}
	}
	for _, power := range []string{"gpu_power", "host_power"} {
		if e, ok := c.energy(s.Series, power); ok {
			s.Energy = append(s.Energy, e)
		}
	}
	return s, nil
}

// energy integrates a power over the run.
func (c *Collector) energy(list []Series, power string) (Energy, bool) {
	e := Energy{Power: power, Tokens: c.tokens, Covered: 1}
	for i := range list {
		if list[i].Name != power || len(list[i].Points) < 2 || !c.any || c.end <= c.first {
			continue
		}
		joules, covered := integral(list[i].Points, c.first, c.end)
		e.N += list[i].N
		e.Joules += joules
		e.Covered = min(e.Covered, covered.Seconds()/(c.end-c.first).Seconds())
	}
	if e.N == 0 {
		return e, false
	}
	if e.Tokens > 0 && e.Covered >= leastCovered {
		e.PerToken = new(e.Joules / float64(e.Tokens))
	}
	return e, true
}

// integral sums trapezoids within a window, and how long they reach. Gaps of more than
// mostGaps usual intervals are not bridged.
func integral(points []Point, from, to time.Duration) (sum float64, covered time.Duration) {
	gaps := make([]time.Duration, 0, len(points)-1)
	for i := 1; i < len(points); i++ {
		gaps = append(gaps, points[i].At-points[i-1].At)
	}
	usual := slices.Clone(gaps)
	slices.Sort(usual)
	longest := mostGaps * usual[len(usual)/2]
	for i, gap := range gaps {
		a, b := points[i], points[i+1]
		low, high := max(a.At, from), min(b.At, to)
		if gap > longest || gap <= 0 || high <= low {
			continue
		}
		at := func(t time.Duration) float64 {
			return a.Value + (b.Value-a.Value)*float64(t-a.At)/float64(gap)
		}
		sum += (at(low) + at(high)) / 2 * (high - low).Seconds()
		covered += high - low
	}
	return sum, covered
}

// A page gathers the samples of one source.
type page struct {
	at      time.Duration // of the scrape that is being read
	rules   map[place]*track
	scrapes int64
	failed  int64
	bad     int64 // samples that a known series cannot have
	slowest float64
	others  map[string]bool
}

// mostOthers bounds how many names are told apart that are in no series.
const mostOthers = 100_000

// A track follows one rule of one source.
type track struct {
	sum, of       float64 // of the scrape that is being read
	n, ofN        int     // samples that these hold
	spoilt        bool    // one that belongs to the sum cannot be used
	before, ofOld float64 // of the one before
	when          time.Duration
	seen          bool
	points        []Point
}

type reader struct{ pages map[string]*page }

func (r *reader) add(s *results.Sample) {
	p := r.pages[s.Source]
	if p == nil {
		p = &page{at: -1, rules: map[place]*track{}, others: map[string]bool{}}
		r.pages[s.Source] = p
	}
	if at := time.Duration(s.AtNS); at != p.at {
		p.close()
		p.at = at
	}
	switch {
	case s.Name == results.ScrapeUp:
		p.scrapes++
		if s.Value == 0 {
			p.failed++
		}
		return
	case s.Name == results.ScrapeSeconds:
		p.slowest = max(p.slowest, s.Value)
		return
	}
	places := byMetric[s.Name]
	if places == nil {
		if len(p.others) < mostOthers {
			p.others[s.Name] = true
		}
		return
	}
	if !usable(s.Value) {
		p.bad++
	}
	for _, at := range places {
		p.take(at, s)
	}
}

// take adds a sample to a rule.
func (p *page) take(at place, s *results.Sample) {
	rule := &known[at.series].rules[at.rule]
	t := p.rules[at]
	if t == nil {
		t = &track{}
		p.rules[at] = t
	}
	mine, whole := s.Name == rule.metric && (rule.label == "" || hasLabel(s.Labels, rule.label)), s.Name == rule.of
	if !usable(s.Value) {
		t.spoilt = t.spoilt || (mine || whole) && !(rule.kind == gauge && known[at.series].mean)
		return
	}
	if mine {
		t.sum += s.Value
		t.n++
	}
	if whole {
		t.of += s.Value
		t.ofN++
	}
}

// usable says whether a sample can be one of a known series: all of them count
// something that is there.
func usable(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

func hasLabel(labels, want string) bool {
	for part := range strings.SplitSeq(labels, ",") {
		if part == want {
			return true
		}
	}
	return false
}

// close ends a scrape.
func (p *page) close() {
	for at, t := range p.rules {
		s := &known[at.series]
		t.close(&s.rules[at.rule], p.at, s.mean)
	}
}

func (t *track) close(r *rule, at time.Duration, mean bool) {
	defer func() { t.n, t.ofN, t.sum, t.of, t.spoilt = 0, 0, 0, 0, false }()
	if t.spoilt || t.n == 0 || r.of != "" && t.ofN == 0 {
		return
	}
	scale := r.scale
	if scale == 0 {
		scale = 1
	}
	grown, ofGrown, seconds := t.sum-t.before, t.of-t.ofOld, (at - t.when).Seconds()
	switch {
	case r.kind == gauge && mean:
		t.points = append(t.points, Point{at, scale * t.sum / float64(t.n)})
	case r.kind == gauge:
		t.points = append(t.points, Point{at, scale * t.sum})
	case !t.seen || grown < 0 || seconds <= 0: // the first, or the server began again
	case r.kind == rate:
		t.points = append(t.points, Point{at, scale * grown / seconds})
	case ofGrown <= 0: // nothing to have a share of
	case r.kind == share:
		t.points = append(t.points, Point{at, scale * grown / ofGrown})
	default:
		t.points = append(t.points, Point{at, scale * (1 - grown/ofGrown)})
	}
	t.before, t.ofOld, t.when, t.seen = t.sum, t.of, at, true
}

func (r *reader) end() {
	for _, p := range r.pages {
		p.close()
	}
}

func (r *reader) others() int64 {
	names := map[string]bool{}
	for _, p := range r.pages {
		for name := range p.others {
			names[name] = true
		}
	}
	return int64(len(names))
}

// order is that of the flags, then by name.
func (r *reader) order(told []results.TelemetrySource) []string {
	var list []string
	for _, t := range told {
		list = append(list, t.URL)
	}
	var rest []string
	for url := range r.pages {
		if !slices.Contains(list, url) {
			rest = append(rest, url)
		}
	}
	slices.Sort(rest)
	return append(list, rest...)
}

func (r *reader) source(url string, told []results.TelemetrySource) Source {
	s := Source{URL: url}
	if p := r.pages[url]; p != nil {
		s.Scrapes, s.Failed, s.SlowestMS = p.scrapes, p.failed, math.Round(p.slowest*1e6)/1e3
		s.Unusable, s.Exporters = p.bad, p.exporters()
	}
	for i := range told {
		if t := &told[i]; t.URL == url {
			s.Scrapes, s.Failed, s.Skipped = t.Scrapes, t.Failed, &t.Skipped
			if t.FirstError != "" {
				s.FirstError = &t.FirstError
			}
		}
	}
	return s
}

func (p *page) exporters() string {
	var names []string
	for i := range known {
		for k, r := range known[i].rules {
			if t := p.rules[place{i, k}]; t != nil && len(t.points) > 0 && !slices.Contains(names, r.exporter) {
				names = append(names, r.exporter)
			}
		}
	}
	return strings.Join(names, ", ")
}

// series is that of the first rule with samples.
func (p *page) series(i int) *Series {
	for k, r := range known[i].rules {
		t := p.rules[place{i, k}]
		if t == nil || len(t.points) == 0 {
			continue
		}
		s := &Series{Name: known[i].name, Title: known[i].title, Unit: known[i].unit, Exporter: r.exporter, Metric: r.metric, Points: t.points, N: int64(len(t.points)), Min: math.Inf(1), Max: math.Inf(-1)}
		sum := 0.0
		for _, point := range t.points {
			sum += point.Value
			s.Min, s.Max, s.Last = min(s.Min, point.Value), max(s.Max, point.Value), point.Value
		}
		s.Mean = sum / float64(s.N)
		return s
	}
	return nil
}

// Page numbers a source, from 1, in the order of Sources.
func (s *Summary) Page(url string) int {
	return slices.IndexFunc(s.Sources, func(src Source) bool { return src.URL == url }) + 1
}

// Of returns the series with a name, of all sources.
func (s *Summary) Of(name string) (list []Series) {
	for _, v := range s.Series {
		if v.Name == name {
			list = append(list, v)
		}
	}
	return list
}

// Names are those of all series that are looked for, in order.
func Names() (list []string) {
	for _, s := range known {
		list = append(list, s.name)
	}
	return list
}
