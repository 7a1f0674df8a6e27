package tokens

// A Plan says what one prompt holds.
//
// The prompt is the opening word, the blocks in order, and fill. The opening word
// and Overhead come off the end, not off the first block, so a block starts at the same
// token in every request that has the same blocks before it, and requests that
// follow one another share all they can: with blocks of B tokens, the prompt of
// [a b] in 2B tokens is, byte for byte, the head of the prompt of [a b c] in 3B
// tokens, which goes on with the 1+Overhead words of b that the first had no room for.
//
// What that does to a prefix cache: all blocks lie 1 token plus the template's
// head later than in the recorded prompt. Two requests that go apart after k blocks
// share k*B tokens and that shift. A request that ends after k blocks shares
// with a longer one k*B tokens less what its template puts behind the prompt. A server
// that caches in blocks of its own therefore finds the recorded reuse to within a
// server block, or the few it takes to hold Overhead.
type Plan struct {
	Tokens      int      // the whole prompt as the server counts it
	Overhead    int      // of these, what the server's chat template adds; 0 for bare completion
	Blocks      []uint64 // ids of prefix blocks, first to last
	BlockTokens int      // tokens per block; without it Blocks take no room

	// Fill names the text behind the blocks. One Fill per request keeps prompts
	// apart: those without common blocks differ as AppendBlock says, mostly from the
	// second word on. One Fill per conversation lets its prompts grow: the shorter
	// is then the head of the longer.
	Fill uint64
}

// Shortest returns the tokens of the shortest prompt that can be made exact where
// the template adds overhead: the opening word alone.
func Shortest(overhead int) int { return 1 + overhead }

// AppendPrompt appends the prompt of p. It counts exactly p.Tokens, template
// included, or Shortest(p.Overhead) where p.Tokens is less than that: a prompt is never empty.
//
// The last block is cut where room ends. Ids that have no room left are unused,
// and room that is left behind the last id is filled from p.Fill, so rows
// whose ids and length do not agree, and those that dropped the id of their tail, are
// exact as well.
func (t Text) AppendPrompt(dst []byte, p Plan) []byte {
	return appendPrompt(dst, p, t.AppendBlock, t.AppendBlock)
}

// appendPrompt takes the blocks and the fill from who makes them.
func appendPrompt(dst []byte, p Plan, block, fill func([]byte, Block, int) []byte) []byte {
	room := p.Tokens - Shortest(p.Overhead)
	dst = append(dst, Opening...)
	for _, id := range p.Blocks {
		n := min(room, p.BlockTokens)
		if n <= 0 {
			break
		}
		dst = block(dst, Block{ID: id, Size: p.BlockTokens}, n)
		room -= n
	}
	return fill(dst, Block{ID: p.Fill}, room)
}
