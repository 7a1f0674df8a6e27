// Package prefix measures how much of a trace's prompts a server could take
// from its prefix cache.
package prefix

// A Block names tokens that may be reused: two blocks hold the same tokens iff
// model, id and length are equal (DESIGN.md section 3).
type Block struct {
	Model  string
	ID     uint64
	Tokens int32 // length; the last block of a prompt may be short
}

// An Infinite is a prefix cache that never evicts. A request hits the leading
// run of its blocks that earlier requests have brought. The zero value is
// empty; its memory grows with the number of distinct blocks.
type Infinite struct {
	seen map[Block]struct{}
}

// Hits are what one request found, or a sum of such.
type Hits struct {
	Blocks    int64 // blocks asked for
	HitBlocks int64
	Tokens    int64 // tokens in the blocks asked for
	HitTokens int64
}

// Add sums.
func (h *Hits) Add(o Hits) {
	h.Blocks += o.Blocks
	h.HitBlocks += o.HitBlocks
	h.Tokens += o.Tokens
	h.HitTokens += o.HitTokens
}

// Observe looks up the blocks of a request and then adds them. blockTokens is
// the length of a full block; inputTokens, if known (>= 0), bounds the last.
func (c *Infinite) Observe(model string, ids []uint64, blockTokens int32, inputTokens int64) Hits {
	if c.seen == nil {
		c.seen = map[Block]struct{}{}
	}
	var h Hits
	leading := true
	left := inputTokens
	for _, id := range ids {
		n := blockTokens
		if inputTokens >= 0 {
			n = int32(max(0, min(int64(blockTokens), left)))
			left -= int64(n)
		}
		b := Block{model, id, n}
		_, hit := c.seen[b]
		leading = leading && hit
		h.Blocks++
		h.Tokens += int64(n)
		if leading {
			h.HitBlocks++
			h.HitTokens += int64(n)
		}
		if !hit {
			c.seen[b] = struct{}{}
		}
	}
	return h
}

// Distinct returns the number of distinct blocks seen.
func (c *Infinite) Distinct() int { return len(c.seen) }
