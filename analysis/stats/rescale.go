package stats

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// A StepRate is a rate of events that is constant between edges, and its
// integral Lambda, the expected number of events since the first edge. Poisson
// arrivals at this rate have Exp(1) gaps in Lambda (time rescaling, Brown et al.
// 2002).
type StepRate struct {
	edges []float64 // seconds, increasing
	rates []float64 // per second, one less
	total []float64 // Lambda at each edge
}

// NewStepRate returns the rate rates[i] between edges[i] and edges[i+1].
func NewStepRate(edges, rates []float64) (*StepRate, error) {
	if len(rates) == 0 || len(edges) != len(rates)+1 {
		return nil, fmt.Errorf("%d rates need one edge more, got %d", len(rates), len(edges))
	}
	r := &StepRate{edges: slices.Clone(edges), rates: slices.Clone(rates), total: make([]float64, len(edges))}
	for i, v := range rates {
		width := edges[i+1] - edges[i]
		switch {
		case !(width > 0) || math.IsInf(width, 0):
			return nil, fmt.Errorf("edge %v does not come after %v", edges[i+1], edges[i])
		case !(v >= 0) || math.IsInf(v, 0):
			return nil, fmt.Errorf("rate %v is not a number from 0", v)
		}
		r.total[i+1] = r.total[i] + v*width
	}
	return r, nil
}

// StepRate returns the rate of the segments, whose windows (seconds) begin at 0
// and number windows in all.
func (s Segments) StepRate(window float64, windows int) (*StepRate, error) {
	edges := []float64{0}
	for _, c := range s.Changes {
		edges = append(edges, float64(c)*window)
	}
	return NewStepRate(append(edges, float64(windows)*window), s.Rates)
}

// Lambda returns the integral of the rate from the first edge to t. Outside the
// edges the rate is 0.
func (r *StepRate) Lambda(t float64) float64 {
	last := len(r.rates)
	switch {
	case t <= r.edges[0]:
		return 0
	case t >= r.edges[last]:
		return r.total[last]
	}
	i := sort.SearchFloat64s(r.edges, t)
	if r.edges[i] > t {
		i--
	}
	return r.total[i] + r.rates[i]*(t-r.edges[i])
}

// Total returns Lambda at the last edge.
func (r *StepRate) Total() float64 { return r.total[len(r.rates)] }

// Time returns the earliest time at which Lambda reaches l, which must lie
// between 0 and Total.
func (r *StepRate) Time(l float64) float64 {
	i := sort.SearchFloat64s(r.total, l)
	switch {
	case i == 0:
		return r.edges[0]
	case i == len(r.total):
		return r.edges[len(r.rates)]
	}
	t := r.edges[i-1] + (l-r.total[i-1])/r.rates[i-1] // the rate is not 0: Lambda rises here
	return min(t, r.edges[i])
}

// Rescale returns the increments of Lambda between the times, which do not
// decrease; the first is from the first edge.
func (r *StepRate) Rescale(times []float64) ([]float64, error) {
	tau := make([]float64, len(times))
	var before float64
	for i, t := range times {
		if i > 0 && t < times[i-1] {
			return nil, fmt.Errorf("time %v comes after %v", t, times[i-1])
		}
		at := r.Lambda(t)
		tau[i], before = at-before, at
	}
	return tau, nil
}

// KSUnitExponential returns the Kolmogorov-Smirnov distance of tau from the
// exponential law of mean 1; false if tau is empty.
func KSUnitExponential(tau []float64) (float64, bool) {
	sorted := slices.Sorted(slices.Values(tau))
	n := float64(len(sorted))
	var d float64
	for i, x := range sorted {
		f := -math.Expm1(-max(0, x))
		d = max(d, float64(i+1)/n-f, f-float64(i)/n)
	}
	return d, n > 0
}
