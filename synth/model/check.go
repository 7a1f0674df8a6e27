package model

import (
	"errors"
	"fmt"
	"math"

	"reprise/analysis/stats"
	"reprise/trace"
)

// Bounds of what can be generated.
const (
	MaxTokens = 1 << 40       // of a prompt or an answer
	MaxTurns  = 1 << 30       // of a session
	MaxRate   = 1e9           // 1/s: times have a resolution of 1 ns
	MaxTime   = math.MaxInt64 // ns, some 292 years
)

// near is how much a mean or a sum of shares may be off for rounding.
const near = 0.01

// Check returns an error that names the part that cannot be generated from.
func (w *Workload) Check() error {
	if len(w.Streams) == 0 {
		return errors.New("workload model: no streams")
	}
	for i := range w.Streams {
		s := &w.Streams[i]
		if err := s.Check(); err != nil {
			return fmt.Errorf("workload model: stream %q: %w", s.Name, err)
		}
	}
	return nil
}

// Check returns an error that names the part that cannot be generated from.
func (s *Stream) Check() error {
	if s.Requests < 0 {
		return fmt.Errorf("%d requests", s.Requests)
	}
	if err := checkShares("models", s.Models, func(m Share) float64 { return m.Share }); err != nil {
		return err
	}
	if sum := sumOf(s.Models, func(m Share) float64 { return m.Share }); len(s.Models) > 0 && math.Abs(sum-1) > near {
		return fmt.Errorf("models: the shares add up to %v, not to 1", sum)
	}
	if a := s.Arrivals; a != nil {
		if err := a.check(); err != nil {
			return fmt.Errorf("arrivals: %w", err)
		}
	}
	if err := s.Lengths.check(); err != nil {
		return fmt.Errorf("lengths: %w", err)
	}
	if c := s.Sessions; c != nil {
		if err := c.check(); err != nil {
			return fmt.Errorf("sessions: %w", err)
		}
	}
	if p := s.Prefix; p != nil {
		if err := p.check(); err != nil {
			return fmt.Errorf("prefix: %w", err)
		}
	}
	return nil
}

func sumOf[T any](list []T, share func(T) float64) (sum float64) {
	for _, of := range list {
		sum += share(of)
	}
	return sum
}

func checkShares[T any](name string, list []T, share func(T) float64) error {
	for _, of := range list {
		if v := share(of); !(v >= 0 && v <= 1) {
			return fmt.Errorf("%s: a share is %v, but must be between 0 and 1", name, v)
		}
	}
	if sum := sumOf(list, share); sum > 1+near {
		return fmt.Errorf("%s: the shares add up to %v, more than 1", name, sum)
	}
	return nil
}

// check holds the profile against the mean rate, so that who changes the one and
// forgets the other hears of it, and the gaps against their mean of 1, without
// which generation would come at another rate, go back in time or never end.
func (a *Arrivals) check() error {
	if len(a.Profile) == 0 || !(a.RateHz > 0) {
		return errors.New("no rate")
	}
	var end, mass float64
	for i, r := range a.Profile {
		if r.FromS != end || !(r.ToS > r.FromS) || !(r.RateHz >= 0) {
			return fmt.Errorf("profile piece %d is %v to %v s at %v/s: pieces follow one another from 0", i, r.FromS, r.ToS, r.RateHz)
		}
		if r.RateHz > MaxRate {
			return fmt.Errorf("profile piece %d has a rate of %v/s, but times have a resolution of 1 ns", i, r.RateHz)
		}
		end = r.ToS
		mass += (r.ToS - r.FromS) * r.RateHz
	}
	switch mean := mass / end; {
	case mass == 0:
		return errors.New("the rate is 0 at all times")
	case math.Abs(mean/a.RateHz-1) > near:
		return fmt.Errorf("rate_hz is %v, but the profile has %v on average: change both", a.RateHz, mean)
	}
	if a.Gaps == nil {
		return nil
	}
	law, err := a.Gaps.Law()
	if err != nil {
		return fmt.Errorf("gaps: %w", err)
	}
	mean, ok := law.Mean()
	switch {
	case !ok:
		return fmt.Errorf("gaps: a %s law of infinite mean has no rate", law.Name())
	case math.Abs(mean-1) > near:
		return fmt.Errorf("gaps: the law has mean %v, but must have 1: it is in units of the mean gap", mean)
	case !within(law, 0, math.Inf(1)):
		return fmt.Errorf("gaps: a %s law that goes below 0", law.Name())
	case !(law.Quantile(1-1e-9) > 0):
		return fmt.Errorf("gaps: a %s law of which all that can be drawn is 0: it is too bursty", law.Name())
	}
	return nil
}

