package stats

import (
	"maps"
	"math"
	"slices"
)

func sortedKeys(m map[float64]int64) []float64 { return slices.Sorted(maps.Keys(m)) }

// exactKS is the largest n for which KSTail is exact.
const exactKS = 300

// KSTail returns P(D >= d) for the two-sided Kolmogorov-Smirnov statistic of n
// independent numbers against a continuous law: exact for n up to 300 (the
// matrix of Marsaglia, Tsang and Wang 2003), above by Kolmogorov's limit with
// the argument of Vrbik (2018), within 1 % down to 1e-3 and 5 % down to 1e-5. For two samples n is n1 n2 / (n1 + n2), rounded,
// as in SciPy's ks_2samp(method="asymp").
func KSTail(d float64, n int64) float64 {
	switch {
	case d <= 0 || n < 1:
		return 1
	case d >= 1:
		return 0
	}
	m := float64(n)
	if s := d * d * m; n <= exactKS && s < 7 { // beyond, 1 - P has lost its digits
		return max(0, 1-ksBody(d, int(n)))
	}
	x := d*math.Sqrt(m) + 1/(6*math.Sqrt(m)) + (d*math.Sqrt(m)-1)/(4*m)
	return kolmogorovTail(x)
}

// kolmogorovTail returns 2 sum (-1)^(k-1) exp(-2 k² x²).
func kolmogorovTail(x float64) float64 {
	if x < 0.2 {
		return 1
	}
	var sum float64
	sign := 1.0
	for k := 1.0; k < 100; k++ {
		term := math.Exp(-2 * k * k * x * x)
		sum += sign * term
		sign = -sign
		if term < 1e-18 {
			break
		}
	}
	return min(1, max(0, 2*sum))
}

// ksBody returns P(D < d) exactly.
func ksBody(d float64, n int) float64 {
	k := int(float64(n)*d) + 1
	size := 2*k - 1
	h := float64(k) - float64(n)*d
	H := make([]float64, size*size)
	for i := range size {
		for j := range size {
			if i-j+1 >= 0 {
				H[i*size+j] = 1
			}
		}
	}
	for i := range size {
		H[i*size] -= math.Pow(h, float64(i+1))
		H[(size-1)*size+i] -= math.Pow(h, float64(size-i))
	}
	if 2*h > 1 {
		H[(size-1)*size] += math.Pow(2*h-1, float64(size))
	}
	for i := range size {
		for j := range size {
			for g := 1; g <= i-j+1; g++ {
				H[i*size+j] /= float64(g)
			}
		}
	}
	Q, shift := matrixPower(H, size, n)
	s := Q[(k-1)*size+k-1]
	for i := 1; i <= n; i++ {
		s *= float64(i) / float64(n)
		if s < 1e-140 {
			s *= 1e140
			shift -= 140
		}
	}
	return s * math.Pow(10, float64(shift))
}

// matrixPower returns a^n times 10^-shift.
func matrixPower(a []float64, size, n int) (power []float64, shift int) {
	if n == 1 {
		return slices.Clone(a), 0
	}
	half, s := matrixPower(a, size, n/2)
	out := matrixProduct(half, half, size)
	shift = 2 * s
	if n%2 == 1 {
		out = matrixProduct(a, out, size)
	}
	if mid := size / 2; out[mid*size+mid] > 1e140 {
		for i := range out {
			out[i] *= 1e-140
		}
		shift += 140
	}
	return out, shift
}

func matrixProduct(a, b []float64, size int) []float64 {
	out := make([]float64, size*size)
	for i := range size {
		for k := range size {
			if f := a[i*size+k]; f != 0 {
				for j := range size {
					out[i*size+j] += f * b[k*size+j]
				}
			}
		}
	}
	return out
}
