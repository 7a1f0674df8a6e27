package protocol

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/replay/ledger"
	"reprise/trace/results"
)

// endingCases: how a response can end.
var endingCases = []wireCase{
	{name: "S28 end marker left open", body: `
@100 CHU({"content":"a"},1)
@120 data: [DONE]`,
		outcome: "ok", chunks: "c1", times: "100 100 |  | -", osl: "1 usage", note: "end marker without an empty line after it; no finish reason"},
	{name: "S28 half a JSON line", body: `
@100 CHU({"content":"a"},1)
@120 data: {"choices":[{"ind
---`,
		outcome: "truncated: stream ended without a terminal signal", chunks: "c1", times: "100 100 |  | -", osl: "1 usage",
		note: `last event was cut off and dropped: "data: {\"choices\":[{\"ind"`},
	{name: "S29 no end marker", body: `
@100 CHU({"content":"a"},1)
@110 FIN(stop)`,
		outcome: "ok", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", finish: "stop", note: "no end marker"},
	{name: "S30 clean end in mid-answer", body: `
@100 CHU({"content":"a"},1)
@110 CHU({"content":"b"},2)`,
		outcome: "truncated: stream ended without a terminal signal", chunks: "c1 c1", times: "100 100 | 10 | 10", osl: "2 usage"},
	{name: "S50 clean end before all choices have finished", choices: 2, body: `
@100 CH({"content":"a"})
@110 FIN(stop)`,
		outcome: "truncated: stream ended without a terminal signal", chunks: "c? n0", times: "100 100 |  | -", finish: "stop"},
	{name: "S32 end marker without finish_reason", body: `
@100 CHU({"content":"a"},1)
@110 data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}

DONE`,
		outcome: "ok", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", note: "no finish reason"},
	{name: "S34 error object in mid-stream", body: `
@100 CHU({"content":"a"},1)
@110 CHU({"content":"b"},2)
@300 data: {"error":{"message":"engine died","type":"InternalServerError","param":null,"code":500}}

DONE`,
		outcome: "failed: 500 InternalServerError: engine died", chunks: "c1 c1", times: "100 100 | 10 | 10", osl: "2 usage"},
	{name: "S34 error after the end marker", body: `
@100 CHU({"content":"a"},1)
@110 FIN(stop) DONE
@300 data: {"object":"error","message":"late","type":"X","code":500}

`,
		outcome: "failed: 500 X: late", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", finish: "stop", note: "events after the end marker"},
	{name: "S35 error as a string", body: `
@300 data: {"error":"Input validation error","error_type":"validation"}

`,
		outcome: "failed: validation: Input validation error", times: "- - |  | -"},
	{name: "S35 error as a named event", body: `
@300 event: error
data: {"message":"worker lost"}

`,
		outcome: "failed: worker lost", times: "- - |  | -"},
	{name: "S35 error event that is not JSON", body: `
@300 event: error
data: worker lost

DONE`,
		outcome: "failed: worker lost", times: "- - |  | -"},
	{name: "S20 only empty events", body: `
@50 data:

@60 event: ping

`,
		outcome: "failed: response without any model output", times: "- - |  | -"},
	{name: "only the end marker", body: `
@50 DONE`,
		outcome: "failed: response without any model output", times: "- - |  | -"},
	{name: "data on the line after an empty data field", body: `
@50 data:
 {"id":1,"choices":[{"index":0,"delta":{"content":"a"}}]}

`,
		outcome: `failed: response without any model output; event 0 is malformed: " {\"id\":1,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}"`,
		times:   "- - |  | -", note: `event 0 is malformed: " {\"id\":1,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}"`},
	{name: "event that is not JSON", body: `
@100 CHU({"content":"a"},1)
@110 data: oops

@120 FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", finish: "stop", note: `event 1 is malformed: "oops"`},
	{name: "S37 not a stream after all", content: "application/json", whole: true, body: `
@900 {"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`,
		outcome: "not_streamed", times: "- - |  | -", osl: "1 usage", finish: "stop", note: "not streamed, although a stream was asked for", text: "Hi"},
	{name: "S37 not a stream, an error", content: "application/json", whole: true, body: `
@900 {"error":{"message":"no such model","type":"NotFoundError","code":404}}`,
		outcome: "failed: 404 NotFoundError: no such model", times: "- - |  | -"},
	{name: "JSON error under the header of a stream", whole: true, body: `
@900 {"error":"overloaded"}`,
		outcome: "failed: overloaded", times: "- - |  | -"},
	{name: "stream under the header of JSON", content: "application/json", body: `
@100 CHU({"content":"a"},1)
@101 FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", finish: "stop"},
	{name: "page instead of JSON", content: "text/html", whole: true, body: `
@20 <html>hello</html>`,
		outcome: `failed: response is not a JSON object: "<html>hello</html>"`, times: "- - |  | -"},
	{name: "error status", status: 429, content: "application/json", whole: true, body: `
@20 {"error":{"message":"slow down","type":"rate_limit","code":429}}`,
		outcome: "failed: HTTP 429: rate_limit: slow down", times: "- - |  | -"},
	{name: "error status without JSON", status: 502, content: "text/html", whole: true, body: `
@20 <h1>Bad Gateway</h1>`,
		outcome: "failed: HTTP 502: <h1>Bad Gateway</h1>", times: "- - |  | -"},
	{name: "zero tokens", body: `
@20 CH({"role":"assistant"})
@21 FIN(stop) USE(0) DONE`,
		outcome: "ok", chunks: "n0 n0", times: "- - |  | -", osl: "0 usage", finish: "stop", note: "no tokens"},
	{name: "reset before the end", end: ledger.EndReset, body: `
@100 CHU({"content":"a"},1)`,
		outcome: "reset: connection broke", chunks: "c1", times: "100 100 |  | -", osl: "1 usage"},
	{name: "reset after the end marker", end: ledger.EndReset, body: `
@100 CHU({"content":"a"},1) FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", finish: "stop", note: "after the terminal signal: the transport did not end cleanly"},
	{name: "timeout", end: ledger.EndTimeout, body: `
@100 CHU({"content":"a"},1)`,
		outcome: "timeout: timed out", chunks: "c1", times: "100 100 |  | -", osl: "1 usage"},
}

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]string{
		"stop": "ok", "length": "ok", "tool_calls": "ok", "function_call": "ok", "content_filter": "ok", "eos_token": "ok",
		"stop_sequence": "ok", "end_turn": "ok", "max_tokens": "ok", "something new": "ok",
		"abort": `failed: finish_reason "abort"`, "error": `failed: finish_reason "error"`, "cancelled": `failed: finish_reason "cancelled"`,
		"": "truncated: stream ended without a terminal signal",
	} {
		c := wireCase{outcome: want, chunks: "c1 n0", osl: "1 usage", finish: reason}
		if want == "ok" {
			c.note = "no end marker"
		}
		t.Run("S41 "+reason, func(t *testing.T) {
			s := parseScript(fmt.Sprintf("@100 CHU({\"content\":\"a\"},1)\n@101 FIN(%s)", reason))
			c.check(t, s.reads(func(int) bool { return false }), false)
		})
	}
}

// A hop that buffers (S27): every chunk but the first is marked.
func TestBufferedStream(t *testing.T) {
	var body strings.Builder
	for i := range 64 {
		fmt.Fprintf(&body, " CHU({\"content\":\"%c\"},%d)", 'a'+i%26, i+1)
	}
	s := parseScript("@2000" + body.String() + "\n@2001 FIN(stop) DONE")
	r := NewResponse(Chat{}, true, 0)
	r.Start(nil)
	for _, read := range s.reads(func(int) bool { return false }) {
		if err := r.Feed(read.p, read.at); err != nil {
			t.Fatal(err)
		}
	}
	summary := r.Close(ledger.Ending{At: s.last()})
	if shared, n := results.SharedReads(summary.Ledger); shared != 63 || n != 64 {
		t.Errorf("%d of %d chunks shared a read", shared, n)
	}
	if summary.FirstToken.Value != 2*time.Second || summary.Outcome != results.OutcomeOK {
		t.Errorf("TTFT %v, %s", summary.FirstToken, summary.Outcome)
	}
}

func TestEventOverTheBound(t *testing.T) {
	r := NewResponse(Chat{}, true, 1000)
	r.Start(nil)
	r.Head(200, "text/event-stream")
	s := parseScript("@1 CHU({\"content\":\"a\"},1)")
	if err := r.Feed(s.body, 0); err != nil {
		t.Fatal(err)
	}
	err := r.Feed(append([]byte("data: "), bytes.Repeat([]byte("x"), 2000)...), time.Millisecond)
	summary := r.Close(ledger.Ending{Kind: ledger.EndInvalid, At: time.Millisecond, Cause: fmt.Sprint(err)})
	if err == nil || summary.Outcome != results.OutcomeFailed || !strings.Contains(summary.Cause.Value, "1000 bytes") || len(summary.Ledger) != 1 {
		t.Errorf("%v: %s, %v, %d entries", err, summary.Outcome, summary.Cause, len(summary.Ledger))
	}
}

// With a local tokenizer the counts are there, and labelled (S09).
func TestLocalTokenizer(t *testing.T) {
	r := NewResponse(Chat{}, true, 0)
	r.Account.Tokenizer = func(text []byte) int { return len(bytes.Fields(text)) }
	r.Start(nil)
	s := parseScript(`
@100 CH({"reasoning":"a b","content":"c"})
@130 CH({"content":"d e f"})
@131 FIN(stop) USE(7) DONE`)
	for _, read := range s.reads(func(int) bool { return false }) {
		if err := r.Feed(read.p, read.at); err != nil {
			t.Fatal(err)
		}
	}
	summary := r.Close(ledger.Ending{At: s.last()})
	row := results.Result{}
	summary.Fill(&row)
	same(t, "chunks", showChunks(row.Ledger), "r2 c1 c3 n0")
	same(t, "times", showTimes(&row), "100 100 | 10x3 | 7.5")
	same(t, "OSL", showOSL(&row), "7 usage difference 1 reasoning 2")
	if source, _ := results.LedgerSource(row.Ledger); source != results.SourceLocal {
		t.Errorf("source %s", source)
	}
}

// A body that was asked for as one body is a plain success.
func TestBodyAsked(t *testing.T) {
	for _, c := range []struct {
		p    Protocol
		body string
		osl  string
	}{
		{Chat{}, `{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop","token_ids":[1,2]}]}`, "2 token_ids"},
		{Completions{}, `{"choices":[{"index":0,"text":"Hi","finish_reason":"length"}],"usage":{"completion_tokens":3}}`, "3 usage"},
		{Chat{}, `{"choices":[{"index":0,"message":{"content":"Hi"}}]}`, ""},
	} {
		r := NewResponse(c.p, false, 0)
		r.Start(nil)
		r.Head(200, "application/json")
		if err := r.Feed([]byte(c.body), time.Second); err != nil {
			t.Fatal(err)
		}
		s := r.Close(ledger.Ending{At: time.Second})
		row := results.Result{}
		s.Fill(&row)
		if s.Outcome != results.OutcomeOK || showOSL(&row) != c.osl || s.FirstToken.Known || len(s.Ledger) != 0 {
			t.Errorf("%s: %s %v, OSL %q, %+v", c.body, s.Outcome, s.Cause, showOSL(&row), s.Ledger)
		}
	}
	r := NewResponse(Chat{}, false, 0)
	r.Start(nil)
	_ = r.Feed([]byte(`{"choices":[{"mess`), time.Second)
	if s := r.Close(ledger.Ending{Kind: ledger.EndReset, At: time.Second}); s.Outcome != results.OutcomeReset {
		t.Errorf("half a body: %s", s.Outcome)
	}
}

// A body that is JSON, but no answer, is a failure in every protocol.
func TestBodyWithoutAnswer(t *testing.T) {
	for _, p := range All {
		for _, body := range []string{"{}", "[]", `{"detail":"x"}`, `{"error":{"message":"boom"}}`, ""} {
			for _, stream := range []bool{true, false} {
				r := NewResponse(p, stream, 0)
				r.Start(nil)
				r.Head(200, "application/json")
				if err := r.Feed([]byte(body), time.Second); err != nil {
					t.Fatal(err)
				}
				s := r.Close(ledger.Ending{At: time.Second})
				if s.Outcome != results.OutcomeFailed && s.Outcome != results.OutcomeTruncated || !s.Cause.Known {
					t.Errorf("%s, stream %v: %q is %s, cause %v", p.Name(), stream, body, s.Outcome, s.Cause)
				}
				if body != "" && strings.Contains(body, "boom") && s.Cause.Value != "boom" {
					t.Errorf("%s: %q has cause %q", p.Name(), body, s.Cause.Value)
				}
			}
		}
	}
}
