package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"reprise/trace/column"
)

// BatchRows is the number of rows that batches are cut to where nothing else
// decides: so few that a batch, of whose columns most are null, stays in a processor's
// cache.
const BatchRows = 1024

// formatVersion is the "created by" version of the files; it changes when equal
// input may give other bytes.
const formatVersion = "3"

// A Writer writes a canonical trace as a stream, row group by row group; its
// memory does not grow with the trace.
type Writer struct {
	w    *column.Writer
	rows int64
}

// NewWriter starts a canonical trace on w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: column.NewWriter(w, Schema, formatVersion, noBounds...)}
}

// Write appends the rows of b, which may be reused afterwards.
func (w *Writer) Write(b *Batch) error {
	w.rows += int64(b.Len())
	return w.w.Write(b.cols)
}

// Reset starts another trace on out, with the memory of the one before, which must have
// been closed without an error.
func (w *Writer) Reset(out io.Writer) {
	w.w.Reset(out)
	w.rows = 0
}

// Close writes the footer with meta, whose Counts.Kept becomes the number of
// rows written. It does not close the file below.
func (w *Writer) Close(meta Meta) error {
	meta.Counts.Kept = w.rows
	pairs, err := meta.pairs()
	if err != nil {
		return err
	}
	for _, p := range pairs {
		w.w.SetMetadata(p[0], p[1])
	}
	return w.w.Close()
}

// A Reader reads a canonical trace as a stream.
type Reader struct {
	name   string
	file   *parquet.File
	reader *column.Reader
	meta   Meta
	close  func() error
}

// Open opens the canonical trace at path.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, WithFix(err, "check the path; a trace is a file that reprise trace import, synth or trace cut has written")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if info.IsDir() {
		f.Close()
		return nil, WithFix(fmt.Errorf("%s: a directory, not a canonical trace", path), "for a run directory: reprise report "+path+"; for files of another format: reprise trace import "+path+" -o trace.parquet")
	}
	r, err := NewReader(f, info.Size(), path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.close = f.Close
	return r, nil
}

// NewReader reads a canonical trace of size bytes from r. name is what errors
// call it. A file that is not Parquet, or not a canonical trace, is refused with
// the way out.
func NewReader(r io.ReaderAt, size int64, name string) (*Reader, error) {
	notOurs := "import it first: reprise trace import " + name + " -o trace.parquet"
	file, err := openParquet(r, size)
	if err != nil {
		return nil, WithFix(fmt.Errorf("%s: not a Parquet file: %w", name, err), notOurs)
	}
	meta, ours, err := parseMeta(file.Lookup)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !ours {
		return nil, WithFix(fmt.Errorf("%s: a Parquet file, but not a canonical trace (no %s in its metadata)", name, keySchema), notOurs)
	}
	cr, err := column.NewReader(file, Schema)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Reader{name: name, file: file, reader: cr, meta: meta, close: func() error { return nil }}, nil
}

// openParquet opens a file whose bytes may be damaged: parquet-go trusts the
// offsets of page indexes, and panics on those that point nowhere.
func openParquet(r io.ReaderAt, size int64) (file *parquet.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return parquet.OpenFile(r, size)
}

// Meta returns what the file says of itself.
func (r *Reader) Meta() Meta { return r.meta }

// NumRows returns the number of rows in the file.
func (r *Reader) NumRows() int64 { return r.file.NumRows() }

// Only leaves out all columns but these, named as in the schema; what is left out
// reads as unknown. For readers of a few columns, before the first Read. A column
// that the schema does not have is an error.
func (r *Reader) Only(columns ...string) error { return r.reader.Only(columns...) }

// Read replaces the rows of b by the next, at most n, and returns io.EOF after
// the last.
func (r *Reader) Read(b *Batch, n int) error {
	b.Reset()
	_, err := r.reader.Read(b.cols, n)
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return err
}

// Rows returns the rows that are left, in order. It stops after an error.
func (r *Reader) Rows() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		b := NewBatch()
		for {
			err := r.Read(b, BatchRows)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Request{}, err)
				return
			}
			for i := range b.Len() {
				if !yield(b.Row(i), nil) {
					return
				}
			}
		}
	}
}

// A BatchReader is a trace that is being read; *Reader is one.
type BatchReader interface {
	Read(b *Batch, n int) error // as that of Reader
}

// EachBatch hands the rows that are left of r to f, in order, in a batch that is used
// again. It stops at an error of f, and when ctx ends, with its cause.
func EachBatch(ctx context.Context, r BatchReader, f func(b *Batch) error) error {
	b := NewBatch()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := r.Read(b, BatchRows)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(b)
		}
		if err != nil {
			return err
		}
	}
}

// Close lets go of the file.
func (r *Reader) Close() error {
	err := r.reader.Close()
	if cerr := r.close(); err == nil {
		err = cerr
	}
	return err
}

// A File is an output that appears whole or not at all: it is written beside
// its path and renamed by Commit. A device or a pipe is written to as it is.
type File struct {
	*os.File
	path string
	as   bool // path is no file, and written to as it is
	done bool
}

// Create starts an output file at path.
func Create(path string) (*File, error) {
	const special = os.ModeDevice | os.ModeNamedPipe | os.ModeSocket
	if info, err := os.Stat(path); err == nil && info.Mode()&special != 0 { // renaming would put a file in the place of /dev/null, where the user may do that
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{File: f, path: path, as: true}, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &File{File: f, path: path}, nil
}

// Commit makes the file appear at its path.
func (f *File) Commit() error {
	f.done = true
	if f.as {
		return f.File.Close()
	}
	err := f.File.Chmod(0o644)
	if cerr := f.File.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.File.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.File.Name())
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// Abort throws the file away; after Commit it does nothing, so it can be
// deferred.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.File.Close()
	if !f.as {
		os.Remove(f.File.Name())
	}
}
