package synth

import (
	"errors"
	"fmt"
	"math"
	"time"

	"reprise/trace"
)

// DefaultJitter is how far session starts of copies move at most, to either
// side; MaxJitterShare bounds it by the span of the trace.
const (
	DefaultJitter  = time.Minute
	MaxJitterShare = 0.05
)

// Ways to grow and to thin.
const (
	GrowClients  = "clients" // more clients, each as busy as before
	GrowRate     = "rate"    // as many clients, each busier: gaps between its sessions shrink in proportion
	ThinSessions = "sessions"
	ThinRequests = "requests" // breaks conversations; for traces that have none
)

// A Scaling says how one trace becomes another. The zero value changes nothing.
type Scaling struct {
	Factor float64                       // times as many sessions, above 0; 0 = 1
	Rate   float64                       // instead of Factor: requests/s wanted on average; 0 = not set
	Jitter trace.Optional[time.Duration] // unknown = DefaultJitter
	Grow   string                        // "" = GrowClients
	Thin   string                        // "" = ThinSessions
	Speed  float64                       // time compression: arrivals and delays shrink by it; 0 = 1
	Seed   uint64

	From, To time.Duration      // of recorded time, start in, end out; To 0 = to the end
	Extend   time.Duration      // length of the result, beyond that of the source; 0 = as long as it is
	Mix      map[string]float64 // share of requests by model, above 0, adding up to 1; the total stays

	InputScale, OutputScale float64 // of token counts; 0 = 1
	MaxInput                int64   // requests with a longer prompt are dropped; 0 = none

	HitRate trace.Optional[float64] // share of prompt tokens that a prefix cache without limit should serve

	Memory int64 // bytes that putting rows in order may hold; 0 = trace.DefaultMemory
}

func (s *Scaling) jitter(span time.Duration) time.Duration {
	return min(s.Jitter.Or(DefaultJitter), time.Duration(MaxJitterShare*float64(span)))
}

func (s *Scaling) speed() float64 { return orOne(s.Speed) }

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// Check refuses what cannot be done with any trace.
func (s *Scaling) Check() error {
	for _, f := range []struct {
		flag string
		v    float64
	}{{"scale", s.Factor}, {"rate", s.Rate}, {"speed", s.Speed}, {"input-scale", s.InputScale}, {"output-scale", s.OutputScale}} {
		if f.v < 0 || math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			return fmt.Errorf("--%s %v: must be above 0", f.flag, f.v)
		}
	}
	for _, f := range []struct {
		flag string
		v    float64
	}{{"scale", s.Factor}, {"input-scale", s.InputScale}, {"output-scale", s.OutputScale}} {
		if f.v > 1e6 {
			return fmt.Errorf("--%s %v: more than a million times", f.flag, f.v)
		}
	}
	switch {
	case s.Factor != 0 && s.Rate != 0:
		return trace.WithFix(errors.New("--scale and --rate exclude each other"), "--rate finds the scale that gives the rate")
	case s.Grow != "" && s.Grow != GrowClients && s.Grow != GrowRate:
		return trace.WithFix(fmt.Errorf("--grow %q", s.Grow), "use clients or rate")
	case s.Thin != "" && s.Thin != ThinSessions && s.Thin != ThinRequests:
		return trace.WithFix(fmt.Errorf("--thin %q", s.Thin), "use sessions or requests")
	case s.From < 0:
		return fmt.Errorf("--from %v: must not be below 0", s.From)
	case s.To != 0 && s.To <= s.From:
		return fmt.Errorf("--to %v: not after --from %v", s.To, s.From)
	case s.Extend < 0:
		return fmt.Errorf("--extend %v: must be above 0", s.Extend)
	case s.Jitter.Known && s.Jitter.Value < 0:
		return fmt.Errorf("--jitter %v: must not be below 0", s.Jitter.Value)
	case s.MaxInput < 0:
		return fmt.Errorf("--max-input-tokens %d: must be above 0", s.MaxInput)
	case s.HitRate.Known && !(s.HitRate.Value >= 0 && s.HitRate.Value <= 1):
		return fmt.Errorf("--target-hit-rate %v: not between 0 and 1", s.HitRate.Value)
	}
	return s.checkMix()
}

func (s *Scaling) checkMix() error {
	if len(s.Mix) == 0 {
		return nil
	}
	var sum float64
	for model, share := range s.Mix {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("--mix %s=%v: not a share between 0 and 1", model, share)
		}
		sum += share
	}
	if math.Abs(sum-1) > 1e-6 {
		return trace.WithFix(fmt.Errorf("--mix: the shares add up to %v", sum), "give shares that add up to 1 (or 100%)")
	}
	return nil
}
