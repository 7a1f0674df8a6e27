package replay

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestAheadKeepsOrder: what one goroutine puts, another takes in the same order, whoever
// is faster, and then the end.
func TestAheadKeepsOrder(t *testing.T) {
	for seed := range uint64(20) {
		a, n := newAhead(), 5*aheadRequests
		go func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for seq := range n {
				for a.len() == aheadRequests || seed%2 == 0 && r.IntN(8) == 0 {
					runtime.Gosched()
				}
				a.add(&flight{seq: seq})
			}
			a.close()
		}()
		r := rand.New(rand.NewPCG(seed, 2))
		for want := range n {
			for seed%2 == 1 && r.IntN(8) == 0 {
				runtime.Gosched()
			}
			if f, ok := a.next(); !ok || f.seq != want {
				t.Fatalf("seed %d: %v, want %d", seed, f, want)
			}
		}
		if f, ok := a.next(); ok || a.len() != 0 {
			t.Fatalf("seed %d: %v after the end", seed, f)
		}
	}
}
