package stats

import "math"

// fewestSpacings is the least number of spacings to find a grid by.
const fewestSpacings = 20

// spacingError is how far from a multiple of the grid a spacing may be, as a share
// of it, and gridShare how many of them must be as near.
const (
	spacingError = 0.002
	gridShare    = 0.9
)

// ModalSpacing finds a grid that stamps lie on with a little jitter, coarser than
// that of their clock: the most frequent of the gaps that are not 0, if at least 90 %
// of these are within 0.2 % of it from a multiple. Jitter moves gaps up and down and
// not their mean, so that the grid is the mean over all whole steps, taken to the
// roundest number within two standard errors. Of the Mooncake conversation trace,
// in whole ms, that is 3,000 ms.
func ModalSpacing(gaps Sample) (grid float64, ok bool) {
	mode, n := gaps.mostFrequent()
	if n < fewestSpacings {
		return 0, false
	}
	var near int64
	var steps, sum, squares float64
	for i, v := range gaps.values {
		k := math.Round(v / mode)
		if !(v > 0) || math.Abs(v-mode*k) > spacingError*mode {
			continue
		}
		c := float64(gaps.counts[i])
		near += gaps.counts[i]
		steps, sum = steps+c*k, sum+c*v
		squares += c * (v - mode*k) * (v - mode*k)
	}
	if float64(near) < gridShare*float64(n) || steps == 0 {
		return mode, false
	}
	if squares == 0 {
		return mode, true
	}
	grid = sum / steps
	return roundest(grid, 2*math.Sqrt(squares/float64(near)/steps)), true
}

// mostFrequent returns the mean of the gaps about the most frequent one, which
// jitter spreads over neighbouring values, and how many are above 0.
func (s *Sample) mostFrequent() (mode float64, n int64) {
	most := int64(0)
	low, count := 0, int64(0) // gaps from low to i lie within the error of one grid, up or down
	var sum float64
	for i, v := range s.values {
		if v <= 0 {
			low = i + 1
			continue
		}
		n += s.counts[i]
		count += s.counts[i]
		sum += v * float64(s.counts[i])
		for v > s.values[low]*(1+3*spacingError) {
			count -= s.counts[low]
			sum -= s.values[low] * float64(s.counts[low])
			low++
		}
		if count > most {
			most, mode = count, sum/float64(count)
			if mode = roundest(mode, spacingError/10*mode); low == i {
				mode = v
			}
		}
	}
	return mode, n
}

// roundest returns the number with the fewest digits within an error of v.
func roundest(v, within float64) float64 {
	for unit := math.Pow(10, math.Ceil(math.Log10(v))); unit > 0 && unit > within/1e3; unit /= 10 {
		if r := math.Round(v/unit) * unit; r > 0 && math.Abs(r-v) <= within {
			return r
		}
	}
	return v
}
