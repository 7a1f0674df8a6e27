package synth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/synth/model"
)

// maxFitRoots bounds the blocks that are counted as beginnings of sessions, over
// all streams.
const maxFitRoots = 2 << 20

// maxRoots is how many roots a stream of a model names.
const maxRoots = 1000

// fitRoots count the blocks that sessions begin with, as a tree: with chained ids
// a block has one block before it.
type fitRoots struct {
	limit    int
	ordinals map[uint64]uint32
	blocks   []fitRoot
	sessions int64
	bounded  bool
}

type fitRoot struct {
	parent   uint32 // ordinal + 1; 0 = none
	depth    int32  // blocks up to here
	sessions uint32
}

// add takes the blocks of a first turn. Once there are too many, blocks that are
// new are taken for private.
func (r *fitRoots) add(ids []uint64) {
	if r.ordinals == nil {
		r.ordinals = map[uint64]uint32{}
	}
	r.sessions++
	parent := uint32(0)
	for i, id := range ids {
		o, seen := r.ordinals[id]
		if !seen {
			if len(r.blocks) >= r.limit {
				r.bounded = true
				return
			}
			o = uint32(len(r.blocks))
			r.ordinals[id] = o
			r.blocks = append(r.blocks, fitRoot{parent: parent, depth: int32(i) + 1})
		}
		if r.blocks[o].parent != parent { // ids that are not chained: from here on it is no common beginning
			return
		}
		r.blocks[o].sessions++
		parent = o + 1
	}
}

// shared returns the roots: each session counts for the deepest beginning that it
// shares with RootSessions or more.
func (r *fitRoots) shared() []model.Root {
	own := make([]int64, len(r.blocks))
	for i, b := range r.blocks {
		if b.sessions < RootSessions {
			continue
		}
		own[i] += int64(b.sessions)
		if b.parent > 0 {
			own[b.parent-1] -= int64(b.sessions)
		}
	}
	var out []model.Root
	for i, b := range r.blocks {
		if b.sessions >= RootSessions && own[i] > 0 {
			out = append(out, model.Root{Blocks: b.depth, Share: float64(own[i]) / float64(r.sessions)})
		}
	}
	slices.SortStableFunc(out, func(a, b model.Root) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Blocks, a.Blocks))
	})
	return out[:min(len(out), maxRoots)]
}

// prefixResult describes how prompts share blocks; nil without block ids.
func (s *fitStream) prefixResult(f *fitting) *model.Prefix {
	if s.blockRows == 0 {
		return nil
	}
	m := &model.Prefix{Roots: s.roots.shared(), Kept: empiricalOf(&s.kept, 1e-6)}
	if m.Roots == nil {
		m.Roots = []model.Root{}
	}
	m.BlockTokens = most(s.sizes)
	m.Tail = most(s.tails)
	if m.Tail == "" {
		m.Tail = "other"
	}
	if s.hits.Tokens > 0 {
		m.HitShare = min(1, float64(s.hits.HitTokens)*f.hitFactor()/float64(s.hits.Tokens))
	}
	if s.blockRows < s.rows {
		f.noteOn(s, "%d of %d rows have block ids", s.blockRows, s.rows)
	}
	if len(s.sizes) > 1 {
		f.noteOn(s, "blocks are of several lengths (rows by tokens: %s); the model has the most frequent one", rowsBy(s.sizes))
	}
	if len(s.tails) > 1 {
		f.noteOn(s, "last blocks follow several rules (rows by rule: %s); the model has the most frequent one", rowsBy(s.tails))
	}
	if s.roots.bounded {
		f.noteOn(s, "beginnings of sessions were counted for the first %d distinct blocks only", s.roots.limit)
	}
	if f.reuse.Rate() < 1 {
		f.noteOn(s, "the hit share is an estimate from %.2g %% of the distinct blocks; standard error of the share of blocks %.2g %%; what turns keep is from the %d turns before there were too many", 100*f.reuse.Rate(), 100*f.reuse.StandardError(), s.keptTurns)
	}
	return m
}

// hitFactor corrects sums of hits where only a share of the blocks was kept, for
// hot blocks among those or not (see [prefix.Reuse.Hits]).
func (f *fitting) hitFactor() float64 {
	var raw int64
	for _, s := range f.streams {
		raw += s.hits.HitTokens
	}
	if f.reuse.Rate() == 1 || raw == 0 {
		return 1
	}
	return float64(f.reuse.Hits().HitTokens) / float64(raw)
}

// most returns the key of the largest count; of equal ones the smallest key.
func most[K cmp.Ordered](counts map[K]int64) (key K) {
	var n int64
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		if counts[k] > n {
			key, n = k, counts[k]
		}
	}
	return key
}

func rowsBy[K cmp.Ordered](counts map[K]int64) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		name := fmt.Sprint(k)
		if name == "" {
			name = "not recorded"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[k]))
	}
	return strings.Join(parts, ", ")
}
