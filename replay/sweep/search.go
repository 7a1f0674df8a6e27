package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"

	"reprise/trace"
)

// A Search looks for the highest load that meets the objective.
type Search struct {
	Low, High float64 // loads to look between
	Whole     bool    // loads are whole numbers
	Tolerance float64 // of the load: the edge is known when met and broken loads are that near; 0 = DefaultTolerance
	Repeats   int     // runs at both sides of the edge; 0 = DefaultRepeats
	MostRuns  int     // at which it gives up; 0 = DefaultMostRuns. Those beyond the edge are on top
	Beyond    []float64
}

// Defaults of a Search.
const (
	DefaultTolerance = 0.05
	DefaultRepeats   = 3
	DefaultMostRuns  = 40
)

// DefaultBeyond are the loads past the edge that are probed, as multiples of it.
var DefaultBeyond = []float64{1.25, 2}

// A Found is what a search has found. Loads are absent where there is none.
type Found struct {
	Met      *float64 `json:"met"`      // highest load that meets the objective
	Broken   *float64 `json:"broken"`   // lowest load above it that does not
	Estimate *float64 `json:"estimate"` // where the margin crosses 0: of a line through the runs near the edge, else of the monotone fit
	Error    *float64 `json:"error"`    // standard error of the estimate, as a share of it; null without a line
	Settled  bool     `json:"settled"`  // within the tolerance, and with the repeats
	Why      string   `json:"why"`      // it is not, or there is no edge
}

// ErrInvalid is the error of a search with a run that says nothing about the system:
// the client was late, or no request was successful.
var ErrInvalid = errors.New("no valid measurement")

// Run searches: it doubles the load until the objective breaks, then halves the
// bracket at the crossing of the monotone fit, and repeats the runs at its two sides,
// for a single run may be wrong. With n doublings that is about
// 1 + n + log2(1/Tolerance) + 2 (Repeats - 1) runs. Where runs differ by chance,
// others follow just below and just above the edge, until there are Repeats of them on
// both sides and the standard error of the edge is below half the tolerance.
func (s Search) Run(ctx context.Context, c *Curve, m Measure) (*Found, error) {
	s = s.withDefaults()
	for load := s.Low; ; load *= 2 {
		load = min(s.whole(load), s.High)
		if err := c.measure(ctx, m, load); err != nil {
			return nil, err
		}
		if p := c.at(load); p.Invalid {
			return s.found(c), fmt.Errorf("at %g: %w: %s", load, ErrInvalid, p.whyInvalid())
		} else if !p.Met || load >= s.High {
			break
		}
	}
	for c.N < s.MostRuns {
		load, ok := s.next(c)
		if !ok {
			break
		}
		if err := c.measure(ctx, m, load); err != nil {
			return nil, err
		}
	}
	found := s.found(c)
	return found, s.beyond(ctx, c, m, found)
}

func (s Search) withDefaults() Search {
	if s.Tolerance == 0 {
		s.Tolerance = DefaultTolerance
	}
	if s.Repeats == 0 {
		s.Repeats = DefaultRepeats
	}
	if s.MostRuns == 0 {
		s.MostRuns = DefaultMostRuns
	}
	if s.Beyond == nil {
		s.Beyond = DefaultBeyond
	}
	return s
}

// whole makes a load one that can be asked for, and read: a whole number, or one of
// four digits.
func (s Search) whole(load float64) float64 {
	if s.Whole || load <= 0 {
		return math.Round(load)
	}
	unit := math.Pow(10, math.Floor(math.Log10(load))-3)
	if unit < 1 {
		return math.Round(load/unit) / math.Round(1/unit)
	}
	return math.Round(load/unit) * unit
}

// least is what is added to a load so that the next one is another.
func (s Search) least() float64 {
	if s.Whole {
		return 0.5
	}
	return 0
}

// next is the load of the next run; false if the edge is known, or there is none.
func (s Search) next(c *Curve) (float64, bool) {
	met, broken := c.bracket()
	switch {
	case broken < 0 && c.Points[met].Load < s.High: // a run that broke was an odd one
		return min(s.High, s.whole(1.25*c.Points[met].Load+s.least())), true
	case broken < 0:
		return s.again(c, met)
	case met < 0: // broken at Low
		return s.again(c, broken)
	}
	a, b := c.Points[met].Load, c.Points[broken].Load
	near := b/a <= 1+s.Tolerance || s.Whole && b-a <= 1
	if !near {
		// near the crossing, but never so near to a side that it says nothing new
		x := min(max(s.crossing(c, met, broken), 0.25), 0.75)
		load := s.whole(a * math.Pow(b/a, x))
		if load > a && load < b {
			return load, true
		}
	}
	if load, ok := s.again(c, met); ok {
		return load, ok
	}
	if load, ok := s.again(c, broken); ok || s.Whole {
		return load, ok
	}
	edge, off, ok := s.edge(c)
	if !ok {
		return 0, false
	}
	// The search has stopped where runs said so, and these may be the odd ones: others
	// have to agree, just below the edge and just above it.
	below, above := s.near(c, edge/(1+2*s.Tolerance), edge), s.near(c, edge, edge*(1+2*s.Tolerance))
	switch {
	case above < s.Repeats || off > s.Tolerance/2 && above <= below:
		return s.whole(edge * (1 + s.Tolerance/2)), true
	case below < s.Repeats || off > s.Tolerance/2:
		return s.whole(edge / (1 + s.Tolerance/2)), true
	}
	return 0, false
}

