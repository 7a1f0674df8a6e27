package synth

import (
	"fmt"
	"time"

	"reprise/analysis/stats"
)

// Ways to move copies.
const (
	shiftNone    = "none"
	shiftSession = "session"
	shiftClient  = "client"
	shiftCopy    = "copy"
	shiftRate    = "rate"
)

// chooseShift decides how the sessions of copies move. Each on its own, it
// smears bursts between sessions that are shorter than the jitter; where the rate
// varies over seconds more than twice as much as over windows of the jitter, and
// no client ids say who belongs together, a copy moves as a whole and keeps its
// own bursts.
func (p *plan) chooseShift() {
	d := &p.design
	d.Shift, d.ShiftWhy = shiftSession, "each session start moves on its own"
	second, wide, ok := p.v.burst(p.s.jitter(time.Duration(p.v.last)))
	switch {
	case !p.v.timed:
		d.Shift, d.ShiftWhy = shiftNone, "there is no clock over all sessions"
	case p.s.Grow == GrowRate:
		d.Shift, d.ShiftWhy = shiftRate, "--grow rate: the gaps between the sessions of a client are divided"
		p.gaps = &clientGaps{before: map[uint64]int64{}}
	case p.jitter == 0:
		d.Shift, d.ShiftWhy = shiftNone, "the jitter is 0"
	case p.v.clients:
		d.Shift, d.ShiftWhy = shiftClient, "client ids say what belongs together"
	case p.tick > int64(time.Second):
		d.ShiftWhy += fmt.Sprintf(": timestamps in ticks of %v show no bursts shorter than that", time.Duration(p.tick))
	case ok && second > 2*wide:
		d.Shift, d.ShiftWhy = shiftCopy, fmt.Sprintf("bursts are shorter than the jitter, and there are no client ids: the rate varies by a CV of %.2f from second to second, more than twice the %.2f between windows as long as the jitter", second, wide)
	case ok:
		d.ShiftWhy += fmt.Sprintf(": the rate varies by a CV of %.2f from second to second, not more than twice the %.2f between windows as long as the jitter, so bursts are not lost", second, wide)
	}
	switch d.Shift {
	case shiftNone:
		p.shift = func(int, *picked) int64 { return 0 }
	case shiftRate:
		p.shift = p.rateShift
	case shiftCopy:
		p.shift = p.copyShift
	case shiftClient:
		p.shift = func(play int, r *picked) int64 { return p.within(play, r.client) }
	default:
		p.shift = func(play int, r *picked) int64 { return p.within(play, r.session) }
	}
}

// within draws a shift within the jitter, in whole ticks.
func (p *plan) within(play int, key uint64) int64 {
	u := 2*stats.Draw(p.s.Seed, drawShift, uint64(play), key) - 1
	return int64(u*float64(p.jitter/p.tick)+0.5*sign(u)) * p.tick
}

func sign(u float64) float64 {
	if u < 0 {
		return -1
	}
	return 1
}

// copyShift moves a copy as a whole, by a third of the jitter or more, so that
// its bursts do not fall on those of the source. Shifts are drawn: equal steps
// would cancel what the rate does over time.
func (p *plan) copyShift(play int, _ *picked) int64 {
	side := sign(stats.Draw(p.s.Seed, drawCopyShift, uint64(play), 0) - 0.5)
	size := (1 + 2*stats.Draw(p.s.Seed, drawCopyShift, uint64(play), 1)) / 3
	return int64(side*size*float64(p.jitter/p.tick)) * p.tick
}

// clientGaps follow the session starts of clients, for GrowRate.
type clientGaps struct {
	last   map[uint64]int64 // start of the client's session before
	before map[uint64]int64 // gap before each session
}

// note finds the gap before a session of its client; before the first, what lies
// around the end of the trace.
func (g *clientGaps) note(p *plan, r *picked) {
	if !r.first {
		return
	}
	last, seen := g.last[r.client]
	gap := r.at - last
	if !seen {
		c := p.v.starts[r.client]
		gap = c.first + p.period - c.last
	}
	g.last[r.client], g.before[r.session] = r.at, gap
}

// rateShift puts copies into the gap before a session in equal parts: the gaps of
// the client shrink and keep their variation.
func (p *plan) rateShift(play int, r *picked) int64 {
	gap := float64(p.gaps.before[r.session]) * float64(play%p.most) / p.design.Factor
	return -int64(gap) / p.tick * p.tick
}
