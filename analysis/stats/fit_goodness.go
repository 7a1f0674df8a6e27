package stats

import "math"

// LogLik returns the sum of law's log densities over s, -Inf if a value is outside
// its support.
func LogLik(s Sample, law Law) float64 {
	sum := s.sum(func(i int) float64 { return max(law.LogDensity(s.values[i]), -math.MaxFloat64) })
	if sum < -math.MaxFloat64/2 || math.IsNaN(sum) { // compensation makes NaN of an overflow
		return math.Inf(-1)
	}
	return sum
}

// KSAgainst returns the Kolmogorov-Smirnov distance: the largest difference of the
// CDFs of s and law, 0 for an empty sample. After fitting law to s its textbook
// p-value is too large; see [BootstrapP].
func KSAgainst(s Sample, law Law) float64 {
	n, below, d := float64(s.n), int64(0), 0.0
	for i, v := range s.values {
		upTo := below + s.counts[i]
		d = max(d, float64(upTo)/n-law.CDF(v), cdfBelow(law, v)-float64(below)/n)
		below = upTo
	}
	return d
}

// adFloor is the least CDF or survival whose logarithm the Anderson-Darling sum takes.
const adFloor = 1e-300

// ADAgainst returns the Anderson-Darling statistic A^2 of s against law, and how
// many of its 2n logarithms were floored at ln 1e-300. It has a meaning only for a
// law without point masses.
func ADAgainst(s Sample, law Law) (a2 float64, clipped int64) {
	n, below := float64(s.n), 0.0
	var sum total
	for i, v := range s.values {
		upTo := below + float64(s.counts[i])
		f, surv := law.CDF(v), law.Survival(v)
		if f < adFloor {
			f, clipped = adFloor, clipped+s.counts[i]
		}
		if surv < adFloor {
			surv, clipped = adFloor, clipped+s.counts[i]
		}
		// Of equal values, the weights 2i-1 add up to a difference of squares.
		sum.add((upTo - below) * (upTo + below) * math.Log(f))
		sum.add((upTo - below) * (2*n - upTo - below) * math.Log(surv))
		below = upTo
	}
	return -n - sum.value()/n, clipped
}

// W1Against returns the Wasserstein-1 distance of s and law, the area between their
// CDFs, in the unit of the values; false if s is empty or law has no mean.
func W1Against(s Sample, law Law) (w1 float64, ok bool) {
	mean, ok := law.Mean()
	if !ok || s.n == 0 {
		return 0, false
	}
	var area total
	last := len(s.values) - 1
	h := law.IntegralCDF(s.values[0])
	area.add(h) // left of the sample: the integral of F
	below := 0.0
	for i := range last {
		a, b := s.values[i], s.values[i+1]
		below += float64(s.counts[i])
		next := law.IntegralCDF(b)
		area.add(areaBetween(law, below/float64(s.n), a, b, h, next))
		h = next
	}
	// Right of it: the integral of S. For a law of numbers from 0 that is
	// mean - x + H(x), and so it is for any.
	area.add(max(0, mean-s.values[last]+h))
	return area.value(), true
}

// areaBetween returns the integral of |F - c| from a to b, with H = IntegralCDF at
// both ends. F crosses c at most once.
func areaBetween(law Law, c, a, b, ha, hb float64) float64 {
	above := hb - ha - c*(b-a)
	if law.CDF(a) >= c || cdfBelow(law, b) <= c {
		return math.Abs(above)
	}
	q := min(b, max(a, law.Quantile(c)))
	under := c*(q-a) - (law.IntegralCDF(q) - ha)
	return max(0, under) + max(0, above+under)
}

// quantileRatios compares law with s where at least ten values lie above.
func quantileRatios(s Sample, law Law) []QuantileRatio {
	var out []QuantileRatio
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if float64(s.n)*(1-p) < 10-1e-6 {
			break
		}
		at := s.Quantiles1(p)[0]
		ratio := law.Quantile(p) / at
		if at > 0 && isFinite(ratio) {
			out = append(out, QuantileRatio{p, ratio})
		}
	}
	return out
}

// measure fills how well f.Law fits s.
func (f *Fit) measure(s Sample) {
	f.KS = KSAgainst(s, f.Law)
	f.Grade = gradeOf(f.KS)
	if !hasMass(f.Law) {
		if ad, clipped := ADAgainst(s, f.Law); isFinite(ad) {
			f.AD, f.ADClipped = &ad, clipped
		}
	}
	m := s.Moments()
	mean, _ := m.Mean()
	if w1, ok := W1Against(s, f.Law); ok && mean > 0 && isFinite(w1/mean) {
		over := w1 / mean
		f.W1OverMean = &over
	}
	f.QuantileRatios = quantileRatios(s, f.Law)
}
