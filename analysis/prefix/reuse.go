package prefix

import (
	"math"

	"reprise/analysis/stats"
)

// DefaultMaxBlocks is how many distinct blocks a [Reuse] keeps where nothing
// else is asked for. A block costs 37 to 43 bytes.
const DefaultMaxBlocks = 20_000_000

// A Request is what a [Reuse] needs of a row.
type Request struct {
	Model       string
	IDs         []uint64 // first to last
	BlockTokens int32    // length of a full block
	InputTokens int64    // bounds the last block; below 0 if unknown
	At          int64    // arrival in ns on a clock that all requests share
	AtKnown     bool
	Session     int64 // ordinal, below 2^31; below 0 to infer it as a Linker does
}

// A Reuse measures how a trace uses its blocks, in one pass: what a cache
// without limit serves, the stack distances that give the hit rate of a block
// LRU of any capacity (Mattson et al. 1970), reuse times, and how many sessions
// use a block. Blocks of a request are used first to last.
//
// It is exact up to MaxBlocks distinct blocks. Beyond, it halves the blocks
// that it keeps as often as needed, by a hash of the block (SHARDS, Waldspurger
// et al. 2015): each one kept stands for 1/Rate of them, all numbers are
// estimates, and sessions can no longer be inferred. The zero value is ready to
// use.
type Reuse struct {
	MaxBlocks int // 0 means DefaultMaxBlocks

	table   table[use]
	recency recency
	halved  uint // Rate is 2^-halved

	hits      Hits
	requests  int64
	anyHit    int64
	fullHit   int64
	again     int64 // accesses to a block used before, weighted
	seen      int64 // accesses, weighted
	distances histogram
	times     stats.Tally
	sharing   sharing
	turns     turns
	lost      bool // some sessions could not be inferred
	accesses  []access
}

// use is what a Reuse keeps of a block.
type use struct {
	last int64 // arrival of the last use, noTime if unknown
	pos  uint32
	uses uint32
}

const noTime = math.MinInt64

// access is a block of the request at hand.
type access struct {
	ord    uint32
	tokens int32
	fresh  bool
}

// Seen is what a Reuse says of one request.
type Seen struct {
	Hits           // in a cache without limit; of the leading run while Rate is 1
	Session  int64 // as given, or an ordinal among those inferred; below 0 where it cannot be
	Turn     int32 // 0-based, of an inferred session
	Inferred bool
}

// inferredSession tells the inferred sessions from the given ones.
const inferredSession = 1 << 31

// Observe takes the next request.
func (r *Reuse) Observe(q Request) Seen {
	s := Seen{Session: q.Session}
	run, owner := r.look(q, &s.Hits)
	tag := q.Session
	switch {
	case q.Session >= 0:
	case r.halved > 0:
		r.lost = true
	default:
		if run < LinkRun || owner < inferredSession {
			owner = inferredSession | r.turns.begin()
		}
		tag = int64(owner)
		owner &^= inferredSession
		s.Session, s.Turn, s.Inferred = int64(owner), r.turns.next(owner), true
	}
	for _, a := range r.accesses {
		r.use(a, q, tag)
	}
	r.requests++
	if s.HitBlocks > 0 {
		r.anyHit++
	}
	if s.HitBlocks == s.Blocks && s.Blocks > 0 {
		r.fullHit++
	}
	r.hits.Add(s.Hits)
	r.bound()
	return s
}

// look finds the blocks of a request, counts hits, and returns the leading run
// of known blocks and the owner of its deepest.
func (r *Reuse) look(q Request, h *Hits) (run int, owner uint32) {
	r.accesses = r.accesses[:0]
	left := q.InputTokens
	for i, id := range q.IDs {
		n := blockLength(q.BlockTokens, left)
		left = max(left-int64(n), min(left, 0))
		class := r.table.classes.of(q.Model, n)
		hash := blockHash(id, class)
		h.Blocks++
		h.Tokens += int64(n)
		if !r.sampled(hash) {
			continue
		}
		ord, fresh := r.table.find(id, class, hash)
		r.accesses = append(r.accesses, access{ord, n, fresh})
		switch {
		case fresh:
		case r.halved > 0: // a leading run cannot be seen; chained ids make it the same
			h.HitBlocks += 1 << r.halved
			h.HitTokens += int64(n) << r.halved
		case run == i:
			run++
			owner = r.table.at(ord).owner
			h.HitBlocks++
			h.HitTokens += int64(n)
		}
	}
	return run, owner
}

func (r *Reuse) sampled(hash uint64) bool { return hash>>(64-r.halved) == 0 }

// use moves a block to the front.
func (r *Reuse) use(a access, q Request, session int64) {
	weight := int64(1) << r.halved
	b := r.table.at(a.ord)
	if a.fresh {
		b.owner = uint32(max(session, 0))
		b.state.last = noTime
	} else {
		r.again += weight
		r.distances.add(r.recency.after(b.state.pos)<<r.halved, weight, a.tokens)
		if q.AtKnown && b.state.last != noTime {
			r.times.AddN(max(0, q.At-b.state.last), weight)
		}
		r.recency.drop(b.state.pos)
		if session >= 0 && b.owner != uint32(session) {
			r.sharing.add(a.ord, uint32(session))
		}
	}
	if r.recency.full() {
		r.compact()
	}
	r.seen += weight
	b.state.pos = r.recency.push()
	if b.state.uses < math.MaxUint32 {
		b.state.uses++
	}
	if q.AtKnown {
		b.state.last = q.At
	}
}

// compact moves the positions of all blocks together. The block at hand has
// none; whatever it gets is overwritten.
func (r *Reuse) compact() {
	r.recency.compact(func(moved func(uint32) uint32) {
		for ord := range uint32(r.table.n) {
			b := r.table.at(ord)
			b.state.pos = moved(b.state.pos)
		}
	})
}

// bound halves the sample until it is within MaxBlocks.
func (r *Reuse) bound() {
	limit := r.MaxBlocks
	if limit <= 0 {
		limit = DefaultMaxBlocks
	}
	limit = min(limit, maxRecords)
	if r.table.n <= limit {
		return
	}
	for n := r.table.n; n > limit && r.halved < 40; {
		r.halved++
		n = 0
		for ord := range uint32(r.table.n) {
			if b := r.table.at(ord); r.sampled(blockHash(b.id, b.class)) {
				n++
			}
		}
	}
	r.distances.estimate()
	sharing := r.sharing.renumbered()
	r.table.keep(func(b *record[use]) bool {
		if r.sampled(blockHash(b.id, b.class)) {
			return true
		}
		r.recency.drop(b.state.pos)
		return false
	}, sharing.moved)
	r.sharing = sharing.to
	r.compact()
}
