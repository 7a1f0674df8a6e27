package stats

import "math"

// fewestSpacings is the least number of spacings to find a grid by.
const fewestSpacings = 20

// ModalSpacing finds a grid that stamps lie on with a little jitter, coarser than
// that of their clock: the most frequent of the gaps that are not 0, if at least 90 %
// of these are within 0.2 % of it from a multiple. Of the Mooncake conversation
// trace, in whole ms, that is 3,000 ms.
func ModalSpacing(gaps Sample) (mode float64, ok bool) {
	var most, n int64
	for i, c := range gaps.counts {
		if gaps.values[i] <= 0 {
			continue
		}
		n += c
		if c > most {
			mode, most = gaps.values[i], c
		}
	}
	if n < fewestSpacings {
		return 0, false
	}
	var near int64
	for i, v := range gaps.values {
		if v > 0 && math.Abs(v-mode*math.Round(v/mode)) <= 0.002*mode {
			near += gaps.counts[i]
		}
	}
	return mode, float64(near) >= 0.9*float64(n)
}
