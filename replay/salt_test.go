package replay

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"reprise/replay/mock"
	"reprise/trace"
)

// The marker keeps the planned length, and with it what is reused.
func TestCacheSalt(t *testing.T) {
	row := func(ms int64, session string) trace.Request {
		r := at(ms, 64, 1)
		r.Session = trace.Some(session)
		r.Blocks, r.BlockTokens = []uint64{1, 2, 3, 4}, trace.Some(int32(16))
		return r
	}
	rows := traceOf(trace.ClockTrace, row(0, "a"), row(1000, "a"), row(2000, "b"))
	for salt, want := range map[Salt][]int64{ // cached tokens, blocks of 16: all but the last block at most
		SaltNone: {0, 48, 48}, SaltRun: {0, 48, 48}, SaltSession: {0, 48, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := exact()
			m.Engine.CacheTokens = 0
			got, _, err := replayTo(t, t.Context(), mock.New(m), Config{source: rows, Salt: salt})
			if err != nil {
				t.Fatal(err)
			}
			for id, cached := range want {
				r := got[int64(id)]
				if r.CountedInputTokens != r.PlannedInputTokens || r.CachedTokens.Value != cached {
					t.Errorf("salt %q id %d: planned %v, counted %v, cached %v, want %d cached", salt, id, r.PlannedInputTokens, r.CountedInputTokens, r.CachedTokens, cached)
				}
			}
		})
	}
}

func TestSaltOfLiteralContent(t *testing.T) {
	r := newRenderer(&Config{Salt: SaltRun}, nil)
	row := trace.Request{Prompt: trace.Some("hi")}
	if got := string(r.saltLiteral(&row)); !strings.HasPrefix(got, "Here ") || !strings.HasSuffix(got, " hi") || len(strings.Fields(got)) != 1+SaltTokens+1 {
		t.Errorf("prompt %q", got)
	}
	for _, messages := range []string{`[{"role":"user","content":"hi"}]`, `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`} {
		got, err := r.saltMessages([]byte(messages), &row)
		if err != nil || !strings.Contains(string(got), "Here ") || !strings.Contains(string(got), "hi\"") {
			t.Errorf("%s, %v", got, err)
		}
	}
	if _, err := r.saltMessages([]byte(`[{"role":"user","content":null}]`), &row); err == nil {
		t.Error("a message without text was salted")
	}
}

func TestFlush(t *testing.T) {
	posts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts++
		if r.Method != http.MethodPost || r.URL.Path != "/reset_prefix_cache" {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	c := &Config{Flush: server.URL + "/reset_prefix_cache"}
	if err := c.flush(t.Context()); err != nil || posts != 1 {
		t.Errorf("%v after %d posts", err, posts)
	}
	c.Flush = server.URL + "/other"
	if err := c.flush(t.Context()); err == nil || trace.Fix(err) == "" {
		t.Errorf("a cache that was not emptied: %v", err)
	}
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	c.Flush = "http://" + closed.Addr().String()
	if err := c.flush(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("no server: %v", err)
	}
}
