package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/formats"
	"reprise/formats/source"
	"reprise/trace"
)

func TestEntries(t *testing.T) {
	names := map[string]bool{}
	for _, e := range All {
		if names[e.Name] {
			t.Errorf("%s occurs twice", e.Name)
		}
		names[e.Name] = true
		for _, address := range []string{e.URL, e.Page} {
			if !strings.HasPrefix(address, "https://") {
				t.Errorf("%s: %s", e.Name, address)
			}
		}
		if e.About == "" || e.Licence == "" || e.Citation == "" || e.SHA256 != "" && (len(e.SHA256) != 64 || e.Bytes == 0) {
			t.Errorf("%s: %+v", e.Name, e)
		}
		if _, err := formats.ByName(e.Format); err != nil && e.Format != "servegen" {
			t.Error(err)
		}
	}
	if _, err := ByName("mooncake"); err == nil || !strings.Contains(trace.Fix(err), "did you mean mooncake-conversation, mooncake-synthetic") {
		t.Errorf("%v: %s", err, trace.Fix(err))
	}
	if e, err := ByName("sharegpt-v3"); err != nil || e.File() != "ShareGPT_V3_unfiltered_cleaned_split.json" {
		t.Errorf("%v, %s", err, e.File())
	}
}

// The checksums of the catalogue are those of the published files that are at hand.
func TestPublishedSums(t *testing.T) {
	shared := os.Getenv("REPRISE_SHARED")
	if shared == "" {
		shared = "../shared"
	}
	if !filepath.IsAbs(shared) {
		shared = filepath.Join("../..", shared)
	}
	for name, path := range map[string]string{
		"mooncake-conversation": "mooncake/conversation_trace.jsonl", "mooncake-synthetic": "mooncake/synthetic_trace.jsonl",
		"azure-2023-code": "azure/AzureLLMInferenceTrace_code.csv", "ragpulse": "ragpulse/0_trace.jsonl",
	} {
		path = filepath.Join(shared, "data", path)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no published files (set REPRISE_SHARED): %v", err)
		}
		e, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := check(path, e); err != nil || !got.Pinned {
			t.Errorf("%s: %v", name, err)
		}
		s := source.New(path, nil)
		if f, _, err := formats.Detect(s); err != nil || f.Name != e.Format {
			t.Errorf("%s: %s, %v", name, f.Name, err)
		}
	}
}

const content = "0123456789abcdefghijklmnopqrstuvwxyz"

// entry is a trace of content at address.
func entry(address string, pinned bool) Entry {
	e := Entry{Name: "made", URL: address, Page: "https://example.org/made"}
	if pinned {
		sum := sha256.Sum256([]byte(content))
		e.Bytes, e.SHA256 = int64(len(content)), hex.EncodeToString(sum[:])
	}
	return e
}

// serve answers as a file server does; each request is counted.
func serve(t *testing.T, handler http.HandlerFunc) (address string, requests *[]string) {
	requests = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.Header.Get("Range"))
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/made.csv", requests
}

func file(tag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		http.ServeContent(w, r, "made.csv", time.Time{}, strings.NewReader(content))
	}
}

