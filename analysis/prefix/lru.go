package prefix

import "container/list"

// A PrefixLRU is a prefix cache of bounded capacity that evicts leaves first: a
// request hits its leading run of resident blocks, then all its blocks become
// recent, the last first so that the root ends up most recent, and then the
// least recent go until capacity remain. That is close to what serving engines
// do; [Reuse] gives the plain block LRU of every capacity at once.
type PrefixLRU struct {
	Capacity int // blocks

	Evictions int64
	order     list.List // of Block, most recent first
	resident  map[Block]*list.Element
}

// Observe looks up the blocks of a request and then adds them. Its arguments
// are those of [Infinite.Observe].
func (c *PrefixLRU) Observe(model string, ids []uint64, blockTokens int32, inputTokens int64) Hits {
	if c.resident == nil {
		c.resident = map[Block]*list.Element{}
	}
	var h Hits
	blocks := make([]Block, 0, len(ids))
	left, leading := inputTokens, true
	for _, id := range ids {
		n := blockLength(blockTokens, left)
		left = max(left-int64(n), min(left, 0))
		b := Block{model, id, n}
		blocks = append(blocks, b)
		h.Blocks++
		h.Tokens += int64(n)
		if leading = leading && c.resident[b] != nil; leading {
			h.HitBlocks++
			h.HitTokens += int64(n)
		}
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		if e := c.resident[blocks[i]]; e != nil {
			c.order.MoveToFront(e)
		} else {
			c.resident[blocks[i]] = c.order.PushFront(blocks[i])
		}
	}
	for c.order.Len() > c.Capacity {
		e := c.order.Back()
		delete(c.resident, c.order.Remove(e).(Block))
		c.Evictions++
	}
	return h
}
