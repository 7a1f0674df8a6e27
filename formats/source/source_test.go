package source_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"reprise/formats/source"
	"reprise/trace"
)

func gz(parts ...string) []byte {
	var buf bytes.Buffer
	for _, p := range parts { // one member each
		w := gzip.NewWriter(&buf)
		io.WriteString(w, p)
		w.Close()
	}
	return buf.Bytes()
}

func zst(parts ...string) []byte {
	var buf bytes.Buffer
	for _, p := range parts {
		w, _ := zstd.NewWriter(&buf)
		io.WriteString(w, p)
		w.Close()
	}
	return buf.Bytes()
}

func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenDecompressesByContent(t *testing.T) {
	for name, data := range map[string][]byte{
		"plain": []byte("one\ntwo\n"), "bom": []byte("\xef\xbb\xbfone\ntwo\n"),
		"members": gz("one\n", "two\n"), "frames": zst("one\n", "two\n"),
	} {
		s := source.New(file(t, "x", data), nil)
		for _, how := range []string{"stream", "at"} {
			var got []byte
			if how == "stream" {
				r, err := s.Open()
				if err != nil {
					t.Fatal(name, err)
				}
				got, err = io.ReadAll(r)
				if err != nil {
					t.Fatal(name, err)
				}
				r.Close()
			} else if name != "bom" {
				r, size, err := s.ReaderAt()
				if err != nil {
					t.Fatal(name, err)
				}
				if got, err = io.ReadAll(io.NewSectionReader(r, 0, size)); err != nil {
					t.Fatal(name, err)
				}
			} else {
				continue
			}
			if string(got) != "one\ntwo\n" {
				t.Errorf("%s by %s: %q", name, how, got)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	whole := gz(strings.Repeat("a line of text\n", 1000))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":     {nil, "the file is empty"},
		"pointer":   {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "Git LFS pointer"},
		"truncated": {whole[:len(whole)-9], "ends too early"},
		"no header": {whole[:6], "ends too early"},
	} {
		path := file(t, "x", c.data)
		r, err := source.New(path, nil).Open()
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q with the path", name, err, c.want)
		}
		if trace.Fix(err) == "" {
			t.Errorf("%s: no way out", name)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jsonl", "a.jsonl", "README.md", ".hidden", "sub/c.jsonl", "sub/MANIFEST.json"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644)
	}
	got, passed, err := source.Find([]string{dir, filepath.Join(dir, "*.jsonl"), "-"}, strings.NewReader("in"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got {
		rel, _ := filepath.Rel(dir, s.Name)
		if s.Name == "-" {
			rel = "-"
		}
		names = append(names, rel)
	}
	if want := []string{"a.jsonl", "b.jsonl", "sub/c.jsonl", "a.jsonl", "b.jsonl", "-"}; !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
	if len(passed) != 3 {
		t.Errorf("passed over %v, want three", passed)
	}
	if _, _, err := source.Find([]string{filepath.Join(dir, "nothing*")}, nil); err == nil || trace.Fix(err) == "" {
		t.Errorf("a pattern without a match: %v", err)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 20<<20)
	l := source.NewLines(strings.NewReader("a\r\n" + long + "\n\nlast"))
	for i, want := range []string{"a", long, "", "last"} {
		line, n, err := l.Next()
		if err != nil || string(line) != want || n != int64(i+1) {
			t.Fatalf("line %d: %d bytes, number %d, error %v", i+1, len(line), n, err)
		}
	}
	if _, _, err := l.Next(); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
}

func TestHead(t *testing.T) {
	for _, c := range []struct {
		text      string
		container string
		keys      []string
	}{
		{`{"a":1,"b":[{"c":2}],"d":{"e":3}}`, "json", []string{"a", "b", "d"}},
		{"[\n {\"x\":null}, {\"y\":1}]", "json array", []string{"x"}},
		{`{"cut":1,"requests":[{"t":`, "json", []string{"cut", "requests"}},
		{"A,B\r\n1,2", "csv", nil},
		{"hello", "text", nil},
	} {
		h, err := source.New(file(t, "x", []byte(c.text)), nil).Head()
		if err != nil {
			t.Fatal(err)
		}
		if h.Container != c.container || !h.Has(c.keys...) || len(h.Keys) != len(c.keys) {
			t.Errorf("%s: %+v", c.text, h)
		}
	}
}

func TestStdinIsReadOnceAndDigested(t *testing.T) {
	s := source.New("-", strings.NewReader("{\"a\":1}\n"))
	if h, err := s.Head(); err != nil || !h.Has("a") {
		t.Fatalf("%+v, %v", h, err)
	}
	r, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(r); string(got) != "{\"a\":1}\n" {
		t.Errorf("read %q after the head", got)
	}
	in, err := s.Input()
	if err != nil || in.Bytes != 8 || in.Name != "stdin" {
		t.Errorf("input %+v, %v", in, err)
	}
}

// A pipe gives its bytes once: what told the format must not be lost to the
// rows, nor to the digest.
func TestPipeIsReadOnce(t *testing.T) {
	content := strings.Repeat("{\"a\": 1}\n", 50_000)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd here: ", err)
	}
	go func() {
		io.WriteString(w, content)
		w.Close()
	}()
	sources, _, err := source.Find([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := sources[0]
	defer s.Close()
	if _, err := s.Head(); err != nil {
		t.Fatal(err)
	}
	in, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if err != nil || string(got) != content {
		t.Errorf("read %d of %d bytes: %v", len(got), len(content), err)
	}
	if input, err := s.Input(); err != nil || input.Bytes != int64(len(content)) {
		t.Errorf("input %+v, %v", input, err)
	}
}

func TestHeadLooksInside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	text := `{"schema":"v1","event":{"schema":"inner","deep":{"deeper":1}},"list":[{"id":7},{"other":1}],"nested":[[1]],"long":"` + strings.Repeat("x", 100) + `","last":null}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := source.New(path, nil).Head()
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(h.Keys) != "map[event:object last:null list:array long:string nested:array schema:string]" ||
		fmt.Sprint(h.Inner) != "map[event.deep:object event.schema:string list[].id:number]" || fmt.Sprint(h.Texts) != "map[event.schema:inner schema:v1]" {
		t.Errorf("keys %v, inner %v, texts %v", h.Keys, h.Inner, h.Texts)
	}
}

func TestHeaderFields(t *testing.T) {
	for line, want := range map[string]string{
		"a,b,c\r":        `["a" "b" "c"] ','`,
		"a;b,c;d":        `["a" "b,c" "d"] ';'`,
		"a\tb":           `["a" "b"] '\t'`,
		`"a, x", b ,"c"`: `["a, x" "b" "c"] ','`,
		`"a,b`:           `["a" "b"] ','`,
		"alone":          `["alone"] ','`,
	} {
		fields, comma := source.HeaderFields([]byte(line))
		if got := fmt.Sprintf("%q %q", fields, comma); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
