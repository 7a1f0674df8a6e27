package bailian

import (
	"context"
	"strconv"

	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// none is the parent_chat_id of the first chat of a conversation.
const none = -1

// A node is a chat as the first reading sees it.
type node struct {
	chat, parent int64
	id           int64 // of its row
	root         *node // nil until it is known
	cut          bool  // the link to its parent is not used
	visiting     bool
}

// links reads a file for the first time and finds the root of every chat.
func (s *state) links(ctx context.Context, f *source.Source) error {
	first := rows.New(func(*trace.Batch) error { return nil }, func(*trace.RowError) error { return nil })
	next := s.Next()
	s.seen = 0
	err := first.Objects(ctx, []*source.Source{f}, func(r *rows.Record) error {
		p, err := s.parse(r)
		if err != nil {
			return err
		}
		if s.nodes[p.chat] == nil {
			s.nodes[p.chat] = &node{chat: p.chat, parent: p.parent, id: next}
		} else {
			s.Note("rows whose chat_id came before; later rows follow the first", 1)
		}
		next++
		return nil
	})
	return err
}

// parentOf returns the row that n follows; nil if there is none.
func (s *state) parentOf(n *node) *node {
	if n.cut || n.parent == none {
		return nil
	}
	return s.nodes[n.parent]
}

// root returns the first chat of the conversation of n. Where links go round, the
// one of the chat that comes first in the file is cut.
func (s *state) root(n *node) *node {
	var path []*node
	at := n
	for at.root == nil {
		if at.visiting {
			at = s.cut(path, at)
			break
		}
		at.visiting = true
		path = append(path, at)
		parent := s.parentOf(at)
		if parent == nil {
			at.root = at
			break
		}
		at = parent
	}
	root := at.root
	for _, p := range path {
		p.root, p.visiting = root, false
	}
	return root
}

// cut breaks the circle that path closes at at, and returns the new root.
func (s *state) cut(path []*node, at *node) *node {
	from := 0
	for path[from] != at {
		from++
	}
	first := at
	for _, p := range path[from:] {
		if p.id < first.id {
			first = p
		}
	}
	first.cut, first.root = true, first
	s.Note("conversations whose parent links go round, cut at their first row", 1)
	return first
}

// session sets the columns that follow from the links.
func (s *state) session(p *row) {
	n := s.nodes[p.chat]
	if n.id != s.Next() { // not the first of its chat_id: a row of its own with the same kind of link
		n = &node{chat: p.chat, parent: p.parent, id: s.Next()}
		if p.parent == p.chat {
			n.cut = true
		}
	}
	root := s.root(n)
	name := strconv.FormatInt(root.chat, 10)
	if s.several {
		name = p.req.SourceFile.Value + ":" + name
	}
	p.req.Session, p.req.Turn = trace.Some(name), trace.Some(int32(p.turn-1))
	p.req.SourceID = trace.Some(strconv.FormatInt(p.chat, 10))
	switch parent := s.parentOf(n); {
	case parent != nil:
		p.req.After = []trace.Dependency{{ID: parent.id, Kind: trace.AfterTurn}}
	case n.cut || n.parent == none:
	default:
		s.Note("rows whose parent is not in the file; they begin a session", 1)
	}
	if n.parent != none {
		p.req.Attributes = map[string]string{"parent_chat_id": strconv.FormatInt(n.parent, 10)}
	}
}
