package prefix

import "math/bits"

// A recency orders blocks by their last use and counts the blocks used since:
// a bit per position, the live ones set, with a Fenwick tree (1994) over the
// counts of 64-bit words. Stack distances from a tree of positions follow
// Bennett and Kruskal (1975).
type recency struct {
	words []uint64
	tree  []uint32 // Fenwick over words, from index 1
	next  uint32   // first position never used
	live  int
}

// full tells that compact must come before the next push.
func (r *recency) full() bool { return int(r.next) == 64*len(r.words) }

// push takes the next position.
func (r *recency) push() uint32 {
	p := r.next
	r.next++
	r.live++
	r.words[p>>6] |= 1 << (p & 63)
	r.add(p, 1)
	return p
}

// drop gives a position up.
func (r *recency) drop(p uint32) {
	r.live--
	r.words[p>>6] &^= 1 << (p & 63)
	r.add(p, ^uint32(0))
}

func (r *recency) add(p uint32, delta uint32) {
	for i := int(p>>6) + 1; i < len(r.tree); i += i & -i {
		r.tree[i] += delta
	}
}

// after returns how many live positions come after p.
func (r *recency) after(p uint32) int64 {
	var n uint32
	for i := int(p >> 6); i > 0; i -= i & -i {
		n += r.tree[i]
	}
	n += uint32(bits.OnesCount64(r.words[p>>6] << (63 - p&63)))
	return int64(r.live) - int64(n)
}

// compact moves the live positions to the front, in order, and makes room.
// each hears the new position of every old one through the function it is
// given.
func (r *recency) compact(each func(moved func(uint32) uint32)) {
	before := make([]uint32, len(r.words))
	var n uint32
	for i, w := range r.words {
		before[i] = n
		n += uint32(bits.OnesCount64(w))
	}
	old := r.words
	if len(old) == 0 {
		each = func(func(uint32) uint32) {} // no position was given yet
	}
	each(func(p uint32) uint32 {
		return before[p>>6] + uint32(bits.OnesCount64(old[p>>6]&(1<<(p&63)-1)))
	})
	r.words = make([]uint64, max(firstSize, 2*r.live)/64+1)
	for i := range r.live / 64 {
		r.words[i] = ^uint64(0)
	}
	r.words[r.live/64] = 1<<(r.live%64) - 1
	r.next = uint32(r.live)
	r.tree = make([]uint32, len(r.words)+1)
	for i, w := range r.words {
		r.tree[i+1] += uint32(bits.OnesCount64(w))
		if up := i + 1 + (i+1)&-(i+1); up < len(r.tree) {
			r.tree[up] += r.tree[i+1]
		}
	}
}
