//go:build cloud

package source_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"reprise/formats/source"
	"reprise/formats/source/cloud"
)

// Objects of a store are sources like files: plain, compressed, in directories, read
// at any offset, and named by their last part.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	old := cloud.OpenBucket
	cloud.OpenBucket = func(context.Context, string) (*blob.Bucket, error) { return fileblob.OpenBucket(dir, nil) }
	defer func() { cloud.OpenBucket = old }()
	text := `{"timestamp":0,"input_length":5,"hash_ids":[1]}` + "\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(text))
	z.Close()
	os.MkdirAll(filepath.Join(dir, "d"), 0o755)
	for name, content := range map[string]string{"a.jsonl": text, "b.jsonl.gz": packed.String(), "README.md": "about"} {
		if err := os.WriteFile(filepath.Join(dir, "d", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, passed, err := source.Find([]string{"s3://bucket/d/"}, nil)
	if err != nil || len(found) != 2 || len(passed) != 1 || found[0].Base() != "a.jsonl" {
		t.Fatalf("%v, %v, %v", found, passed, err)
	}
	for _, s := range found {
		h, err := s.Head()
		if err != nil || !h.Has("hash_ids") {
			t.Errorf("%s: %+v, %v", s.Name, h, err)
		}
		at, size, err := s.ReaderAt()
		if err != nil || size != int64(len(text)) {
			t.Fatalf("%s: %d bytes, %v", s.Name, size, err)
		}
		if got, err := io.ReadAll(io.NewSectionReader(at, 0, size)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", s.Name, got, err)
		}
		file, _ := os.ReadFile(filepath.Join(dir, "d", s.Base()))
		if in, err := s.Input(); err != nil || in.Bytes != int64(len(file)) || in.Name != s.Base() {
			t.Errorf("%s: %+v, %v", s.Name, in, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := source.New("gs://bucket/missing", nil)
	if _, err := s.Open(); err == nil || !strings.Contains(err.Error(), "no such object") {
		t.Errorf("%v", err)
	}
}
