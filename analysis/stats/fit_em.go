package stats

import "math"

// emExact is how many distinct values EM runs over as they are. Above, it runs over
// values grouped on a logarithmic grid, and Newton steps on all values follow.
const emExact = 1 << 14

// hyperexponentialOf fits the two phases by EM from p 1/2 and rates 4/mean and
// 0.25/mean, until the log-likelihood changes by less than 1e-14 of itself.
func hyperexponentialOf(s Sample) Hyperexponential {
	if s.Distinct() <= emExact {
		h, settled := hyperexponentialEM(s, 5000)
		if !settled {
			h = hyperexponentialPeak(s, h)
		}
		return h.ordered()
	}
	some := grouped(s, emExact)
	h, _ := hyperexponentialEM(some, 100)
	return hyperexponentialPeak(s, hyperexponentialPeak(some, h))
}

// hyperexponentialPeak climbs the likelihood of s from h by Newton.
func hyperexponentialPeak(s Sample, h Hyperexponential) Hyperexponential {
	if h.P <= 0 || h.P >= 1 {
		return h
	}
	loglik := func(x []float64) float64 { return LogLik(s, lawAt(FamilyHyperexponential, x)) }
	return lawAt(FamilyHyperexponential, maximize(loglik, coordinates(h)).at).(Hyperexponential)
}

func hyperexponentialEM(s Sample, limit int) (h Hyperexponential, settled bool) {
	m := s.Moments()
	mean, _ := m.Mean()
	h = Hyperexponential{0.5, 4 / mean, 0.25 / mean}
	n, before := float64(s.n), math.Inf(-1)
	for range limit {
		var loglik, w1, x1 total
		for i, x := range s.values {
			c := float64(s.counts[i])
			// Phase 1 relative to phase 2; their ratio may under- or overflow safely.
			odds := h.P * h.Rate1 / ((1 - h.P) * h.Rate2) * math.Exp((h.Rate2-h.Rate1)*x)
			w := 1 - 1/(1+odds)
			loglik.add(c * (math.Log((1-h.P)*h.Rate2) - h.Rate2*x + math.Log1p(odds)))
			w1.add(c * w)
			x1.add(c * w * x)
		}
		l, sum, in1 := loglik.value(), w1.value(), x1.value()
		h = Hyperexponential{sum / n, sum / in1, (n - sum) / (mean*n - in1)}
		if CheckLaw(h) != nil { // one phase has taken everything
			return Hyperexponential{0.5, 1 / mean, 1 / mean}, true
		}
		if math.Abs(l-before) <= 1e-14*math.Abs(l) {
			return h, true
		}
		before = l
	}
	return h, false
}

// grouped returns s with at most about limit distinct values: those that are close
// on a logarithmic scale are replaced by their mean. Zeros stay.
func grouped(s Sample, limit int) Sample {
	if s.Distinct() <= limit {
		return s
	}
	first := 0
	for s.values[first] <= 0 {
		first++
	}
	least := math.Log(s.values[first])
	width := (math.Log(s.values[len(s.values)-1]) - least) / float64(limit)
	out := Sample{}
	for i := 0; i < len(s.values); {
		group := math.Floor((math.Log(s.values[i]) - least) / width)
		var n int64
		var sum total
		for ; i < len(s.values) && (n == 0 || math.Floor((math.Log(s.values[i])-least)/width) == group); i++ {
			n += s.counts[i]
			sum.add(s.values[i] * float64(s.counts[i]))
		}
		out.add(sum.value()/float64(n), n)
	}
	return out
}

// FitMixture fits a mixture of two lognormal laws by EM, from the two halves of the
// values. It suits lengths with two modes; it is refused where one part shrinks to
// a single value.
func FitMixture(s Sample) (Fit, error) {
	const family Family = "mixture"
	if err := checkPositive(family, s); err != nil {
		return Fit{}, err
	}
	if s.Distinct() < 6 {
		return Fit{}, refuse(family, s, "%d distinct values are too few for its 5 parameters", s.Distinct())
	}
	a, b, weight := lognormalsEM(grouped(s, emExact))
	if spread := 1e-3 * spreadOf(s); a.Sigma < spread || b.Sigma < spread || weight*float64(s.n) < 2 || (1-weight)*float64(s.n) < 2 {
		return Fit{}, refuse(family, s, "one part shrinks to a single value: see the spikes instead")
	}
	law := Mixture{[]float64{weight, 1 - weight}, []Law{a, b}}
	fit := Fit{Law: law, Likelihood: Density, Identified: true, LogLik: LogLik(s, law)}
	fit.score(5, s.N())
	fit.measure(s)
	return fit, fit.sound(family, s)
}

func spreadOf(s Sample) float64 {
	_, sigma := logMoments(s)
	return sigma
}

// lognormalsEM returns both parts, that of the smaller values first, and its weight.
func lognormalsEM(s Sample) (a, b Lognormal, weight float64) {
	logs := make([]float64, len(s.values))
	owned := make([]float64, len(s.values)) // probability of a, per value
	var below int64
	for i, v := range s.values {
		logs[i] = math.Log(v)
		if 2*below < s.n {
			owned[i] = 1
		}
		below += s.counts[i]
	}
	before := math.Inf(-1)
	for range 2000 {
		a, b, weight = lognormalsFrom(s, logs, owned)
		if !(a.Sigma > 1e-9) || !(b.Sigma > 1e-9) || !(weight > 0 && weight < 1) {
			break
		}
		var loglik total
		ca, cb := math.Log(weight/a.Sigma), math.Log((1-weight)/b.Sigma)
		for i, l := range logs {
			za, zb := (l-a.Mu)/a.Sigma, (l-b.Mu)/b.Sigma
			la, lb := ca-za*za/2, cb-zb*zb/2
			top := max(la, lb)
			both := math.Exp(la-top) + math.Exp(lb-top)
			owned[i] = math.Exp(la-top) / both
			loglik.add(float64(s.counts[i]) * (top + math.Log(both)))
		}
		l := loglik.value()
		if math.Abs(l-before) <= 1e-12*math.Abs(l) {
			break
		}
		before = l
	}
	if a.Mu > b.Mu {
		return b, a, 1 - weight
	}
	return a, b, weight
}

// lognormalsFrom is the M step.
func lognormalsFrom(s Sample, logs, owned []float64) (a, b Lognormal, weight float64) {
	var wa, la, lb, qa, qb total
	for i, l := range logs {
		c := float64(s.counts[i])
		wa.add(c * owned[i])
		la.add(c * owned[i] * l)
		lb.add(c * (1 - owned[i]) * l)
	}
	na, nb := wa.value(), float64(s.n)-wa.value()
	a.Mu, b.Mu = la.value()/na, lb.value()/nb
	for i, l := range logs {
		c := float64(s.counts[i])
		qa.add(c * owned[i] * (l - a.Mu) * (l - a.Mu))
		qb.add(c * (1 - owned[i]) * (l - b.Mu) * (l - b.Mu))
	}
	a.Sigma, b.Sigma = math.Sqrt(qa.value()/na), math.Sqrt(qb.value()/nb)
	return a, b, na / float64(s.n)
}
