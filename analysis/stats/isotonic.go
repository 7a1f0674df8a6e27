package stats

// Isotonic fits the values y, with weights w above 0, by a sequence that does not
// decrease and has the least weighted sum of squared differences from them (pool
// adjacent violators; Ayer, Brunk, Ewing, Reid and Silverman, 1955). The slices have
// one length; the result is a new one.
func Isotonic(y, w []float64) []float64 {
	type pool struct {
		mean, weight float64
		n            int
	}
	var pools []pool
	for i := range y {
		p := pool{y[i], w[i], 1}
		for len(pools) > 0 && pools[len(pools)-1].mean >= p.mean {
			last := pools[len(pools)-1]
			pools = pools[:len(pools)-1]
			sum := last.weight + p.weight
			p = pool{(last.mean*last.weight + p.mean*p.weight) / sum, sum, last.n + p.n}
		}
		pools = append(pools, p)
	}
	fit := make([]float64, 0, len(y))
	for _, p := range pools {
		for range p.n {
			fit = append(fit, p.mean)
		}
	}
	return fit
}
