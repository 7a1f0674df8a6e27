package cluster

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestFilterKeepsItsBound: whatever the two ways of an exchange take, the true offset
// is within the bound, and the bound is that of the shortest round trip.
func TestFilterKeepsItsBound(t *testing.T) {
	for _, offset := range []time.Duration{0, 250 * time.Millisecond, -250 * time.Millisecond, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			draws := rand.New(rand.NewPCG(2, uint64(offset)))
			coordinator, worker := NewClock(0), NewClock(-offset)
			var f filter
			shortest := time.Hour
			for range 200 {
				there, back := time.Duration(draws.Int64N(int64(20*time.Millisecond))), time.Duration(draws.Int64N(int64(2*time.Millisecond)))
				shortest = min(shortest, there+back)
				s := Sample{Sent: worker.Now()}
				time.Sleep(there)
				s.There = coordinator.Now()
				time.Sleep(100 * time.Microsecond)
				s.Answered = coordinator.Now()
				time.Sleep(back)
				s.Back = worker.Now()
				f.add(s)
			}
			e, ok := f.now()
			if !ok || len(f.Estimates) != 1 {
				t.Fatalf("%d estimates", len(f.Estimates))
			}
			if wrong := time.Duration(abs(e.Offset - int64(offset))); wrong > time.Duration(e.Bound) {
				t.Errorf("offset %v: estimate is wrong by %v, the bound is %v", offset, wrong, time.Duration(e.Bound))
			}
			if got, want := time.Duration(e.Bound), (shortest+1)/2; got != want {
				t.Errorf("bound %v, the shortest round trip was %v", got, shortest)
			}
		})
	}
}

// TestFilterFollowsDrift: estimates of a clock that goes 100 ppm fast are each within
// their bound, the drift is found within its bound, and instants between two
// estimates are set right.
func TestFilterFollowsDrift(t *testing.T) {
	const drift, trip = 100e-6, int64(200 * time.Microsecond)
	local := func(true_ int64) int64 { return true_ + int64(drift*float64(true_)) }
	var f filter
	for at := int64(0); at < int64(10*time.Minute); at += int64(200 * time.Millisecond) {
		f.add(Sample{local(at), at + trip/2, at + trip/2, local(at + trip)})
	}
	first := f.Estimates[0]
	if !f.shifts(first) {
		t.Fatal("60 ms within bounds of 0.1 ms are not noticed")
	}
	c := f.clock(first)
	if c.DriftPPM == nil || *c.DriftPPM > -100+*c.DriftOf+1 || *c.DriftPPM < -100-*c.DriftOf-1 {
		t.Errorf("drift %v ± %v ppm, want -100", *c.DriftPPM, *c.DriftOf)
	}
	for at := int64(time.Minute); at < int64(9*time.Minute); at += int64(7 * time.Second) {
		if wrong := abs(local(at) + f.at(local(at)) - at); wrong > trip/2+int64(drift*float64(estimateEvery)) {
			t.Errorf("at %v: set wrong by %v", time.Duration(at), time.Duration(wrong))
		}
	}
}

// TestFilterSteady: an offset that stays is no reason to move instants.
func TestFilterSteady(t *testing.T) {
	var f filter
	draws := rand.New(rand.NewPCG(3, 3))
	for at := int64(0); at < int64(5*time.Minute); at += int64(200 * time.Millisecond) {
		there, back := draws.Int64N(1e6), draws.Int64N(1e6)
		f.add(Sample{at, at + there + 5e6, at + there + 5e6, at + there + back})
	}
	if f.shifts(f.Estimates[0]) {
		t.Error("noise of the network moves instants")
	}
	if f.at(-1) != f.Estimates[0].Offset || f.at(1<<62) != f.Estimates[len(f.Estimates)-1].Offset {
		t.Error("outside of the estimates, the nearest holds")
	}
	f.add(Sample{10, 5, 5, 9}) // back before it left
	if f.Samples != 1500 {
		t.Errorf("%d samples, a jump is none", f.Samples)
	}
}
