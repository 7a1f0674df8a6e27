package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// unigram is the model of SentencePiece (Kudo, ACL 2018): a piece is cut where
// the sum of the scores is highest.
type unigram struct {
	trie     trie
	ids      map[string]int32
	scores   []float64
	unk      int32
	unkScore float64    // of one character that is in no piece
	fallback [256]int32 // ids of <0x00> to <0xFF>; -1 where there is none, or no fallback
}

func readUnigram(raw json.RawMessage) (*unigram, error) {
	c := struct {
		UnkID        int32 `json:"unk_id"`
		ByteFallback bool  `json:"byte_fallback"`
		Vocab        []scored
	}{UnkID: -1}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("unigram: %w", err)
	}
	m := &unigram{ids: make(map[string]int32, len(c.Vocab)), unk: c.UnkID}
	lowest := math.Inf(1)
	for i, v := range c.Vocab {
		if v.piece == "" {
			return nil, fmt.Errorf("unigram: piece %d is empty", i)
		}
		m.ids[v.piece] = int32(i)
		m.scores = append(m.scores, v.score)
		lowest = min(lowest, v.score)
	}
	for piece, id := range m.ids {
		m.trie.add(piece, id)
	}
	m.unkScore = lowest - 10 // kUnkPenalty
	if m.unk < 0 || int(m.unk) >= len(c.Vocab) {
		return nil, fmt.Errorf("unigram: unk_id %d is not in the vocabulary", m.unk)
	}
	for b := range m.fallback {
		m.fallback[b] = -1
		if id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]; ok && c.ByteFallback {
			m.fallback[b] = id
		}
	}
	return m, nil
}

// scored is one entry of the vocabulary, ["piece", score].
type scored struct {
	piece string
	score float64
}

func (v *scored) UnmarshalJSON(data []byte) error {
	parts := [2]any{}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var ok1, ok2 bool
	v.piece, ok1 = parts[0].(string)
	v.score, ok2 = parts[1].(float64)
	if !ok1 || !ok2 {
		return errors.New("vocabulary entry is not a string and a score")
	}
	return nil
}

func (m *unigram) id(token string) (int32, bool) {
	id, ok := m.ids[token]
	return id, ok
}

func (m *unigram) size() int { return len(m.ids) }

// A pathNode is the best way to cut the text up to one byte.
type pathNode struct {
	score float64
	start int32 // where its last part begins; -1 if the byte was not reached
	id    int32
}

func (m *unigram) append(dst []int32, text string, s *scratch) []int32 {
	s.path = m.bestPath(s.path[:0], text)
	begin := len(dst)
	for end := int32(len(text)); end > 0; { // from the back, so the ids of a part are laid down backwards
		node := s.path[end]
		start := node.start
		for node.id == m.unk && start > 0 && s.path[start].id == m.unk {
			start = s.path[start].start // a run of unknown characters is one part
		}
		dst = m.appendPart(dst, text[start:end])
		end = start
	}
	for i, j := begin, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst
}

// appendPart appends the ids of one part, last first.
func (m *unigram) appendPart(dst []int32, part string) []int32 {
	if id, ok := m.ids[part]; ok {
		return append(dst, id)
	}
	whole := len(dst)
	for i := len(part) - 1; i >= 0; i-- {
		id := m.fallback[part[i]]
		if id < 0 {
			return append(dst[:whole], m.unk)
		}
		dst = append(dst, id)
	}
	return dst
}

// bestPath appends a node for each byte of text and one for its end (Viterbi).
func (m *unigram) bestPath(path []pathNode, text string) []pathNode {
	for range len(text) + 1 {
		path = append(path, pathNode{start: -1})
	}
	for at := 0; at < len(text); {
		_, char := utf8.DecodeRuneInString(text[at:])
		so, alone := path[at].score, false
		offer := func(n int, id int32, score float64) {
			node := &path[at+n]
			if node.start < 0 || so+score > node.score {
				*node = pathNode{so + score, int32(at), id}
			}
		}
		m.trie.prefixes(text[at:], func(n int, id int32) {
			offer(n, id, m.scores[id])
			alone = alone || n == char
		})
		if !alone {
			offer(char, m.unk, m.unkScore)
		}
		at += char
	}
	return path
}
