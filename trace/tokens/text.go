package tokens

import "slices"

// A Text makes the words of blocks and prompts. It is a value without state: equal
// Texts make equal bytes, in any order, on any worker and in any process.
type Text struct {
	Seed  uint64
	Scope string // whatever else keeps content apart: a run's nonce against a warm cache, a tenant; "" is a scope too
}

// A Block names the content of one prefix block.
type Block struct {
	ID   uint64
	Size int // tokens of the full block; ids of blocks of unequal size name unequal content. 0 for text that is no block
}

// AppendBlock appends the first n words of b, each with its leading space: n
// tokens. It appends nothing if n is not positive. The words are lower-case ASCII,
// so the text needs no escaping in JSON.
//
// The words depend on the Text, b and nothing else, so a shorter n gives a
// prefix of a longer one: a partial last block is the head of the full block.
//
// Blocks of one Text and Size are told apart by their first six words, always.
// Fewer words hold fewer than 64 bits; of those, k words tell apart any two
// ids that are equal above their low 12k bits (of ids counted up from 0, the
// first 4,096 differ in the first word and 16 million within two words), and any
// other two but for a chance of 1 in 4096^k.
func (t Text) AppendBlock(dst []byte, b Block, n int) []byte {
	key := t.key(b.Size)
	head := digits(key, b.ID)
	dst = appendDigits(dst, head, min(n, idWords))
	return appendStream(dst, mix(key+mix(b.ID^streamSalt)), n-idWords)
}

// key is the root of all that t makes in blocks of one size.
func (t Text) key(size int) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(t.Scope) {
		h = (h ^ uint64(t.Scope[i])) * 1099511628211
	}
	return mix(mix(mix(t.Seed+golden)^h) + uint64(size))
}

const (
	golden     = 0x9e3779b97f4a7c15
	streamSalt = 0x5851f42d4c957f2d
)

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014; variant
// 13 of Stafford): a bijection in which each bit of x reaches all others.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const (
	perDraw = 64 / wordBits // words from one draw of the generator
	batch   = 64 * perDraw  // words between two looks at the capacity of dst
)

// appendStream appends n words drawn by SplitMix64 from state: draw j is a
// function of state and j alone.
func appendStream(dst []byte, state uint64, n int) []byte {
	for n > 0 {
		m := min(n, batch)
		dst = grow(dst, n, m)
		pos, buf := len(dst), dst[:cap(dst)]
		for left := m; left > 0; left -= perDraw {
			state += golden
			draw := mix(state)
			for range min(left, perDraw) {
				pos += put(buf[pos:], draw)
				draw >>= wordBits
			}
		}
		dst, n = buf[:pos], n-m
	}
	return dst
}

// put copies the word that the low bits of word number to the start of buf and
// returns its length; it needs room for the longest.
func put(buf []byte, word uint64) int {
	e := &entries[word&wordMask]
	*(*entry)(buf) = *e
	return int(e[len(e)-1])
}

// grow makes room in dst for the m words that come next, at their longest; where
// it must allocate, for all n that are left, at their mean.
func grow(dst []byte, n, m int) []byte {
	need := m * len(entry{})
	if cap(dst)-len(dst) >= need {
		return dst
	}
	mean := (len(wordList) + numWords) / numWords // rounded up; the list has a byte after each word as text has one before
	return slices.Grow(dst, max(need, n*mean+need))
}
