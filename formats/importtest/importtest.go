// Package importtest is what the tests of all importers share: imports that hold
// every invariant, golden files, the refusals that all formats owe, fuzzing, and
// the way to the published files.
package importtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/formats"
	"reprise/formats/source"
	"reprise/trace"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Testdata is the directory of our samples as a package of formats sees it.
const Testdata = "../../testdata"

// A Result is what an import gave.
type Result struct {
	Rows     []trace.Request
	Meta     trace.Meta
	Rejected []*trace.RowError // and merged
	Data     []byte            // the trace
}

// Load imports paths, and holds the trace against every invariant and its account
// against what became of the rows.
func Load(t testing.TB, imp formats.Importer, paths ...string) Result {
	t.Helper()
	r, err := Try(imp, paths...)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := trace.NewReader(bytes.NewReader(r.Data), int64(len(r.Data)), "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Check(context.Background(), reader, func(e *trace.RowError) { t.Error(e) }); err != nil {
		t.Fatal(err)
	}
	total := r.Meta.Counts.Kept
	for _, n := range r.Meta.Counts.Rejected {
		total += n
	}
	for _, n := range r.Meta.Counts.Merged {
		total += n
	}
	if total != r.Meta.Counts.Read {
		t.Errorf("kept, rejected and merged make %d rows, read were %d", total, r.Meta.Counts.Read)
	}
	return r
}