// part leaves what a transfer that was cut leaves.
func part(t *testing.T, dir, text, from string) {
	t.Helper()
	dir = filepath.Join(dir, "made")
	os.MkdirAll(dir, 0o755)
	for name, content := range map[string]string{"made.csv.part": text, "made.csv.part.from": from} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func left(dir string) string {
	names, _ := filepath.Glob(filepath.Join(dir, "made", "*"))
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return strings.Join(names, " ")
}

func TestFetch(t *testing.T) {
	dir := t.TempDir()
	address, requests := serve(t, file(`"1"`))
	var done, total int64
	f := &Fetcher{Dir: dir, plain: true, Progress: func(d, n int64) { done, total = d, n }}
	got, err := f.Fetch(t.Context(), entry(address, true))
	if err != nil || !got.Pinned || got.Cached || got.Bytes != 36 || done != 36 || total != 36 {
		t.Fatalf("%+v, %v, progress %d of %d", got, err, done, total)
	}
	if text, _ := os.ReadFile(got.Path); string(text) != content || left(dir) != "made.csv" {
		t.Errorf("%s holds %q; there is %s", got.Path, text, left(dir))
	}
	got, err = f.Fetch(t.Context(), entry(address, true))
	if err != nil || !got.Cached || len(*requests) != 1 {
		t.Errorf("again: %+v, %v, %d requests", got, err, len(*requests))
	}
	os.WriteFile(got.Path, []byte("changed"), 0o644)
	if _, err = f.Fetch(t.Context(), entry(address, true)); err == nil || !strings.Contains(err.Error(), "7 bytes, but the catalogue has 36") || trace.Fix(err) != "remove the file and fetch again" {
		t.Errorf("changed in the cache: %v", err)
	}
	if got, err = (&Fetcher{Dir: t.TempDir(), plain: true}).Fetch(t.Context(), entry(address, false)); err != nil || got.Pinned || len(got.SHA256) != 64 {
		t.Errorf("not pinned: %+v, %v", got, err)
	}
}

func TestResume(t *testing.T) {
	address, requests := serve(t, file(`"1"`))
	for _, c := range []struct {
		name, part, from string
		resumed          int64
		ranges           string
	}{
		{"unchanged", content[:10], address + "\n\"1\"", 10, "bytes=10-"},
		{"changed since", "xxxxx", address + "\n\"0\"", 0, "bytes=5-"},
		{"of another address", "xxxxx", "https://elsewhere/\n\"1\"", 0, ""},
		{"nothing to tell by", "xxxxx", address + "\n", 0, ""},
	} {
		dir := t.TempDir()
		part(t, dir, c.part, c.from)
		*requests = nil
		got, err := (&Fetcher{Dir: dir, plain: true}).Fetch(t.Context(), entry(address, true))
		if err != nil || got.Resumed != c.resumed || (*requests)[0] != c.ranges || left(dir) != "made.csv" {
			t.Errorf("%s: %+v, %v, ranges %q, there is %s", c.name, got, err, *requests, left(dir))
		}
	}
	dir := t.TempDir()
	part(t, dir, content+"more", address+"\n\"1\"")
	if _, err := (&Fetcher{Dir: dir, plain: true}).Fetch(t.Context(), entry(address, true)); err == nil || !strings.Contains(err.Error(), "shorter than what was there") || left(dir) != "" {
		t.Errorf("longer than the file: %v, there is %s", err, left(dir))
	}
}

// A transfer that is cut goes on where it ended.
func TestCut(t *testing.T) {
	cut := true
	address, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !cut {
			file(`"1"`)(w, r)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", "36")
		fmt.Fprint(w, content[:20])
	})
	f := &Fetcher{Dir: t.TempDir(), plain: true}
	_, err := f.Fetch(t.Context(), entry(address, true))
	if err == nil || !strings.Contains(err.Error(), "cut after 20 bytes: unexpected EOF") || !strings.HasPrefix(trace.Fix(err), "fetch again: it goes on where it ended, or get it by hand from https://example.org/made and put it at ") {
		t.Fatalf("%v: %s", err, trace.Fix(err))
	}
	cut = false
	if got, err := f.Fetch(t.Context(), entry(address, true)); err != nil || got.Resumed != 20 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.org/made.csv", http.StatusFound)
	}))
	defer tls.Close()
	wrong, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.ToUpper(content)) })
	short, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "short") })
	missing, _ := serve(t, http.NotFound)
	loop, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		f       *Fetcher
		address string
		want    string
	}{
		"wrong checksum":   {&Fetcher{plain: true}, wrong, "fetch made: SHA-256 "},
		"wrong size":       {&Fetcher{plain: true}, short, "fetch made: 5 bytes, but the catalogue has 36"},
		"not there":        {&Fetcher{plain: true}, missing, "404 Not Found"},
		"plain":            {&Fetcher{}, missing, "only HTTPS is used"},
		"redirect to http": {&Fetcher{transport: tls.Client().Transport}, tls.URL, "the server sends on to http://example.org/made.csv: only HTTPS is used"},
		"redirect loop":    {&Fetcher{plain: true}, loop, "more than 10 redirects"},
		"no server":        {&Fetcher{plain: true}, gone.URL, "cannot be reached: "},
	} {
		c.f.Dir = t.TempDir()
		_, err := c.f.Fetch(t.Context(), entry(c.address, true))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(trace.Fix(err), "by hand from https://example.org/made and put it at "+c.f.Dir) || left(c.f.Dir) != "" {
			t.Errorf("%s: %v: %s; there is %s", name, err, trace.Fix(err), left(c.f.Dir))
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", "36")
		fmt.Fprint(w, content[:20])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	dir := t.TempDir()
	if _, err := (&Fetcher{Dir: dir, plain: true}).Fetch(ctx, entry(address, true)); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("%v", err)
	}
}
