package cluster

import (
	"cmp"
	"slices"

	"reprise/replay"
)

// Assign gives each slot to one of n workers, so that their weights are as even as
// whole slots allow: the heaviest slot first, always to the worker that has least
// (longest processing time first; Graham, 1969). Equal weights give equal tables.
func Assign(weights []int64, n int) []int {
	owner := make([]int, len(weights))
	all := make([]uint16, len(weights))
	for i := range all {
		all[i] = uint16(i)
	}
	for slot, to := range spread(all, weights, make([]int64, n)) {
		owner[slot] = to
	}
	return owner
}

// spread gives slots to workers, who have some load already.
func spread(slots []uint16, weights, load []int64) map[uint16]int {
	slices.SortStableFunc(slots, func(a, b uint16) int { return cmp.Compare(weights[b], weights[a]) })
	out := make(map[uint16]int, len(slots))
	count := make([]int, len(load))
	for _, slot := range slots {
		least := 0
		for i := range load {
			if load[i] < load[least] || load[i] == load[least] && count[i] < count[least] {
				least = i
			}
		}
		load[least] += weights[slot]
		count[least]++
		out[slot] = least
	}
	return out
}

// A slotSet is a set of slots, as bits.
type slotSet []byte

func newSlotSet() slotSet { return make(slotSet, replay.Slots/8) }

func (s slotSet) add(slot uint16) { s[slot/8] |= 1 << (slot % 8) }

// has tells whether the slot is in the set.
func (s slotSet) has(slot uint16) bool {
	return int(slot/8) < len(s) && s[slot/8]&(1<<(slot%8)) != 0
}
