package batch

// A cache remembers which prefix blocks were brought. Without a capacity it is
// a set; with one it is a list in order of use, front = most recent.
type cache struct {
	off      bool
	capacity int // blocks; 0 = without limit

	seen map[uint64]struct{} // without a capacity

	index map[uint64]int32 // with a capacity: block to its node
	nodes []node           // nodes[0] is the ring's head
	free  []int32
}

// A node is one block in the ring of an LRU cache.
type node struct {
	block      uint64
	prev, next int32
}

func newCache(c Config) *cache {
	switch {
	case c.CacheTokens < 0:
		return &cache{off: true}
	case c.CacheTokens == 0:
		return &cache{seen: make(map[uint64]struct{})}
	}
	return &cache{
		capacity: max(1, int(c.CacheTokens/int64(c.BlockTokens))),
		index:    make(map[uint64]int32),
		nodes:    make([]node, 1),
	}
}

// bring returns how many of the leading blocks were there, and leaves all of
// them there, as far as there is room. The tail is used before the head, so
// that a prefix outlives what hangs on it (as vLLM frees blocks in reverse).
func (c *cache) bring(blocks []uint64) (hits int) {
	switch {
	case c.off:
		return 0
	case c.capacity == 0:
		return c.bringAll(blocks)
	}
	for hits < len(blocks) {
		if _, ok := c.index[blocks[hits]]; !ok {
			break
		}
		hits++
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		c.use(blocks[i])
	}
	return hits
}

func (c *cache) bringAll(blocks []uint64) (hits int) {
	leading := true
	for _, block := range blocks {
		if leading {
			if _, leading = c.seen[block]; leading {
				hits++
				continue
			}
		}
		c.seen[block] = struct{}{}
	}
	return hits
}

// use moves a block to the front, and drops the last one if it was new and the
// cache is full.
func (c *cache) use(block uint64) {
	at, ok := c.index[block]
	if ok {
		c.unlink(at)
	} else {
		if len(c.index) == c.capacity {
			last := c.nodes[0].prev
			c.unlink(last)
			delete(c.index, c.nodes[last].block)
			c.free = append(c.free, last)
		}
		at = c.place(block)
		c.index[block] = at
	}
	first := c.nodes[0].next
	c.nodes[at].prev, c.nodes[at].next = 0, first
	c.nodes[0].next, c.nodes[first].prev = at, at
}

func (c *cache) unlink(at int32) {
	n := c.nodes[at]
	c.nodes[n.prev].next = n.next
	c.nodes[n.next].prev = n.prev
}

func (c *cache) place(block uint64) int32 {
	if n := len(c.free); n > 0 {
		at := c.free[n-1]
		c.free = c.free[:n-1]
		c.nodes[at].block = block
		return at
	}
	c.nodes = append(c.nodes, node{block: block})
	return int32(len(c.nodes) - 1)
}

// len returns the number of blocks held.
func (c *cache) len() int { return len(c.seen) + len(c.index) }
