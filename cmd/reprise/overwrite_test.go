package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No command writes over a file that it reads, whatever the file is called.
func TestInputsAreNotWrittenOver(t *testing.T) {
	dir := t.TempDir()
	in, link, trace := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "link.jsonl"), filepath.Join(dir, "t.parquet")
	row := []byte(`{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}` + "\n")
	if err := os.WriteFile(in, row, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(in, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	call := func(args ...string) (int, string) {
		var stderr bytes.Buffer
		return run(t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &stderr), stderr.String()
	}
	if code, text := call("trace", "import", in, "-o", trace); code != 0 {
		t.Fatal(code, text)
	}
	before, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"trace", "import", in, "-o", in},
		{"trace", "import", in, "-o", link},
		{"trace", "import", in, "-o", trace, "--rejects", in},
		{"trace", "import", in, "-o", trace, "--rejects", trace},
		{"trace", "export", trace, "--format", "mooncake", "-o", trace},
	} {
		if code, text := call(args...); code != 2 {
			t.Errorf("%s: code %d, %s", strings.Join(args, " "), code, text)
		}
	}
	if got, _ := os.ReadFile(in); !bytes.Equal(got, row) {
		t.Error("the input was written over")
	}
	if got, _ := os.ReadFile(trace); !bytes.Equal(got, before) {
		t.Error("the trace was written over")
	}
}
