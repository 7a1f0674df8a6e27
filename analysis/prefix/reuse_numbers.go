package prefix

import (
	"math"

	"reprise/analysis/stats"
)

// Rate returns the share of blocks that is kept: 1 while all numbers are exact.
func (r *Reuse) Rate() float64 { return math.Ldexp(1, -int(r.halved)) }

// Hits returns what a cache without limit serves. Below Rate 1 hits are any
// block seen before, which for chained ids is the leading run, adjusted as the
// LRU curve is, so that it ends here.
func (r *Reuse) Hits() Hits {
	h := r.hits
	a := r.adjustment()
	h.HitBlocks, h.HitTokens = clamp(h.HitBlocks+a.blocks, h.Blocks), clamp(h.HitTokens+a.tokens, h.Tokens)
	return h
}

// Requests returns how many were observed, how many of them hit a cache without
// limit, and how many found all their blocks. Below Rate 1 the last two are not
// known.
func (r *Reuse) Requests() (all, anyHit, fullHit int64, known bool) {
	return r.requests, r.anyHit, r.fullHit, r.halved == 0
}

// Distinct returns how many distinct blocks there are, and how many of them are
// used once.
func (r *Reuse) Distinct() (all, once int64) {
	for ord := range uint32(r.table.n) {
		if r.table.at(ord).state.uses == 1 {
			once++
		}
	}
	return int64(r.table.n) << r.halved, once << r.halved
}

// Reaccesses returns how many uses were of a block used before.
func (r *Reuse) Reaccesses() int64 { return r.again }

// Times returns the times between uses of a block, in ns.
func (r *Reuse) Times() *stats.Tally { return &r.times }

// Sessions returns how many sessions were inferred; false where some could not
// be.
func (r *Reuse) Sessions() (int64, bool) { return int64(len(r.turns)), !r.lost }

// StandardError returns the standard error of a hit share by blocks that comes
// from keeping a share of the blocks, an upper estimate (Horvitz and Thompson
// 1952, blocks kept independently); 0 at Rate 1.
func (r *Reuse) StandardError() float64 {
	if r.halved == 0 || r.hits.Blocks == 0 {
		return 0
	}
	var squares float64
	for ord := range uint32(r.table.n) {
		u := float64(r.table.at(ord).state.uses)
		squares += u * u
	}
	return math.Sqrt(squares*(1-r.Rate())) / r.Rate() / float64(r.hits.Blocks)
}

// A Point is what a block LRU of one capacity serves.
type Point struct {
	Capacity  int64 // blocks
	HitBlocks int64
	HitTokens int64
}

// LRU returns the hits of a block LRU, which is used first to last and hits
// whatever is resident, for each capacity; they must not decrease. A block LRU
// serves slightly less than one that evicts leaves first.
func (r *Reuse) LRU(capacities ...int64) []Point {
	out := make([]Point, 0, len(capacities))
	sum := r.adjustment()
	next := func(to int64, part distanceCount, from int64) {
		for len(out) < len(capacities) && capacities[len(out)] < to {
			// A bucket that the capacity cuts is taken in proportion.
			share := float64(max(0, capacities[len(out)]-from)) / float64(to-from)
			out = append(out, Point{capacities[len(out)], clamp(sum.blocks+int64(share*float64(part.blocks)), r.hits.Blocks), clamp(sum.tokens+int64(share*float64(part.tokens)), r.hits.Tokens)})
		}
	}
	r.distances.each(func(from, to int64, c distanceCount) bool {
		next(to, c, from)
		sum.blocks += c.blocks
		sum.tokens += c.tokens
		return len(out) < len(capacities)
	})
	for len(out) < len(capacities) {
		out = append(out, Point{capacities[len(out)], clamp(sum.blocks, r.hits.Blocks), clamp(sum.tokens, r.hits.Tokens)})
	}
	return out
}

func clamp(v, most int64) int64 { return min(max(v, 0), most) }

// adjustment returns what a sample missed, or has too much of: the difference
// goes to the shortest distances, whose few hot blocks cause it (SHARDS-adj).
func (r *Reuse) adjustment() distanceCount {
	missed := r.hits.Blocks - r.seen
	if missed == 0 || r.hits.Blocks == 0 {
		return distanceCount{}
	}
	return distanceCount{missed, int64(float64(missed) * float64(r.hits.Tokens) / float64(r.hits.Blocks))}
}

// Distances returns the type 1 quantiles of the stack distance, the number of
// distinct other blocks used since a block's last use, over re-accesses; nil
// without any. p must not decrease.
func (r *Reuse) Distances(p ...float64) []int64 {
	n := r.distances.total.blocks
	if n == 0 {
		return nil
	}
	var out []int64
	var below int64
	r.distances.each(func(from, to int64, c distanceCount) bool {
		below += c.blocks
		for len(out) < len(p) && float64(below)/float64(n) >= p[len(out)] {
			out = append(out, from+(to-1-from)/2)
		}
		return len(out) < len(p)
	})
	return out
}
