package analysis

import (
	"fmt"
	"math"

	"reprise/analysis/stats"
)

// units is how many independent things a trace holds: sessions, or requests.
func (t *Traffic) units() float64 {
	if t.Sessions.N > 0 {
		return float64(t.Sessions.N)
	}
	return float64(max(1, t.Rows))
}

// noise is the distance that two samples of as many sessions keep in 95 of 100
// cases (the Kolmogorov-Smirnov limit).
func (c *fidelity) noise() float64 {
	return 1.358 * math.Sqrt(1/c.source.units()+1/c.made.units())
}

// lengths hold the marginals and the dependence of input and output.
func (c *fidelity) lengths() {
	if c.design.InputScale != 0 || c.design.OutputScale != 0 {
		for _, s := range []struct {
			name string
			by   float64
		}{{"input", c.design.InputScale}, {"output", c.design.OutputScale}} {
			if s.by != 0 {
				by := s.by
				c.add(Property{Name: s.name + " lengths, scale", Achieved: &by, Verdict: ByDesign, Method: "asked for; the lengths below are held against the source so scaled"})
			}
		}
	}
	for k, name := range []string{"input", "output"} {
		a, b := &c.source.raw.flow.lengths[k], &c.made.raw.flow.lengths[k]
		if a.N() == 0 || b.N() == 0 {
			c.missing(name+" lengths", "no row has them")
			continue
		}
		verdict := c.distribution(name+" lengths", "tokens", a, b, "")
		for _, p := range []float64{0.5, 0.9, 0.99} {
			c.quantile(fmt.Sprintf("%s p%g", name, 100*p), "tokens", a, b, p, verdict)
		}
	}
	c.dependence()
}

// distribution holds one distribution against another and returns the verdict.
func (c *fidelity) distribution(name, unit string, a, b *stats.Tally, excuse string) string {
	d, err := stats.Distances(a.Sample(1), b.Sample(1))
	mean, _ := a.Series().Mean()
	if err != nil || mean == 0 {
		c.missing(name, "all are 0, or there are none")
		return NotMeasurable
	}
	w1, zero, limit := d.Wasserstein/mean, 0.0, c.noise()
	verdict, method := Exact, "the same distribution"
	switch {
	case d.KS == 0:
	case d.KS <= limit:
		verdict, method = WithinNoise, fmt.Sprintf("KS distance %.3g, below %.3g: what samples of as many sessions differ by", d.KS, limit)
	case excuse != "":
		verdict, method = ByDesign, excuse
	default:
		verdict, method = Lost, fmt.Sprintf("KS distance %.3g, above %.3g: what samples of as many sessions differ by", d.KS, limit)
	}
	if !a.Exact() || !b.Exact() {
		method += "; values within 1 %"
	}
	verdict = c.chosen(verdict)
	c.add(Property{Name: name + ", W1 / mean", Target: &zero, Achieved: &w1, Verdict: verdict, Method: method})
	return verdict
}

func (c *fidelity) quantile(name, unit string, a, b *stats.Tally, p float64, verdict string) {
	x, y := a.Sample(1).Quantiles7(p)[0], b.Sample(1).Quantiles7(p)[0]
	method := "type 7 quantile; judged by the distance of the distributions"
	switch {
	case same(x, y):
		verdict = Exact
	case verdict == Exact: // the type interpolates by the number of values
		verdict, method = WithinNoise, "type 7 quantile of the same distribution: it lies elsewhere between two neighbours, since there are more or fewer values"
	}
	c.add(Property{Name: name, Unit: unit, Source: &x, Target: &x, Achieved: &y, Verdict: verdict, Method: method})
}

