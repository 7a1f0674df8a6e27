package hf

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// A Tokenizer turns text into token ids. It is safe for concurrent use.
type Tokenizer struct {
	raw        addedTokens // found in the text as it came
	normalized addedTokens // found after normalize
	normalize  normalizer  // nil if the file has none
	split      []splitter  // applied one after the other; none leaves the text whole
	model      model

	before, after []int32 // what the post-processor puts around a single text
}

// A model turns one piece, as the pre-tokenizers left it, into ids.
type model interface {
	append(dst []int32, piece string, s *scratch) []int32
	id(token string) (id int32, ok bool)
	size() int
}

// A piece is a part of the text on its way to the model.
type piece struct {
	text  string
	first bool // it begins where the whole text began
}

// file is the outline of tokenizer.json; components are read by their type.
type file struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         json.RawMessage `json:"model"`
}

// Load reads a tokenizer.json. Truncation and padding that the file asks for are
// not applied: a count is of the whole text.
func Load(r io.Reader) (*Tokenizer, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	var t Tokenizer
	if t.normalize, err = readNormalizer(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.split, err = readSplitters(f.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if t.model, err = readModel(f.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if t.before, t.after, err = readTemplate(f.PostProcessor); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	t.add(f.AddedTokens)
	return &t, nil
}

// Special returns the ids that the model expects before and after a text, such as
// one that begins a sequence. Append and Count leave them out.
func (t *Tokenizer) Special() (before, after []int32) { return t.before, t.after }

// Count returns the number of tokens of text, without those of Special.
func (t *Tokenizer) Count(text string) int {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.ids = t.appendText(s.ids[:0], text, s)
	return len(s.ids)
}

// Append appends the token ids of text to dst, without those of Special. Tokens that the
// file adds to the vocabulary, such as those that mark a turn, are recognised in the
// text. Bytes that are not UTF-8 count as U+FFFD, one for each run.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	return t.appendText(dst, text, s)
}

func (t *Tokenizer) appendText(dst []int32, text string, s *scratch) []int32 {
	text = strings.ToValidUTF8(text, "\uFFFD")
	t.raw.cut(text, func(part string, start int, id int32) {
		if id >= 0 {
			dst = append(dst, id)
			return
		}
		if t.normalize != nil {
			part = t.normalize(part)
		}
		t.normalized.cut(part, func(part string, offset int, id int32) {
			if id >= 0 {
				dst = append(dst, id)
				return
			}
			dst = t.appendPieces(dst, piece{part, start+offset == 0}, s)
		})
	})
	return dst
}

// appendPieces takes p, which holds no added token, through the pre-tokenizers to the model.
func (t *Tokenizer) appendPieces(dst []int32, p piece, s *scratch) []int32 {
	now, next := append(s.now[:0], p), s.next[:0]
	for _, split := range t.split {
		next = next[:0]
		for _, p := range now {
			next = split(next, p)
		}
		now, next = next, now
	}
	for _, p := range now {
		dst = t.model.append(dst, p.text, s)
	}
	s.now, s.next = now, next
	return dst
}

// A scratch is what one call needs on its way and the next can use again.
type scratch struct {
	ids       []int32
	now, next []piece
	symbols   []symbol
	queue     mergeQueue
	path      []pathNode
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// component reads the type of a component; "" if it is absent.
func component(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var c struct{ Type string }
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", err
	}
	if c.Type == "" {
		return "", fmt.Errorf("component without a type: %.40s", raw)
	}
	return c.Type, nil
}

// unknown refuses a component, or a setting of one, by its name.
func unknown(name string) error {
	return fmt.Errorf("%s is not supported", name)
}