// near counts the runs at loads between two.
func (s Search) near(c *Curve, from, to float64) (n int) {
	for i := range c.Points {
		if p := &c.Points[i]; p.Load >= from && p.Load <= to {
			n += len(p.Runs)
		}
	}
	return n
}

// edge is where a line through the margins of the runs near the crossing of the
// monotone fit is 0, over the log of the load, and the standard error of that log. It
// is false with too few runs, or without a slope.
func (s Search) edge(c *Curve) (load, off float64, ok bool) {
	met, broken := c.bracket()
	if met < 0 || broken < 0 {
		return 0, 0, false
	}
	a, b := c.Points[met].Load, c.Points[broken].Load
	about := math.Log(a) + math.Log(b/a)*s.crossing(c, met, broken)
	var n, sx, sy, sxx, sxy, syy float64
	for i := range c.Points {
		x := math.Log(c.Points[i].Load) - about
		if math.Abs(x) > 3*s.Tolerance {
			continue
		}
		for _, r := range c.Points[i].Runs {
			n, sx, sy, sxx, sxy, syy = n+1, sx+x, sy+r.Margin, sxx+x*x, sxy+x*r.Margin, syy+r.Margin*r.Margin
		}
	}
	if n < 4 {
		return 0, 0, false
	}
	mx, my := sx/n, sy/n
	vx, cov, vy := sxx-n*mx*mx, sxy-n*mx*my, syy-n*my*my
	slope := cov / vx
	if !(vx > 1e-9 && slope > 0) {
		return 0, 0, false
	}
	at := mx - my/slope
	if math.Abs(at) > 2*s.Tolerance {
		return 0, 0, false // the line is not near what it is to describe
	}
	rest := max(0, vy-slope*cov) / (n - 2)
	return math.Exp(about + at), math.Sqrt(rest*(1/n+(at-mx)*(at-mx)/vx)) / slope, true
}

// again is the load of a point that has too few runs.
func (s Search) again(c *Curve, i int) (float64, bool) {
	return c.Points[i].Load, len(c.Points[i].Runs) < s.Repeats
}

// crossing is where the fit is 0 between two points, as a share of the way between
// the logs of their loads.
func (s Search) crossing(c *Curve, met, broken int) float64 {
	low, high := c.Points[met].Fit, c.Points[broken].Fit
	if high <= low {
		return 0.5
	}
	return -low / (high - low)
}

func (s Search) found(c *Curve) *Found {
	met, broken := c.bracket()
	f := &Found{}
	if met >= 0 {
		f.Met = new(c.Points[met].Load)
	}
	if broken >= 0 {
		f.Broken = new(c.Points[broken].Load)
	}
	switch {
	case broken < 0:
		f.Why = fmt.Sprintf("the objective holds at all loads up to %g", *f.Met)
		return f
	case met < 0:
		f.Why = fmt.Sprintf("the objective does not hold at %g, the lowest load", *f.Broken)
		return f
	}
	f.Estimate = new(*f.Met * math.Pow(*f.Broken / *f.Met, s.crossing(c, met, broken)))
	if load, off, ok := s.edge(c); ok {
		f.Estimate, f.Error = new(load), new(off)
	}
	if _, more := s.next(c); more {
		f.Why = fmt.Sprintf("%s did not suffice for a tolerance of %g %%", trace.Plural(c.N, "run"), 100*s.Tolerance)
	} else {
		f.Settled = true
	}
	return f
}

// beyond probes past the edge.
func (s Search) beyond(ctx context.Context, c *Curve, m Measure, f *Found) error {
	if f.Met == nil || f.Broken == nil {
		return nil
	}
	for _, factor := range s.Beyond {
		load := s.whole(*f.Broken * factor)
		if load <= *f.Broken {
			continue
		}
		if err := c.measure(ctx, m, load); err != nil {
			return err
		}
		c.at(load).Beyond = true
	}
	return nil
}

// Overload says in words what the system does past the edge, by its throughput of
// successful requests: it degrades where it still answers, later, and collapses where
// it answers less than before. Empty if nothing was probed there.
func (c *Curve) Overload(f *Found) string {
	if f == nil || f.Met == nil {
		return ""
	}
	best, bestAt := 0.0, 0.0
	var last *Point
	for i := range c.Points {
		p := &c.Points[i]
		rate, ok := p.median(func(r *Run) *float64 { return r.RequestsPerS })
		if ok && p.Load <= *f.Met && rate > best {
			best, bestAt = rate, p.Load
		}
		if p.Beyond {
			last = p
		}
	}
	if last == nil || best == 0 {
		return ""
	}
	rate, ok := last.median(func(r *Run) *float64 { return r.RequestsPerS })
	if !ok {
		return fmt.Sprintf("collapses: at %.4g nothing is answered any more", last.Load)
	}
	word := "degrades"
	if rate < collapse*best {
		word = "collapses"
	}
	text := fmt.Sprintf("%s: at %.4g it answers %.4g requests/s, %.0f %% of the %.4g at %.4g", word, last.Load, rate, 100*rate/best, best, bestAt)
	if errors, ok := last.median(func(r *Run) *float64 { return r.ErrorRate }); ok && errors > 0 {
		text += fmt.Sprintf(", and %.3g %% fail", 100*errors)
	}
	return text
}

// collapse is the share of the throughput at the edge below which a system that is
// asked for more has collapsed.
const collapse = 0.8
