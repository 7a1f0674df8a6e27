package analysis

import (
	"math"
	"time"

	"reprise/analysis/stats"
	"reprise/synth/model"
)

// Verdicts of a property.
const (
	Exact         = "exact"
	WithinNoise   = "within noise"      // inside the band in which traffic like the source varies by itself
	ByDesign      = "changed by design" // as the flags and the method say
	Lost          = "lost"
	NotMeasurable = "not measurable"
)

// A Fidelity says what a synthesis kept of its source, property by property. The
// source stands after what was asked to be changed request by request (a time
// window, time compression, scaled lengths), so that the rest shows what copying
// did.
type Fidelity struct {
	Design     *model.Design `json:"design,omitempty"`    // of a scaled trace
	Generated  *Generated    `json:"generated,omitempty"` // of what a model gave
	Properties []Property    `json:"properties"`
	Lost       int           `json:"lost"`
}

// A Property is one line of a Fidelity. Numbers that do not apply are absent.
type Property struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit,omitempty"`
	Source   *float64 `json:"source"`
	Target   *float64 `json:"target"`   // what the achieved value is held against
	Achieved *float64 `json:"achieved"` //

	// Reference lines for counts in windows: copies that are independent of one
	// another, and copies that all follow one rate.
	Independent *float64 `json:"independent,omitempty"`
	Common      *float64 `json:"common,omitempty"`
	// Band is where the target varies by itself, 95 % of the time.
	Band *[2]float64 `json:"band,omitempty"`

	Verdict string `json:"verdict"`
	Method  string `json:"method"` // how the verdict was found, or why there is none
}

// CompareFidelity holds the traffic that was made against its source.
func CompareFidelity(source, made *Traffic, d *model.Design) *Fidelity {
	c := &fidelity{source: source, made: made, design: d, Fidelity: &Fidelity{Design: d}}
	c.volume()
	c.shape()
	c.bursts()
	c.lengths()
	c.conversations()
	c.reuse()
	c.held()
	for _, p := range c.Properties {
		if p.Verdict == Lost {
			c.Lost++
		}
	}
	return c.Fidelity
}

type fidelity struct {
	*Fidelity
	source, made *Traffic
	design       *model.Design
}

func (c *fidelity) add(p Property) { c.Properties = append(c.Properties, p) }

// missing adds a property that cannot be measured.
func (c *fidelity) missing(name, why string) {
	c.add(Property{Name: name, Verdict: NotMeasurable, Method: why})
}

// same tells whether two numbers differ by no more than rounding.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// judge holds achieved against target with a band of its own.
func judge(achieved, target, low, high float64) string {
	switch {
	case same(achieved, target):
		return Exact
	case achieved >= low && achieved <= high:
		return WithinNoise
	}
	return Lost
}

// chosen is the verdict where the change was asked for.
func (c *fidelity) chosen(verdict string) string {
	if verdict == Lost && (len(c.design.Mix) > 0) {
		return ByDesign
	}
	return verdict
}

// sampleSD is the standard deviation of the number of requests that keeping a
// share of the sessions by chance has.
func (c *fidelity) sampleSD() float64 {
	f := c.design.Fraction
	rows := float64(c.source.Rows)
	perSession := 1.0
	if t := c.source.Sessions.Turns; t != nil && c.design.Unit != "request" {
		perSession = t.Mean
		if t.SD != nil && t.Mean > 0 {
			perSession = (t.Mean*t.Mean + *t.SD**t.SD) / t.Mean // mean of squares over mean
		}
	}
	return math.Sqrt(f * (1 - f) * rows * perSession)
}

