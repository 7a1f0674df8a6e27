package prefix

import "reprise/analysis/stats"

// A table gives each distinct block an ordinal and a record. It costs the
// record plus 5 to 11 bytes a block: records lie in pages that never move, and an
// index of ordinals hashes to them.
type table[T any] struct {
	classes classes
	slots   []uint32 // ordinal + 1, 0 = free; open addressing, length a power of 2
	pages   [][]record[T]
	n       int
}

// A record is what is kept of a block.
type record[T any] struct {
	state T
	id    uint64
	class uint32
	owner uint32 // session that brought the block first
}

const (
	pageBits  = 13
	pageLen   = 1 << pageBits
	firstSize = 1 << 10
)

// maxRecords is how many blocks a table may hold; positions and ordinals are 32
// bits.
const maxRecords = 1 << 30

func (t *table[T]) at(ord uint32) *record[T] { return &t.pages[ord>>pageBits][ord&(pageLen-1)] }

// hashSeed makes the hash of blocks another than any that ids were made with.
const hashSeed = 0x7265707269736521

func blockHash(id uint64, class uint32) uint64 { return stats.Hash(hashSeed, id, uint64(class)) }

// find returns the ordinal of a block, which is new if fresh.
func (t *table[T]) find(id uint64, class uint32, hash uint64) (ord uint32, fresh bool) {
	if t.n*5 >= len(t.slots)*4 {
		t.rehash(max(firstSize, 2*len(t.slots)))
	}
	mask := uint64(len(t.slots) - 1)
	i := hash & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		ord = t.slots[i] - 1
		if r := t.at(ord); r.id == id && r.class == class {
			return ord, false
		}
	}
	ord = uint32(t.n)
	if t.n>>pageBits == len(t.pages) {
		t.pages = append(t.pages, make([]record[T], pageLen))
	}
	*t.at(ord) = record[T]{id: id, class: class}
	t.n++
	t.slots[i] = ord + 1
	return ord, true
}

func (t *table[T]) rehash(size int) {
	t.slots = nil // let go before taking more
	t.slots = make([]uint32, size)
	mask := uint64(size - 1)
	for ord := range uint32(t.n) {
		r := t.at(ord)
		i := blockHash(r.id, r.class) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = ord + 1
	}
}

// keep forgets the records for which kept is false. Ordinals move down; moved
// hears of each that stays.
func (t *table[T]) keep(kept func(*record[T]) bool, moved func(from, to uint32)) {
	n := uint32(0)
	for ord := range uint32(t.n) {
		if r := t.at(ord); kept(r) {
			*t.at(n) = *r
			moved(ord, n)
			n++
		}
	}
	t.n = int(n)
	pages := (t.n + pageLen - 1) >> pageBits
	clear(t.pages[pages:]) // lets go of them
	t.pages = t.pages[:pages]
	size := firstSize
	for t.n*5 >= size*4 {
		size *= 2
	}
	t.rehash(size)
}

// A class is what tells blocks of equal id apart.
type class struct {
	model  string
	tokens int32
}

// classes number the classes in order of appearance.
type classes struct {
	ordinals map[class]uint32
	list     []class
	last     class
	ordinal  uint32
}

func (c *classes) of(model string, tokens int32) uint32 {
	k := class{model, tokens}
	if len(c.list) > 0 && k == c.last {
		return c.ordinal
	}
	if c.ordinals == nil {
		c.ordinals = map[class]uint32{}
	}
	n, ok := c.ordinals[k]
	if !ok {
		n = uint32(len(c.list))
		c.ordinals[k] = n
		c.list = append(c.list, k)
	}
	c.last, c.ordinal = k, n
	return n
}

// blockLength returns how many tokens of left, the prompt tokens not yet in a
// block, the next block holds; left below 0 is unknown, and blocks are full.
func blockLength(blockTokens int32, left int64) int32 {
	if left < 0 {
		return blockTokens
	}
	return int32(min(int64(blockTokens), left))
}
