package ledger

import "bytes"

const noteCumulative = "text may be cumulative: an event starts with all text so far"

// A repeat watches for a stream of deltas whose events repeat the text so far.
// It keeps lengths and first bytes only: a delta as long as all text before it
// is rare, so that the rest of the text need not be compared.
type repeat struct {
	all    prefix // all deltas so far, joined
	last   prefix // the last delta
	deltas int
	growth int // deltas that continued the one before, from the second on
}

// prefix is the start of a text, and its length.
type prefix struct {
	head   [48]byte
	length int
}

func (p *prefix) add(text []byte) {
	if p.length < len(p.head) {
		copy(p.head[p.length:], text)
	}
	p.length += len(text)
}

// starts says whether text starts with p, as far as p is kept.
func (p *prefix) starts(text []byte) bool {
	if len(text) < p.length {
		return false
	}
	head := p.head[:min(p.length, len(p.head))]
	return bytes.HasPrefix(text, head) && len(bytes.TrimSpace(head)) > 0
}

// see takes the text of the next delta and says whether it repeats all text
// before it. After a single delta that proves nothing (" the" and " the end"):
// then the delta after that must continue in the same way.
func (r *repeat) see(text []byte) bool {
	if len(text) < r.all.length && r.all.length >= len(r.all.head) && r.growth < r.deltas-1 {
		if len(text) > 0 { // neither can it be all text, nor has it ever grown
			r.all.length += len(text)
			r.deltas++
		}
		return false
	}
	return r.compare(text)
}

func (r *repeat) compare(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	whole := r.deltas > 1 && r.all.starts(text)
	if r.growth == r.deltas-1 && len(text) > r.last.length && r.last.starts(text) {
		r.growth++
	}
	if r.growth == r.deltas { // else one has not continued, and the last is not asked for again
		r.last = prefix{}
		r.last.add(text)
	}
	r.all.add(text)
	r.deltas++
	return whole || r.growth > 1 && r.growth == r.deltas-1
}

// pair says whether the text was two deltas, the second of which repeats the
// first.
func (r *repeat) pair() bool { return r.deltas == 2 && r.growth == 1 }