func (c *fidelity) dependence() {
	s, m := &c.source.Dependence, &c.made.Dependence
	if s.Spearman == nil || m.Spearman == nil {
		c.missing("input-output Spearman", "fewer than two rows have both, or one is constant")
		return
	}
	z := 2 / math.Sqrt(max(1, c.made.units()-3))
	low, high := *s.Spearman-z, *s.Spearman+z
	c.add(Property{Name: "input-output Spearman", Source: s.Spearman, Target: s.Spearman, Achieved: m.Spearman, Band: &[2]float64{low, high},
		Verdict: c.chosen(judge(*m.Spearman, *s.Spearman, low, high)), Method: "band of two standard errors of as many sessions"})
	if len(s.ByInput) != len(m.ByInput) || len(s.ByInput) == 0 {
		c.missing("output by input decile", "the deciles of input differ in number")
		return
	}
	var worst float64
	for i := range s.ByInput {
		worst = max(worst, math.Abs(m.ByInput[i].Median-s.ByInput[i].Median)/max(1, s.ByInput[i].Median))
	}
	zero, limit := 0.0, 3*z
	c.add(Property{Name: "output by input decile, largest change of a median", Target: &zero, Achieved: &worst, Band: &[2]float64{0, limit},
		Verdict: c.chosen(judge(worst, 0, 0, limit)), Method: "relative; band of three standard errors"})
}

// conversations hold turns, and the times between them.
func (c *fidelity) conversations() {
	a, b := c.source.raw.sessionTallies(), c.made.raw.sessionTallies()
	if a == nil || b == nil {
		c.missing("turns per session", "the trace names no sessions, and has no blocks to infer them from")
		return
	}
	excuse := ""
	if c.design.Wrapped > 0 && c.design.Unit != "request" {
		excuse = fmt.Sprintf("%s crossed an end of the trace, which cut their sessions", Counted(c.design.Wrapped, "request"))
	}
	basis := ""
	if c.source.Sessions.Basis == SessionsInferred {
		basis = " (inferred)"
	}
	c.distribution("turns per session"+basis, "turns", &a.turns, &b.turns, excuse)
	for _, t := range []struct {
		name string
		a, b *stats.Tally
	}{{"time between turns", &a.gaps, &b.gaps}, {"recorded think time", &a.think, &b.think}, {"context growth", &a.growth, &b.growth}} {
		if t.a.N() == 0 || t.b.N() == 0 {
			continue
		}
		if mean, _ := t.a.Series().Mean(); mean <= 0 {
			continue
		}
		c.distribution(t.name+basis, "", t.a, t.b, excuse)
	}
}

// sessionTallies are distributions over sessions.
type sessionTallies struct{ turns, gaps, think, growth stats.Tally }

// sessionTallies returns nil where there are no sessions.
func (a *trafficAnalysis) sessionTallies() *sessionTallies {
	s := a.sessions
	if s.rows == 0 {
		if s = a.inferred; s.rows == 0 {
			return nil
		}
		if _, whole := a.reuse.Sessions(); !whole {
			return nil
		}
	}
	t := &sessionTallies{gaps: s.gaps, think: s.thinkRecorded, growth: s.growth}
	for i := range s.list {
		t.turns.Add(s.list[i].turns)
	}
	return t
}

// reuse holds what prefix caches would serve.
func (c *fidelity) reuse() {
	s, m := &c.source.Prefix, &c.made.Prefix
	if s.HitShareTokens == nil || m.HitShareTokens == nil {
		c.missing("prefix reuse", "no block ids were recorded")
		return
	}
	p := Property{Name: "hit share, cache without limit", Unit: "of tokens", Source: s.HitShareTokens, Target: s.HitShareTokens, Achieved: m.HitShareTokens, Method: reuseMethod}
	if h := c.design.HitRate; h != nil {
		target := h.Target
		p.Target, p.Method = &target, fmt.Sprintf("asked for; between %.3f and %.3f can be reached", h.Least, h.Most)
	}
	noise := c.reuseNoise(*p.Target)
	p.Band = &[2]float64{*p.Target - noise, *p.Target + noise}
	if p.Verdict = judge(*p.Achieved, *p.Target, p.Band[0], p.Band[1]); p.Verdict != Lost && c.design.HitRate != nil {
		p.Verdict = ByDesign
	}
	p.Verdict = c.chosen(p.Verdict)
	c.add(p)
	if s.Estimate == nil && m.Estimate == nil {
		c.lru()
	}
}

