package prefix

import "slices"

// SharedByMany is the number of sessions from which on a block counts as shared
// by many, such as a system prompt; who they are is not kept beyond.
const SharedByMany = 10

// maxShared bounds the blocks whose sessions are kept.
const maxShared = 1 << 22

// sharing keeps, of blocks that more than their owner uses, the other sessions.
type sharing struct {
	others map[uint32][]uint32
	full   bool
}

func (s *sharing) add(ord, session uint32) {
	list, known := s.others[ord]
	switch {
	case len(list) == SharedByMany-1 || slices.Contains(list, session):
		return
	case !known && len(s.others) == maxShared:
		s.full = true
		return
	case s.others == nil:
		s.others = map[uint32][]uint32{}
	}
	s.others[ord] = append(list, session)
}

// A renumbering carries sharing over to new ordinals.
type renumbering struct {
	from map[uint32][]uint32
	to   sharing
}

func (s *sharing) renumbered() *renumbering {
	return &renumbering{from: s.others, to: sharing{others: map[uint32][]uint32{}, full: s.full}}
}

func (r *renumbering) moved(from, to uint32) {
	if list, ok := r.from[from]; ok {
		r.to.others[to] = list
	}
}

// A Share says how many blocks are used by a number of sessions.
type Share struct {
	Sessions int   // SharedByMany means that or more
	Blocks   int64 // distinct
	Uses     int64 // of these blocks
}

// Sharing returns the blocks by the number of sessions that use them, from 1.
// False if some requests had no session, or too many blocks are shared.
func (r *Reuse) Sharing() ([]Share, bool) {
	if r.sharing.full || r.lost {
		return nil, false
	}
	var by [SharedByMany + 1]Share
	for ord := range uint32(r.table.n) {
		n := 1 + len(r.sharing.others[ord])
		by[n].Blocks += 1 << r.halved
		by[n].Uses += int64(r.table.at(ord).state.uses) << r.halved
	}
	var out []Share
	for n, s := range by {
		if s.Sessions = n; s.Blocks > 0 {
			out = append(out, s)
		}
	}
	return out, true
}
