package cluster

import (
	"cmp"
	"slices"
	"time"

	"reprise/replay"
	"reprise/trace"
)

// A takeover gives a worker a part of the shard of one that was lost: what begins from a
// time, or in a closed loop from a place on.
type takeover struct {
	From    time.Duration `json:"from"`
	FromSeq int           `json:"from_seq,omitempty"`
	Whole   bool          `json:"whole,omitempty"`  // sessions that began before are not taken over at all
	Places  int           `json:"places,omitempty"` // those of the lost one that come with it; 0 = it had none
	Slots   slotSet       `json:"slots"`
}

// shard is what is taken over.
func (t *takeover) shard(sessions bool) replay.Shard {
	return replay.Shard{Owns: t.Slots.has, Sessions: sessions, From: t.From, FromSeq: t.FromSeq, Whole: t.Whole}
}

// left is from where on what a lost member's leg had is certainly not sent; false if that
// is not known. The caller holds mu.
func (c *Coordinator) left(m *member, leg int) (seq int, ok bool) {
	if leg >= len(m.reach) || m.reach[leg] == nil || m.clock == nil {
		return 0, false
	}
	p := *m.reach[leg]
	p.At += m.clock.Offset - m.clock.Bound
	return p.limit(c.clock.Now()), true
}

// takeOver shares what a lost member had among the others. The caller holds mu.
func (c *Coordinator) takeOver(m *member) {
	var rest []*member
	for _, other := range c.members {
		if !other.lost && !other.over {
			rest = append(rest, other)
		}
	}
	if !c.takesOver() || c.stop || len(rest) == 0 {
		return
	}
	given, t, closed := 0, takeover{From: c.now() + c.beats(takeOverIn), Whole: c.whole}, c.Config.Closed()
	if !closed { // all its legs are as far: what begins from now on is left
		m.owned, m.places = [][]uint16{slices.Concat(m.owned...)}, []int{m.allPlaces()}
	}
	for leg, slots := range m.owned {
		if len(slots) == 0 {
			continue
		}
		if closed {
			var known bool
			if t.FromSeq, known = c.left(m, leg); !known {
				c.Log("how far it was is not known: what is left of its shard is lost")
				continue
			}
		}
		given += len(slots)
		c.hand(rest, t, slots, m.places[leg])
	}
	if m.owned = nil; given == 0 {
		return
	}
	c.Log("its shard goes to %s, from %v on", trace.Plural(len(rest), "other worker"), t.From.Round(time.Millisecond))
}

// hand gives slots and places of a lost leg to others, to no more of them than there are
// places. The caller holds mu.
func (c *Coordinator) hand(rest []*member, t takeover, slots []uint16, places int) {
	if places > 0 {
		rest = fewestPlaces(rest, places)
	}
	sets, owned := make([]slotSet, len(rest)), make([][]uint16, len(rest))
	for i := range sets {
		sets[i] = newSlotSet()
	}
	for slot, i := range spread(slots, c.weights, make([]int64, len(rest))) {
		sets[i].add(slot)
		owned[i] = append(owned[i], slot)
	}
	for i, other := range rest {
		if len(owned[i]) == 0 {
			continue
		}
		t.Slots, t.Places = sets[i], replay.Part(places, i, len(rest))
		other.takeover = append(other.takeover, t)
		other.owned, other.places = append(other.owned, owned[i]), append(other.places, t.Places)
	}
}

// fewestPlaces returns at most n members, those with the fewest places.
func fewestPlaces(list []*member, n int) []*member {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *member) int { return cmp.Compare(a.allPlaces(), b.allPlaces()) })
	return list[:min(n, len(list))]
}

// allPlaces is how many places a member has, with those that it took over.
func (m *member) allPlaces() (n int) {
	for _, p := range m.places {
		n += p
	}
	return n
}
