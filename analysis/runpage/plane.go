package runpage

import (
	"math/bits"
	"slices"
)

// fineBits and cellBits are how many bits below the leading one a bucket keeps:
// 2^-fineBits is its relative width.
const fineBits = 5

// quantileError bounds the relative error of a quantile from buckets that stand for
// their middle.
const quantileError = 1.0 / (2 << fineBits)

// bucketOf keeps the leading keep+1 bits of v; smaller values have their own bucket.
func bucketOf(v int64, keep int) int {
	shift := max(bits.Len64(uint64(v))-keep-1, 0)
	return shift<<keep + int(v>>shift)
}

// lowOf is the least value of a bucket.
func lowOf(bucket, keep int) int64 {
	if bucket < 2<<keep {
		return int64(bucket)
	}
	shift := bucket>>keep - 1
	return int64(bucket-shift<<keep) << shift
}

// A plane counts values by what is along x.
type plane struct {
	rows []row
	n    int64
}

// A row is the values of one place of x.
type row struct {
	counts      []uint32 // by bucket
	n           int64
	least, most int64
}

// add counts v at x, n times; what is below 0 counts as 0.
func (p *plane) add(x int, v, n int64) {
	for len(p.rows) <= x {
		p.rows = append(p.rows, row{})
	}
	p.rows[x].add(max(v, 0), n)
	p.n += n
}

func (r *row) add(v, n int64) {
	b := bucketOf(v, fineBits)
	if b >= len(r.counts) {
		r.counts = append(r.counts, make([]uint32, b+1-len(r.counts))...)
	}
	r.counts[b] += uint32(n)
	if r.n == 0 {
		r.least, r.most = v, v
	}
	r.least, r.most, r.n = min(r.least, v), max(r.most, v), r.n+n
}

// merge adds o, which is not used any more.
func (r *row) merge(o *row) {
	switch {
	case o.n == 0:
		return
	case r.n == 0:
		*r = *o
		return
	}
	if len(o.counts) > len(r.counts) {
		r.counts, o.counts = o.counts, r.counts
	}
	for b, n := range o.counts {
		r.counts[b] += n
	}
	r.least, r.most, r.n = min(r.least, o.least), max(r.most, o.most), r.n+o.n
}

// quantile returns the q/1000 quantile by nearest rank, at most quantileError off; the
// smallest and the largest are exact. There must be values.
func (r *row) quantile(q int64) float64 {
	rank := max(1, (q*r.n+999)/1000)
	if rank == r.n {
		return float64(r.most)
	}
	for b, n := range r.counts {
		if rank -= int64(n); rank <= 0 {
			low, next := lowOf(b, fineBits), lowOf(b+1, fineBits)
			return min(max(float64(low)+float64(next-low-1)/2, float64(r.least)), float64(r.most))
		}
	}
	return float64(r.most)
}

// plane returns a plane whose x are the bins of the clock.
func (c *clock) plane() *plane {
	p := &plane{}
	c.folds = append(c.folds, func() { p.rows = p.joined(2).rows })
	return p
}

// joined returns the plane with so many places of x in one.
func (p *plane) joined(each int) *plane {
	out := &plane{n: p.n, rows: make([]row, (len(p.rows)+each-1)/each)}
	for i := range p.rows {
		r := p.rows[i]
		r.counts = slices.Clone(r.counts)
		out.rows[i/each].merge(&r)
	}
	return out
}

// all returns the values of all of x.
func (p *plane) all() *row { return &p.joined(max(1, len(p.rows))).rows[0] }
