package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// The values that a template looks for.
const (
	slotText = iota
	slotReasoning
	slotInput
	slotOutput
	slotCached
	slotDone
	slotError
	slotFinish
	slots
)

// found holds the raw JSON of the values that an event has; nil for none.
type found struct {
	value [slots][]byte
	rank  [slots]int // of the pointer that found it, from 1; lower wins
}

// A node is one step of the pointers that were put together into a tree, so
// that an event is walked once.
type node struct {
	members map[string]*node
	wants   []want
}

type want struct{ slot, rank int }

// setPlaces puts all pointers into the tree.
func (t *Template) setPlaces() error {
	c := &t.config
	for slot, field := range [slots]struct {
		name     string
		pointers Pointers
	}{
		{"text", c.Text}, {"reasoning", c.Reasoning},
		{"usage.input", c.Usage.Input}, {"usage.output", c.Usage.Output}, {"usage.cached", c.Usage.Cached},
		{"done", c.Done}, {"error", c.Error}, {"finish", c.Finish},
	} {
		for i, pointer := range field.pointers {
			if err := t.places.add(pointer, want{slot, i + 1}); err != nil {
				return fmt.Errorf("protocol template: %s: %w", field.name, err)
			}
		}
	}
	return nil
}

func (n *node) add(pointer string, w want) error {
	if !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("JSON pointer %q does not begin with /", pointer)
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		for rest := token; strings.Contains(rest, "~"); {
			_, rest, _ = strings.Cut(rest, "~")
			if !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "1") {
				return fmt.Errorf("JSON pointer %q: ~ stands only before 0 and 1", pointer)
			}
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next := n.members[token]
		if next == nil {
			if n.members == nil {
				n.members = map[string]*node{}
			}
			next = &node{}
			n.members[token] = next
		}
		n = next
	}
	n.wants = append(n.wants, w)
	return nil
}

// walk reads the container at c and keeps what the tree asks for. The text is
// read to its end, so that c tells whether it is valid.
func (n *node) walk(c *cursor, f *found) {
	switch c.peek() {
	case '{':
		c.object()
		for key, ok := c.key(); ok; key, ok = c.key() {
			n.visit(n.members[string(key)], c, f)
		}
	case '[':
		c.array()
		for i := 0; c.element(); i++ {
			n.visit(n.members[strconv.Itoa(i)], c, f)
		}
	default:
		c.skip()
	}
}

func (*node) visit(next *node, c *cursor, f *found) {
	if next == nil {
		c.skip()
		return
	}
	raw := c.raw()
	if string(raw) != "null" {
		for _, w := range next.wants {
			if best := f.rank[w.slot]; best == 0 || w.rank <= best {
				f.value[w.slot], f.rank[w.slot] = raw, w.rank
			}
		}
	}
	if next.members != nil {
		next.walk(&cursor{b: raw}, f)
	}
}
