// Package sweep measures a system at several loads, one run directory each: on a
// grid, or in search of the highest load at which it still meets an objective. It
// looks for the knee, not the peak: what a system does beyond it is probed on
// purpose, and described.
//
// A load is a number: requests per second, requests in flight, or times a recorded
// workload. More load is taken to be no easier, which a monotone fit over all runs
// makes use of.
package sweep

import (
	"context"
	"math"
	"slices"
	"sort"

	"reprise/analysis"
	"reprise/analysis/stats"
)

// A Run is what one run at a load has shown.
type Run struct {
	Dir     string  `json:"dir"` // within the sweep's directory
	Repeat  int     `json:"repeat"`
	Verdict string  `json:"verdict"`       // on the client: valid, degraded or invalid
	Why     string  `json:"why,omitempty"` // of a verdict other than valid
	Silent  bool    `json:"silent"`        // no request was successful, and that is all that is wrong with the run
	Met     bool    `json:"met"`           // the objective
	Margin  float64 `json:"margin"`        // log of the worst number over its limit: above 0 beyond it; within ±MarginLimit
	Gates   []Gate  `json:"gates"`

	Requests         int64    `json:"requests"`       // sent, without the warm-up
	RequestsPerS     *float64 `json:"requests_per_s"` // successful
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	GoodPerS         *float64 `json:"good_requests_per_s"` // null without a limit for each request
	TTFTP50          *float64 `json:"ttft_p50_ms"`
	TTFTP95          *float64 `json:"ttft_p95_ms"`
	TPOTP50          *float64 `json:"tpot_p50_ms"`
	TPOTP95          *float64 `json:"tpot_p95_ms"`
	E2EP50           *float64 `json:"e2e_p50_ms"`
	E2EP95           *float64 `json:"e2e_p95_ms"`
	ErrorRate        *float64 `json:"error_rate"`
	LatenessP99      *float64 `json:"lateness_p99_ms"`
}

// A Gate is one condition of the objective.
type Gate struct {
	Text   string   `json:"gate"`
	Unit   string   `json:"unit"`
	Value  *float64 `json:"value"` // null where it is not reached, or the run does not have it
	Passed bool     `json:"passed"`
}

// MarginLimit bounds Run.Margin, so that a number that was never reached counts as
// four times its limit.
var MarginLimit = math.Log(4)

// A Point is what all runs at one load have shown.
type Point struct {
	Load    float64 `json:"load"`
	Runs    []Run   `json:"runs"`
	Met     bool    `json:"met"`     // by most of its runs
	Margin  float64 `json:"margin"`  // mean of the runs
	Fit     float64 `json:"fit"`     // of the monotone fit over all points
	Beyond  bool    `json:"beyond"`  // probed on purpose, past the edge
	Invalid bool    `json:"invalid"` // a run is no valid measurement
}

// whyInvalid is the reason of the first run of a point that is no valid measurement.
func (p *Point) whyInvalid() string {
	for _, r := range p.Runs {
		if r.Verdict == analysis.Invalid && r.Why != "" {
			return r.Why
		}
	}
	return "see the report of the run"
}

// Measure makes the run at a load; repeats are counted from 0.
type Measure func(ctx context.Context, load float64, repeat int) (*Run, error)

// A Curve is points in order of their load.
type Curve struct {
	Points []Point `json:"points"`
	N      int     `json:"runs"` // of all points
}

// at returns the point of a load, which is added if it is new.
func (c *Curve) at(load float64) *Point {
	i := sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Load >= load })
	if i == len(c.Points) || c.Points[i].Load != load {
		c.Points = slices.Insert(c.Points, i, Point{Load: load})
	}
	return &c.Points[i]
}

// measure makes one more run at a load.
func (c *Curve) measure(ctx context.Context, m Measure, load float64) error {
	repeat := 0
	if i := slices.IndexFunc(c.Points, func(p Point) bool { return p.Load == load }); i >= 0 {
		repeat = len(c.Points[i].Runs)
	}
	run, err := m(ctx, load, repeat)
	if err != nil {
		return err
	}
	run.Repeat = repeat
	p := c.at(load)
	p.Runs = append(p.Runs, *run)
	c.N++
	c.judge()
	return nil
}

// judge sums the runs of each point up, and fits all of them. A load at which nothing
// is answered is no measurement, unless a lower one was answered: then it is too much.
func (c *Curve) judge() {
	answered := false
	y, w := make([]float64, len(c.Points)), make([]float64, len(c.Points))
	for i := range c.Points {
		p := &c.Points[i]
		met, sum := 0, 0.0
		p.Invalid = false
		for _, r := range p.Runs {
			if sum += r.Margin; r.Met {
				met++
			}
			p.Invalid = p.Invalid || r.Verdict == analysis.Invalid && !(r.Silent && answered)
		}
		answered = answered || slices.ContainsFunc(p.Runs, func(r Run) bool { return r.RequestsPerS != nil && *r.RequestsPerS > 0 })
		p.Met = 2*met > len(p.Runs)
		p.Margin = sum / float64(len(p.Runs))
		y[i], w[i] = p.Margin, float64(len(p.Runs))
	}
	for i, fit := range stats.Isotonic(y, w) {
		c.Points[i].Fit = fit
	}
}

// Grid measures each load, repeats times. What was measured before an error stays in
// the curve.
func Grid(ctx context.Context, c *Curve, loads []float64, repeats int, m Measure) error {
	for range max(1, repeats) {
		for _, load := range loads {
			if err := c.measure(ctx, m, load); err != nil {
				return err
			}
		}
	}
	return nil
}

// bracket returns the places of the highest point that the fit calls met, and of the
// lowest that it does not; -1 where there is none.
func (c *Curve) bracket() (met, broken int) {
	met, broken = -1, -1
	for i := range c.Points {
		if c.Points[i].Fit <= 0 {
			met = i
		} else {
			broken = i
			break
		}
	}
	return met, broken
}

// Knee is the load at which throughput over latency is largest, Kleinrock's power
// (Power and deterministic rules of thumb for probabilistic problems in computer
// communications, 1979): before it, more load costs little; beyond it, latency grows
// faster than throughput. It is one of the measured loads; false with fewer than
// three that have both, or where power still grows at the last of them.
func (c *Curve) Knee() (load float64, ok bool) {
	best, at, n := 0.0, -1, 0
	for i := range c.Points {
		p := &c.Points[i]
		rate, ok1 := p.median(func(r *Run) *float64 { return r.RequestsPerS })
		wait, ok2 := p.median(func(r *Run) *float64 { return r.E2EP50 })
		if !ok1 || !ok2 || wait <= 0 {
			continue
		}
		if n++; rate/wait > best {
			best, at = rate/wait, i
		}
	}
	if n < 3 || at < 0 || at == len(c.Points)-1 {
		return 0, false
	}
	return c.Points[at].Load, true
}

// median of a number over the runs that have it.
func (p *Point) median(of func(*Run) *float64) (float64, bool) {
	var list []float64
	for i := range p.Runs {
		if v := of(&p.Runs[i]); v != nil {
			list = append(list, *v)
		}
	}
	if len(list) == 0 {
		return 0, false
	}
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2, true
}