// volume holds the number of requests, their rate and the tokens per second.
func (c *fidelity) volume() {
	d := c.design
	rows, made := float64(c.source.Rows), float64(c.made.Rows)
	play := 1.0
	if d.Extend != 0 && d.SpanNS > 0 {
		play = float64(d.Extend) / float64(d.SpanNS)
	}
	target := rows * d.Factor * play
	sd := c.sampleSD()
	low, high := target-2*sd-0.5, target+2*sd+0.5
	method := "whole copies"
	if d.Fraction > 0 {
		method = "sessions kept by chance: band of two standard deviations"
	}
	if d.Extend != 0 || len(d.Mix) > 0 {
		low, high = 0.97*target, 1.03*target
		method = "cut at the end, or kept by chance: band of 3 %"
	}
	verdict := judge(made, target, low, high)
	c.add(Property{Name: "requests", Source: &rows, Target: &target, Achieved: &made, Band: &[2]float64{low, high}, Verdict: verdict, Method: method})
	if c.source.Arrivals.RateHz == nil || c.made.Arrivals.RateHz == nil {
		c.missing("mean rate", "no clock over all requests, or one instant")
		return
	}
	// widen is how much more a sum over the rows that are drawn varies than their number.
	scaled := func(name, unit string, source, achieved *float64, by, widen float64) {
		span := max(0.02, 2*widen*sd/max(1, target)) // first and last arrival move
		if source == nil || achieved == nil {
			return
		}
		t := *source * by
		c.add(Property{Name: name, Unit: unit, Source: source, Target: &t, Achieved: achieved, Band: &[2]float64{t * (1 - span), t * (1 + span)},
			Verdict: c.chosen(judge(*achieved, t, t*(1-span), t*(1+span))), Method: "the ends of the trace move the span: band of 2 %, or of the sampling of sessions"})
	}
	scaled("mean rate", "requests/s", c.source.Arrivals.RateHz, c.made.Arrivals.RateHz, d.Factor, 1)
	for k, name := range []string{"input tokens/s", "output tokens/s"} {
		scaled(name, "tokens/s", tokenRate(c.source, k), tokenRate(c.made, k), d.Factor, sumVariation(c.source, k))
	}
}

// sumVariation is the relative deviation of a sum of lengths over that of their
// number, for rows drawn by chance: sqrt(1 + CV^2).
func sumVariation(t *Traffic, k int) float64 {
	if k >= len(t.Lengths) || t.Lengths[k].Dist == nil || t.Lengths[k].CV == nil {
		return 1
	}
	return math.Hypot(1, *t.Lengths[k].CV)
}

func tokenRate(t *Traffic, k int) *float64 {
	if k >= len(t.Lengths) || t.Lengths[k].Dist == nil || t.Arrivals.SpanS == nil || *t.Arrivals.SpanS == 0 {
		return nil
	}
	return finite(t.Lengths[k].Sum / *t.Arrivals.SpanS)
}

// shape holds the rate over time and the gaps.
func (c *fidelity) shape() {
	s, m := &c.source.Arrivals, &c.made.Arrivals
	d := c.design
	if s.Rate == nil || m.Rate == nil || s.SpanS == nil || *s.SpanS == 0 {
		c.missing("rate over time", "no clock over all requests, or one instant")
		return
	}
	w1 := curveDistance(s.Rate, m.Rate, d)
	idc := 1.0
	if n := len(s.Burstiness); n > 0 && s.Burstiness[n-1].IDC != nil {
		idc = max(1, *s.Burstiness[n-1].IDC)
	}
	limit := float64(d.JitterNS)/1e9 / *s.SpanS / 2 + math.Sqrt(idc/max(1, float64(c.made.Rows)))
	zero := 0.0
	verdict := judge(w1, 0, 0, limit)
	c.add(Property{Name: "rate over time, W1", Unit: "of the span", Target: &zero, Achieved: &w1, Band: &[2]float64{0, limit}, Verdict: verdict,
		Method: "mean distance of the cumulated arrivals; band: half the jitter, and counting noise at the IDC of the longest window"})
	if s.Gaps == nil || m.Gaps == nil || s.Gaps.CV == nil || m.Gaps.CV == nil {
		c.missing("gap CV", "fewer than two gaps, or all are 0")
		return
	}
	p := Property{Name: "gap CV", Source: s.Gaps.CV, Target: s.Gaps.CV, Achieved: m.Gaps.CV, Verdict: Exact, Method: "one copy: as it is"}
	if !same(*s.Gaps.CV, *m.Gaps.CV) {
		p.Target, p.Verdict, p.Method = nil, ByDesign, "superposed copies move the gaps of all requests towards those of a Poisson process, and thinning too; the burstiness curve says what is kept"
	}
	c.add(p)
}

// curveDistance is the mean difference of the shares of arrivals up to a time,
// over the span; an extension is held against repeated plays of the source.
func curveDistance(s, m *RateSeries, d *model.Design) float64 {
	a, b := cumulated(s), cumulated(m)
	const points = 400
	plays := 1.0
	if d.Extend != 0 && d.SpanNS > 0 {
		plays = float64(d.Extend) / float64(d.SpanNS)
	}
	var sum, total float64
	if total = a.upTo(math.Mod(plays, 1)) + math.Floor(plays); total == 0 {
		total = 1
	}
	for i := range points {
		x := (float64(i) + 0.5) / points
		whole, part := math.Modf(x * plays)
		sum += math.Abs((a.upTo(part)+whole)/total - b.upTo(x))
	}
	return sum / points
}

