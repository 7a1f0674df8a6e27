package synth

import (
	"math/bits"
	"strconv"

	"reprise/analysis/stats"
)

// A renamer gives the blocks of copies ids of their own. Leading roots keep
// theirs; from the first other block on all are renamed, since what follows
// another prefix is another block. Where the ids leave room, the namespace stands
// in bits above them, which can be undone; else each namespace is its own
// permutation of 64 bits, and ids of two namespaces meet with the chance that
// random numbers do.
type renamer struct {
	roots  map[uint64]struct{}
	idBits int // of the largest id
	nsBits int // of the largest namespace
}

func newRenamer(roots map[uint64]struct{}, maxID uint64, namespaces int) renamer {
	return renamer{roots: roots, idBits: bits.Len64(maxID), nsBits: bits.Len64(uint64(namespaces))}
}

// rename changes ids in place to those of a namespace above 0.
func (r renamer) rename(ids []uint64, ns uint64) {
	i := 0
	for i < len(ids) {
		if _, root := r.roots[ids[i]]; !root {
			break
		}
		i++
	}
	if r.idBits+r.nsBits <= 64 {
		for ; i < len(ids); i++ {
			ids[i] |= ns << r.idBits
		}
		return
	}
	key := stats.Hash(ns, 0x626c6f636b)
	for ; i < len(ids); i++ {
		ids[i] = permute(ids[i] ^ key)
	}
}

// permute maps 64 bits to 64 bits, one to one (the finalizer of MurmurHash3).
func permute(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// nameOf names a session or client in a copy; what wrapped over an end of the
// span is another conversation.
func nameOf(name string, copy int, wrapped bool) string {
	name += "~" + strconv.Itoa(copy)
	if wrapped {
		name += "w"
	}
	return name
}
