package hf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func load(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := Load(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return tok
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// textIDs is one row of a .ids.json file: ["text", [ids]].
type textIDs struct {
	text string
	ids  []int32
}

func (r *textIDs) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.text, &r.ids})
}

// TestIDsOfRustLibrary holds the tokenizers of testdata against what the Rust
// library made of the same files.
func TestIDsOfRustLibrary(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.ids.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no ids in testdata: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".ids.json")
		t.Run(name, func(t *testing.T) {
			tok := load(t, "testdata/"+name+".json")
			var rows []textIDs
			readJSON(t, path, &rows)
			for _, row := range rows {
				if got := tok.Append(nil, row.text); !slices.Equal(got, row.ids) {
					t.Errorf("%q: ids %v, want %v", row.text, got, row.ids)
				}
				if got := tok.Count(row.text); got != len(row.ids) {
					t.Errorf("%q: %d tokens, want %d", row.text, got, len(row.ids))
				}
			}
		})
	}
}
