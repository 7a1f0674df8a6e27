package stats

// A GammaRenewal is a stream of arrivals whose gaps are independent and gamma:
// what load generators call burstiness or smoothness is its Shape. CV = 1 over
// the root of Shape: below 1 it is burstier than Poisson, which is Shape 1.
type GammaRenewal struct {
	Rate  float64 // per second
	Shape float64
}

// Scale returns the scale of the gaps, in seconds: mean gap / shape.
func (g GammaRenewal) Scale() float64 { return 1 / (g.Rate * g.Shape) }

// DispersionLimit returns what the index of dispersion for counts tends to in
// long windows: CV² = 1 / shape.
func (g GammaRenewal) DispersionLimit() float64 { return 1 / g.Shape }

// Dispersion returns the index of dispersion in windows of w seconds of the
// equilibrium process, to first order in 1/w (Cox 1962, section 4.5):
// 1/a + (1/6 - 1/(6 a²)) / (rate w).
func (g GammaRenewal) Dispersion(w float64) float64 {
	a := g.Shape
	return 1/a + (1./6-1/(6*a*a))/(g.Rate*w)
}
