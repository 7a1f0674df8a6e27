package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/replay"
)

// TestAssign: each slot has one worker, and no worker has more than the fair share
// and the heaviest slot.
func TestAssign(t *testing.T) {
	draws := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 3, 4, 7, 40, 1000} {
		weights := make([]int64, replay.Slots)
		var sum, most int64
		for i := range weights {
			weights[i] = draws.Int64N(1000)
			sum += weights[i]
			most = max(most, weights[i])
		}
		load := make([]int64, n)
		for slot, to := range Assign(weights, n) {
			if to < 0 || to >= n {
				t.Fatalf("%d workers: slot %d goes to %d", n, slot, to)
			}
			load[to] += weights[slot]
		}
		for i, l := range load {
			if fair := sum / int64(n); l > fair+most || l < fair-most {
				t.Errorf("%d workers: %d has %d, the fair share is %d", n, i, l, fair)
			}
		}
	}
}

// TestShardsOfSessions: 10 sessions on 4 workers stay whole, none is left out, none
// is twice, and no worker has none.
func TestShardsOfSessions(t *testing.T) {
	weights, slots := make([]int64, replay.Slots), map[string]uint16{}
	for i := range 10 {
		name := fmt.Sprintf("session %d", i)
		slots[name] = replay.Slot(int64(i), name, true)
		weights[slots[name]] += 100
	}
	owner := Assign(weights, 4)
	sets := make([]slotSet, 4)
	for i := range sets {
		sets[i] = newSlotSet()
	}
	for slot, to := range owner {
		sets[to].add(uint16(slot))
	}
	has := make([]int, 4)
	for name, slot := range slots {
		n := 0
		for i := range sets {
			if sets[i].has(slot) {
				has[i]++
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d workers have it", name, n)
		}
		for turn := range int64(5) {
			if replay.Slot(turn, name, true) != slot {
				t.Errorf("%s: turn %d goes to another worker", name, turn)
			}
		}
	}
	for i, n := range has {
		if n < 2 || n > 3 {
			t.Errorf("worker %d has %d of 10 sessions", i, n)
		}
	}
}

// TestSlotsSpread: consecutive ids fill the slots evenly, as a hash does.
func TestSlotsSpread(t *testing.T) {
	const perSlot = 64
	count := make([]float64, replay.Slots)
	for id := range int64(perSlot * replay.Slots) {
		count[replay.Slot(id, "", false)]++
	}
	chi := 0.0
	for _, n := range count {
		chi += (n - perSlot) * (n - perSlot) / perSlot
	}
	// Chi-square with Slots-1 degrees of freedom: mean 16383, deviation 181.
	if chi < 15400 || chi > 17400 {
		t.Errorf("chi-square %.0f of %d slots", chi, replay.Slots)
	}
}

// TestTakeOverIsDisjoint: what a lost worker had goes to the others, each slot once.
func TestTakeOverIsDisjoint(t *testing.T) {
	c := &Coordinator{Workers: 3, Config: &replay.Config{}, Log: func(string, ...any) {}, weights: make([]int64, replay.Slots), rows: make([]int64, replay.Slots), clock: NewClock(0)}
	for i := range c.weights {
		c.weights[i], c.rows[i] = int64(i%17), 1
	}
	for i := range 3 {
		m := &member{name: fmt.Sprint(i), index: i}
		c.members = append(c.members, m)
		c.give(m)
	}
	c.start = c.clock.Now()
	for _, i := range []int{0, 2} {
		c.members[i].lost = true
		c.takeOver(c.members[i])
	}
	last := c.members[1]
	if owned := slices.Concat(last.owned...); len(last.takeover) != 2 || len(owned) != replay.Slots {
		t.Fatalf("the last worker took over %d times and has %d of %d slots", len(last.takeover), len(owned), replay.Slots)
	}
	for slot := range uint16(replay.Slots) {
		n := 0
		if last.slots.has(slot) {
			n++
		}
		if c.members[2].slots.has(slot) || c.members[2].takeover[0].Slots.has(slot) {
			if !last.takeover[1].Slots.has(slot) {
				t.Fatalf("slot %d of the second one lost is nobody's", slot)
			}
			n++
		}
		if last.takeover[0].Slots.has(slot) {
			n++
		}
		if n != 1 {
			t.Fatalf("slot %d is with the last worker %d times", slot, n)
		}
	}
}
