package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// A Family is a kind of law that can be fitted. Its text is the law's name.
type Family string

// The families of [FitLaw] and [FitTicks], in the order in which they are listed.
// Location is 0 in all of them.
const (
	FamilyExponential      Family = "exponential"
	FamilyGamma            Family = "gamma"
	FamilyWeibull          Family = "weibull"
	FamilyLognormal        Family = "lognormal"
	FamilyHyperexponential Family = "hyperexponential"
)

// Families returns the families in the order in which fits are listed.
func Families() []Family {
	return []Family{FamilyExponential, FamilyGamma, FamilyWeibull, FamilyLognormal, FamilyHyperexponential}
}

// A Likelihood says what LogLik is the logarithm of. Only fits of one kind, to the
// same numbers, can be compared by AIC or BIC.
type Likelihood string

const (
	Density        Likelihood = "density"          // of the values as real numbers, per value
	Censored       Likelihood = "censored density" // as Density below a cap, P(X >= cap) at it
	Tail           Likelihood = "tail density"     // of the values above a threshold
	Counts         Likelihood = "counts"           // probability of each count
	TriangularTick Likelihood = "triangular ticks" // probability of each gap in whole ticks
	HalfOpenTick   Likelihood = "half-open ticks"  // a biased comparison form of the same
)

// A Grade says what a law may be used for, by the size of KS: below 0.03 good,
// below 0.08 usable. With many values every test rejects every law, so size decides.
type Grade string

const (
	Good          Grade = "good"
	Usable        Grade = "usable"
	EmpiricalOnly Grade = "empirical only"
)

// A QuantileRatio compares a fitted law with the values at one probability.
type QuantileRatio struct {
	P     float64 `json:"p"`
	Ratio float64 `json:"ratio"` // quantile of the law over type 1 quantile of the values
}

// A Fit is a law fitted by maximum likelihood, with how well it fits.
type Fit struct {
	Law        Law
	N          int64      // values used
	Free       int        // parameters estimated
	Likelihood Likelihood // what LogLik is of
	LogLik     float64    // natural logarithm
	AIC, BIC   float64    // 2 Free - 2 LogLik; Free ln N - 2 LogLik
	DeltaBIC   float64    // BIC above the best of the Fits that this one is among
	StdErr     []float64  // of Law.Params, from the curvature of the likelihood; nil if there is none

	Tick          float64 // seconds; 0 without ticks
	LogLikDensity float64 // of ticks: LogLik - N ln Tick, on the scale of Density

	KS             float64         // largest distance of the two CDFs; over whole ticks for ticks
	AD             *float64        // Anderson-Darling A^2; nil where the law has a point mass or values are ticks
	ADClipped      int64           // terms of AD whose logarithm was floored, at 1e-300
	W1OverMean     *float64        // Wasserstein-1 distance over the mean of the values; nil if infinite
	QuantileRatios []QuantileRatio // at .5, .9, .99, .999, where at least ten values lie above

	Identified bool   // false: the values do not determine the parameters, which must not be used
	Reason     string // why not, as a sentence; else ""
	Grade      Grade
}

