package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"reprise/trace/tokens/hf"
)

// loadTokenizer reads the file that --tokenizer names and returns it with the
// SHA-256 of its content; nil if the flag is not set.
func loadTokenizer(c *cli.Command) (*hf.Tokenizer, string, error) {
	path := c.String("tokenizer")
	if path == "" {
		return nil, "", nil
	}
	const fix = "name the tokenizer.json that comes with the model"
	f, err := os.Open(path)
	if err != nil {
		return nil, "", misused{fmt.Errorf("--tokenizer: %w", err), fix}
	}
	defer f.Close()
	sum := sha256.New()
	t, err := hf.Load(io.TeeReader(f, sum))
	if err != nil {
		return nil, "", misused{fmt.Errorf("--tokenizer %s: %w", path, err), fix}
	}
	return t, hex.EncodeToString(sum.Sum(nil)), nil
}
