// Package source opens what a user names on the command line: files, globs,
// directories and standard input, plain or compressed, and says what they look
// like inside.
package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"reprise/formats/source/cloud"
	"reprise/trace"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

// A Source is one input. It can be read from the start, decompressed by
// content, or at any offset.
type Source struct {
	Name string // as the user gave it; files of a directory have the directory before them

	stdin  io.Reader    // what can be read only once: standard input or a pipe
	digest *digest      // of stdin; nil for a file
	temp   *os.File     // holds a copy where reading at any offset needs one
	object cloud.Object // of a store; nil for a file, and before it is opened
}

// New returns the source at path; for "-" it reads from stdin. A pipe is read
// once, as standard input is: what was read of it does not come again.
func New(path string, stdin io.Reader) *Source {
	if path = cloud.Local(path); cloud.IsRemote(path) {
		return &Source{Name: path}
	}
	if path != Stdin {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) == 0 {
			return &Source{Name: path}
		}
		stdin = &pipe{path: path}
	}
	d := &digest{hash: sha256.New()}
	return &Source{Name: path, stdin: io.TeeReader(stdin, d), digest: d}
}

// A pipe opens the file at path when it is first read, and closes it at its end.
type pipe struct {
	path string
	f    *os.File
}

func (p *pipe) Read(b []byte) (n int, err error) {
	if p.f == nil {
		if p.f, err = os.Open(p.path); err != nil {
			return 0, err
		}
	}
	if n, err = p.f.Read(b); err != nil {
		p.f.Close()
	}
	return n, err
}

// remote returns the object of a store; nil for a file.
func (s *Source) remote() (cloud.Object, error) {
	if s.object != nil || s.once() || !cloud.IsRemote(s.Name) {
		return s.object, nil
	}
	o, err := cloud.Open(s.Name)
	s.object = o
	return o, err
}

// once tells whether the source can be read only once.
func (s *Source) once() bool { return s.digest != nil }

// Again tells whether the content can be read once more.
func (s *Source) Again() bool { return !s.once() || s.temp != nil }

// Base returns the name without its directories; "stdin" for standard input.
func (s *Source) Base() string {
	if s.Name == Stdin {
		return "stdin"
	}
	if cloud.IsRemote(s.Name) {
		return cloud.Base(s.Name)
	}
	return filepath.Base(s.Name)
}

// Open returns the content from the start, decompressed (gzip with all its
// members, zstd with all its frames, bzip2) and without a byte order mark.
// Standard input can be opened once. An empty file and a Git LFS pointer are
// errors.
func (s *Source) Open() (io.ReadCloser, error) {
	raw, closeRaw, err := s.raw()
	if err != nil {
		return nil, err
	}
	r, err := decompress(raw)
	if err != nil {
		closeRaw()
		return nil, s.Wrap(err)
	}
	br := bufio.NewReaderSize(r, 256<<10)
	head, err := br.Peek(64)
	if len(head) == 0 && (err == io.EOF || err == nil) {
		closeRaw()
		return nil, trace.WithFix(fmt.Errorf("%s: the file is empty", s.Name), "check the download or the path")
	}
	if err != nil && err != io.EOF {
		closeRaw()
		return nil, s.Wrap(err)
	}
	if bytes.HasPrefix(head, []byte("version https://git-lfs")) {
		closeRaw()
		return nil, trace.WithFix(fmt.Errorf("%s: a Git LFS pointer, not the data itself", s.Name), "fetch the data with: git lfs pull")
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		br.Discard(3)
	}
	return &opened{Reader: br, name: s.Name, close: closeRaw}, nil
}

// Wrap names the source in an error of reading it.
func (s *Source) Wrap(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return trace.WithFix(fmt.Errorf("%s: the compressed data ends too early: %w", s.Name, err), "the file is truncated; fetch it again")
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

type opened struct {
	io.Reader
	name  string
	close func() error
}

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = (&Source{Name: o.name}).Wrap(err)
	}
	return n, err
}

func (o *opened) Close() error { return o.close() }

func (s *Source) raw() (io.Reader, func() error, error) {
	if s.temp != nil {
		return io.NewSectionReader(s.temp, 0, 1<<62), func() error { return nil }, nil
	}
	if s.stdin != nil {
		r := s.stdin
		s.stdin = nil
		return r, func() error { return nil }, nil
	}
	if s.once() {
		return nil, nil, fmt.Errorf("%s was read before, and can be read only once", s.Base())
	}
	if o, err := s.remote(); o != nil || err != nil {
		if err != nil {
			return nil, nil, err
		}
		r, err := o.NewReader()
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	f, err := os.Open(s.Name)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

func decompress(r io.Reader) (io.Reader, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, _ := br.Peek(4)
	switch compressionOf(head) {
	case "gzip":
		return gzip.NewReader(br) // reads all members
	case "zstd":
		d, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "bzip2":
		return bzip2.NewReader(br), nil
	}
	return br, nil
}

// ReaderAt returns the decompressed content for reading at any offset, and its
// size in bytes. A plain file, or object of a store, is read in place; anything else
// is copied to a temporary file first.
func (s *Source) ReaderAt() (io.ReaderAt, int64, error) {
	if o, err := s.remote(); err != nil {
		return nil, 0, err
	} else if o != nil && s.temp == nil {
		var head [4]byte
		n, _ := o.ReadAt(head[:], 0)
		if compressionOf(head[:n]) == "" {
			return o, o.Size(), nil
		}
	}
	if s.temp == nil && !s.once() && s.object == nil {
		f, err := os.Open(s.Name)
		if err != nil {
			return nil, 0, err
		}
		var head [4]byte
		n, _ := io.ReadFull(f, head[:])
		if compressionOf(head[:n]) == "" {
			info, err := f.Stat()
			if err != nil {
				f.Close()
				return nil, 0, err
			}
			s.temp = f
			return f, info.Size(), nil
		}
		f.Close()
	}
	if s.temp == nil {
		if err := s.spool(); err != nil {
			return nil, 0, err
		}
	}
	info, err := s.temp.Stat()
	if err != nil {
		return nil, 0, err
	}
	return s.temp, info.Size(), nil
}

// compressionOf tells by the first bytes how the content is packed; "" if it is
// not.
func compressionOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case bytes.HasPrefix(head, []byte("BZh")):
		return "bzip2"
	}
	return ""
}

