package stats

import "math"

// A peak is where a function is largest.
type peak struct {
	at    []float64
	value float64
	curve [][]float64 // minus the second derivatives there
}

// Steps of the numeric derivatives, in coordinates whose natural scale is 1 (the
// logarithms of parameters). A log-likelihood carries about 1e-15 of itself as
// noise, which the wider step of the second derivatives keeps small.
const (
	slopeStep = 1e-4
	curveStep = 2e-3
)

// settledGain is the rise of a log-likelihood that a last step promises: a thousandth
// of a standard error, after which a Newton step leaves about a millionth.
const settledGain = 1e-6

// maximize climbs from start by Newton steps with numeric derivatives, damped
// until they rise (Levenberg-Marquardt). f may return -Inf or NaN where it has no
// value, but not at start.
func maximize(f func([]float64) float64, start []float64) peak {
	at := append([]float64(nil), start...)
	value, damp := f(at), 1e-3
	for range 100 {
		slope, curve := derivatives(f, at, value)
		moved := false
		for ; damp < 1e12; damp *= 8 {
			step, ok := solveDamped(curve, slope, damp)
			if !ok {
				continue
			}
			next, size := stepped(at, step)
			v := f(next)
			if damp < 0.1 && dot(slope, step) < settledGain || size < 1e-10 {
				if v >= value-settledGain {
					at, value = next, v
				}
				return peak{at, value, curve}
			}
			if v >= value {
				moved = v > value
				at, value, damp = next, v, max(damp/64, 1e-14)
				break
			}
		}
		if !moved {
			return peak{at, value, curve}
		}
	}
	_, curve := derivatives(f, at, value)
	return peak{at, value, curve}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// stepped returns at + step, no coordinate moved by more than 2, and how far the
// farthest moved.
func stepped(at, step []float64) ([]float64, float64) {
	size := 0.0
	for _, s := range step {
		size = max(size, math.Abs(s))
	}
	scale := 1.0
	if size > 2 {
		scale = 2 / size
	}
	next := make([]float64, len(at))
	for i := range at {
		next[i] = at[i] + scale*step[i]
	}
	return next, size
}

// derivatives returns the gradient and minus the Hessian by central differences.
func derivatives(f func([]float64) float64, at []float64, value float64) ([]float64, [][]float64) {
	n := len(at)
	slope, curve := make([]float64, n), make([][]float64, n)
	moved := func(step float64, along ...int) float64 {
		x := append([]float64(nil), at...)
		for _, i := range along {
			x[i] += step
		}
		return f(x)
	}
	plus, minus := make([]float64, n), make([]float64, n)
	for i := range n {
		curve[i] = make([]float64, n)
		slope[i] = (moved(slopeStep, i) - moved(-slopeStep, i)) / (2 * slopeStep)
		plus[i], minus[i] = moved(curveStep, i), moved(-curveStep, i)
		curve[i][i] = (2*value - plus[i] - minus[i]) / (curveStep * curveStep)
	}
	for i := range n {
		for j := range i {
			both := moved(curveStep, i, j) + moved(-curveStep, i, j)
			c := (plus[i] + plus[j] + minus[i] + minus[j] - 2*value - both) / (2 * curveStep * curveStep)
			curve[i][j], curve[j][i] = c, c
		}
	}
	return slope, curve
}

// solveDamped solves (curve + damp diag) step = slope by Cholesky; false if the
// damped matrix is not positive definite.
func solveDamped(curve [][]float64, slope []float64, damp float64) ([]float64, bool) {
	n := len(slope)
	low := make([][]float64, n)
	for i := range n {
		low[i] = make([]float64, n)
		for j := range i + 1 {
			sum := curve[i][j]
			if i == j {
				sum += damp * max(math.Abs(curve[i][i]), 1e-8)
			}
			for k := range j {
				sum -= low[i][k] * low[j][k]
			}
			switch {
			case i != j:
				low[i][j] = sum / low[j][j]
			case !(sum > 1e-12*math.Abs(curve[i][i])):
				return nil, false
			default:
				low[i][i] = math.Sqrt(sum)
			}
		}
	}
	x := append([]float64(nil), slope...)
	for i := range n {
		for k := range i {
			x[i] -= low[i][k] * x[k]
		}
		x[i] /= low[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= low[k][i] * x[k]
		}
		x[i] /= low[i][i]
	}
	return x, true
}

// stdErrs returns the square roots of the diagonal of the inverse of p.curve; false
// where the function is flat in some direction.
func (p peak) stdErrs() ([]float64, bool) {
	out := make([]float64, len(p.at))
	for i := range out {
		unit := make([]float64, len(p.at))
		unit[i] = 1
		col, ok := solveDamped(p.curve, unit, 0)
		if !ok || !(col[i] > 0) || math.IsInf(col[i], 0) {
			return nil, false
		}
		out[i] = math.Sqrt(col[i])
	}
	return out, true
}
