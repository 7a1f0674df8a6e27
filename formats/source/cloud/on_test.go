//go:build cloud

package cloud

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"reprise/trace"
)

// stores are stand-ins for s3 and gs: one in memory, one of files.
func stores(t *testing.T) map[string]func() (*blob.Bucket, error) {
	dir := t.TempDir()
	mem := memblob.OpenBucket(nil)
	t.Cleanup(func() { mem.Close() })
	return map[string]func() (*blob.Bucket, error){
		"mem":  func() (*blob.Bucket, error) { return blob.PrefixedBucket(mem, "in/"), nil }, // closing it leaves the objects there
		"file": func() (*blob.Bucket, error) { return fileblob.OpenBucket(dir, nil) },
	}
}

func with(t *testing.T, open func() (*blob.Bucket, error)) {
	old := OpenBucket
	OpenBucket = func(context.Context, string) (*blob.Bucket, error) { return open() }
	t.Cleanup(func() { OpenBucket = old })
}

func TestObjects(t *testing.T) {
	content := make([]byte, 3*chunkBytes+77)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			with(t, open)
			if err := Upload("s3://b/dir/a.bin?region=x", bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			o, err := Open("s3://b/dir/a.bin")
			if err != nil {
				t.Fatal(err)
			}
			if o.Size() != int64(len(content)) {
				t.Errorf("%d bytes, want %d", o.Size(), len(content))
			}
			if err := iotest.TestReader(io.NewSectionReader(o, 0, o.Size()), content); err != nil {
				t.Error(err)
			}
			all, err := o.NewReader()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(all); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			all.Close()
		})
	}
}

func TestListAndErrors(t *testing.T) {
	dir := t.TempDir()
	with(t, func() (*blob.Bucket, error) { return fileblob.OpenBucket(dir, nil) })
	for _, key := range []string{"d/b.jsonl", "d/a.jsonl", "d/sub/c.jsonl", "e.jsonl"} {
		if err := Upload("gs://b/"+key, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	found, err := List("gs://b/d/?o=1")
	if err != nil || strings.Join(found, " ") != "gs://b/d/a.jsonl?o=1 gs://b/d/b.jsonl?o=1 gs://b/d/sub/c.jsonl?o=1" {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := Open("gs://b/missing"); err == nil || !strings.Contains(err.Error(), "no such object") || trace.Fix(err) == "" {
		t.Errorf("%v", err)
	}
	if err := Upload("gs://b/cut", iotest.ErrReader(io.ErrUnexpectedEOF)); err == nil {
		t.Error("a broken source is uploaded")
	}
	if _, err := os.Stat(filepath.Join(dir, "cut")); err == nil {
		t.Error("an object that was not written to its end is there")
	}
	OpenBucket = blob.OpenBucket
	if _, err := Open("ftp://b/x"); err == nil || !strings.Contains(trace.Fix(err), "s3://BUCKET/KEY") {
		t.Errorf("%v", err)
	}
}
