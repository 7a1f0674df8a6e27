//go:build cloud

package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"reprise/trace"
)

// Built tells whether the drivers are there.
const Built = true

// OpenBucket opens a bucket by its address; tests put other stores in its place.
var OpenBucket = blob.OpenBucket

func bucketOf(address string) (*blob.Bucket, string, error) {
	name, key, err := split(address)
	if err != nil {
		return nil, "", err
	}
	b, err := OpenBucket(context.Background(), name)
	if err != nil {
		return nil, "", trace.WithFix(fmt.Errorf("%s: %w", address, err), "addresses are s3://BUCKET/KEY?region=REGION and gs://BUCKET/KEY; keys come from the environment, as the clients of these stores take them")
	}
	return b, key, nil
}

// readable says in few words what a store answered.
func readable(address string, err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return trace.WithFix(fmt.Errorf("%s: no such object", address), "check the address; one that ends in a slash stands for all objects below it")
	case gcerrors.PermissionDenied:
		return trace.WithFix(fmt.Errorf("%s: %w", address, err), "check the keys in the environment, and what they may read")
	}
	return fmt.Errorf("%s: %w", address, err)
}

type object struct {
	bucket  *blob.Bucket
	key     string
	address string
	size    int64

	mu     sync.Mutex
	chunks map[int64][]byte // by position / chunkBytes
	order  []int64          // of their coming
}

// Reads at any offset are served from chunks of chunkBytes, of which maxChunks are
// kept: a Parquet reader asks for many small ranges close together.
const (
	chunkBytes = 1 << 20
	maxChunks  = 32
)

// Open opens an object.
func Open(address string) (Object, error) {
	b, key, err := bucketOf(address)
	if err != nil {
		return nil, err
	}
	a, err := b.Attributes(context.Background(), key)
	if err != nil {
		b.Close()
		return nil, readable(address, err)
	}
	return &object{bucket: b, key: key, address: address, size: a.Size, chunks: map[int64][]byte{}}, nil
}

func (o *object) Size() int64  { return o.size }
func (o *object) Close() error { return o.bucket.Close() }

func (o *object) NewReader() (io.ReadCloser, error) {
	r, err := o.bucket.NewReader(context.Background(), o.key, nil)
	if err != nil {
		return nil, readable(o.address, err)
	}
	return r, nil
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: negative offset", o.address)
	}
	for n < len(p) {
		if off >= o.size {
			return n, io.EOF
		}
		c, err := o.chunk(off / chunkBytes)
		if err != nil {
			return n, err
		}
		m := copy(p[n:], c[off%chunkBytes:])
		n += m
		off += int64(m)
	}
	return n, nil
}

func (o *object) chunk(i int64) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.chunks[i]; ok {
		return c, nil
	}
	from := i * chunkBytes
	r, err := o.bucket.NewRangeReader(context.Background(), o.key, from, min(chunkBytes, o.size-from), nil)
	if err != nil {
		return nil, readable(o.address, err)
	}
	defer r.Close()
	c := make([]byte, min(chunkBytes, o.size-from))
	if _, err := io.ReadFull(r, c); err != nil {
		return nil, readable(o.address, err)
	}
	if len(o.order) == maxChunks {
		delete(o.chunks, o.order[0])
		o.order = o.order[1:]
	}
	o.chunks[i], o.order = c, append(o.order, i)
	return c, nil
}

// List returns the addresses of the objects below one that ends in a slash, by name.
func List(address string) ([]string, error) {
	b, prefix, err := bucketOf(address)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	var found []string
	it := b.List(&blob.ListOptions{Prefix: prefix})
	for {
		o, err := it.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, readable(address, err)
		}
		if !o.IsDir && o.Size > 0 {
			found = append(found, Join(address, o.Key[len(prefix):]))
		}
	}
}

// Upload writes an object, which appears whole or not at all.
func Upload(address string, r io.Reader) error {
	b, key, err := bucketOf(address)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // before Close it throws the object away
	w, err := b.NewWriter(ctx, key, nil)
	if err != nil {
		return readable(address, err)
	}
	if _, err := io.Copy(w, r); err != nil {
		cancel()
		w.Close()
		return readable(address, err)
	}
	if err := w.Close(); err != nil {
		return readable(address, err)
	}
	return nil
}
