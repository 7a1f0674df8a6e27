package analysis

import (
	"fmt"
	"math"
	"time"

	"reprise/analysis/stats"
	"reprise/trace"
)

// burstWindows are the windows of the burstiness curve.
var burstWindows = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

// Arrivals say when requests come. On session clocks the gaps are those within
// sessions, and there is no rate.
type Arrivals struct {
	N      int64    `json:"n"`                 // rows with an arrival
	Within string   `json:"within,omitempty"`  // "sessions" on session clocks
	SpanS  *float64 `json:"span_s,omitempty"`  // first to last
	RateHz *float64 `json:"rate_hz,omitempty"` // (n - 1) / span

	Gaps *Dist    `json:"gaps_s,omitempty"`   // between neighbours, zeros included
	Lag1 *float64 `json:"gap_lag1,omitempty"` // autocorrelation of neighbouring gaps

	Times     *int64   `json:"distinct_times,omitempty"`
	BatchMean *float64 `json:"batch_mean,omitempty"` // n / distinct times
	BatchMax  *int64   `json:"batch_max,omitempty"`  // most requests at one time

	TickS          *float64 `json:"tick_s,omitempty"` // greatest common divisor of the times
	EffectiveTickS *float64 `json:"effective_tick_s,omitempty"`

	Rate       *RateSeries `json:"rate_over_time,omitempty"`
	Burstiness []Burst     `json:"burstiness,omitempty"`

	NotMeasurable []string `json:"not_measurable,omitempty"`
}

// A RateSeries counts arrivals in at most 2,000 bins of equal width from the
// first arrival; the last may be cut by the end of the trace.
type RateSeries struct {
	BinS   float64 `json:"bin_s"`
	Counts []int64 `json:"counts"`
}

// A Burst is one point of the burstiness curve: counts in the complete windows
// of one length, from the first arrival.
type Burst struct {
	WindowS float64  `json:"window_s"`
	Windows int64    `json:"windows"`
	Mean    *float64 `json:"mean,omitempty"`
	Max     *int64   `json:"max,omitempty"`
	Zeros   int64    `json:"zeros"`
	// IDC is variance / mean, 1 for Poisson arrivals at a constant rate; 95 % of
	// such traces lie between PoissonLo and PoissonHi.
	IDC       *float64 `json:"idc,omitempty"`
	PoissonLo *float64 `json:"poisson_lo,omitempty"`
	PoissonHi *float64 `json:"poisson_hi,omitempty"`
	// CountCV is sqrt(max(0, variance - mean)) / mean, 0 for Poisson.
	CountCV *float64 `json:"count_cv,omitempty"`
	Log10P  *float64 `json:"log10_p,omitempty"`  // of the Poisson dispersion test, upper tail
	NegBinR *float64 `json:"negbin_r,omitempty"` // shape of the negative binomial fit; absent where Poisson fits better
	Lag1    *float64 `json:"lag1,omitempty"`
	MaxMean *float64 `json:"max_over_mean,omitempty"`

	NotMeasurable string `json:"not_measurable,omitempty"`
}

// arrivals collects what Arrivals say.
type arrivals struct {
	clock    string
	n        int64
	first    int64
	last     int64
	gaps     stats.Tally
	tick     trace.Tick
	batch    int64
	maxBatch int64
	times    int64
	counters []*stats.Counter
	rate     rateBins
	blocks   countBlocks
}

func (a *arrivals) add(row flowRow) {
	if !row.atKnown {
		return
	}
	a.n++
	if a.clock != trace.ClockTrace {
		if row.gapKnown {
			a.gaps.Add(row.gap)
		}
		return
	}
	if a.n == 1 {
		a.first = row.at
		for _, w := range burstWindows {
			a.counters = append(a.counters, stats.NewCounter(int64(w)))
		}
	} else {
		a.gaps.Add(row.at - a.last)
	}
	if a.n == 1 || row.at != a.last {
		a.times++
		a.batch = 0
	}
	a.batch++
	a.maxBatch = max(a.maxBatch, a.batch)
	a.last = row.at
	a.tick.Add(time.Duration(row.at))
	for _, c := range a.counters {
		c.Add(row.at)
	}
	a.rate.add(row.at - a.first)
	a.blocks.add(row.at - a.first)
}

func (a *arrivals) result() Arrivals {
	r := Arrivals{N: a.n}
	no := func(format string, args ...any) {
		r.NotMeasurable = append(r.NotMeasurable, notMeasurable+fmt.Sprintf(format, args...))
	}
	switch {
	case a.n == 0:
		no("no row has an arrival time")
		return r
	case a.clock != trace.ClockTrace:
		r.Within = "sessions"
		no("rate, burstiness and batches: %s", clockless(a.clock))
	}
	r.Gaps = distOf(&a.gaps, 1e9)
	r.Lag1 = maybe(a.gaps.Series().Lag1())
	switch {
	case a.gaps.N() == 0 && a.clock != trace.ClockTrace:
		no("gaps: no session has two arrivals")
	case a.gaps.N() == 0:
		no("gaps, rate and burstiness: there is one arrival")
	case a.gaps.Series().Zeros() == a.gaps.N():
		no("gap CV and burstiness: all gaps are 0")
	case a.gaps.N() == 1:
		no("gap CV: there is one gap")
	}
	if r.Lag1 == nil && a.gaps.N() > 1 {
		no("lag-1 autocorrelation: all gaps are equal")
	}
	if a.clock == trace.ClockTrace {
		a.common(&r)
	}
	return r
}