// within tells whether a law lies between low and high, but for what is too rare
// to be drawn.
func within(law stats.Law, low, high float64) bool {
	const rare = 1e-15
	return law.Quantile(rare) >= low && law.Quantile(1-rare) <= high
}

func (l *Lengths) check() error {
	if len(l.Pairs) == 0 && (l.InputLaw == nil || l.OutputLaw == nil) {
		return errors.New("neither pairs nor laws of input and output")
	}
	var sum int64
	for _, p := range l.Pairs {
		if p.N <= 0 || sum+p.N < sum {
			return fmt.Errorf("pair [%d, %d] occurs %d times", p.Input, p.Output, p.N)
		}
		if max(p.Input, p.Output) > MaxTokens {
			return fmt.Errorf("pair [%d, %d] is longer than %d tokens", p.Input, p.Output, int64(MaxTokens))
		}
		sum += p.N
	}
	if c := l.Copula; c != nil {
		if !(c.Rho >= -1 && c.Rho <= 1) {
			return fmt.Errorf("copula: rho is %v, but must be between -1 and 1", c.Rho)
		}
		for i := range c.Bins {
			if _, err := c.Bins[i].Output.Law(); err != nil {
				return fmt.Errorf("copula: bin %d: %w", i, err)
			}
		}
	}
	return checkLaws([]lawPart{{"input", l.InputLaw}, {"output", l.OutputLaw}})
}

// A lawPart is a law and where it stands; nil = none.
type lawPart struct {
	name string
	law  *stats.LawSpec
}

func checkLaws(parts []lawPart) error {
	for _, p := range parts {
		if p.law == nil {
			continue
		}
		if _, err := p.law.Law(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (c *Sessions) check() error {
	err := checkLaws([]lawPart{{"turns", &c.Turns}, {"think_s", c.Think}, {"gap_s", c.Gap}, {"growth_tokens", c.Growth}, {"outputs", &c.Outputs}})
	if err != nil {
		return err
	}
	law, err := c.Turns.Law()
	if err != nil {
		return fmt.Errorf("turns: %w", err)
	}
	if mean, ok := law.Mean(); !ok || !(mean > 0 && mean <= MaxTurns) {
		return fmt.Errorf("turns: the mean must be above 0 and at most %d", MaxTurns)
	}
	for i, p := range c.Paths {
		if err := p.check(); err != nil {
			return fmt.Errorf("paths: %d: %w", i, err)
		}
	}
	return nil
}

func (p Path) check() error {
	if len(p) == 0 || len(p) > MaxTurns {
		return fmt.Errorf("%d turns, but must be from 1 to %d", len(p), MaxTurns)
	}
	for k, s := range p {
		if max(s.Input, s.Output) > MaxTokens {
			return fmt.Errorf("turn %d: %d and %d tokens, but at most %d can be", k, s.Input, s.Output, int64(MaxTokens))
		}
	}
	return nil
}

func (p *Prefix) check() error {
	if p.BlockTokens <= 0 {
		return fmt.Errorf("blocks of %d tokens", p.BlockTokens)
	}
	switch p.Tail {
	case trace.TailPartial, trace.TailDropped, trace.TailOther:
	default:
		return fmt.Errorf("tail is %q, but must be %s, %s or %s", p.Tail, trace.TailPartial, trace.TailDropped, trace.TailOther)
	}
	for _, r := range p.Roots {
		if r.Blocks < 1 {
			return fmt.Errorf("roots: a beginning of %d blocks", r.Blocks)
		}
	}
	if err := checkShares("roots", p.Roots, func(r Root) float64 { return r.Share }); err != nil {
		return err
	}
	if p.Kept == nil {
		return nil
	}
	law, err := p.Kept.Law()
	if err != nil {
		return fmt.Errorf("kept: %w", err)
	}
	if !within(law, 0, 1) {
		return errors.New("kept: shares must be between 0 and 1")
	}
	return nil
}
