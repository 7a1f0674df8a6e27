package hf

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// A splitter appends the parts of one piece.
type splitter func(dst []piece, p piece) []piece

// readSplitters returns the steps of a pre-tokenizer, a sequence laid flat.
func readSplitters(raw json.RawMessage) ([]splitter, error) {
	kind, err := component(raw)
	if err != nil || kind == "" {
		return nil, err
	}
	var c struct {
		Pretokenizers  []json.RawMessage
		Pattern        pattern
		Behavior       string
		Invert         bool
		AddPrefixSpace bool    `json:"add_prefix_space"`
		UseRegex       *bool   `json:"use_regex"`
		Replacement    string  // Metaspace
		PrependScheme  *string `json:"prepend_scheme"`
		Split          *bool
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	switch kind {
	case "Sequence":
		var all []splitter
		for _, r := range c.Pretokenizers {
			steps, err := readSplitters(r)
			if err != nil {
				return nil, err
			}
			all = append(all, steps...)
		}
		return all, nil
	case "Split":
		s, err := splitBy(c.Pattern, c.Behavior, c.Invert)
		return []splitter{s}, err
	case "ByteLevel":
		return byteLevel(c.AddPrefixSpace, c.UseRegex == nil || *c.UseRegex)
	case "Metaspace":
		scheme := "never"
		if c.AddPrefixSpace { // files of before 0.14
			scheme = "always"
		}
		if c.PrependScheme != nil {
			scheme = *c.PrependScheme
		}
		return metaspace(c.Replacement, scheme, c.Split == nil || *c.Split)
	}
	return nil, unknown(kind)
}

// A finder returns the byte ranges of all matches in s, in order.
type finder func(s string) [][]int

func (p pattern) finder() (finder, error) {
	switch {
	case p.String != nil && *p.String != "":
		return func(s string) (found [][]int) {
			for at := 0; ; {
				i := strings.Index(s[at:], *p.String)
				if i < 0 {
					return found
				}
				found = append(found, []int{at + i, at + i + len(*p.String)})
				at += i + len(*p.String)
			}
		}, nil
	case p.Regex != nil:
		re, err := regexp2.Compile(*p.Regex)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", *p.Regex, err)
		}
		return func(s string) [][]int { return matches(re, s) }, nil
	}
	return nil, unknown("Split without a pattern")
}

// splitBy is the Split pre-tokenizer: the text falls into matches of the
// pattern and what lies between; behavior says which of them stay.
func splitBy(p pattern, behavior string, invert bool) (splitter, error) {
	find, err := p.finder()
	if err != nil {
		return nil, err
	}
	join, ok := behaviors[behavior]
	if !ok {
		return nil, unknown("Split with behavior " + behavior)
	}
	return func(dst []piece, p piece) []piece {
		if p.text == "" {
			return dst
		}
		b := joiner{dst: dst, p: p, join: join}
		done := 0
		for _, m := range find(p.text) {
			if done < m[0] {
				b.add(done, m[0], invert)
			}
			b.add(m[0], m[1], !invert)
			done = m[1]
		}
		if done < len(p.text) {
			b.add(done, len(p.text), invert)
		}
		b.flush()
		return b.dst
	}, nil
}

// behaviors say whether a range that follows one of kind was joins it, and of
// what kind: matched is true for the pattern (or what it leaves, inverted).
var behaviors = map[string]func(was, matched bool) bool{
	"Isolated":           func(was, matched bool) bool { return false },
	"Removed":            nil,
	"Contiguous":         func(was, matched bool) bool { return was == matched },
	"MergedWithPrevious": func(was, matched bool) bool { return matched && !was },
	"MergedWithNext":     func(was, matched bool) bool { return was && !matched },
}

// A joiner puts ranges that follow one another together where join says so; a nil join
// drops those that match.
type joiner struct {
	dst        []piece
	p          piece
	join       func(was, matched bool) bool
	start, end int
	was        bool
}

func (j *joiner) add(start, end int, matched bool) {
	if j.join == nil {
		if !matched {
			j.start, j.end = start, end
			j.flush()
		}
		return
	}
	if j.end > j.start && j.join(j.was, matched) {
		j.end = end
	} else {
		j.flush()
		j.start, j.end = start, end
	}
	j.was = matched
}

func (j *joiner) flush() {
	if j.start < j.end {
		j.dst = append(j.dst, piece{j.p.text[j.start:j.end], j.p.first && j.start == 0})
	}
	j.start = j.end
}

// gpt2 is the pattern that ByteLevel brings along.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// byteLevel spells each byte as the printable character that GPT-2's
// vocabularies write it as.
func byteLevel(addSpace, useRegex bool) ([]splitter, error) {
	var steps []splitter
	if addSpace {
		steps = append(steps, func(dst []piece, p piece) []piece {
			if !strings.HasPrefix(p.text, " ") {
				p.text = " " + p.text
			}
			return append(dst, p)
		})
	}
	if useRegex {
		regex := gpt2
		s, err := splitBy(pattern{Regex: &regex}, "Isolated", false)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return append(steps, func(dst []piece, p piece) []piece {
		b := make([]byte, 0, 2*len(p.text))
		for i := range len(p.text) {
			b = utf8.AppendRune(b, byteRunes[p.text[i]])
		}
		return append(dst, piece{string(b), p.first})
	}), nil
}

var byteRunes = func() (runes [256]rune) {
	spare := rune(256)
	for b := range runes {
		runes[b] = rune(b)
		if b <= ' ' || b > '~' && b < 0xa1 || b == 0xad {
			runes[b] = spare
			spare++
		}
	}
	return runes
}()

// metaspace writes spaces as the replacement, puts one in front, and splits before each.
func metaspace(replacement, scheme string, split bool) ([]splitter, error) {
	if utf8.RuneCountInString(replacement) != 1 {
		return nil, unknown(fmt.Sprintf("Metaspace with replacement %q", replacement))
	}
	if scheme != "always" && scheme != "never" && scheme != "first" {
		return nil, unknown("Metaspace with prepend_scheme " + scheme)
	}
	steps := []splitter{func(dst []piece, p piece) []piece {
		p.text = strings.ReplaceAll(p.text, " ", replacement)
		if (scheme == "always" || scheme == "first" && p.first) && !strings.HasPrefix(p.text, replacement) {
			p.text = replacement + p.text
		}
		return append(dst, p)
	}}
	if split {
		s, err := splitBy(pattern{String: &replacement}, "MergedWithNext", false)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}