// common fills in what needs one clock.
func (a *arrivals) common(r *Arrivals) {
	span := float64(a.last-a.first) / 1e9
	r.SpanS = &span
	if span > 0 {
		r.RateHz = finite(float64(a.n-1) / span)
	}
	mean := float64(a.n) / float64(a.times)
	r.Times, r.BatchMean, r.BatchMax = &a.times, &mean, &a.maxBatch
	if ns, ok := a.tick.NS().Get(); ok {
		tick := float64(ns) / 1e9
		effective := tick
		if mode, ok := effectiveTick(&a.gaps); ok {
			effective = max(tick, float64(mode)/1e9)
		}
		r.TickS, r.EffectiveTickS = &tick, &effective
		if r.Gaps != nil && effective > r.Gaps.Mean {
			r.NotMeasurable = append(r.NotMeasurable, notMeasurable+fmt.Sprintf("shape of the gaps: the effective tick of %s s is above the mean gap of %s s", numberText(effective), numberText(r.Gaps.Mean)))
		}
	}
	if span > 0 {
		r.Rate = a.rate.series()
		for i, c := range a.counters {
			r.Burstiness = append(r.Burstiness, burst(burstWindows[i], c.Counts()))
		}
	}
}

func burst(window time.Duration, c stats.WindowCounts) Burst {
	b := Burst{WindowS: window.Seconds(), Windows: c.N(), Zeros: c.Zeros(), Mean: maybe(c.Mean())}
	if c.N() < 2 {
		b.NotMeasurable = notMeasurable + fmt.Sprintf("complete windows of %s s: %d, at least 2 are needed", numberText(b.WindowS), c.N())
		return b
	}
	_, most, _ := c.Range()
	b.Max = &most
	b.IDC, b.CountCV, b.Lag1 = maybe(c.Dispersion()), maybe(c.RateCV()), maybe(c.Lag1())
	if _, p, ok := c.PoissonTest(); ok {
		b.Log10P = finite(p)
	}
	if nb, ok := c.FitNegBinomial(); ok {
		b.NegBinR = finite(nb.R)
	}
	if mean, _ := c.Mean(); mean > 0 {
		b.MaxMean = finite(float64(most) / mean)
	}
	b.PoissonLo, b.PoissonHi = finite(chi2Share(c.N()-1, -1.959964)), finite(chi2Share(c.N()-1, 1.959964))
	return b
}

// chi2Share returns the quantile of a chi-squared law over its degrees of
// freedom at a normal quantile z (Wilson and Hilferty 1931).
func chi2Share(free int64, z float64) float64 {
	v := 2 / (9 * float64(free))
	return max(0, math.Pow(1-v+z*math.Sqrt(v), 3))
}

// effectiveTick finds a coarser grid than the clock's that the times lie on,
// with a little jitter (see stats.ModalSpacing).
func effectiveTick(gaps *stats.Tally) (ns int64, ok bool) {
	if !gaps.Exact() {
		return 0, false
	}
	mode, ok := stats.ModalSpacing(gaps.Sample(1))
	return int64(math.Round(mode)), ok
}

// rateBins count arrivals in at most maxRateBins bins, which widen as the trace
// goes on.
type rateBins struct {
	step   int
	counts []int64
}

const maxRateBins = 2000

// rateSteps are the widths of bins; each is a whole multiple of the one before.
var rateSteps = func() []time.Duration {
	const day = 24 * time.Hour
	steps := []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, day, 10 * day}
	for steps[len(steps)-1] < math.MaxInt64/10 {
		steps = append(steps, 10*steps[len(steps)-1])
	}
	return steps
}()

func (r *rateBins) add(at int64) {
	for at/int64(rateSteps[r.step]) >= maxRateBins {
		merge := int(rateSteps[r.step+1] / rateSteps[r.step])
		merged := make([]int64, (len(r.counts)+merge-1)/merge)
		for i, n := range r.counts {
			merged[i/merge] += n
		}
		r.counts = merged
		r.step++
	}
	i := int(at / int64(rateSteps[r.step]))
	for len(r.counts) <= i {
		r.counts = append(r.counts, 0)
	}
	r.counts[i]++
}

func (r *rateBins) series() *RateSeries {
	return &RateSeries{BinS: rateSteps[r.step].Seconds(), Counts: r.counts}
}
