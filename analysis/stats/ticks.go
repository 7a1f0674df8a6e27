package stats

import (
	"fmt"
	"math"
)

// Ticks are gaps between stamps that were floored to whole ticks: gap k means a
// difference of k ticks, and 0 is data, not a gap of length 0.
type Ticks struct {
	tick float64   // seconds
	gaps Sample    // of whole ticks
	logs []float64 // ln k
}

// NewTicks returns gaps given as counts per number of ticks of tick seconds.
func NewTicks(tick float64, gaps map[int64]int64) (Ticks, error) {
	return SampledTicks(tick, countedSample(gaps, 0))
}

// SampledTicks returns gaps given as a sample of whole numbers of ticks, which it keeps.
func SampledTicks(tick float64, gaps Sample) (Ticks, error) {
	if !(tick > 0) || math.IsInf(tick, 0) {
		return Ticks{}, fmt.Errorf("tick is %v s, but must be above 0", tick)
	}
	t := Ticks{tick, gaps, make([]float64, len(gaps.values))}
	for i, k := range gaps.values {
		if k < 0 || k != math.Floor(k) {
			return Ticks{}, fmt.Errorf("gap of %v ticks is not a whole number from 0 up", k)
		}
		t.logs[i] = math.Log(k)
	}
	return t, nil
}

// Tick returns the tick in seconds.
func (t Ticks) Tick() float64 { return t.tick }

// Sample returns the gaps in ticks.
func (t Ticks) Sample() Sample { return t.gaps }

// MeanGap returns the mean gap in seconds, which flooring leaves unbiased; false
// without gaps.
func (t Ticks) MeanGap() (float64, bool) {
	m := t.gaps.Moments()
	mean, ok := m.Mean()
	return mean * t.tick, ok
}

// A TickForm is the probability of a gap of k ticks of D seconds under a law f of
// exact gaps.
type TickForm int

const (
	// Triangular is the law of the difference of two floored stamps whose phase is
	// uniform: P(k) is the integral of f(x) max(0, 1-|x-kD|/D).
	Triangular TickForm = iota
	// HalfOpen rounds the gap itself: P(k) = F((k+1/2)D) - F(max(0, k-1/2)D). It is
	// biased towards larger shapes, and in the mean once D is near it; it is here to
	// show that, not to be used.
	HalfOpen
)

// likelihood names the form in a Fit.
func (form TickForm) likelihood() Likelihood {
	if form == HalfOpen {
		return HalfOpenTick
	}
	return TriangularTick
}

// LogProb returns ln P(k) at a tick of D = tick seconds.
func (form TickForm) LogProb(law Law, k int64, tick float64) float64 {
	return tickLaw{law, form, tick, densityOf(law)}.logProb(float64(k), math.Log(float64(k)))
}

// tickLaw is a law seen through ticks, with its density made ready.
type tickLaw struct {
	law     Law
	form    TickForm
	tick    float64
	density logDensity
}

// leastLog is what stands for the logarithm of a probability that underflows.
const leastLog = -1e4

func (t tickLaw) logProb(k, lnK float64) float64 {
	if k > 1 && t.density != nil {
		if l, ok := t.smooth(k, lnK); ok {
			return l
		}
	}
	l := t.halfOpen(k)
	if t.form == Triangular {
		l = t.triangular(k)
	}
	return max(l, leastLog*(1+k))
}

// smooth uses the Taylor series about x = kD where the density hardly changes over
// a tick: P = D f(x) (1 + c D^2 f”/f + ...), with c = 1/12 for the triangle and 1/24
// for the half-open box. With slopes of ln f below 1/250 per tick the next term is
// below 1e-11.
func (t tickLaw) smooth(k, lnK float64) (float64, bool) {
	const steep = 1.0 / 250
	l, d1, d2 := t.density(k*t.tick, lnK+math.Log(t.tick))
	d1, d2 = d1*t.tick, d2*t.tick*t.tick
	if !(math.Abs(d1) < steep && math.Abs(d2) < steep*steep) {
		return 0, false
	}
	c := (d2 + d1*d1) / 12
	if t.form == HalfOpen {
		c /= 2
	}
	return l + math.Log(t.tick) + c - c*c/2, true
}

