package tokens_test

import (
	"fmt"

	"reprise/trace/tokens"
)

// A prompt of ten tokens, of which the server's chat template adds two.
func ExampleText_AppendPrompt() {
	text := tokens.Text{Seed: 1}
	prompt := text.AppendPrompt(nil, tokens.Plan{Tokens: 10, Overhead: 2, Blocks: []uint64{1, 702}, BlockTokens: 4})
	fmt.Printf("%s: %d tokens of our own\n", prompt, tokens.Count(prompt))
	// Output: Here wanting harm artificial logic study los buy: 8 tokens of our own
}

// A partial block is the head of the full one.
func ExampleText_AppendBlock() {
	text := tokens.Text{Seed: 1, Scope: "run 1"}
	fmt.Printf("%q\n", text.AppendBlock(nil, tokens.Block{ID: 702, Size: 8}, 3))
	fmt.Printf("%q\n", text.AppendBlock(nil, tokens.Block{ID: 702, Size: 8}, 8))
	// Output:
	// " include nicely letter"
	// " include nicely letter awesome press presented cold earliest"
}

func ExampleShortest() {
	fmt.Println(tokens.Shortest(0), tokens.Shortest(20))
	// Output: 1 21
}
