package hf

import (
	"unicode"
	"unicode/utf8"
)

// An addedToken is a token that is looked for in the text before anything
// else is done to it.
type addedToken struct {
	Content    string
	SingleWord bool `json:"single_word"` // only where no letter, digit or _ touches it
	LStrip     bool // takes the white space before it
	RStrip     bool // takes the white space behind it
	Normalized bool // looked for after normalizing
	id         int32
}

// addedTokens finds the leftmost, of these the longest.
type addedTokens struct {
	trie   trie
	tokens []addedToken
}

// add numbers the tokens as the Rust library does: by the model's vocabulary,
// else behind it.
func (t *Tokenizer) add(tokens []addedToken) {
	ids := make(map[string]int32)
	next := int32(t.model.size())
	for _, a := range tokens {
		id, ok := ids[a.Content]
		if !ok {
			id, ok = t.model.id(a.Content)
		}
		if !ok {
			id = next
		}
		ids[a.Content] = id
		next = max(next, id+1)
		a.id = id
		to := &t.raw
		if a.Normalized {
			to = &t.normalized
			if t.normalize != nil {
				a.Content = t.normalize(a.Content)
			}
		}
		if a.Content != "" {
			to.trie.add(a.Content, int32(len(to.tokens)))
			to.tokens = append(to.tokens, a)
		}
	}
}

// cut calls part for each part of text in turn: an added token with its id, or what is
// between two with an id of -1. No part is empty.
func (a *addedTokens) cut(text string, part func(part string, start int, id int32)) {
	done := 0
	for at := 0; at < len(text) && len(a.tokens) > 0; {
		n, which := a.trie.longest(text[at:])
		if n == 0 {
			at++
			continue
		}
		token := &a.tokens[which]
		start, stop := at, at+n
		at = stop
		if token.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[stop:])) {
			continue
		}
		if token.LStrip {
			start = max(done, trimRight(text[:start]))
		}
		if token.RStrip {
			stop += trimLeft(text[stop:])
		}
		start, stop = max(start, done), max(stop, done)
		if done < start {
			part(text[done:start], done, -1)
		}
		part(text[start:stop], start, token.id)
		done = stop
	}
	if done < len(text) {
		part(text[done:], done, -1)
	}
}

func trimRight(s string) int {
	for {
		r, n := utf8.DecodeLastRuneInString(s)
		if n == 0 || !unicode.IsSpace(r) {
			return len(s)
		}
		s = s[:len(s)-n]
	}
}

func trimLeft(s string) int {
	for i, r := range s {
		if !unicode.IsSpace(r) {
			return i
		}
	}
	return len(s)
}

func endsWithWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func startsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord is \w of Unicode technical standard 18.
func isWord(r rune) bool {
	return unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}

// A trie finds which of its strings a text begins with.
type trie struct {
	child map[uint64]int32 // node<<8 | byte to node
	value []int32          // by node; -1 where no string ends
	first [256]bool        // some string begins with the byte
}

func (t *trie) add(s string, value int32) {
	if t.child == nil {
		t.child, t.value = make(map[uint64]int32), []int32{-1}
	}
	t.first[s[0]] = true
	node := int32(0)
	for i := range len(s) {
		key := uint64(node)<<8 | uint64(s[i])
		next, ok := t.child[key]
		if !ok {
			next = int32(len(t.value))
			t.child[key] = next
			t.value = append(t.value, -1)
		}
		node = next
	}
	if t.value[node] < 0 {
		t.value[node] = value
	}
}

// prefixes calls yield with the length and value of each string that s begins
// with, shortest first.
func (t *trie) prefixes(s string, yield func(n int, value int32)) {
	if s == "" || !t.first[s[0]] {
		return
	}
	node := int32(0)
	for i := range len(s) {
		next, ok := t.child[uint64(node)<<8|uint64(s[i])]
		if !ok {
			return
		}
		if node = next; t.value[node] >= 0 {
			yield(i+1, t.value[node])
		}
	}
}

// longest returns the length and value of the longest string that s begins
// with; 0 if there is none.
func (t *trie) longest(s string) (n int, value int32) {
	t.prefixes(s, func(m int, v int32) { n, value = m, v })
	return n, value
}
