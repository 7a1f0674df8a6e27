package weka

import (
	"encoding/json"
	"math/bits"

	"reprise/formats/jsonx"
)

// Ids of a local scope are made unique over the import: the session's ordinal,
// from 1, stands in the 24 high bits and the id in the 40 low ones. A session
// with greater ids has them all put through a permutation of 64 bits that its
// ordinal keys. Both can be undone; see unspaced.
const idBits = 40

// parseIDs reads a list of plain integers, as they all are in practice, without
// a detour; anything else is left to jsonx.
func parseIDs(raw json.RawMessage) ([]uint64, error) {
	if ids, ok := plainIDs(raw); ok {
		return ids, nil
	}
	return jsonx.Row{"hash_ids": raw}.IDs("hash_ids")
}

func plainIDs(raw []byte) (ids []uint64, ok bool) {
	if len(raw) < 2 || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, false
	}
	ids = make([]uint64, 0, len(raw)/5+1)
	var v uint64
	digits := 0
	for _, c := range raw[1:] {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > 18 {
				return nil, false
			}
			v = v*10 + uint64(c-'0')
		case c == ',' || c == ']':
			if digits == 0 {
				return ids, c == ']' && len(ids) == 0
			}
			ids = append(ids, v)
			v, digits = 0, 0
		case c == ' ' && digits == 0:
		default:
			return nil, false
		}
	}
	return ids, true
}

// namespaces remembers what was given out, to find ids of two sessions that
// came to be equal.
type namespaces struct {
	last     uint64            // ordinal of the newest session
	highest  []uint64          // by ordinal-1: highest id of a session with the ordinal in the high bits
	permuted map[uint64]uint64 // id given out to ordinal, the first checkedIDs of them
	clashes  int64
}

// checkedIDs bounds the memory of that search.
const checkedIDs = 4 << 20

// place gives the ids of one session, as lists of its rows, a space of their
// own. permuted tells how.
func (n *namespaces) place(lists [][]uint64) (ordinal uint64, permuted bool) {
	n.last++
	highest := uint64(0)
	for _, ids := range lists {
		for _, id := range ids {
			highest = max(highest, id)
		}
	}
	permuted = highest>>idBits != 0 || n.last>>(64-idBits) != 0
	if permuted {
		n.highest = append(n.highest, 0)
	} else {
		n.highest = append(n.highest, highest)
	}
	for _, ids := range lists {
		for i, id := range ids {
			ids[i] = spaced(id, n.last, permuted)
			if permuted {
				n.remember(ids[i])
			}
		}
	}
	return n.last, permuted
}

func (n *namespaces) remember(id uint64) {
	if n.permuted == nil {
		n.permuted = map[uint64]uint64{}
	}
	if owner, ok := n.permuted[id]; ok {
		if owner != n.last {
			n.clashes++
		}
	} else if len(n.permuted) < checkedIDs {
		n.permuted[id] = n.last
	}
}

// collisions counts ids that stand for blocks of two sessions.
func (n *namespaces) collisions() int64 {
	total := n.clashes
	for id := range n.permuted {
		if o := id >> idBits; o >= 1 && o <= uint64(len(n.highest)) && id&(1<<idBits-1) <= n.highest[o-1] && n.highest[o-1] > 0 {
			total++
		}
	}
	return total
}

func spaced(id, ordinal uint64, permuted bool) uint64 {
	if !permuted {
		return ordinal<<idBits | id
	}
	return permute(id ^ permute(ordinal))
}

// unspaced undoes spaced; ok is false for an id that is not of this session.
func unspaced(id, ordinal uint64, permuted bool) (local uint64, ok bool) {
	if !permuted {
		return id & (1<<idBits - 1), id>>idBits == ordinal
	}
	return unpermute(id) ^ permute(ordinal), true
}

// permute is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014),
// which maps 64 bits one to one.
func permute(z uint64) uint64 {
	z ^= z >> 30
	z *= mul1
	z ^= z >> 27
	z *= mul2
	return z ^ z>>31
}

const mul1, mul2 = 0xbf58476d1ce4e5b9, 0x94d049bb133111eb

func unpermute(z uint64) uint64 {
	z = unshift(z, 31) * inverse(mul2)
	z = unshift(z, 27) * inverse(mul1)
	return unshift(z, 30)
}

// unshift undoes z ^= z >> n.
func unshift(z uint64, n int) uint64 {
	for x := z >> n; x != 0; x >>= n {
		z ^= x
	}
	return z
}

// inverse returns the factor that undoes an odd one, by Newton's steps: each
// doubles the number of right bits, of which an odd number has three.
func inverse(odd uint64) uint64 {
	x := odd
	for right := 3; right < bits.UintSize && right < 64; right *= 2 {
		x *= 2 - odd*x
	}
	return x
}
