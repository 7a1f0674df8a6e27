package tokens

import (
	_ "embed"
	"fmt"
	"strings"
)

// Opening is the first word of every prompt: one token with and without a
// leading space, so that a chat template that trims its input does not change the
// count. It is not in the list.
const Opening = "Here"

const (
	wordBits = 12
	numWords = 1 << wordBits // words in the list: each carries wordBits
	wordMask = numWords - 1
	maxWord  = 14 // letters of the longest word
)

//go:embed words.txt
var wordList string

var (
	words   = strings.Fields(wordList)
	entries = makeEntries(words)
)

// An entry is one word as text holds it: the space, the letters, nothing up to
// the last byte, which is the length of space and letters. Its size lets
// text be made by copying whole entries.
type entry [maxWord + 2]byte

func makeEntries(words []string) *[numWords]entry {
	if len(words) != numWords {
		panic(fmt.Sprintf("tokens: word list has %d words, not %d", len(words), numWords))
	}
	var made [numWords]entry
	for i, w := range words {
		e := &made[i]
		e[0] = ' '
		e[len(e)-1] = byte(1 + copy(e[1:len(e)-1], w))
	}
	return &made
}

// Words returns the word list in its order, which is alphabetical: lower-case
// ASCII words, one token each where a space leads. The slice is shared and
// must not be changed.
func Words() []string { return words }

// Count returns the number of tokens of text made by this package, with or
// without a space in front. Of other text it returns the number of runs between
// spaces and line ends, which no tokenizer agrees with.
func Count[T ~string | ~[]byte](text T) int {
	n, inside := 0, 0
	for i := range len(text) {
		c := text[i]
		word := 1
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			word = 0
		}
		n += word &^ inside
		inside = word
	}
	return n
}
