package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Mixture is the law of a number drawn from one of several laws, chosen by weight.
type Mixture struct {
	Weights []float64 // one per law, each above 0, together 1
	Laws    []Law
}

func (m Mixture) Name() string { return "mixture" }

func (m Mixture) Params() []Param {
	var params []Param
	for i, law := range m.Laws {
		part := fmt.Sprintf("%d", i+1)
		params = append(params, Param{part + ".weight", m.Weights[i], Pure})
		params = append(params, prefixed(part, law.Params())...)
	}
	return params
}

func (m Mixture) check() error {
	if len(m.Laws) == 0 {
		return errors.New("it has no laws")
	}
	if len(m.Laws) != len(m.Weights) {
		return fmt.Errorf("%d laws with %d weights", len(m.Laws), len(m.Weights))
	}
	total := 0.0
	for i, law := range m.Laws {
		if err := above0(Param{Name: fmt.Sprintf("weight %d", i+1), Value: m.Weights[i]}); err != nil {
			return err
		}
		if err := CheckLaw(law); err != nil {
			return err
		}
		total += m.Weights[i]
	}
	if math.Abs(total-1) > 1e-9 {
		return fmt.Errorf("the weights add up to %v, but must add up to 1", total)
	}
	return nil
}

func (m Mixture) LogDensity(x float64) float64 {
	top := math.Inf(-1)
	for i, law := range m.Laws {
		top = max(top, math.Log(m.Weights[i])+law.LogDensity(x))
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for i, law := range m.Laws {
		sum += m.Weights[i] * math.Exp(law.LogDensity(x)-top)
	}
	return top + math.Log(sum)
}

func (m Mixture) CDF(x float64) float64 {
	sum := 0.0
	for i, law := range m.Laws {
		sum += m.Weights[i] * law.CDF(x)
	}
	return min(1, sum)
}

func (m Mixture) cdfBelow(x float64) float64 {
	sum := 0.0
	for i, law := range m.Laws {
		sum += m.Weights[i] * cdfBelow(law, x)
	}
	return min(1, sum)
}

func (m Mixture) Survival(x float64) float64 {
	sum := 0.0
	for i, law := range m.Laws {
		sum += m.Weights[i] * law.Survival(x)
	}
	return min(1, sum)
}

// Quantile bisects between the smallest and the largest quantile of the parts.
func (m Mixture) Quantile(p float64) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, law := range m.Laws {
		q := law.Quantile(p)
		lo, hi = min(lo, q), max(hi, q)
	}
	if p <= 0 {
		return lo
	}
	if p >= 1 {
		return hi
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if lo > 0 && hi > 4*lo {
			mid = math.Sqrt(lo) * math.Sqrt(hi)
		}
		if mid <= lo || mid >= hi {
			break
		}
		reached := m.CDF(mid) >= p
		if p > 0.5 {
			reached = m.Survival(mid) <= 1-p
		}
		if reached {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func (m Mixture) Mean() (float64, bool) {
	sum := 0.0
	for i, law := range m.Laws {
		mean, ok := law.Mean()
		if !ok {
			return 0, false
		}
		sum += m.Weights[i] * mean
	}
	return sum, true
}

func (m Mixture) SD() (float64, bool) {
	centre, ok := m.Mean()
	if !ok {
		return 0, false
	}
	variance := 0.0
	for i, law := range m.Laws {
		mean, _ := law.Mean()
		sd, ok := law.SD()
		if !ok {
			return 0, false
		}
		variance += m.Weights[i] * (sd*sd + (mean-centre)*(mean-centre))
	}
	return math.Sqrt(variance), true
}

func (m Mixture) IntegralCDF(x float64) float64 {
	sum := 0.0
	for i, law := range m.Laws {
		sum += m.Weights[i] * law.IntegralCDF(x)
	}
	return sum
}

func (m Mixture) Rand(r *rand.Rand) float64 {
	u := r.Float64()
	for i, w := range m.Weights[:len(m.Weights)-1] {
		if u < w {
			return m.Laws[i].Rand(r)
		}
		u -= w
	}
	return m.Laws[len(m.Laws)-1].Rand(r)
}

// Spliced is a body below a threshold and a tail above it, each with its own
// share of the numbers. The density may jump at the threshold.
type Spliced struct {
	Threshold float64 // value; belongs to the body
	TailShare float64 // P(X > Threshold), between 0 and 1
	Body      Law     // its part at or below Threshold is used, scaled to 1-TailShare
	Tail      Law     // a GPD or Pareto law that begins at Threshold
}

func (s Spliced) Name() string { return "spliced" }

func (s Spliced) Params() []Param {
	params := []Param{{"threshold", s.Threshold, Value}, {"tail_share", s.TailShare, Pure}}
	params = append(params, prefixed("body", s.Body.Params())...)
	return append(params, prefixed("tail", s.Tail.Params())...)
}

func (s Spliced) check() error {
	if s.Body == nil || s.Tail == nil {
		return errors.New("it needs a body and a tail")
	}
	if err := errors.Join(CheckLaw(s.Body), CheckLaw(s.Tail)); err != nil {
		return err
	}
	if err := finite(Param{Name: "threshold", Value: s.Threshold}); err != nil {
		return err
	}
	if !(s.TailShare > 0 && s.TailShare < 1) {
		return fmt.Errorf("tail_share is %v, but must be between 0 and 1", s.TailShare)
	}
	if s.Body.CDF(s.Threshold) == 0 {
		return fmt.Errorf("the body has nothing at or below the threshold %v", s.Threshold)
	}
	if s.Tail.CDF(s.Threshold) > 0 {
		return fmt.Errorf("the tail begins below the threshold %v", s.Threshold)
	}
	return nil
}

// bodyScale turns the body's CDF below the threshold into the splice's.
func (s Spliced) bodyScale() float64 { return (1 - s.TailShare) / s.Body.CDF(s.Threshold) }

func (s Spliced) LogDensity(x float64) float64 {
	if x <= s.Threshold {
		return math.Log(s.bodyScale()) + s.Body.LogDensity(x)
	}
	return math.Log(s.TailShare) + s.Tail.LogDensity(x)
}

func (s Spliced) CDF(x float64) float64 {
	if x <= s.Threshold {
		return s.bodyScale() * s.Body.CDF(x)
	}
	return 1 - s.TailShare*s.Tail.Survival(x)
}

func (s Spliced) Survival(x float64) float64 {
	if x <= s.Threshold {
		return 1 - s.bodyScale()*s.Body.CDF(x)
	}
	return s.TailShare * s.Tail.Survival(x)
}

func (s Spliced) Quantile(p float64) float64 {
	if p <= 1-s.TailShare {
		return min(s.Threshold, s.Body.Quantile(p/s.bodyScale()))
	}
	return s.Tail.Quantile(1 - max(0, 1-p)/s.TailShare)
}

func (s Spliced) Mean() (float64, bool) {
	tail, ok := s.Tail.Mean()
	if !ok {
		return 0, false
	}
	body := s.Threshold*(1-s.TailShare) - s.bodyScale()*s.Body.IntegralCDF(s.Threshold)
	return body + s.TailShare*tail, true
}

// SD integrates the body's second moment numerically.
func (s Spliced) SD() (float64, bool) {
	mean, ok := s.Mean()
	tail, _ := s.Tail.Mean()
	sd, finite := s.Tail.SD()
	if !ok || !finite {
		return 0, false
	}
	variance := s.TailShare * (sd*sd + (tail-mean)*(tail-mean))
	variance += s.bodyScale() * squaresBelow(s.Body, s.Threshold, mean)
	return math.Sqrt(max(0, variance)), true
}

func (s Spliced) IntegralCDF(x float64) float64 {
	if x <= s.Threshold {
		return s.bodyScale() * s.Body.IntegralCDF(x)
	}
	return s.bodyScale()*s.Body.IntegralCDF(s.Threshold) +
		(1-s.TailShare)*(x-s.Threshold) + s.TailShare*s.Tail.IntegralCDF(x)
}

func (s Spliced) Rand(r *rand.Rand) float64 { return s.Quantile(r.Float64()) }

// squaresBelow returns E[(X-c)^2; X <= u] by parts over H = IntegralCDF:
// (u-c)^2 F(u) - 2 (u-c) H(u) + 2 (integral of H to u), the last by Gauss-Legendre
// on intervals that halve towards the law's lower end.
func squaresBelow(law Law, u, c float64) float64 {
	low := law.Quantile(1e-15)
	if !(low < u) {
		return 0
	}
	area, right := 0.0, u-low
	for range 40 {
		left := right / 2
		for i, x := range gauss16.nodes {
			area += gauss16.weights[i] * (right - left) * law.IntegralCDF(low+left+x*(right-left))
		}
		right = left
	}
	return (u-c)*(u-c)*law.CDF(u) - 2*(u-c)*law.IntegralCDF(u) + 2*area
}
