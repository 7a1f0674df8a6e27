package replay

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock"
	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
)

// Each fault of a server is an outcome of its own, and disturbs no other
// request's schedule.
func TestServerFaults(t *testing.T) {
	for _, c := range []struct {
		fault   string
		outcome string
		cause   string // within the cause
		note    string // within the note
		tokens  bool   // what came before the fault is kept
	}{
		{"status,code=500", results.OutcomeFailed, "500", "", false},
		{"status,code=429,retry=3s", results.OutcomeFailed, "429", "Retry-After: 3", false},
		{"reset", results.OutcomeReset, "", "", false},
		{"cut,after=2", results.OutcomeReset, "", "", true},
		{"truncate,after=2", results.OutcomeTruncated, "without a terminal signal", "", true},
		{"error,after=2", results.OutcomeFailed, "", "", true},
		{"stall,after=2,delay=5m", results.OutcomeTimeout, "no byte for 1s", "", true},
	} {
		t.Run(c.fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := exact()
				fault, err := mock.ParseFault(c.fault + ",every=2")
				if err != nil {
					t.Fatal(err)
				}
				m.Faults = []mock.Fault{fault}
				rows := traceOf(trace.ClockTrace, at(0, 10, 5), at(500, 10, 5), at(1000, 10, 5), at(1500, 10, 5))
				got, _, err := replayTo(t, t.Context(), mock.New(m), Config{source: rows, BytesTimeout: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				bad := 0
				for id, r := range got {
					if late, _ := results.Lateness(&r); late != 0 || r.Sent.Value != time.Duration(id)*500*time.Millisecond {
						t.Errorf("id %d: sent at %v, %v late", id, r.Sent.Value, late)
					}
					if r.Outcome == results.OutcomeOK {
						continue
					}
					bad++
					sum, _ := results.LedgerTokens(r.Ledger)
					if r.Outcome != c.outcome || !strings.Contains(r.Cause.Value, c.cause) || !strings.Contains(r.Note.Value, c.note) || c.tokens != (sum > 0) {
						t.Errorf("id %d: %s: %s (%s), %d tokens kept", id, r.Outcome, r.Cause.Value, r.Note.Value, sum)
					}
				}
				if bad != 2 || len(got) != 4 {
					t.Errorf("%d of %d requests failed, want 2 of 4", bad, len(got))
				}
			})
		})
	}
}

func TestExactLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 20 prompt tokens at 1 ms each, then a step of 10 ms a token.
		got, _, err := replayTo(t, t.Context(), mock.New(exact()), Config{source: traceOf(trace.ClockTrace, at(3, 20, 4))})
		if err != nil {
			t.Fatal(err)
		}
		r := got[0]
		var itl []time.Duration
		for gap, n := range results.ITL(&r) {
			for range n {
				itl = append(itl, gap)
			}
		}
		ttft, _ := results.TTFT(&r)
		tpot, _ := results.TPOT(&r)
		if ttft != 30*time.Millisecond || tpot != 10*time.Millisecond || len(itl) != 3 || itl[0] != 10*time.Millisecond {
			t.Errorf("TTFT %v, TPOT %v, ITL %v", ttft, tpot, itl)
		}
		if e2e, _ := results.E2E(&r); e2e != 60*time.Millisecond {
			t.Errorf("E2E %v", e2e)
		}
	})
}

// row returns a trace of one request; it lies in memory.
func oneRow() func() rowReader { return traceOf(trace.ClockTrace, at(0, 10, 1)) }

func TestEndpointThatCannotBeUsed(t *testing.T) {
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }))
	defer html.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no key", http.StatusUnauthorized) }))
	defer locked.Close()
	private := httptest.NewTLSServer(mock.New(mock.Config{}).Handler())
	defer private.Close()
	for name, c := range map[string]struct {
		url, want, fix string
		model          string
	}{
		"refused":    {"http://127.0.0.1:1", "connection refused", "check that the server runs", ""},
		"named":      {"http://127.0.0.1:1", "connection refused", "check that the server runs", "m"},
		"wrong path": {html.URL, "404", "check --url", "m"},
		"no key":     {locked.URL, "401", "--api-key-env", ""},
		"no model":   {html.URL, "does not list its models", "--model", ""},
		"private CA": {private.URL, "certificate", "--ca-file", "m"},
		"plain":      {strings.Replace(html.URL, "http:", "https:", 1), "TLS", "http://", "m"},
		"no host":    {"http://no-such-host.invalid:80", "no-such-host.invalid", "", "m"},
		"no scheme":  {"localhost:8000", "not an http or https URL", "http://localhost:8000", "m"},
	} {
		_, err := Run(t.Context(), Config{source: oneRow(), URLs: []string{c.url}, Model: c.model, Dir: t.TempDir(), sink: &memory{}, Proxy: ProxyNone})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(trace.Fix(err), c.fix) {
			t.Errorf("%s: %v (hint %q); want %q and hint %q", name, err, trace.Fix(err), c.want, c.fix)
		}
	}
}

