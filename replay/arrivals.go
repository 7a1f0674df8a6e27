package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/trace"
)

// An Arrivals is a law for the gaps between starts, of requests or of sessions.
// The zero value means the trace's own times.
type Arrivals struct {
	Kind string  // "", "constant", "poisson", "gamma" or "at-once"
	Rate float64 // starts per second
	CV   float64 // gamma: standard deviation of the gaps over their mean
}

// Bounds of what a law may ask for: beyond them gaps are below the clock's
// nanosecond, or due times leave its range.
const (
	minRate, maxRate = 1e-6, 1e9 // starts per second
	minCV, maxCV     = 1e-3, 1e2
)

// ParseArrivals reads constant:R, poisson:R, gamma:R,cv=C or at-once; R is in
// starts per second.
func ParseArrivals(text string) (Arrivals, error) {
	usage := "use constant:R, poisson:R, gamma:R,cv=C or at-once, with R in starts per second, such as poisson:4"
	if text == "at-once" {
		return Arrivals{Kind: text}, nil
	}
	kind, rest, _ := strings.Cut(text, ":")
	parts := strings.Split(rest, ",")
	rate, err := strconv.ParseFloat(parts[0], 64)
	switch {
	case err == nil && rate > 0 && !math.IsInf(rate, 0) && !(rate >= minRate && rate <= maxRate):
		return Arrivals{}, fmt.Errorf("arrivals %q: rate %q is not between %g and %g starts per second", text, parts[0], minRate, maxRate)
	case err != nil || !(rate > 0) || math.IsInf(rate, 0):
		return Arrivals{}, trace.WithFix(fmt.Errorf("arrivals %q: rate %q is no number above 0", text, parts[0]), usage)
	}
	a := Arrivals{Kind: kind, Rate: rate, CV: 1}
	switch {
	case (kind == "constant" || kind == "poisson") && len(parts) == 1:
		return a, nil
	case kind == "gamma" && len(parts) == 2 && strings.HasPrefix(parts[1], "cv="):
		a.CV, err = strconv.ParseFloat(parts[1][3:], 64)
		if err == nil && a.CV >= minCV && a.CV <= maxCV {
			return a, nil
		}
		return Arrivals{}, trace.WithFix(fmt.Errorf("arrivals %q: cv %q is no number between %g and %g", text, parts[1][3:], minCV, maxCV), usage)
	}
	return Arrivals{}, trace.WithFix(fmt.Errorf("arrivals %q: not a law that is known", text), usage)
}

// String returns the text that ParseArrivals reads.
func (a Arrivals) String() string {
	rate := strconv.FormatFloat(a.Rate, 'g', -1, 64)
	switch a.Kind {
	case "constant", "poisson":
		return a.Kind + ":" + rate
	case "gamma":
		return a.Kind + ":" + rate + ",cv=" + strconv.FormatFloat(a.CV, 'g', -1, 64)
	}
	return a.Kind
}

// starts returns a function that gives one start after the other: the first at
// 0 for constant and at-once, after one gap for the random laws.
func (a Arrivals) starts(src rand.Source) func() time.Duration {
	var gap func() float64
	switch a.Kind {
	case "poisson":
		gap = distuv.Exponential{Rate: a.Rate, Src: src}.Rand
	case "gamma":
		shape := 1 / (a.CV * a.CV)
		gap = distuv.Gamma{Alpha: shape, Beta: shape * a.Rate, Src: src}.Rand // gonum's Beta is a rate
	}
	n, at := 0, 0.0
	return func() time.Duration {
		switch {
		case a.Kind == "constant":
			at = float64(n) / a.Rate // not summed: rounding must not add up
		case gap != nil:
			at += gap()
		}
		n++
		return time.Duration(math.Round(at * float64(time.Second)))
	}
}
