package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/analysis/stats"
	"reprise/trace"
)

// An Arrivals is a law for the gaps between starts, of requests or of sessions.
// The zero value means the trace's own times.
type Arrivals struct {
	Kind   string            // "", "constant", "poisson", "gamma", "piecewise" or "at-once"
	Rate   float64           // starts per second; piecewise: after the last piece, 0 = none
	CV     float64           // standard deviation of the gaps over their mean, at a rate that does not change
	File   string            // piecewise: where Pieces come from
	Pieces []stats.RatePiece // the rate until it is Rate: of piecewise, or a ramp
}

// Bounds of what a law may ask for: beyond them gaps are below the clock's
// nanosecond, or due times leave its range.
const (
	minRate, maxRate = 1e-6, 1e9 // starts per second
	minCV, maxCV     = 1e-3, 1e2
)

const arrivalsUsage = "use constant:R, poisson:R, gamma:R,cv=C, piecewise:FILE or burst, with R in starts per second, such as poisson:4"

// ParseArrivals reads constant:R, poisson:R, gamma:R,cv=C, piecewise:FILE,
// piecewise:FILE,cv=C, or burst, also called at-once; R is in starts per second, and
// the file is CSV with the columns from_s, to_s and rate_hz.
func ParseArrivals(text string) (Arrivals, error) {
	if text == "at-once" || text == "burst" {
		return Arrivals{Kind: "at-once"}, nil
	}
	kind, rest, _ := strings.Cut(text, ":")
	first, options, more := strings.Cut(rest, ",")
	a := Arrivals{Kind: kind, CV: 1}
	switch {
	case kind == "constant" && !more:
		a.CV = 0
	case kind == "poisson" && !more:
	case (kind == "gamma" || kind == "piecewise" && more) && strings.HasPrefix(options, "cv="):
		var err error
		if a.CV, err = strconv.ParseFloat(options[3:], 64); err != nil || !(a.CV >= minCV && a.CV <= maxCV) {
			return Arrivals{}, trace.WithFix(fmt.Errorf("arrivals %q: cv %q is no number between %g and %g", text, options[3:], minCV, maxCV), arrivalsUsage)
		}
	case kind == "piecewise" && !more:
	default:
		return Arrivals{}, trace.WithFix(fmt.Errorf("arrivals %q: not a law that is known", text), arrivalsUsage)
	}
	var err error
	if kind == "piecewise" {
		a.File = first
		a.Pieces, err = readPieces(first)
	} else {
		a.Rate, err = parseRate(text, first)
	}
	if err != nil {
		return Arrivals{}, err
	}
	return a, nil
}

func parseRate(text, number string) (float64, error) {
	rate, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(rate > 0) || math.IsInf(rate, 0):
		return 0, trace.WithFix(fmt.Errorf("arrivals %q: rate %q is no number above 0", text, number), arrivalsUsage)
	case !(rate >= minRate && rate <= maxRate):
		return 0, fmt.Errorf("arrivals %q: rate %q is not between %g and %g starts per second", text, number, minRate, maxRate)
	}
	return rate, nil
}

func readPieces(path string) ([]stats.RatePiece, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, trace.WithFix(fmt.Errorf("piecewise: %w", err), "name a CSV file with the columns from_s, to_s and rate_hz, such as piecewise:rates.csv")
	}
	defer f.Close()
	pieces, err := stats.ReadRates(path, f)
	for _, p := range pieces {
		if p.From > maxRate {
			return nil, fmt.Errorf("%s: %g/s: more than %g starts per second", path, p.From, maxRate)
		}
	}
	return pieces, err
}

// ParseRamp reads A..B over D, such as 0..50 over 2m: a rate that goes evenly from
// A to B starts per second in that time.
func ParseRamp(text string) (stats.RatePiece, error) {
	bad := func(format string, args ...any) (stats.RatePiece, error) {
		return stats.RatePiece{}, trace.WithFix(fmt.Errorf("ramp %q: %s", text, fmt.Sprintf(format, args...)), "write it like '0..50 over 2m', in starts per second")
	}
	rates, long, ok := strings.Cut(text, " over ")
	from, to, dots := strings.Cut(rates, "..")
	if !ok || !dots {
		return bad("not of the form A..B over D")
	}
	length, err := time.ParseDuration(strings.TrimSpace(long))
	if err != nil || length <= 0 {
		return bad("%q is no time above 0", long)
	}
	p := stats.RatePiece{ToS: length.Seconds()}
	for i, end := range []*float64{&p.From, &p.To} {
		number := strings.TrimSpace([]string{from, to}[i])
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0 && v <= maxRate) || v > 0 && v < minRate {
			return bad("%q is no rate: 0, or between %g and %g", number, minRate, maxRate)
		}
		*end = v
	}
	if p.From == 0 && p.To == 0 {
		return bad("there is no load in it")
	}
	return p, nil
}