func TestTLSWithItsOwnAuthority(t *testing.T) {
	server := httptest.NewTLSServer(mock.New(mock.Config{}).Handler())
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tls := range map[string]TLS{"authority": {CAFile: ca}, "insecure": {Insecure: true}} {
		kept := &memory{}
		run, err := Run(t.Context(), Config{source: oneRow(), URLs: []string{server.URL}, Dir: t.TempDir(), sink: kept, TLS: tls})
		if err != nil || len(kept.got) != 1 || kept.got[0].Outcome != results.OutcomeOK {
			t.Errorf("%s: %v, results %+v", name, err, kept.got)
		} else if tls.Insecure != (len(run.Warnings) == 1) {
			t.Errorf("%s: warnings %v", name, run.Warnings)
		}
	}
}

func TestKeysStayOutOfTheRunDirectory(t *testing.T) {
	seen := make(chan http.Header, 10)
	inner := mock.New(mock.Config{}).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	_, err := Run(t.Context(), Config{
		source: oneRow(), URLs: []string{server.URL}, Dir: dir, APIKey: "s3cr3t-key",
		Headers: []protocol.Header{{Name: "X-Token", Value: "s3cr3t, with comma"}, {Name: "Accept", Value: "text/event-stream, */*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // models, two probes, the request
		h := <-seen
		if h.Get("Authorization") != "Bearer s3cr3t-key" || h.Get("X-Token") != "s3cr3t, with comma" {
			t.Errorf("headers %v", h)
		}
	}
	filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			if text, _ := os.ReadFile(path); strings.Contains(string(text), "s3cr3t") {
				t.Errorf("%s holds a secret", path)
			}
		}
		return err
	})
}

// Some servers repeat the key they refuse.
func TestKeysThatAServerRepeatsAreHidden(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error": {"message": "bad key %s, bad token %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Token"))
	}))
	defer server.Close()
	for _, noProbe := range []bool{false, true} {
		dir := t.TempDir()
		_, err := Run(t.Context(), Config{
			source: oneRow(), URLs: []string{server.URL}, Dir: dir, Model: "m", NoProbe: noProbe, APIKey: "s3cr3t-key",
			Headers: []protocol.Header{{Name: "X-Token", Value: "s3cr3t-token"}},
		})
		if text := fmt.Sprint(err); noProbe != (err == nil) || strings.Contains(text, "s3cr3t") || !noProbe && !strings.Contains(text, "bad key (hidden), bad token (hidden)") {
			t.Errorf("error %v", err)
		}
		filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				if text, _ := os.ReadFile(path); strings.Contains(string(text), "s3cr3t") {
					t.Errorf("%s holds a secret", path)
				}
			}
			return err
		})
	}
}

func TestEndpointURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://h:1":                         "http://h:1/v1/chat/completions",
		"http://h:1/":                        "http://h:1/v1/chat/completions",
		"http://h/v1":                        "http://h/v1/chat/completions",
		"http://h/v1/":                       "http://h/v1/chat/completions",
		"http://h/proxy/v1":                  "http://h/proxy/v1/chat/completions",
		"https://h/proxy":                    "https://h/proxy/v1/chat/completions",
		"http://h/v1/chat/completions?key=1": "http://h/v1/chat/completions?key=1",
		"http://[::1]:8000":                  "http://[::1]:8000/v1/chat/completions",
	} {
		u, err := endpoint(base, "/v1/chat/completions")
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, want %s (%v)", base, u, want, err)
		}
	}
}