// reuseBand is how much a hit share may differ at least and still count as kept.
const (
	reuseBand   = 0.01
	reuseMethod = "band of 0.01, or of two standard errors of a share over as many sessions"
)

// reuseNoise is how much a hit share may differ.
func (c *fidelity) reuseNoise(share float64) float64 {
	return max(reuseBand, 2*math.Sqrt(max(0, share*(1-share))/c.source.units()))
}

// lru holds a block LRU of a tenth, a quarter and half of the distinct blocks of
// the source: a cache as many times as large serves as much, and the same cache
// less.
func (c *fidelity) lru() {
	factor := c.design.Factor
	for _, part := range []float64{0.1, 0.25, 0.5} {
		capacity := int64(part * float64(c.source.Prefix.Distinct))
		if capacity < 1 {
			continue
		}
		grown := max(1, int64(math.Round(float64(capacity)*factor)))
		a, same, more := c.lruShare(c.source, capacity), c.lruShare(c.made, capacity), c.lruShare(c.made, grown)
		if factor != 1 {
			c.add(Property{Name: fmt.Sprintf("LRU of %s blocks", Grouped(capacity)), Unit: "of blocks", Source: &a, Achieved: &same, Verdict: ByDesign, Method: "other traffic competes for the same cache"})
		}
		noise := c.reuseNoise(a)
		band := [2]float64{a - noise, a + noise}
		verdict := judge(more, a, band[0], band[1])
		if verdict == Lost && c.design.HitRate != nil {
			verdict = ByDesign
		}
		c.add(Property{Name: fmt.Sprintf("LRU of %s blocks, source with %s", Grouped(grown), Grouped(capacity)), Unit: "of blocks", Source: &a, Target: &a, Achieved: &more, Band: &band, Verdict: c.chosen(verdict), Method: reuseMethod})
	}
}

func (c *fidelity) lruShare(t *Traffic, capacity int64) float64 {
	p := t.raw.reuse.LRU(capacity)[0]
	return float64(p.HitBlocks) / float64(max(1, t.Prefix.Blocks))
}

// heldBand is how far from its lines the p99 of tokens held may lie at least.
const heldBand = 0.05

// held holds the p99 over time of the tokens that are with the server at once,
// each from its arrival to the recorded end: with more users their mean grows by
// the factor, and what is beyond the mean by the factor too where all follow one
// rate, or by its root where they are independent.
func (c *fidelity) held() {
	const name = "tokens held at once, p99"
	mean, source, ok := c.source.raw.held.meanAndP99()
	_, made, also := c.made.raw.held.meanAndP99()
	if !ok || !also {
		c.missing(name, "no request has a recorded end, so nobody knows how long it was with the server")
		return
	}
	factor := c.design.Factor
	band := heldBand + 4*c.sampleSD()/max(1, factor*float64(c.source.Rows)) // of sessions kept by chance
	common, independent := factor*source, factor*mean+math.Sqrt(factor)*(source-mean)
	p := Property{Name: name, Unit: "tokens", Source: &source, Target: &common, Achieved: &made, Band: &[2]float64{(1 - band) * common, (1 + band) * common}}
	p.Method = fmt.Sprintf("prompt and answer from arrival to recorded end, of %s requests that have one; band of %.0f %%", Grouped(c.source.raw.held.known), 100*band)
	if factor != 1 {
		p.Independent, p.Common = &independent, &common
	}
	p.Verdict = judge(made, common, p.Band[0], p.Band[1])
	low, high := min(common, independent), max(common, independent)
	if c.design.JitterNS > 0 {
		low = factor * mean // bursts shorter than the jitter are smeared
	}
	if p.Verdict == Lost && made >= (1-band)*low && made <= (1+band)*high {
		p.Verdict = ByDesign
		p.Method += "; between copies that follow one rate and independent ones, or below where the jitter smears bursts"
	}
	p.Verdict = c.chosen(p.Verdict)
	c.add(p)
}
