package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

// Gamma is the gamma law from 0 up. Its CV is 1/sqrt(Shape): as a law of gaps,
// Shape is what vLLM calls burstiness and AIPerf smoothness, and smaller is burstier.
type Gamma struct {
	Shape float64 // above 0
	Scale float64 // value, above 0; mean/Shape
}

func (g Gamma) Name() string { return "gamma" }

func (g Gamma) Params() []Param {
	return []Param{{"shape", g.Shape, Pure}, {"scale", g.Scale, Value}}
}

func (g Gamma) check() error { return above0(g.Params()...) }

func (g Gamma) LogDensity(x float64) float64 {
	if x < 0 || x == 0 && g.Shape >= 1 {
		if x == 0 && g.Shape == 1 {
			return -math.Log(g.Scale)
		}
		return math.Inf(-1)
	}
	z := x / g.Scale
	if g.Shape < 16 {
		lg, _ := math.Lgamma(g.Shape)
		return (g.Shape-1)*math.Log(z) - z - lg - math.Log(g.Scale)
	}
	// Large terms cancel; Loader's saddle-point form ("Fast and accurate
	// computation of binomial probabilities", 2000) keeps the digits.
	d := (z - g.Shape) / g.Shape
	return 0.5*math.Log(g.Shape/(2*math.Pi)) - g.Shape*excessOverLog(d) - stirlingError(g.Shape) - math.Log(x)
}

// excessOverLog returns d - ln(1+d), at least 0.
func excessOverLog(d float64) float64 { return d - math.Log1p(d) }

// stirlingError returns ln Gamma(a+1) less Stirling's formula, for a >= 16.
func stirlingError(a float64) float64 {
	a2 := a * a
	return (1.0/12 - (1.0/360-(1.0/1260-(1.0/1680-1.0/1188/a2)/a2)/a2)/a2) / a
}

func (g Gamma) CDF(x float64) float64 {
	switch z := x / g.Scale; {
	case z <= 0:
		return 0
	case math.IsInf(z, 1):
		return 1
	default:
		p, _ := gammaTails(g.Shape, z)
		return p
	}
}

func (g Gamma) Survival(x float64) float64 {
	switch z := x / g.Scale; {
	case z <= 0:
		return 1
	case math.IsInf(z, 1):
		return 0
	default:
		_, q := gammaTails(g.Shape, z)
		return q
	}
}

// Quantile is precise for shapes far below 1 too, where the search runs over ln x;
// a quantile below the smallest float64 is 0.
func (g Gamma) Quantile(p float64) float64 {
	switch {
	case p <= 0:
		return 0
	case p >= 1:
		return math.Inf(1)
	}
	return math.Exp(gammaLogQuantile(g.Shape, p)) * g.Scale
}

// gammaLogQuantile returns ln x with P(shape, x) = p, 0 < p < 1, by Newton on the
// logarithm of the smaller tail over ln x, kept inside a bracket.
func gammaLogQuantile(shape, p float64) float64 {
	lg, _ := math.Lgamma(shape + 1)
	lo := (math.Log(p) + lg) / shape // P(a, x) <= x^a/Gamma(a+1): never above the root
	if lo < -37 {                    // x < 1e-16: equal to the last digit
		return lo
	}
	y, hi := lo, math.Inf(1)
	if w := wilsonHilferty(shape, p); w > 0 && math.Log(w) > lo {
		y = math.Log(w)
	}
	upper := p > 0.5
	for range 100 {
		x := math.Exp(y)
		var tail, miss float64 // miss: how far ln F lies above ln p, in the direction of growing y
		if upper {
			_, tail = gammaTails(shape, x)
			miss = math.Log1p(-p) - math.Log(tail)
		} else {
			tail, _ = gammaTails(shape, x)
			miss = math.Log(tail) - math.Log(p)
		}
		if miss > 0 {
			hi = y
		} else {
			lo = y
		}
		step := -miss * tail * math.Exp(lg-math.Log(shape)-shape*y+x) // tail / (x f(x))
		next := y + step
		if !(next >= lo && next <= hi) { // also a step that is not a number
			next = (lo + hi) / 2
			if math.IsInf(hi, 1) {
				next = lo + 1
			}
		}
		if math.Abs(next-y) <= 1e-9 { // a Newton step squares the error: nothing is left of it
			return next
		}
		y = next
	}
	return y
}

// wilsonHilferty approximates the quantile of the unit-scale gamma law.
func wilsonHilferty(shape, p float64) float64 {
	c := 1 - 1/(9*shape) + normalQuantile(p)/(3*math.Sqrt(shape))
	return shape * c * c * c
}

func (g Gamma) Mean() (float64, bool) { return g.Shape * g.Scale, true }
func (g Gamma) SD() (float64, bool)   { return math.Sqrt(g.Shape) * g.Scale, true }

func (g Gamma) IntegralCDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	z := x / g.Scale
	if math.IsInf(z, 1) {
		return x
	}
	p, _ := gammaTails(g.Shape, z)
	next, _ := gammaTails(g.Shape+1, z)
	return x*p - g.Shape*g.Scale*next
}

// gammaTails returns the regularised incomplete gamma functions P(a, x) and
// Q(a, x) = 1 - P, x > 0: by the series of P below x = a+1, by the continued fraction
// of Q above (Abramowitz and Stegun 6.5.29, 6.5.31). mathext works out a constant by
// some forty zeta functions each time, ten times the cost; it serves large shapes.
func gammaTails(a, x float64) (p, q float64) {
	if a > 100 {
		return mathext.GammaIncReg(a, x), mathext.GammaIncRegComp(a, x)
	}
	lg, _ := math.Lgamma(a + 1)
	front := math.Exp(a*math.Log(x) - x - lg) // x^a e^-x / Gamma(a+1)
	if x < a+1 {
		sum, term := 1.0, 1.0
		for n := 1.0; term > 1e-17*sum; n++ {
			term *= x / (a + n)
			sum += term
		}
		p = min(1, front*sum)
		return p, 1 - p
	}
	// Lentz's algorithm.
	b := x + 1 - a
	c, d := 1e300, 1/b
	h := d
	for i := 1.0; i < 1000; i++ {
		an := i * (a - i)
		b += 2
		d = 1 / (an*d + b)
		c = b + an/c
		h *= d * c
		if math.Abs(d*c-1) < 4e-16 {
			break
		}
	}
	q = min(1, front*a*h)
	return 1 - q, q
}

// Rand draws by Marsaglia and Tsang ("A simple method for generating gamma
// variables", 2000). Below shape 1 it draws at shape+1 and multiplies by
// u^(1/shape) in logarithms; what would be below the smallest positive float64
// is that number, so a draw is never 0 and its logarithm exists.
func (g Gamma) Rand(r *rand.Rand) float64 {
	if g.Shape >= 1 {
		return marsagliaTsang(g.Shape, r) * g.Scale
	}
	ln := math.Log(marsagliaTsang(g.Shape+1, r)) - r.ExpFloat64()/g.Shape
	return max(math.SmallestNonzeroFloat64, math.Exp(ln+math.Log(g.Scale)))
}

func marsagliaTsang(shape float64, r *rand.Rand) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		z := r.NormFloat64()
		v := 1 + c*z
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < 0.5*z*z+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
