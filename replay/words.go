package replay

import (
	"fmt"

	"reprise/trace/tokens"
)

// unfitWords counts the words of made prompts that are not one token each
// behind a space, as count counts.
func unfitWords(count func(text []byte) int) int {
	opening := []byte(tokens.Opening)
	base := count(opening)
	var n int
	for _, w := range tokens.Words() {
		if count(append(append(opening[:len(opening):len(opening)], ' '), w...))-base != 1 {
			n++
		}
	}
	return n
}

// wordWarning doubts made prompts where the model's own tokenizer splits their
// words; "" if it does not, or if there is none to ask.
func (c *Config) wordWarning() string {
	if c.Tokenizer == nil {
		return ""
	}
	n := unfitWords(c.Tokenizer)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the %d words that prompts are made of are not one token each in --tokenizer: made prompts are longer than planned", n, len(tokens.Words()))
}