func (s *Source) spool() error {
	r, err := s.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.CreateTemp("", "reprise-in-*")
	if err != nil {
		return err
	}
	os.Remove(f.Name())
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	s.temp = f
	return nil
}

// Close removes what ReaderAt kept.
func (s *Source) Close() error {
	if s.object != nil {
		s.object.Close()
		s.object = nil
	}
	if s.temp == nil {
		return nil
	}
	err := s.temp.Close()
	s.temp = nil
	return err
}

// Input returns the base name, size and SHA-256 of the source's bytes as they
// are, compression included. Standard input must have been read first; what was
// left of it is read here.
func (s *Source) Input() (trace.Input, error) {
	if s.digest != nil {
		if s.stdin != nil {
			if _, err := io.Copy(io.Discard, s.stdin); err != nil {
				return trace.Input{}, err
			}
		}
		return trace.Input{Name: s.Base(), SHA256: hex.EncodeToString(s.digest.hash.Sum(nil)), Bytes: s.digest.n}, nil
	}
	f, closeFile, err := s.whole()
	if err != nil {
		return trace.Input{}, err
	}
	defer closeFile()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return trace.Input{}, err
	}
	return trace.Input{Name: s.Base(), SHA256: hex.EncodeToString(h.Sum(nil)), Bytes: n}, nil
}

// whole returns the bytes of a file or an object as they are.
func (s *Source) whole() (io.Reader, func() error, error) {
	if o, err := s.remote(); err != nil {
		return nil, nil, err
	} else if o != nil {
		r, err := o.NewReader()
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	f, err := os.Open(s.Name)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

type digest struct {
	hash hash.Hash
	n    int64
}

func (d *digest) Write(p []byte) (int, error) {
	d.n += int64(len(p))
	return d.hash.Write(p)
}

// Find returns the sources that args name, in order: a file, a glob pattern, a
// directory (all files below it, by name), an address of a store (one that ends in a
// slash stands for all objects below it) or "-". passed lists the files of
// directories that are no data: dot files, and what is named as documentation.
func Find(args []string, stdin io.Reader) (sources []*Source, passed []string, err error) {
	for _, arg := range args {
		if arg == Stdin {
			sources = append(sources, New(Stdin, stdin))
			continue
		}
		if arg = cloud.Local(arg); cloud.IsRemote(arg) {
			found, skipped, err := objects(arg)
			if err != nil {
				return nil, nil, err
			}
			sources, passed = append(sources, found...), append(passed, skipped...)
			continue
		}
		paths := []string{arg}
		if _, err := os.Stat(arg); err != nil {
			matches, gerr := filepath.Glob(arg)
			if gerr != nil || len(matches) == 0 {
				return nil, nil, trace.WithFix(fmt.Errorf("%s: no such file", arg), "check the path; a pattern such as 'dir/*.jsonl' must match at least one file")
			}
			paths = matches
		}
		for _, path := range paths {
			found, skipped, err := walk(path)
			if err != nil {
				return nil, nil, err
			}
			for _, f := range found {
				sources = append(sources, New(f, nil))
			}
			passed = append(passed, skipped...)
		}
	}
	if len(sources) == 0 {
		return nil, passed, trace.WithFix(fmt.Errorf("%s: no data files", strings.Join(args, " ")), "name a file or a directory with data files")
	}
	return sources, passed, nil
}

// objects returns the objects that an address of a store names.
func objects(address string) (found []*Source, passed []string, err error) {
	prefix, _, _ := strings.Cut(address, "?")
	if !strings.HasSuffix(prefix, "/") {
		return []*Source{New(address, nil)}, nil, nil
	}
	names, err := cloud.List(address)
	for _, name := range names {
		if isStray(cloud.Base(name)) {
			passed = append(passed, name)
		} else {
			found = append(found, New(name, nil))
		}
	}
	return found, passed, err
}

func walk(path string) (files, passed []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil, nil
	}
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if p != path && strings.HasPrefix(d.Name(), ".") {
				passed = append(passed, p)
				return fs.SkipDir
			}
		case isStray(d.Name()), !isData(p, d):
			passed = append(passed, p)
		default:
			files = append(files, p)
		}
		return nil
	})
	slices.Sort(files)
	return files, passed, err
}

// isData tells what can be read as a file: not a link that dangles or leads to a
// directory.
func isData(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// isStray tells files that lie beside data without being data.
func isStray(name string) bool {
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, ".") {
		return true
	}
	stem := strings.TrimSuffix(lower, filepath.Ext(lower))
	switch stem {
	case "readme", "manifest", "license", "licence", "notice", "citation", "changelog", "index", "checksums", "sha256sums", "md5sums":
		return true
	}
	switch filepath.Ext(lower) {
	case ".md", ".rst", ".pdf", ".html", ".png", ".svg", ".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml":
		return true
	}
	return false
}
