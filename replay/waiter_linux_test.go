package replay

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWakeUpsAreLearnt: whatever wake-ups take, the spin stays within its bounds; it comes
// close to what nearly all of them take, from above; and a sleep that a signal ends early
// says nothing.
func TestWakeUpsAreLearnt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := &exactWaiter{wakeUp: spinMost}
	for range 10_000 {
		w.woke(time.Duration(r.IntN(400)-200) * time.Microsecond)
		if w.wakeUp < 0 || w.wakeUp > spinMost {
			t.Fatalf("a wake-up is thought to take %v", w.wakeUp)
		}
	}
	late := 0
	for i := range 10_000 {
		took := time.Duration(5000+r.IntN(5000)) * time.Nanosecond
		if i > 1000 && took > w.wakeUp+spinSpare {
			late++
		}
		w.woke(took)
	}
	if w.wakeUp > 10*time.Microsecond || late > 0 {
		t.Errorf("wake-ups of 5 to 10 us: thought to take %v, %d too late", w.wakeUp, late)
	}
	before := w.wakeUp
	w.woke(-20 * time.Millisecond)
	if w.wakeUp != before {
		t.Errorf("a signal made %v of %v", w.wakeUp, before)
	}
}
