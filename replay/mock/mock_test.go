package mock

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock/batch"
	"reprise/replay/mock/pipe"
)

const ms = time.Millisecond

// plain is an engine whose times are easy to say: 10 ms a step, 1 ms per 10
// prompt tokens, nothing per sequence.
var plain = batch.Config{PrefillRate: 10_000, StepBase: 10 * ms, StepPerSequence: -1}

// A rig is a server and a plain net/http client, joined in memory.
type rig struct {
	*testing.T
	server *Server
	client *http.Client
}

// start runs a server until the test ends. It works in and out of a bubble.
func start(t *testing.T, c Config) *rig {
	t.Helper()
	if c.Engine.PrefillRate == 0 {
		speculation := c.Engine.Speculation
		c.Engine = plain
		c.Engine.Speculation = speculation
	}
	ln, s := pipe.Listen(), New(c)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	transport := &http.Transport{DialContext: ln.DialContext}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return &rig{t, s, &http.Client{Transport: transport}}
}

// bubble runs a test of a live server with a clock of its own.
func bubble(t *testing.T, c Config, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(start(t, c)) })
}

// A data is one event as the client saw it.
type data struct {
	at   time.Duration // since the request was made
	text string        // after "data: "
}

// An answer is what the client saw of a response.
type answer struct {
	status int
	header http.Header
	events []data        // of a stream
	body   string        // of anything else
	at     time.Duration // of the headers, since the request was made
	end    time.Duration // when the body had been read
	err    error         // what ended the reading, if not its end
}

// post sends a body, with headers as pairs of name and value, and reads the answer to its end.
func (r *rig) post(path, body string, headers ...string) answer {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://mock"+path, strings.NewReader(body))
	if err != nil {
		r.Error(err)
		return answer{err: err}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return r.do(req)
}

func (r *rig) do(req *http.Request) (a answer) {
	r.Helper()
	began := time.Now()
	resp, err := r.client.Do(req)
	if err != nil {
		return answer{err: err, end: time.Since(began)}
	}
	defer resp.Body.Close()
	a = answer{status: resp.StatusCode, header: resp.Header, at: time.Since(began)}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(resp.Body)
		a.body, a.err, a.end = string(body), err, time.Since(began)
		return a
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			a.events = append(a.events, data{time.Since(began), text})
		}
	}
	a.err, a.end = lines.Err(), time.Since(began)
	return a
}

func (r *rig) get(path string) answer {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://mock"+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	return r.do(req)
}

// record returns the account of the only request.
func (r *rig) record() Record {
	r.Helper()
	records, dropped := r.server.Account()
	if len(records) != 1 || dropped != 0 {
		r.Fatalf("%d records and %d dropped, want one", len(records), dropped)
	}
	return records[0]
}

// texts returns the events without their times.
func (a answer) texts() []string {
	texts := make([]string, len(a.events))
	for i, e := range a.events {
		texts[i] = e.text
	}
	return texts
}

// A chunk is the union of what chat and completions events hold.
type chunk struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index   int
		Text    string
		Message struct{ Role, Content, Reasoning, Reasoning_content string }
		Delta   struct {
			Role                         string
			Content                      *string
			Reasoning, Reasoning_content string
		}
		Finish_reason *string
		Token_ids     []int
	}
	Usage *usage
	Error *struct {
		Message, Type string
		Code          int
	}
}

type usage struct {
	Prompt_tokens, Completion_tokens, Total_tokens int
	Prompt_tokens_details                          struct{ Cached_tokens int }
	Completion_tokens_details                      struct{ Reasoning_tokens int }
}

func decode(t *testing.T, text string) (c chunk) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// words returns the number of tokens in a text.
func words(s string) int { return len(strings.Fields(s)) }

// prompt returns n words that begin with shared of the same words.
func prompt(n, shared int, name string) string {
	var b strings.Builder
	for i := range n {
		if i < shared {
			fmt.Fprintf(&b, "w%d ", i)
		} else {
			fmt.Fprintf(&b, "%s%d ", name, i)
		}
	}
	return b.String()
}

// chat returns the body of a streamed chat of one message.
func chat(text string, tokens int, more string) string {
	return fmt.Sprintf(`{"model":"mock","stream":true,"messages":[{"role":"user","content":%q}],"max_tokens":%d,"ignore_eos":true%s}`, text, tokens, more)
}
