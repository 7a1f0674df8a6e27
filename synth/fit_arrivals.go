package synth

import (
	"fmt"
	"math"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// fewestGaps is the least number of gaps that a shape is fitted to.
const fewestGaps = 20

// arrivals describes when sessions begin, or requests come; nil without a rate.
func (f *fitting) arrivals(s *fitStream, of string) (*model.Arrivals, error) {
	if len(s.stamps) == 0 {
		return nil, nil
	}
	if f.clock.period == 0 {
		why := "there is one arrival"
		if n := len(s.stamps); n > 1 {
			why = fmt.Sprintf("all %d arrivals come at the same time", n)
		}
		f.noteOn(s, "arrivals: not measurable: %s", why)
		return nil, nil
	}
	starts, all := f.times(s, of)
	if len(starts) == 0 {
		f.noteOn(s, "arrivals: not measurable: no session begins at a known time")
		return nil, nil
	}
	m := &model.Arrivals{Of: of, N: int64(len(starts)), RateHz: float64(len(starts)) / f.clock.period}
	if f.clock.tick > 0 {
		m.TickS = number(f.clock.tickS(), true)
	}
	var err error
	if m.Profile, err = f.profileOf(s, of, starts, all); err != nil {
		return nil, err
	}
	m.Gap = f.gapFits(starts)
	if of == "session" {
		m.Turns = f.gapFits(all)
	}
	rest, why := f.residual(starts, m.Profile, s.ordinal)
	if why != "" {
		m.GapsWhy = why
		return m, nil
	}
	m.Gaps, m.Rest = rest.law, rest.fitted
	f.selfCheck(s, m, rest)
	return m, nil
}

// times returns the starts of sessions, and all arrivals, in ns since the first
// of the trace.
func (f *fitting) times(s *fitStream, of string) (starts, all []int64) {
	all = make([]int64, 0, len(s.stamps))
	for _, stamp := range s.stamps {
		all = append(all, stamp>>1-f.clock.first)
		if of == "session" && stamp&1 == 1 {
			starts = append(starts, stamp>>1-f.clock.first)
		}
	}
	if of == "request" {
		return all, all
	}
	return starts, all
}

// profileOf returns the rate of starts over time. Where sessions are inferred,
// one that the beginning of the trace cuts looks as if it began there, so that
// starts are too many at first, and too few in proportion later: the rate of all
// requests, over the turns of a session, is not bent in that way.
func (f *fitting) profileOf(s *fitStream, of string, starts, all []int64) ([]model.Rate, error) {
	if of != "session" || f.mode.named {
		return f.profile(starts, 1)
	}
	profile, err := f.profile(all, float64(len(all))/float64(len(starts)))
	if err != nil {
		return nil, err
	}
	for i := range profile {
		profile[i].RateHz *= float64(len(starts)) / float64(len(all))
	}
	if len(profile) > 1 {
		f.noteOn(s, "arrivals: the rate of inferred sessions over time is that of all requests, over the turns of a session: at the beginning of the trace, sessions that go on cannot be told from those that begin")
	}
	return profile, nil
}

// profile returns the rate over time: constant between changes, or in pieces of
// equal width. Where arrivals come in sessions of some turns, a change must be as
// much clearer, and a piece hold as many more.
func (f *fitting) profile(starts []int64, turns float64) ([]model.Rate, error) {
	period := f.clock.period
	width := f.o.Profile
	if width == 0 {
		width = changeWindow(period)
	}
	counts := make([]int64, max(1, int(math.Ceil(period/width.Seconds()))))
	for _, at := range starts {
		counts[min(at/int64(width), int64(len(counts)-1))]++
	}
	edges := make([]int, 0, len(counts)) // first window of each piece but the first
	if f.o.Profile > 0 {
		for k := 1; k < len(counts); k++ {
			edges = append(edges, k)
		}
	} else {
		segments, err := stats.ChangePoints(counts, width.Seconds(), stats.ChangeOptions{Penalty: 2 * math.Log(float64(len(counts))) * turns, MinEvents: int64(stats.MinSegmentEvents * turns), Silences: true})
		if err != nil {
			return nil, err
		}
		edges = segments.Changes
	}
	var rates []model.Rate
	from := 0
	for _, to := range append(edges, len(counts)) {
		r := model.Rate{FromS: float64(from) * width.Seconds(), ToS: float64(to) * width.Seconds()}
		if to == len(counts) {
			r.ToS = period
		}
		var n int64
		for _, c := range counts[from:to] {
			n += c
		}
		r.RateHz = float64(n) / (r.ToS - r.FromS)
		rates = append(rates, r)
		from = to
	}
	return rates, nil
}

// changeWindows are the windows between which a rate may change.
var changeWindows = []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// changeWindow is the shortest one that there are at most 2,000 of.
func changeWindow(period float64) time.Duration {
	for _, w := range changeWindows {
		if period/w.Seconds() <= 2000 {
			return w
		}
	}
	return time.Duration(period / 2000 * 1e9)
}

// gapFits fits every family to the gaps between times.
func (f *fitting) gapFits(times []int64) *model.Fitted {
	m := &model.Fitted{Unit: "seconds", N: int64(len(times) - 1), Fits: []stats.Fit{}}
	var exact stats.Series
	var gaps stats.Tally
	for i := 1; i < len(times); i++ {
		exact.Add(times[i] - times[i-1])
		gaps.Add(f.clock.index(times[i]+f.clock.first) - f.clock.index(times[i-1]+f.clock.first))
	}
	if mean, ok := exact.Mean(); ok {
		m.Mean = number(mean/1e9, true)
	}
	m.CV, m.Lag1 = number(exact.CV()), number(exact.Lag1())
	if exact.Zeros() == m.N {
		m.Refuse = fmt.Sprintf("there are %d gaps, all of them 0", m.N)
		if m.N == 0 {
			m.Refuse = "there is one arrival, and no gap"
		}
		return m
	}
	ticks, err := stats.SampledTicks(f.clock.tickS(), gaps.Sample(1))
	if err != nil {
		m.Refuse = err.Error()
		return m
	}
	fitTicks(m, ticks)
	if mean, _ := ticks.MeanGap(); f.clock.tickS() > mean {
		m.Ticks = f.perTick(times)
	}
	return m
}

// perTick counts the arrivals in each tick.
func (f *fitting) perTick(times []int64) *model.TickCounts {
	first := f.clock.index(times[0] + f.clock.first)
	counts := make([]int64, f.clock.index(times[len(times)-1]+f.clock.first)-first+1)
	for _, at := range times {
		counts[f.clock.index(at+f.clock.first)-first]++
	}
	c, err := stats.CountsOf(counts)
	if err != nil {
		return nil
	}
	m := &model.TickCounts{TickS: f.clock.tickS(), N: c.N(), IDC: number(c.Dispersion())}
	m.Mean, _ = c.Mean()
	if _, p, ok := c.PoissonTest(); ok {
		m.Log10P = number(p, true)
	}
	if nb, ok := c.FitNegBinomial(); ok {
		m.NegBinR = number(nb.R, true)
	}
	return m
}

// selfCheck does to Poisson arrivals at the fitted rate what was done to the
// trace: where their shape is not 1, the profile follows noise.
func (f *fitting) selfCheck(s *fitStream, m *model.Arrivals, rest residualFit) {
	step, err := stepOf(m.Profile)
	if err != nil || rest.se == 0 {
		return
	}
	r := stats.Stream(f.o.Seed, fitCheck, s.ordinal)
	var times []int64
	for mass := r.ExpFloat64(); mass < step.Total(); mass += r.ExpFloat64() {
		at := int64(step.Time(mass) * 1e9)
		times = append(times, at/f.clock.tick*f.clock.tick)
	}
	profile, err := f.profile(times, 1)
	if err != nil {
		return
	}
	again, why := f.residual(times, profile, s.ordinal)
	if why != "" {
		return
	}
	says := "the profile follows the rate, and not its noise"
	switch {
	case again.shape > 1+2*again.se:
		says = "the profile follows noise too, and the residual shape is too large by about as much"
	case again.shape < 1-2*again.se:
		says = "the profile misses some changes of the rate, and the residual shape is too small by about as much"
	}
	m.Rest.Notes = append(m.Rest.Notes, fmt.Sprintf("Poisson arrivals at the fitted rate, fitted in the same way, have shape %.3f, where 1 +- %.3f (two standard errors) is expected: %s", again.shape, 2*again.se, says))
}

func stepOf(profile []model.Rate) (*stats.StepRate, error) {
	edges := []float64{0}
	var rates []float64
	for _, r := range profile {
		edges, rates = append(edges, r.ToS), append(rates, r.RateHz)
	}
	return stats.NewStepRate(edges, rates)
}