// Ramp has the rate of a go through p first. Without a law, starts are spaced
// evenly along it, and what comes after has the rate at its end.
func (a Arrivals) Ramp(p stats.RatePiece) (Arrivals, error) {
	switch {
	case a.Kind == "":
		a = Arrivals{Kind: "constant", Rate: p.To}
	case a.Kind == "at-once" || a.Kind == "piecewise":
		return a, trace.WithFix(fmt.Errorf("a ramp changes a rate, and %s has none of its own", a), "use it with constant:R, poisson:R or gamma:R,cv=C")
	case a.Rate != p.To:
		return a, trace.WithFix(fmt.Errorf("the ramp ends at %g starts per second, but arrivals %s have %g", p.To, a, a.Rate), "let both have the same rate")
	}
	a.Pieces = []stats.RatePiece{p}
	return a, nil
}

// String returns the text that ParseArrivals reads; of a ramp, what the ends of it are.
func (a Arrivals) String() string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	text := a.Kind
	switch a.Kind {
	case "constant", "poisson":
		if len(a.Pieces) == 0 {
			text += ":" + number(a.Rate)
		}
	case "gamma":
		if len(a.Pieces) == 0 {
			text += ":" + number(a.Rate) + ",cv=" + number(a.CV)
		} else {
			text += ":cv=" + number(a.CV)
		}
	case "piecewise":
		text += ":" + filepath.Base(a.File)
		if a.CV != 1 {
			text += ",cv=" + number(a.CV)
		}
		return text
	}
	for _, p := range a.Pieces {
		text += fmt.Sprintf(", ramp %s..%s over %v", number(p.From), number(p.To), time.Duration(p.ToS*1e9))
	}
	return text
}

// starts returns a function that gives one start after the other, and false when
// there are no more: the first at 0 for evenly spaced ones and at-once, after one
// gap for the random laws.
func (a Arrivals) starts(src rand.Source) func() (time.Duration, bool) {
	if len(a.Pieces) > 0 {
		return a.unfolded(src)
	}
	gap := a.gaps(a.Rate, src)
	n, at := 0, 0.0
	return func() (time.Duration, bool) {
		switch {
		case a.Kind == "constant":
			at = float64(n) / a.Rate // not summed: rounding must not add up
		case gap != nil:
			at += gap()
		}
		n++
		return seconds(at), true
	}
}

// gaps returns a function that draws gaps at a rate, s; nil for those that are
// even.
func (a Arrivals) gaps(rate float64, src rand.Source) func() float64 {
	switch {
	case a.Kind == "poisson" || a.Kind == "piecewise" && a.CV == 1:
		return distuv.Exponential{Rate: rate, Src: src}.Rand
	case a.Kind == "gamma" || a.Kind == "piecewise":
		shape := 1 / (a.CV * a.CV)
		return distuv.Gamma{Alpha: shape, Beta: shape * rate, Src: src}.Rand // gonum's Beta is a rate
	}
	return nil
}

// unfolded draws at a rate of 1, and maps that to the rate over time.
func (a Arrivals) unfolded(src rand.Source) func() (time.Duration, bool) {
	rates := stats.Rates{Pieces: a.Pieces, After: a.Rate}
	at, gap := rates.Unfold(), a.gaps(1, src)
	n, u := 0.0, 0.0
	return func() (time.Duration, bool) {
		if gap != nil {
			u += gap()
		} else {
			u, n = n, n+1
		}
		s, ok := at(u)
		return seconds(s), ok
	}
}

// seconds is s as a Duration, which ends after 292 years.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(min(s*float64(time.Second), math.MaxInt64/2)))
}
