package analysis

import (
	"math"

	"reprise/analysis/stats"
)

// DistQuantiles are the quantiles of every [Dist].
var DistQuantiles = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999}

// cdfPoints bounds the points of a distribution function that is kept for a
// plot.
const cdfPoints = 1000

// A Dist describes the distribution of one quantity.
type Dist struct {
	N     int64    `json:"n"`
	Zeros int64    `json:"zeros"`
	Sum   float64  `json:"sum"`
	Mean  float64  `json:"mean"`
	SD    *float64 `json:"sd,omitempty"` // over n - 1
	CV    *float64 `json:"cv,omitempty"` // SD / mean
	Min   float64  `json:"min"`
	Max   float64  `json:"max"`
	// Quantiles are those of DistQuantiles, type 7 (linear between neighbours).
	Quantiles []Quantile `json:"quantiles"`
	// QuantileError bounds their relative error: 0 where they are exact. The
	// other numbers are always exact.
	QuantileError float64 `json:"quantile_error"`
	// CDF are at most 1,000 points of the distribution function.
	CDF []Quantile `json:"cdf"`
}

// A Quantile is a value that the share P does not exceed.
type Quantile struct {
	P float64 `json:"p"`
	X float64 `json:"x"`
}

// Quantile returns the quantile at one of DistQuantiles.
func (d *Dist) Quantile(p float64) (float64, bool) {
	for _, q := range d.Quantiles {
		if q.P == p {
			return q.X, true
		}
	}
	return 0, false
}

// distOf describes a tally in units of which one is per of the tally's; nil if
// it is empty. A division keeps 3 s a 3, where a factor of 1e-9 would not.
func distOf(t *stats.Tally, per float64) *Dist {
	if t.N() == 0 {
		return nil
	}
	s := t.Series()
	least, most, _ := s.Range()
	mean, _ := s.Mean()
	d := &Dist{N: s.N(), Zeros: s.Zeros(), Sum: s.Sum() / per, Mean: mean / per, Min: float64(least) / per, Max: float64(most) / per}
	if v, ok := s.SD(); ok {
		d.SD = finite(v / per)
	}
	if v, ok := s.CV(); ok {
		d.CV = finite(v)
	}
	sample := t.Sample(1)
	for i, x := range sample.Quantiles7(DistQuantiles...) {
		d.Quantiles = append(d.Quantiles, Quantile{DistQuantiles[i], x / per})
	}
	if !t.Exact() {
		d.QuantileError = stats.TallyError
	}
	d.CDF = cdfOf(sample, per)
	return d
}

// cdfOf returns the steps of the distribution function, thinned where there are
// many: the first, the last, and one wherever the rank has moved on enough.
func cdfOf(s stats.Sample, per float64) []Quantile {
	var points []Quantile
	n, below := float64(s.N()), int64(0)
	next := 0.0
	for i := range s.Distinct() {
		x, count := s.At(i)
		below += count
		p := float64(below) / n
		if p >= next || i == s.Distinct()-1 || s.Distinct() <= cdfPoints {
			points = append(points, Quantile{p, x / per})
			next = p + 1.0/(cdfPoints-2)
		}
	}
	return points
}

// finite returns a pointer to v, or nil where v is no number: nothing that is
// written is NaN or infinite.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// maybe is finite of a value that may be missing.
func maybe(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return finite(v)
}
