package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

func readModel(raw json.RawMessage) (model, error) {
	kind, err := component(raw)
	switch {
	case err != nil:
		return nil, err
	case kind == "BPE":
		return readBPE(raw)
	case kind == "Unigram":
		return readUnigram(raw)
	case kind == "":
		return nil, errors.New("the file has none")
	}
	return nil, unknown(kind)
}

// bpe is byte pair encoding: of all neighbours that may be merged, those of the lowest
// rank are, the leftmost first, until none is left.
type bpe struct {
	vocab        map[string]int32
	merges       map[uint64]merge // by the ids of the pair, left in the high half
	fallback     [256]int32       // ids of <0x00> to <0xFF>; -1 where there is none, or no fallback
	unk          int32            // -1 if what is not in the vocabulary is dropped
	fuseUnk      bool             // one unk for a run of them
	ignoreMerges bool             // a piece that is in the vocabulary is not looked into
}

type merge struct{ rank, id int32 }

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func readBPE(raw json.RawMessage) (*bpe, error) {
	var c struct {
		Dropout      *float64
		UnkToken     *string `json:"unk_token"`
		Prefix       string  `json:"continuing_subword_prefix"`
		Suffix       string  `json:"end_of_word_suffix"`
		FuseUnk      bool    `json:"fuse_unk"`
		ByteFallback bool    `json:"byte_fallback"`
		IgnoreMerges bool    `json:"ignore_merges"`
		Vocab        map[string]int32
		Merges       mergeList
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("BPE: %w", err)
	}
	switch {
	case c.Dropout != nil && *c.Dropout != 0:
		return nil, unknown("BPE with dropout")
	case c.Prefix != "":
		return nil, unknown("BPE with continuing_subword_prefix")
	case c.Suffix != "":
		return nil, unknown("BPE with end_of_word_suffix")
	}
	m := &bpe{vocab: c.Vocab, merges: make(map[uint64]merge, len(c.Merges)), unk: -1, fuseUnk: c.FuseUnk, ignoreMerges: c.IgnoreMerges}
	for rank, pair := range c.Merges {
		left, ok1 := c.Vocab[pair[0]]
		right, ok2 := c.Vocab[pair[1]]
		id, ok3 := c.Vocab[pair[0]+pair[1]]
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("BPE: merge %d of %q and %q: not all in the vocabulary", rank+1, pair[0], pair[1])
		}
		m.merges[pairKey(left, right)] = merge{int32(rank), id}
	}
	for b := range m.fallback {
		m.fallback[b] = -1
		if id, ok := c.Vocab[fmt.Sprintf("<0x%02X>", b)]; ok && c.ByteFallback {
			m.fallback[b] = id
		}
	}
	if c.UnkToken != nil {
		id, ok := c.Vocab[*c.UnkToken]
		if !ok {
			return nil, fmt.Errorf("BPE: unk_token %q is not in the vocabulary", *c.UnkToken)
		}
		m.unk = id
	}
	return m, nil
}

// A mergeList reads merges in either form: "a b", or ["a", "b"] since 0.20.
type mergeList [][2]string

func (l *mergeList) UnmarshalJSON(data []byte) error {
	var pairs [][2]string
	if json.Unmarshal(data, &pairs) == nil {
		*l = pairs
		return nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	*l = make(mergeList, 0, len(lines))
	for i, line := range lines {
		left, right, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(right, " ") {
			return fmt.Errorf("merges: %q, number %d, is not two parts", line, i+1)
		}
		*l = append(*l, [2]string{left, right})
	}
	return nil
}

func (m *bpe) id(token string) (int32, bool) {
	id, ok := m.vocab[token]
	return id, ok
}

func (m *bpe) size() int { return len(m.vocab) }

// A symbol is a part of the piece, linked to its neighbours by their places; -1
// ends the list.
type symbol struct {
	id         int32
	prev, next int32
	dead       bool // merged into its left neighbour
}

func (m *bpe) append(dst []int32, piece string, s *scratch) []int32 {
	if m.ignoreMerges {
		if id, ok := m.vocab[piece]; ok {
			return append(dst, id)
		}
	}
	s.symbols = m.symbols(s.symbols[:0], piece)
	m.mergeAll(s.symbols, &s.queue)
	for i := range s.symbols {
		if !s.symbols[i].dead {
			dst = append(dst, s.symbols[i].id)
		}
	}
	return dst
}

// symbols appends one symbol for each character of piece, or for each of its
// bytes, or unk.
func (m *bpe) symbols(dst []symbol, piece string) []symbol {
	unks := 0 // not yet added: bytes in between do not end a run of unk, as in the Rust library
	flush := func() {
		if unks > 0 {
			dst, unks = append(dst, symbol{id: m.unk}), 0
		}
	}
	for len(piece) > 0 {
		_, n := utf8.DecodeRuneInString(piece)
		char := piece[:n]
		piece = piece[n:]
		if id, ok := m.vocab[char]; ok {
			flush()
			dst = append(dst, symbol{id: id})
			continue
		}
		if m.hasBytes(char) {
			for i := range n {
				dst = append(dst, symbol{id: m.fallback[char[i]]})
			}
			continue
		}
		if m.unk >= 0 {
			if !m.fuseUnk {
				flush()
			}
			unks++
		}
	}
	flush()
	return dst
}

func (m *bpe) hasBytes(char string) bool {
	for i := range len(char) {
		if m.fallback[char[i]] < 0 {
			return false
		}
	}
	return true
}

func (m *bpe) mergeAll(symbols []symbol, q *mergeQueue) {
	*q = (*q)[:0]
	for i := range symbols {
		symbols[i].prev, symbols[i].next = int32(i-1), int32(i+1)
		if i > 0 {
			m.offer(q, symbols, int32(i-1), int32(i))
		}
	}
	if len(symbols) > 0 {
		symbols[len(symbols)-1].next = -1
	}
	for len(*q) > 0 {
		top := q.pop()
		left := &symbols[top.pos]
		if left.dead || left.next < 0 {
			continue
		}
		right := &symbols[left.next]
		if now, ok := m.merges[pairKey(left.id, right.id)]; !ok || now.id != top.id {
			continue // the pair has changed since
		}
		left.id, left.next, right.dead = top.id, right.next, true
		if left.prev >= 0 {
			m.offer(q, symbols, left.prev, top.pos)
		}
		if left.next >= 0 {
			symbols[left.next].prev = top.pos
			m.offer(q, symbols, top.pos, left.next)
		}
	}
}

// offer queues the merge of two neighbours, if there is one.
func (m *bpe) offer(q *mergeQueue, symbols []symbol, left, right int32) {
	if found, ok := m.merges[pairKey(symbols[left].id, symbols[right].id)]; ok {
		q.push(pending{merge: found, pos: left})
	}
}

// A pending merge is of the symbol at pos and its right neighbour at the time.
type pending struct {
	merge
	pos int32
}

func (p pending) before(o pending) bool {
	return p.rank < o.rank || p.rank == o.rank && p.pos < o.pos
}

// A mergeQueue is a binary heap; container/heap would allocate for each merge.
type mergeQueue []pending

func (q *mergeQueue) push(p pending) {
	h := append(*q, p)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !p.before(h[up]) {
			break
		}
		h[i], i = h[up], up
	}
	h[i] = p
	*q = h
}

func (q *mergeQueue) pop() pending {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(last) {
			break
		}
		h[i], i = h[child], child
	}
	if len(h) > 0 {
		h[i] = last
	}
	*q = h
	return top
}
