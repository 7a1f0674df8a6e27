package synth

// A block that at least RootSessions sessions begin with is a root, such as a
// system prompt, and stays the same in all copies.
const RootSessions = 10

// maxRootBlocks bounds the blocks that are counted; those that come first later
// than that are taken for private.
const maxRootBlocks = 4 << 20

// roots finds the blocks that many sessions begin with, from the first request
// of each session: later turns only repeat and go on.
type roots struct {
	count   map[uint64]uint8
	bounded bool
}

func (r *roots) add(ids []uint64) {
	if r.count == nil {
		r.count = map[uint64]uint8{}
	}
	for _, id := range ids {
		n, seen := r.count[id]
		switch {
		case !seen && len(r.count) >= maxRootBlocks:
			r.bounded = true
		case n < RootSessions:
			r.count[id] = n + 1
		}
	}
}

// shared returns the roots.
func (r *roots) shared() map[uint64]struct{} {
	out := map[uint64]struct{}{}
	for id, n := range r.count {
		if n >= RootSessions {
			out[id] = struct{}{}
		}
	}
	return out
}
