package prefix

import "math/bits"

// A histogram counts accesses, and the tokens they ask for, by stack distance:
// exactly by distance, in pages made when they are first hit, or, once the
// distances are estimates, in buckets of a relative width of 2^-bucketBits.
type histogram struct {
	pages  [][]distanceCount
	coarse []distanceCount // nil while exact
	total  distanceCount
}

type distanceCount struct{ blocks, tokens int64 }

const (
	histogramPage = 1 << 12
	bucketBits    = 10
)

// add counts weight accesses at distance d, of tokens each.
func (h *histogram) add(d, weight int64, tokens int32) {
	c := h.at(d)
	c.blocks += weight
	c.tokens += weight * int64(tokens)
	h.total.blocks += weight
	h.total.tokens += weight * int64(tokens)
}

func (h *histogram) at(d int64) *distanceCount {
	if h.coarse != nil {
		b := bucketOf(d)
		if b >= len(h.coarse) {
			h.coarse = append(h.coarse, make([]distanceCount, b+1-len(h.coarse))...)
		}
		return &h.coarse[b]
	}
	p := int(d / histogramPage)
	if p >= len(h.pages) {
		h.pages = append(h.pages, make([][]distanceCount, p+1-len(h.pages))...)
	}
	if h.pages[p] == nil {
		h.pages[p] = make([]distanceCount, histogramPage)
	}
	return &h.pages[p][d%histogramPage]
}

// estimate goes over to buckets.
func (h *histogram) estimate() {
	if h.coarse != nil {
		return
	}
	h.coarse = []distanceCount{}
	for p, page := range h.pages {
		for i, c := range page {
			if c.blocks > 0 {
				b := h.at(int64(p)*histogramPage + int64(i))
				b.blocks += c.blocks
				b.tokens += c.tokens
			}
		}
	}
	h.pages = nil
}

// each calls f with the distances [from, to) and what they hold, in order,
// until it returns false.
func (h *histogram) each(f func(from, to int64, c distanceCount) bool) {
	for b, c := range h.coarse {
		if c.blocks > 0 && !f(bucketStart(b), bucketStart(b+1), c) {
			return
		}
	}
	for p, page := range h.pages {
		for i, c := range page {
			d := int64(p)*histogramPage + int64(i)
			if c.blocks > 0 && !f(d, d+1, c) {
				return
			}
		}
	}
}

// bucketOf keeps the leading bucketBits+1 bits of d.
func bucketOf(d int64) int {
	shift := max(bits.Len64(uint64(d))-bucketBits-1, 0)
	return shift<<bucketBits + int(d>>shift)
}

// bucketStart returns the smallest distance of a bucket.
func bucketStart(b int) int64 {
	if b < 2<<bucketBits {
		return int64(b)
	}
	shift := b>>bucketBits - 1
	return int64(b-shift<<bucketBits) << shift
}
