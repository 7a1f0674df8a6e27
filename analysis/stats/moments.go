package stats

import "math"

// Moments are sums over numbers, kept so that mean and deviation are exact to
// about 1e-15 whatever the order: a compensated sum (Neumaier 1974) and
// Welford's centred squares (1962). The zero value has seen none.
type Moments struct {
	n           int64
	sum, lost   float64
	mean, m2    float64
	least, most float64
}

// Add counts x, which must be finite.
func (m *Moments) Add(x float64) { m.AddN(x, 1) }

// AddN counts x n times; n below 1 counts nothing.
func (m *Moments) AddN(x float64, n int64) {
	if n < 1 {
		return
	}
	if m.n == 0 {
		m.least, m.most = x, x
	}
	m.least, m.most = min(m.least, x), max(m.most, x)
	k := float64(n)
	m.n += n
	m.plus(x * k)
	d := x - m.mean
	m.mean += d * k / float64(m.n)
	m.m2 += k * d * (x - m.mean)
}

func (m *Moments) plus(x float64) { m.sum, m.lost = neumaier(m.sum, m.lost, x) }

// neumaier adds x to a compensated sum, whose value is sum + lost.
func neumaier(sum, lost, x float64) (float64, float64) {
	t := sum + x
	if math.Abs(sum) >= math.Abs(x) {
		lost += (sum - t) + x
	} else {
		lost += (x - t) + sum
	}
	return t, lost
}

// A total is a compensated sum.
type total struct{ sum, lost float64 }

func (t *total) add(x float64)  { t.sum, t.lost = neumaier(t.sum, t.lost, x) }
func (t *total) value() float64 { return t.sum + t.lost }

// N returns how many numbers were counted.
func (m *Moments) N() int64 { return m.n }

// Sum returns their sum.
func (m *Moments) Sum() float64 { return m.sum + m.lost }

// Mean is false without numbers.
func (m *Moments) Mean() (float64, bool) {
	if m.n == 0 {
		return 0, false
	}
	return m.Sum() / float64(m.n), true
}

// Range returns the smallest and the largest number; false without numbers.
func (m *Moments) Range() (least, most float64, ok bool) { return m.least, m.most, m.n > 0 }

// SD returns the sample standard deviation, over n - 1; false below two numbers.
func (m *Moments) SD() (float64, bool) {
	if m.n < 2 {
		return 0, false
	}
	return math.Sqrt(max(0, m.m2) / float64(m.n-1)), true
}

// CV returns SD / mean; false where there is no SD or the mean is not above 0.
func (m *Moments) CV() (float64, bool) {
	sd, ok := m.SD()
	mean, _ := m.Mean()
	if !ok || !(mean > 0) {
		return 0, false
	}
	return sd / mean, true
}

// Moments returns the moments of the sample.
func (s Sample) Moments() Moments {
	var m Moments
	for i, v := range s.values {
		m.AddN(v, s.counts[i])
	}
	return m
}
