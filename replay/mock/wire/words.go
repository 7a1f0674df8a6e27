package wire

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A Prompt is what the mock keeps of a prompt. Its token is the word: a run of
// characters between white space, as in strings.Fields, so that anyone can
// count along.
type Prompt struct {
	Tokens int      // words, template overhead included
	Blocks []uint64 // chained names of the full blocks: equal names mean equal words from the start
	Hash   uint64   // of the whole prompt
}

// A counter turns text into words and block names in one pass, without keeping
// either. One running hash covers all bytes so far, so that a block's name
// stands for the block and all before it.
type counter struct {
	block  int // tokens per block
	hash   uint64
	inWord bool
	left   int // words until the block is full
	prompt Prompt
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
	wordEnd   = 0xff // no byte of UTF-8
	markEnd   = 0xfe // neither
)

// newCounter begins a prompt for one model; blocks of one model never hit
// those of another.
func newCounter(blockTokens int, model string) *counter {
	c := &counter{block: blockTokens, left: blockTokens, hash: fnvOffset}
	c.mark([]byte(model))
	return c
}

// mark makes what follows differ from what follows another mark, without a token.
func (c *counter) mark(b []byte) {
	c.endWord()
	for _, x := range b {
		c.hash = (c.hash ^ uint64(x)) * fnvPrime
	}
	c.hash = (c.hash ^ markEnd) * fnvPrime
}

// token adds one token that is not text.
func (c *counter) token(id uint64) {
	c.endWord()
	c.hash = mixed(c.hash ^ mixed(id))
	c.inWord = true
	c.endWord()
}

func (c *counter) endWord() {
	if !c.inWord {
		return
	}
	c.inWord = false
	c.hash = (c.hash ^ wordEnd) * fnvPrime
	c.prompt.Tokens++
	if c.left--; c.left == 0 {
		c.left = c.block
		c.prompt.Blocks = append(c.prompt.Blocks, mixed(c.hash))
	}
}

// done returns the prompt.
func (c *counter) done() Prompt {
	c.endWord()
	c.prompt.Hash = mixed(c.hash)
	return c.prompt
}

// mixed spreads the bits of h (the finaliser of SplitMix64).
func mixed(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// letter has the bytes that are a part of a word whatever follows.
var letter = func() (t [256]bool) {
	for c := '!'; c < utf8.RuneSelf; c++ {
		t[c] = c != '\\'
	}
	return t
}()

// text adds the words of the body of a JSON string that the scanner has
// checked. What it holds is white space or not after its escapes are resolved.
func (c *counter) text(b []byte) {
	for i := 0; i < len(b); {
		if letter[b[i]] {
			h := c.hash
			for ; i < len(b) && letter[b[i]]; i++ {
				h = (h ^ uint64(b[i])) * fnvPrime
			}
			c.hash, c.inWord = h, true
			continue
		}
		if b[i] == ' ' {
			c.endWord()
			i++
			continue
		}
		r, n := character(b[i:])
		if unicode.IsSpace(r) {
			c.endWord()
		} else {
			c.character(r)
		}
		i += n
	}
	c.endWord()
}

func (c *counter) character(r rune) {
	var utf [utf8.UTFMax]byte
	for _, x := range utf[:utf8.EncodeRune(utf[:], r)] {
		c.hash = (c.hash ^ uint64(x)) * fnvPrime
	}
	c.inWord = true
}

// json adds raw JSON (tools, tool calls) as text: the words of what was sent.
func (c *counter) json(b []byte) {
	for _, x := range b {
		switch x {
		case ' ', '\n', '\t', '\r':
			c.endWord()
		default:
			c.hash = (c.hash ^ uint64(x)) * fnvPrime
			c.inWord = true
		}
	}
	c.endWord()
}

// character returns the first character of the body of a JSON string, escapes
// resolved, and its length in bytes there.
func character(b []byte) (r rune, n int) {
	if b[0] != '\\' {
		return utf8.DecodeRune(b)
	}
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, _ = hex4(b[2:])
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := hex4(b[8:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	return rune(b[1]), 2 // " \ /
}