// MarshalJSON writes the law as a [LawSpec], leaving out what is absent.
func (f Fit) MarshalJSON() ([]byte, error) {
	out := fitJSON{
		Law: SpecOf(f.Law), N: f.N, Free: f.Free, Likelihood: f.Likelihood, LogLik: f.LogLik,
		AIC: f.AIC, BIC: f.BIC, DeltaBIC: f.DeltaBIC, StdErr: f.StdErr, KS: f.KS, AD: f.AD,
		ADClipped: f.ADClipped, W1OverMean: f.W1OverMean, QuantileRatios: f.QuantileRatios,
		Identified: f.Identified, Reason: f.Reason, Grade: f.Grade,
	}
	if f.Tick > 0 {
		out.Tick, out.LogLikDensity = f.Tick, &f.LogLikDensity
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes. A field that a fit has not is an
// error.
func (f *Fit) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var in fitJSON
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	law, err := in.Law.Law()
	if err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	*f = Fit{
		Law: law, N: in.N, Free: in.Free, Likelihood: in.Likelihood, LogLik: in.LogLik,
		AIC: in.AIC, BIC: in.BIC, DeltaBIC: in.DeltaBIC, StdErr: in.StdErr, KS: in.KS, AD: in.AD,
		ADClipped: in.ADClipped, W1OverMean: in.W1OverMean, QuantileRatios: in.QuantileRatios,
		Identified: in.Identified, Reason: in.Reason, Grade: in.Grade, Tick: in.Tick,
	}
	if in.LogLikDensity != nil {
		f.LogLikDensity = *in.LogLikDensity
	}
	return nil
}

type fitJSON struct {
	Law            LawSpec         `json:"law"`
	N              int64           `json:"n"`
	Free           int             `json:"parameters"`
	Likelihood     Likelihood      `json:"likelihood"`
	LogLik         float64         `json:"loglik"`
	AIC            float64         `json:"aic"`
	BIC            float64         `json:"bic"`
	DeltaBIC       float64         `json:"delta_bic"`
	StdErr         []float64       `json:"std_err,omitempty"`
	Tick           float64         `json:"tick_s,omitempty"`
	LogLikDensity  *float64        `json:"loglik_density,omitempty"`
	KS             float64         `json:"ks"`
	AD             *float64        `json:"ad,omitempty"`
	ADClipped      int64           `json:"ad_clipped_terms,omitempty"`
	W1OverMean     *float64        `json:"w1_over_mean,omitempty"`
	QuantileRatios []QuantileRatio `json:"quantile_ratios,omitempty"`
	Identified     bool            `json:"identified"`
	Reason         string          `json:"reason,omitempty"`
	Grade          Grade           `json:"grade"`
}

// Fits are fits of several families to the same values with the same likelihood,
// in the order of [Families].
type Fits []Fit

// fitEach returns the fits of those families that take the values, with DeltaBIC; the
// error of the first family if none does.
func fitEach(families []Family, fit func(Family) (Fit, error)) (Fits, error) {
	var fits Fits
	var first error
	best := math.Inf(1)
	for _, family := range families {
		f, err := fit(family)
		if err == nil {
			fits, best = append(fits, f), min(best, f.BIC)
		} else if first == nil {
			first = err
		}
	}
	if len(fits) == 0 {
		return nil, first
	}
	for i := range fits {
		fits[i].DeltaBIC = fits[i].BIC - best
	}
	return fits, nil
}

// With returns f and more fits to the same values, with DeltaBIC over all of them.
func (f Fits) With(more ...Fit) Fits {
	all := append(append(Fits(nil), f...), more...)
	best := math.Inf(1)
	for _, fit := range all {
		best = min(best, fit.BIC)
	}
	for i := range all {
		all[i].DeltaBIC = all[i].BIC - best
	}
	return all
}

// GradeOf returns the grade of a KS distance.
func GradeOf(ks float64) Grade { return gradeOf(ks) }

// Best returns the fit of lowest BIC among those whose parameters are identified,
// and false if there is none.
func (f Fits) Best() (Fit, bool) {
	var best Fit
	found := false
	for _, fit := range f {
		if fit.Identified && (!found || fit.BIC < best.BIC) {
			best, found = fit, true
		}
	}
	return best, found
}

// A FitError says why a law cannot be fitted to the values at all.
type FitError struct {
	Family string
	N      int64  // values offered
	Reason string // a sentence without its full stop
}

func (e *FitError) Error() string {
	return fmt.Sprintf("%s law cannot be fitted: %s", e.Family, e.Reason)
}

func refuse(family Family, s Sample, format string, args ...any) error {
	return &FitError{string(family), s.N(), fmt.Sprintf(format, args...)}
}

// fewest is the least number of values to fit a law to.
const fewest = 3

// checkPositive returns a FitError unless s can be fitted with location 0.
func checkPositive(family Family, s Sample) error {
	switch {
	case s.N() == 0:
		return refuse(family, s, "there are no values")
	case s.N() < fewest:
		return refuse(family, s, "too few values: %d, and it takes %d", s.N(), fewest)
	case s.values[0] < 0:
		return refuse(family, s, "the smallest value is %v, and the law begins at 0", s.values[0])
	case s.Distinct() == 1:
		return refuse(family, s, "all %d values are %v", s.N(), s.values[0])
	case s.values[0] == 0 && family != FamilyExponential && family != FamilyHyperexponential:
		return refuse(family, s, "%d of %d values are 0, where its likelihood is not finite", s.counts[0], s.N())
	}
	return nil
}

// score fills the criteria of f from its LogLik.
func (f *Fit) score(free int, n int64) {
	f.Free, f.N = free, n
	f.AIC = 2*float64(free) - 2*f.LogLik
	f.BIC = float64(free)*math.Log(float64(n)) - 2*f.LogLik
}

// doubt marks the parameters as not identified; the first reason stays.
func (f *Fit) doubt(format string, args ...any) {
	if f.Identified {
		f.Identified, f.Reason = false, fmt.Sprintf(format, args...)
	}
}

// gradeOf returns the grade of a KS distance.
func gradeOf(ks float64) Grade {
	switch {
	case ks < 0.03:
		return Good
	case ks < 0.08:
		return Usable
	}
	return EmpiricalOnly
}

// sound returns a FitError if a number of f is not finite, as happens with values
// near the ends of float64.
func (f *Fit) sound(family Family, s Sample) error {
	numbers := append([]float64{f.LogLik, f.AIC, f.BIC, f.KS, f.LogLikDensity}, f.StdErr...)
	for _, p := range f.Law.Params() {
		numbers = append(numbers, p.Value)
	}
	for _, v := range numbers {
		if !isFinite(v) {
			return refuse(family, s, "the values from %v to %v are beyond its arithmetic", s.values[0], s.values[len(s.values)-1])
		}
	}
	return nil
}
