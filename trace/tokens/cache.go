package tokens

import "sync"

// A Cache makes the same prompts as its Text, and keeps the text of whole blocks
// that come again: a prompt of known blocks is a few copies. It may be used by
// several goroutines at once.
type Cache struct {
	text Text

	mu     sync.Mutex
	recent generation
	before generation
	limit  int // bytes of one generation
}

// A generation is a set of blocks whose text lies in pages. It only grows; when
// it is full, the one before is forgotten and its memory used again, so what a
// generation long nobody asked for is gone.
type generation struct {
	at    map[Block]place
	pages [][]byte
	page  int // being filled
	bytes int
}

type place struct{ page, from, to int }

const pageSize = 1 << 20

// NewCache returns a cache of t that holds up to about limit bytes.
func NewCache(t Text, limit int) *Cache {
	return &Cache{text: t, limit: max(limit/2, pageSize), recent: generation{at: map[Block]place{}}, before: generation{at: map[Block]place{}}}
}

// AppendPrompt appends what [Text.AppendPrompt] does.
func (c *Cache) AppendPrompt(dst []byte, p Plan) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return appendPrompt(dst, p, c.appendBlock, c.text.AppendBlock)
}

// appendBlock appends a whole block from memory, any other as it is made.
func (c *Cache) appendBlock(dst []byte, b Block, n int) []byte {
	if n != b.Size {
		return c.text.AppendBlock(dst, b, n)
	}
	if text, ok := c.recent.find(b); ok {
		return append(dst, text...)
	}
	text, ok := c.before.find(b)
	from := len(dst)
	if ok {
		dst = append(dst, text...)
	} else {
		dst = c.text.AppendBlock(dst, b, n)
	}
	c.keep(b, dst[from:])
	return dst
}

func (c *Cache) keep(b Block, text []byte) {
	if len(text) > pageSize {
		return
	}
	if c.recent.bytes+len(text) > c.limit {
		c.recent, c.before = c.before, c.recent
		c.recent.clear()
	}
	c.recent.add(b, text)
}

func (g *generation) find(b Block) ([]byte, bool) {
	p, ok := g.at[b]
	if !ok {
		return nil, false
	}
	return g.pages[p.page][p.from:p.to], true
}

func (g *generation) add(b Block, text []byte) {
	for g.page < len(g.pages) && len(g.pages[g.page])+len(text) > pageSize {
		g.page++
	}
	if g.page == len(g.pages) {
		g.pages = append(g.pages, make([]byte, 0, pageSize))
	}
	page := g.pages[g.page]
	g.at[b] = place{g.page, len(page), len(page) + len(text)}
	g.pages[g.page] = append(page, text...)
	g.bytes += len(text)
}

func (g *generation) clear() {
	clear(g.at)
	for i := range g.pages {
		g.pages[i] = g.pages[i][:0]
	}
	g.page, g.bytes = 0, 0
}