// A shareCurve is the share of arrivals up to the end of each bin.
type shareCurve []float64

func cumulated(r *RateSeries) shareCurve {
	c := make(shareCurve, len(r.Counts))
	sum := 0.0
	for i, n := range r.Counts {
		sum += float64(n)
		c[i] = sum
	}
	for i := range c {
		c[i] /= max(1, sum)
	}
	return c
}

// upTo interpolates at a share of the span.
func (c shareCurve) upTo(x float64) float64 {
	at := x * float64(len(c))
	i := int(at)
	if i >= len(c) {
		return 1
	}
	before := 0.0
	if i > 0 {
		before = c[i-1]
	}
	return before + (at-float64(i))*(c[i]-before)
}

// bursts hold the counts in windows against the two reference lines.
func (c *fidelity) bursts() {
	s, m := c.source.Arrivals.Burstiness, c.made.Arrivals.Burstiness
	if len(s) == 0 || len(m) == 0 {
		c.missing("burstiness", "no clock over all requests, or one instant")
		return
	}
	factor := c.design.Factor
	for k := range s {
		name := " at " + numberText(s[k].WindowS) + " s"
		if s[k].IDC == nil || m[k].IDC == nil {
			c.missing("IDC"+name, "fewer than two complete windows")
			continue
		}
		band, own := c.source.raw.flow.arrivals.blocks.band(k, c.design.Seed), c.made.raw.flow.arrivals.blocks.band(k, c.design.Seed)
		reach := min(1, 2*time.Duration(c.design.JitterNS).Seconds()/s[k].WindowS)
		c.line(reference{name: "IDC" + name, source: s[k].IDC, achieved: m[k].IDC, band: band.idc, own: own.idc, reach: reach,
			common: func(idc float64) float64 { return 1 + factor*(idc-1) }, independent: func(idc float64) float64 { return idc }})
		if s[k].CountCV == nil || m[k].CountCV == nil {
			continue
		}
		root := math.Sqrt(max(1, factor))
		c.line(reference{name: "count CV" + name, source: s[k].CountCV, achieved: m[k].CountCV, band: band.cv, own: own.cv, reach: reach,
			common: func(cv float64) float64 { return cv }, independent: func(cv float64) float64 { return cv / root }})
	}
	for k := 1; k <= 2 && k < len(s); k++ {
		if a, b := s[k].MaxMean, m[k].MaxMean; a != nil && b != nil {
			p := Property{Name: "busiest window / mean, " + numberText(s[k].WindowS) + " s", Source: a, Achieved: b, Verdict: Exact, Method: "as it is"}
			if !same(*a, *b) {
				p.Verdict, p.Method = ByDesign, "the largest of many counts: falls where copies are independent of one another, stays where they follow one rate"
			}
			c.add(p)
		}
	}
}

// A reference is one number of one window, with the two lines that it may lie
// on.
type reference struct {
	name                string
	source, achieved    *float64
	band, own           *stats.Interval // of source and achieved; nil where there are too few blocks
	reach               float64         // how far towards the independent line the jitter reaches, 0 to 1
	common, independent func(float64) float64
}

// line judges one window by the reference lines: at the common one is within
// noise; towards the independent one is by design, as far as the jitter reaches:
// all the way in windows of up to two jitters, and in longer ones in proportion.
func (c *fidelity) line(r reference) {
	common, independent := r.common(*r.source), r.independent(*r.source)
	p := Property{Name: r.name, Source: r.source, Target: &common, Achieved: r.achieved}
	if c.design.Factor != 1 {
		p.Independent, p.Common = &independent, &common
	}
	low, high, a, b := common, common, independent, independent
	if r.band != nil && r.own != nil { // intervals that overlap do not differ
		below, above := max(0, r.own.Hi-*r.achieved), max(0, *r.achieved-r.own.Lo)
		low, high = r.common(r.band.Lo)-below, r.common(r.band.Hi)+above
		a, b = r.independent(r.band.Lo)-below, r.independent(r.band.Hi)+above
	}
	least, most := min(low, low+r.reach*(a-low)), max(high, high+r.reach*(b-high))
	p.Band = &[2]float64{low, high}
	p.Method = "bootstrap over minutes (five minutes for the longest windows) of source and result, 400 draws, around the common rate"
	p.Verdict = judge(*r.achieved, common, low, high)
	if p.Verdict == Lost && *r.achieved >= least && *r.achieved <= most {
		p.Verdict, p.Method = ByDesign, "from copies of one rate towards independent ones, as far as the jitter reaches in windows of this length"
	}
	p.Verdict = c.chosen(p.Verdict)
	c.add(p)
}