func TestModels(t *testing.T) {
	for name, c := range map[string]struct {
		config   Config
		recorded map[string]int64
		served   []string
		want     map[string]string
		err      string
	}{
		"one served":     {Config{}, map[string]int64{"a": 1, "": 2}, []string{"x"}, map[string]string{"a": "x", "": "x"}, ""},
		"named":          {Config{Model: "m"}, map[string]int64{"a": 1}, nil, map[string]string{"a": "m"}, ""},
		"same name":      {Config{}, map[string]int64{"a": 1}, []string{"a", "b"}, map[string]string{"a": "a"}, ""},
		"mapped":         {Config{Models: map[string]string{"a": "b"}}, map[string]int64{"a": 1}, nil, map[string]string{"a": "b"}, ""},
		"mapped to none": {Config{Models: map[string]string{"a": "b"}}, map[string]int64{"a": 1, "c": 1}, []string{"x"}, nil, `recorded model "c" is mapped to nothing; the endpoint offers x`},
		"none recorded":  {Config{}, map[string]int64{"": 3}, []string{"x", "y"}, nil, "records none for 3 requests, and the endpoint offers x, y"},
	} {
		got, err := c.config.resolveModels(c.recorded, c.served)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
		for k, v := range c.want {
			if got[k] != v {
				t.Errorf("%s: %s -> %s, want %s", name, k, got[k], v)
			}
		}
	}
}

func TestCancellations(t *testing.T) {
	gaveUp := at(0, 5000, 1)
	gaveUp.Cancel = trace.Some(700 * time.Millisecond)
	rows := traceOf(trace.ClockTrace, gaveUp, at(0, 10, 1), at(10, 10, 300))
	for text, want := range map[string][]time.Duration{ // 0 = not cancelled
		"none":                {0, 0, 0},
		"recorded":            {700 * time.Millisecond, 0, 0},
		"after=1s":            {time.Second, 0, 1010 * time.Millisecond},
		"share=100%,after=2s": {2 * time.Second, 0, 2010 * time.Millisecond},
	} {
		c, err := ParseCancel(text)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			m := exact()
			m.Engine.MaxBatch = 8
			got, _, err := replayTo(t, t.Context(), mock.New(m), Config{source: rows, Cancel: c})
			if err != nil {
				t.Fatal(err)
			}
			for id, end := range want {
				r := got[int64(id)]
				if cancelled := r.Outcome == results.OutcomeCancelled; cancelled != (end > 0) && id != 1 || cancelled && id != 1 && r.End.Value != end {
					t.Errorf("%s id %d: %s at %v (%s)", text, id, r.Outcome, r.End.Value, r.Cause.Value)
				}
			}
		})
	}
	for _, text := range []string{"share=5%", "after=x", "after=1s,share=0", "after=1s,share=101%", "soon"} {
		if _, err := ParseCancel(text); err == nil || trace.Fix(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
	n := 0
	for id := range int64(10_000) {
		if _, yes := (Cancel{Share: 0.05, After: 1}).after(7, id, trace.Optional[time.Duration]{}); yes {
			n++
		}
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 10,000 for a share of 5 %%", n)
	}
}

// Without a count from the server, a local tokenizer counts, and says so.
func TestLocalTokenizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := exact()
		m.Usage, m.TokensPerChunk = mock.UsageNone, 3
		got, _, err := replayTo(t, t.Context(), mock.New(m), Config{
			source: traceOf(trace.ClockTrace, at(0, 10, 7)), Tokenizer: func(text []byte) int { return len(strings.Fields(string(text))) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r := got[0]
		source, _ := results.LedgerSource(r.Ledger)
		if r.OutputTokens.Value != 7 || r.OutputSource.Value != results.SourceLocal || source != results.SourceLocal {
			t.Errorf("%v tokens counted by %v, chunks by %v", r.OutputTokens, r.OutputSource, source)
		}
	})
}

// A stream that only says that it is over is no answer.
func TestAStreamWithoutOutputFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":null}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: [DONE]\n\n"))
	}))
	defer server.Close()
	kept := &memory{}
	if _, err := Run(t.Context(), Config{source: oneRow(), URLs: []string{server.URL}, Model: "m", NoProbe: true, Dir: t.TempDir(), sink: kept}); err != nil {
		t.Fatal(err)
	}
	if r := kept.got[0]; r.Outcome != results.OutcomeFailed || !strings.Contains(r.Cause.Value, "without any model output") {
		t.Errorf("%s: %s", r.Outcome, r.Cause.Value)
	}
}

// A run that does not begin leaves the old one where it is.
func TestBeginComesLast(t *testing.T) {
	begun := false
	_, err := Run(t.Context(), Config{source: oneRow(), URLs: []string{"http://127.0.0.1:1"}, Model: "m", Dir: t.TempDir(), sink: &memory{}, Begin: func() error { begun = true; return nil }})
	if err == nil || begun {
		t.Errorf("error %v, begun %v", err, begun)
	}
}
