package mooncake

import "fmt"

// lengths looks for ids that are a full block in one row and a shorter tail in
// another; the prompts of both then share the shorter text.
func (s *state) lengths(line, input int64, ids []uint64, size int) {
	whole := min(len(ids), int(input/int64(size)))
	for rest := ids[:whole]; len(rest) > 0; {
		n, fits := s.uses.full(rest)
		if !fits {
			s.tails(rest[:n], size, line)
		}
		rest = rest[n:]
	}
	left := input - int64(whole)*int64(size)
	for _, id := range ids[whole:] {
		if s.uses.first(id, false) {
			s.otherLength(id, left, line, "a full block")
		}
		left = 0
	}
}

// tails looks for full blocks that were a tail before.
func (s *state) tails(ids []uint64, size int, line int64) {
	for _, id := range ids {
		if !s.uses.first(id, true) {
			s.otherLength(id, int64(size), line, "a shorter tail")
		}
	}
}

func (s *state) otherLength(id uint64, tokens, line int64, first string) {
	s.twoSizes++
	if s.twoExample == "" {
		s.twoExample = fmt.Sprintf("id %d is %s at first and holds %d tokens in line %d", id, first, tokens, line)
	}
}

// idUses notes for each id whether its first use was a full block or a shorter
// tail. Ids are near each other in most traces, so 64 of them share an entry.
type idUses struct {
	slots []idWord // a power of two, at most half of them used
	used  int
	top   uint64  // the highest key
	near  *idWord // the entry that was found last
}

// idWord is the uses of 64 ids, one bit each.
type idWord struct{ key, full, tail uint64 }

// checkedWords bounds the memory of the search for ids of two lengths; ids that
// come when it is full are not looked at.
const checkedWords = 1 << 16

// full notes the first ids of list, as many as share an entry, as full blocks,
// unless one of them was a tail: then fits is false, and none is noted.
func (u *idUses) full(list []uint64) (n int, fits bool) {
	key, mask := list[0]>>6, uint64(0)
	for _, id := range list {
		if id>>6 != key {
			break
		}
		mask |= 1 << (id & 63)
		n++
	}
	w := u.at(key)
	if w == nil {
		return n, true
	}
	if w.tail&mask != 0 {
		return n, false
	}
	w.full |= mask
	return n, true
}

// at finds or makes the entry of a key, perhaps the one that was found last; nil if
// there is no more room.
func (u *idUses) at(key uint64) *idWord {
	if w := u.near; w != nil && w.key == key {
		return w
	}
	w := u.word(key)
	if w != nil {
		u.near = w
	}
	return w
}

// first returns whether id was a full block when it was first used, which is now
// unless it has been seen.
func (u *idUses) first(id uint64, full bool) (wasFull bool) {
	w, bit := u.at(id>>6), uint64(1)<<(id&63)
	if w == nil {
		return full
	}
	if (w.full|w.tail)&bit != 0 {
		return w.full&bit != 0
	}
	if full {
		w.full |= bit
	} else {
		w.tail |= bit
	}
	return full
}

// word finds or makes the entry of a key; nil if there is no more room.
func (u *idUses) word(key uint64) *idWord {
	if len(u.slots) == 0 {
		u.slots = make([]idWord, 1024)
	}
	if u.used == checkedWords && key > u.top {
		return nil // ids count up
	}
	i := u.slot(key)
	if !u.slots[i].taken() {
		if u.used == checkedWords {
			return nil
		}
		u.top = max(u.top, key)
		if u.used++; 2*u.used > len(u.slots) {
			old := u.slots
			u.slots = make([]idWord, 2*len(old))
			for _, w := range old {
				if w.taken() {
					u.slots[u.slot(w.key)] = w
				}
			}
			i = u.slot(key)
		}
		u.slots[i].key = key
	}
	return &u.slots[i]
}

func (w *idWord) taken() bool { return w.full|w.tail != 0 }

// slot returns where key is, or is to be: mostly behind the one before it, which is in
// the cache.
func (u *idUses) slot(key uint64) int {
	mask := len(u.slots) - 1
	i := int((key>>3)*0x9e3779b97f4a7c15>>32<<3|key&7) & mask
	for u.slots[i].taken() && u.slots[i].key != key {
		i = (i + 1) & mask
	}
	return i
}
