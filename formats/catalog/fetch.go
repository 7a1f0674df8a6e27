package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/trace"
)

// A Fetcher keeps traces of the catalogue in a directory. The zero value uses the
// user's cache directory.
type Fetcher struct {
	Dir      string                  // "" = reprise/traces below the user's cache directory
	Progress func(done, total int64) // bytes, called about four times a second; total is 0 if it is not known

	transport http.RoundTripper // nil = the default
	plain     bool              // plain HTTP is allowed; for tests
}

// Got is what became of a fetch.
type Got struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Pinned  bool   `json:"pinned"`            // held against a checksum that is known
	Cached  bool   `json:"cached"`            // it was there already
	Resumed int64  `json:"resumed,omitempty"` // bytes that were there from a transfer that was cut
}

// headerTimeout is how long a server may take to answer, and stallTimeout how long it
// may send nothing.
const (
	headerTimeout = time.Minute
	stallTimeout  = time.Minute
)

// Fetch returns the file of an entry, from the cache or from where it is published.
// Every error says how to get it by hand.
func (f *Fetcher) Fetch(ctx context.Context, e Entry) (got Got, err error) {
	dir := f.Dir
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return got, trace.WithFix(fmt.Errorf("no cache directory: %w", err), "name one with --dir")
		}
		dir = filepath.Join(cache, "reprise", "traces")
	}
	dir = filepath.Join(dir, e.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return got, err
	}
	path := filepath.Join(dir, e.File())
	if got, err = check(path, e); err == nil {
		got.Cached = true
		return got, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return got, trace.WithFix(fmt.Errorf("%s: %w", path, err), "remove the file and fetch again")
	}
	resumed, err := f.download(ctx, e, path+".part")
	if err != nil {
		return got, byHand(e, path, err)
	}
	got, err = check(path+".part", e)
	if err != nil {
		forget(path + ".part")
		return got, byHand(e, path, err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return got, err
	}
	os.Remove(path + ".part.from")
	got.Path, got.Resumed = path, resumed
	return got, nil
}

// byHand says where else the file is to be had.
func byHand(e Entry, path string, err error) error {
	fix := "or get it by hand from " + e.Page + " and put it at " + path
	if trace.Fix(err) != "" {
		fix = trace.Fix(err) + ", " + fix
	} else {
		fix = "try again, " + fix
	}
	return trace.WithFix(fmt.Errorf("fetch %s: %w", e.Name, err), fix)
}

// check holds a file against what is known of it.
func check(path string, e Entry) (got Got, err error) {
	in, err := trace.Identify(path)
	if err != nil {
		return got, err
	}
	got = Got{Path: path, Bytes: in.Bytes, SHA256: in.SHA256, Pinned: e.SHA256 != ""}
	switch {
	case e.Bytes > 0 && in.Bytes != e.Bytes:
		return got, fmt.Errorf("%d bytes, but the catalogue has %d: the publisher has changed the file, or the transfer did", in.Bytes, e.Bytes)
	case e.SHA256 != "" && in.SHA256 != e.SHA256:
		return got, fmt.Errorf("SHA-256 %s, but the catalogue has %s: the publisher has changed the file, or the transfer did", in.SHA256, e.SHA256)
	}
	return got, nil
}

func forget(part string) {
	os.Remove(part)
	os.Remove(part + ".from")
}

// download makes part whole. What is there of it is kept if the server says that the
// file has not changed since: part.from holds the address and its validator.
func (f *Fetcher) download(ctx context.Context, e Entry, part string) (resumed int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
	if err != nil {
		return 0, err
	}
	if err := f.allowed(req.URL); err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", "reprise")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are those of the file
	have := int64(0)
	if info, err := os.Stat(part); err == nil {
		from, _ := os.ReadFile(part + ".from")
		address, validator, _ := strings.Cut(string(from), "\n")
		if have = info.Size(); have > 0 && address == e.URL && validator != "" {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
			req.Header.Set("If-Range", validator)
		} else {
			have = 0
		}
	}
	resp, err := f.client().Do(req)
	if err != nil {
		return 0, offline(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		have = 0
	case http.StatusPartialContent:
		if from, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)); !ok {
			return 0, fmt.Errorf("the server sent another range than was asked for: %s", from)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		forget(part)
		return 0, trace.WithFix(errors.New("the file is shorter than what was there of it, which is thrown away"), "try again")
	default:
		return 0, fmt.Errorf("%s: %s", e.URL, resp.Status)
	}
	return have, f.receive(resp, part, e.URL, have, cancel)
}

// receive appends the body of a response to part, which has have bytes.
func (f *Fetcher) receive(resp *http.Response, part, address string, have int64, cancel context.CancelCauseFunc) error {
	flags := os.O_CREATE | os.O_WRONLY
	if have == 0 {
		flags |= os.O_TRUNC
	} else {
		flags |= os.O_APPEND
	}
	out, err := os.OpenFile(part, flags, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := os.WriteFile(part+".from", []byte(address+"\n"+validator(resp.Header)), 0o644); err != nil {
		return err
	}
	total := int64(0)
	if resp.ContentLength >= 0 {
		total = have + resp.ContentLength
	}
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("nothing came for %v", stallTimeout)) })
	defer stall.Stop()
	w := &counter{w: out, done: have, total: total, progress: f.Progress, stall: stall}
	if _, err = io.Copy(w, resp.Body); err == nil && resp.ContentLength >= 0 && w.done < total {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		if cause := context.Cause(resp.Request.Context()); cause != nil {
			err = cause
		}
		return trace.WithFix(fmt.Errorf("cut after %d bytes: %w", w.done, err), "fetch again: it goes on where it ended")
	}
	w.report(true)
	return out.Close()
}

// validator returns what If-Range can name: a strong entity tag, or a date.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

type counter struct {
	w           io.Writer
	done, total int64
	progress    func(done, total int64)
	stall       *time.Timer
	last        time.Time
}

func (c *counter) Write(p []byte) (int, error) {
	c.stall.Reset(stallTimeout)
	n, err := c.w.Write(p)
	c.done += int64(n)
	c.report(false)
	return n, err
}

func (c *counter) report(end bool) {
	if c.progress == nil {
		return
	}
	if now := time.Now(); end || now.Sub(c.last) > 250*time.Millisecond {
		c.last = now
		c.progress(c.done, c.total)
	}
}

// maxRedirects is how often a server may send on to another address.
const maxRedirects = 10

func (f *Fetcher) client() *http.Client {
	transport := f.transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = headerTimeout
		transport = t
	}
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return f.allowed(req.URL)
		},
	}
}

// allowed refuses addresses that are not HTTPS, also those that a server sends on to.
func (f *Fetcher) allowed(u *url.URL) error {
	if u.Scheme == "https" || f.plain && u.Scheme == "http" {
		return nil
	}
	return &plainError{u.Redacted()}
}

// A plainError is an address that is not HTTPS.
type plainError struct{ address string }

func (e *plainError) Error() string { return e.address + ": only HTTPS is used" }

// offline says in few words that a server was not reached.
func offline(err error) error {
	if plain, ok := errors.AsType[*plainError](err); ok {
		return fmt.Errorf("the server sends on to %w", plain)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		host := u.URL
		if parsed, perr := url.Parse(u.URL); perr == nil {
			host = parsed.Host
		}
		return fmt.Errorf("%s cannot be reached: %w", host, u.Err)
	}
	return err
}