// Try imports paths.
func Try(imp formats.Importer, paths ...string) (r Result, err error) {
	src, _, err := source.Find(paths, nil)
	if err != nil {
		return r, err
	}
	defer func() {
		for _, s := range src {
			s.Close()
		}
	}()
	var buf bytes.Buffer
	r.Meta, err = formats.Import(context.Background(), imp, src, &buf, 0, trace.Step{Command: "trace import"}, func(e *trace.RowError) error {
		r.Rejected = append(r.Rejected, e)
		return nil
	})
	if err != nil {
		return r, err
	}
	r.Data = buf.Bytes()
	reader, err := trace.NewReader(bytes.NewReader(r.Data), int64(len(r.Data)), "t")
	if err != nil {
		return r, err
	}
	r.Meta = reader.Meta()
	for row, err := range reader.Rows() {
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// Write puts a file into dir.
func Write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Text imports a text as file name.
func Text(t testing.TB, imp formats.Importer, name, content string) Result {
	t.Helper()
	return Load(t, imp, Write(t, t.TempDir(), name, content))
}

// Golden imports testdata/dir/name and holds rows and account against NAME.golden
// beside it.
func Golden(t *testing.T, imp formats.Importer, dir, name string) Result {
	t.Helper()
	r := Load(t, imp, filepath.Join(Testdata, dir, name))
	path := filepath.Join(Testdata, dir, strings.TrimSuffix(name, filepath.Ext(name))+".golden")
	got := r.summary(t)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
	return r
}

// summary lists rows and the account of an import.
func (r Result) summary(t *testing.T) []byte {
	var out []byte
	for i := range r.Rows {
		var err error
		if out, err = trace.AppendJSON(out, &r.Rows[i]); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	m := r.Meta
	out = fmt.Appendf(out, "clock %s, dialect %q, epoch %v, origin %v, tick %v, zone %q\n", m.Clock, m.Dialect, optional(m.EpochNS), optional(m.OriginNS), optional(m.TickNS), m.Zone)
	out = fmt.Appendf(out, "read %d, kept %d, rejected %v, merged %v\n", m.Counts.Read, m.Counts.Kept, m.Counts.Rejected, m.Counts.Merged)
	for _, k := range slices.Sorted(maps.Keys(m.Counts.Notes)) {
		out = fmt.Appendf(out, "note: %s: %d\n", k, m.Counts.Notes[k])
	}
	for _, g := range m.Guesses {
		out = fmt.Appendf(out, "guess: %s = %s (%s) %s\n", g.What, g.Value, g.Evidence, g.Flag)
	}
	for _, e := range r.Rejected {
		file := *e
		file.File = filepath.Base(e.File)
		action := "rejected"
		if e.Merged {
			action = "merged"
		}
		out = fmt.Appendf(out, "%s: %v; reason %s; fix %q\n", action, &file, e.Reason, e.Fix)
	}
	return out
}

func optional(v trace.Optional[int64]) string {
	if n, ok := v.Get(); ok {
		return fmt.Sprint(n)
	}
	return "unknown"
}

// Shared returns the path of a published file, or skips the test.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = "../shared"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("../..", dir) // from the module root
	}
	path := filepath.Join(append([]string{dir, "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no published files (set REPRISE_SHARED): %v", err)
	}
	return path
}

// Sums returns the tokens of all rows, in and out.
func (r Result) Sums() (in, out int64) {
	for i := range r.Rows {
		in += r.Rows[i].InputTokens.Value
		out += r.Rows[i].OutputTokens.Value
	}
	return in, out
}

// Refusals holds an importer against what every format owes: containers that are
// not there whole end in an error with a way out; stray files of a directory are
// passed over; a line of 20 MB is no trouble. good is a file of one accepted row,
// by name and content; long makes it about n bytes longer.
func Refusals(t *testing.T, imp func() formats.Importer, name, good string, long func(n int) string) {
	t.Helper()
	dir := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(strings.Repeat(good, 50)))
	z.Close()
	for _, c := range []struct{ name, content, want string }{
		{"cut.gz", packed.String()[:packed.Len()-12], "ends too early"},
		{"pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"},
		{"empty", "", "the file is empty"},
		{"x.parquet", "PAR1xxxx", "arquet"},
		{"prose.txt", "hello, world\n", ""},
	} {
		_, err := Try(imp(), Write(t, dir, c.name, c.content))
		if err == nil || !strings.Contains(err.Error(), c.want) || trace.Fix(err) == "" {
			t.Errorf("%s: error %v, want %q and a way out", c.name, err, c.want)
		}
	}
	tree := t.TempDir()
	for _, stray := range []string{"README.md", "LICENSE", ".hidden", "plot.png"} {
		Write(t, tree, stray, "about\n")
	}
	z = gzip.NewWriter(&packed)
	packed.Reset()
	z.Reset(&packed)
	z.Write([]byte(good))
	z.Close()
	Write(t, tree, name, good)
	Write(t, tree, "z-"+name+".gz", packed.String())
	if r := Load(t, imp(), tree); len(r.Rows) < 1 {
		t.Errorf("a directory: %d rows", len(r.Rows))
	}
	if r := Text(t, imp(), name, long(20<<20)); len(r.Rows)+len(r.Rejected) != 1 {
		t.Errorf("a long line: %d rows, rejected %d", len(r.Rows), len(r.Rejected))
	}
}

// Fuzz imports texts made of the lines of testdata/dir/name...: no panic, the
// invariants hold, and rejections say where.
func Fuzz(f *testing.F, imp func() formats.Importer, dir string, names ...string) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(Testdata, dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		head, _, _ := bytes.Cut(data, []byte("\n"))
		for line := range bytes.Lines(data) {
			if len(line) < 4<<10 {
				f.Add(append(append(bytes.Clone(head), '\n'), line...))
			}
		}
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Try(imp(), path)
		for _, e := range r.Rejected {
			if e.Line < 1 || e.Err == nil || e.File != path || e.Reason == "" {
				t.Errorf("a rejection without its place: %+v", e)
			}
		}
		if err == nil {
			Load(t, imp(), path)
		}
	})
}

// Made yields rows made up, numbered from 0.
func Made(made ...trace.Request) iter.Seq2[trace.Request, error] {
	return func(yield func(trace.Request, error) bool) {
		for i, r := range made {
			if r.ID = int64(i); !yield(r, nil) {
				return
			}
		}
	}
}

// Exported writes a trace in a foreign format.
func (r Result) Exported(t testing.TB, e formats.Exporter) (text string, lost []string) {
	t.Helper()
	reader, err := trace.NewReader(bytes.NewReader(r.Data), int64(len(r.Data)), "t")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	lost, err = e.Export(context.Background(), reader.Meta(), reader.Rows(), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), lost
}

// Detected holds texts against Detect: those under true are of the format.
func Detected(t *testing.T, detect func(*source.Head) (string, bool), texts map[string]bool) {
	t.Helper()
	for text, want := range texts {
		h, err := source.New(Write(t, t.TempDir(), "x", text), nil).Head()
		if err != nil {
			t.Fatal(err)
		}
		if why, ok := detect(h); ok != want || ok && why == "" {
			t.Errorf("%s: detected %v (%s)", text, ok, why)
		}
	}
}
