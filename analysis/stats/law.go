package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// A Law is a probability law of one number: a gap in seconds, a length in
// tokens. Its unit is the unit of x, called "value" below. Methods other than
// Params allocate nothing, so a Law can stand in a hot loop.
//
// Laws are plain values with exported parameters; [CheckLaw] says whether these
// are in range, and a law out of range promises nothing.
type Law interface {
	// Name is the family, as a model file spells it.
	Name() string
	// Params lists the parameters in a fixed order. A law made of other laws
	// lists their parameters too, under names like "body.mu".
	Params() []Param
	// LogDensity returns the natural logarithm of the density (per value), or of
	// the probability of x where the law has a point mass; -Inf outside its support.
	LogDensity(x float64) float64
	// CDF returns P(X <= x).
	CDF(x float64) float64
	// Survival returns P(X > x), precise where it is small.
	Survival(x float64) float64
	// Quantile returns the smallest x with CDF(x) >= p. Quantile(u) with u uniform
	// in [0, 1) is a draw that costs one uniform. At p >= 1 it is the upper end of
	// the support, +Inf for an unbounded law; at p <= 0 the lower end.
	Quantile(p float64) float64
	// Mean returns the mean, and false where it is infinite.
	Mean() (float64, bool)
	// SD returns the standard deviation, and false where it is infinite.
	SD() (float64, bool)
	// IntegralCDF returns H(x), the integral of the CDF up to x; for a law of
	// numbers that are not negative that is from 0 to x.
	IntegralCDF(x float64) float64
	// Rand draws one number. Equal states of r give equal numbers.
	Rand(r *rand.Rand) float64
}

// A Unit says in what a parameter is measured.
type Unit string

const (
	Pure     Unit = "1"         // a pure number: a shape, a share
	Value    Unit = "value"     // as the numbers themselves: a scale, a threshold
	PerValue Unit = "1/value"   // a rate
	LogValue Unit = "ln(value)" // the logarithm of a number, such as mu
)

// A Param is one parameter of a Law.
type Param struct {
	Name  string
	Value float64
	Unit  Unit
}

// CV returns the coefficient of variation of law, sd/mean, and false where
// either is infinite or the mean is 0.
func CV(law Law) (float64, bool) {
	mean, ok := law.Mean()
	sd, finite := law.SD()
	if !ok || !finite || mean == 0 {
		return 0, false
	}
	return sd / mean, true
}

// CheckLaw returns an error that names the parameter out of range, if one is.
func CheckLaw(law Law) error {
	if law == nil {
		return errors.New("no law")
	}
	if c, ok := law.(interface{ check() error }); ok {
		if err := c.check(); err != nil {
			return fmt.Errorf("%s law: %w", law.Name(), err)
		}
	}
	return nil
}

// above0 returns an error unless every parameter is finite and above 0.
func above0(params ...Param) error {
	for _, p := range params {
		if !(p.Value > 0) || math.IsInf(p.Value, 0) {
			return fmt.Errorf("%s is %v, but must be above 0", p.Name, p.Value)
		}
	}
	return nil
}

// finite returns an error unless every parameter is a finite number.
func finite(params ...Param) error {
	for _, p := range params {
		if !isFinite(p.Value) {
			return fmt.Errorf("%s is %v, but must be a finite number", p.Name, p.Value)
		}
	}
	return nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// share returns an error unless p is in [0, 1].
func share(p Param) error {
	if !(p.Value >= 0 && p.Value <= 1) {
		return fmt.Errorf("%s is %v, but must be between 0 and 1", p.Name, p.Value)
	}
	return nil
}

// cdfBelow returns P(X < x): the CDF but for laws with point masses.
func cdfBelow(law Law, x float64) float64 {
	if l, ok := law.(interface{ cdfBelow(x float64) float64 }); ok {
		return l.cdfBelow(x)
	}
	return law.CDF(x)
}

// hasMass reports whether law has point masses, so that no density exists.
func hasMass(law Law) bool {
	_, ok := law.(interface{ cdfBelow(x float64) float64 })
	return ok
}

// prefixed returns params under the name of the part they belong to.
func prefixed(part string, params []Param) []Param {
	for i := range params {
		params[i].Name = part + "." + params[i].Name
	}
	return params
}
