package stats

import "math"

// A quadrature holds Gauss-Legendre nodes in (0, 1) and weights that add up to 1.
type quadrature struct{ nodes, weights []float64 }

var gauss2, gauss4, gauss16 = gaussLegendre(2), gaussLegendre(4), gaussLegendre(16)

// gaussLegendre finds the roots of the Legendre polynomial of degree n by Newton.
func gaussLegendre(n int) quadrature {
	q := quadrature{make([]float64, n), make([]float64, n)}
	for i := range n {
		x, slope := math.Cos(math.Pi*(float64(i)+0.75)/(float64(n)+0.5)), 0.0
		for range 20 {
			prev, cur := 1.0, x
			for k := 2; k <= n; k++ {
				prev, cur = cur, (float64(2*k-1)*x*cur-float64(k-1)*prev)/float64(k)
			}
			slope = float64(n) * (x*cur - prev) / (x*x - 1)
			x -= cur / slope
		}
		q.nodes[i], q.weights[i] = (1-x)/2, 1/((1-x*x)*slope*slope)
	}
	return q
}
