package cluster

import (
	"cmp"
	"slices"
	"time"

	"reprise/trace/results"
)

// A Clock is that of one process: the wall clock when the process began, going on
// with the monotonic one, so that it never jumps.
type Clock struct {
	base time.Time
	wall int64
}

// NewClock returns a clock that is set wrong by an offset, as other hosts' clocks are.
func NewClock(offset time.Duration) *Clock {
	now := time.Now()
	return &Clock{base: now, wall: now.UnixNano() + int64(offset)}
}

// Now returns ns since 1970, by this clock.
func (c *Clock) Now() int64 { return c.wall + int64(time.Since(c.base)) }

// At returns the instant when this clock shows ns.
func (c *Clock) At(ns int64) time.Time { return c.base.Add(time.Duration(ns - c.wall)) }

// A Sample is one exchange with the coordinator, as in NTP (RFC 5905, section 8):
// sent and received by this clock, received and answered by the coordinator's; ns.
type Sample struct{ Sent, There, Answered, Back int64 }

// offset is coordinator - worker, halfway between what the exchange leaves open.
func (s Sample) offset() int64 { return ((s.There - s.Sent) + (s.Answered - s.Back)) / 2 }

// bound is how far the true offset may be from that: half of the round trip, however
// unlike its two ways are.
func (s Sample) bound() int64 { return ((s.Back - s.Sent) - (s.Answered - s.There) + 1) / 2 }

// An Estimate is the offset of the coordinator's clock against this one's at a time.
type Estimate struct {
	At     int64 `json:"at"`        // this clock, ns
	Offset int64 `json:"offset_ns"` // coordinator - worker
	Bound  int64 `json:"bound_ns"`  // the true offset is within it
}

// estimateEvery is how long the filter gathers samples for one estimate, ns.
const estimateEvery = int64(10 * time.Second)

// A filter makes estimates of samples: of those within a time, the one with the
// shortest round trip, since what the network adds to it is what is not known.
type filter struct {
	Estimates []Estimate `json:"estimates"`
	Samples   int        `json:"samples"`
	open      bool       // the last estimate still takes samples
	began     int64
}

// add takes a sample; after a time it begins another estimate.
func (f *filter) add(s Sample) {
	if s.Back-s.Sent < s.Answered-s.There {
		return // a clock has jumped within it
	}
	f.Samples++
	e := Estimate{At: s.Back, Offset: s.offset(), Bound: s.bound()}
	switch last := len(f.Estimates) - 1; {
	case !f.open || s.Back-f.began > estimateEvery:
		f.open, f.began = true, s.Back
		f.Estimates = append(f.Estimates, e)
	case e.Bound < f.Estimates[last].Bound:
		f.Estimates[last] = e
	}
}

// close ends the estimate that is open.
func (f *filter) close() { f.open = false }

// worstDrift is how fast a clock may go from another, ns a ns: an estimate grows old.
const worstDrift = 1e-4

// now returns the estimate that is best by now: a bound that is smaller counts until its
// age makes up for it; false if there is none.
func (f *filter) now() (Estimate, bool) {
	n := len(f.Estimates)
	if n == 0 {
		return Estimate{}, false
	}
	latest := f.Estimates[n-1].At
	worth := func(e Estimate) float64 { return float64(e.Bound) + worstDrift*float64(latest-e.At) }
	return slices.MinFunc(f.Estimates, func(a, b Estimate) int { return cmp.Compare(worth(a), worth(b)) }), true
}

// at interpolates the offset between the estimates.
func (f *filter) at(local int64) int64 {
	list := f.Estimates
	if local <= list[0].At {
		return list[0].Offset
	}
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if local <= b.At && b.At > a.At {
			return a.Offset + int64(float64(b.Offset-a.Offset)*float64(local-a.At)/float64(b.At-a.At))
		}
	}
	return list[len(list)-1].Offset
}

// shifts tells whether the offset has changed by more than the bounds leave open.
func (f *filter) shifts(first Estimate) bool {
	for _, e := range f.Estimates {
		if abs(e.Offset-first.Offset) > e.Bound+first.Bound {
			return true
		}
	}
	return false
}

func abs(n int64) int64 { return max(n, -n) }

// clock says what is known of the worker's clock; nil if nothing is.
func (f *filter) clock(first Estimate) *results.WorkerClock {
	if len(f.Estimates) == 0 {
		return nil
	}
	last := f.Estimates[len(f.Estimates)-1]
	c := &results.WorkerClock{OffsetNS: first.Offset, BoundNS: first.Bound, LastNS: last.Offset, LastBound: last.Bound, Samples: f.Samples}
	if span := float64(last.At - first.At); span > 0 {
		drift, open := 1e6*float64(last.Offset-first.Offset)/span, 1e6*float64(last.Bound+first.Bound)/span
		c.DriftPPM, c.DriftOf = &drift, &open
	}
	return c
}