// triangular takes the second difference of H, the integral of F, for k up to 1, and
// Gauss-Legendre on each half beyond, where that difference cancels: 16 points, 4 from
// k = 64 on.
func (t tickLaw) triangular(k float64) float64 {
	h := t.law.IntegralCDF(t.tick)
	switch {
	case k == 0:
		return math.Log(max(0, h) / t.tick)
	case k == 1:
		h2 := t.law.IntegralCDF(2 * t.tick)
		if p := h2 - 2*h; p > 1e-6*h2 {
			return math.Log(p / t.tick)
		}
	}
	points := gauss16
	if k >= 64 {
		points = gauss4
	}
	top := math.Inf(-1) // scale of the terms, which may lie below the smallest float64
	var at [32]float64
	for i, u := range points.nodes {
		at[2*i], at[2*i+1] = t.logDensity((k-u)*t.tick), t.logDensity((k+u)*t.tick)
		top = max(top, at[2*i], at[2*i+1])
	}
	if math.IsInf(top, 0) {
		return math.Inf(-1)
	}
	sum := 0.0
	for i, u := range points.nodes {
		sum += points.weights[i] * (1 - u) * (math.Exp(at[2*i]-top) + math.Exp(at[2*i+1]-top))
	}
	return top + math.Log(sum*t.tick)
}

func (t tickLaw) logDensity(x float64) float64 {
	if t.density == nil {
		return t.law.LogDensity(x)
	}
	l, _, _ := t.density(x, math.Log(x))
	return l
}

func (t tickLaw) halfOpen(k float64) float64 {
	a, b := max(0, k-0.5)*t.tick, (k+0.5)*t.tick
	p := t.law.CDF(b) - t.law.CDF(a)
	if t.law.CDF(a) > 0.5 {
		p = t.law.Survival(a) - t.law.Survival(b)
	}
	return math.Log(max(0, p))
}

// cumulative returns the probability of at most k ticks: for the triangle the mean
// of F over [kD, (k+1)D], which is what the second differences add up to.
func (t tickLaw) cumulative(k float64) float64 {
	switch {
	case k < 0:
		return 0
	case t.form == HalfOpen:
		return t.law.CDF((k + 0.5) * t.tick)
	case k < 64:
		mean := (t.law.IntegralCDF((k+1)*t.tick) - t.law.IntegralCDF(k*t.tick)) / t.tick
		return min(1, max(0, mean))
	}
	points, mean := gauss4, 0.0
	if k >= 1024 {
		points = gauss2
	}
	for i, u := range points.nodes {
		mean += points.weights[i] * t.law.CDF((k+u)*t.tick)
	}
	return mean
}

// LogLik returns the logarithm of the probability of the gaps under law. Its cost
// grows with the distinct gaps only.
func (t Ticks) LogLik(law Law, form TickForm) float64 {
	seen := tickLaw{law, form, t.tick, densityOf(law)}
	return t.gaps.sum(func(i int) float64 { return seen.logProb(t.gaps.values[i], t.logs[i]) })
}

// KS returns the largest distance of the CDFs of the gaps and of law over whole
// ticks, looked for at every k that occurs and at k-1.
func (t Ticks) KS(law Law, form TickForm) float64 {
	seen := tickLaw{law, form, t.tick, densityOf(law)}
	parts := make([]float64, t.gaps.chunks())
	starts := make([]int64, len(parts)) // gaps before each chunk
	for i, c := range t.gaps.counts {
		if next := i/sampleChunk + 1; next < len(starts) {
			starts[next] += c
		}
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	n := float64(t.gaps.n)
	inParallel(len(parts), func(part int) {
		below := starts[part]
		for i := part * sampleChunk; i < min(len(t.logs), (part+1)*sampleChunk); i++ {
			k, upTo := t.gaps.values[i], below+t.gaps.counts[i]
			parts[part] = max(parts[part], math.Abs(float64(upTo)/n-seen.cumulative(k)),
				math.Abs(float64(below)/n-seen.cumulative(k-1)))
			below = upTo
		}
	})
	d := 0.0
	for _, p := range parts {
		d = max(d, p)
	}
	return d
}
