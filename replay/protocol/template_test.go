package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"reprise/replay/ledger"
	"reprise/trace"
	"reprise/trace/results"
)

// llamaCpp is the native API of llama.cpp, whose events say how many tokens
// there are so far.
const llamaCpp = `{
	"path": "/completion", "stream": "sse",
	"body": "{\"prompt\":{{.Prompt}},\"stream\":{{.Stream}},\"ignore_eos\":{{.IgnoreEOS}}{{with .MaxTokens}},\"n_predict\":{{.}}{{end}}{{with .MinTokens}}{{end}}}",
	"text": "/content", "done": "/stop", "error": "/error", "finish": "/stop_type",
	"usage": {"input": "/tokens_evaluated", "output": "/tokens_predicted", "cached": "/timings/cache_n"}
}`

func mustTemplate(text string) *Template {
	t, err := ParseTemplate([]byte(text))
	if err != nil {
		panic(err)
	}
	return t
}

var (
	native     = mustTemplate(llamaCpp)
	cumulative = mustTemplate(`{"path":"/g","stream":"sse","cumulative":true,"body":"{\"q\":{{.Prompt}}}","text":"/o/text","reasoning":"/o/thinking","finish":"/o/why","usage":{"output":"/n"}}`)
	lines      = mustTemplate(`{"path":"/g","stream":"lines","body":"{\"m\":{{.Messages}}}","text":["/parts/0/t~1x","/whole"],"done":"/end","error":["/problem/detail","/code"],"usage":{"input":"/u/0","output":"/u/1"}}`)
	textless   = mustTemplate(`{"path":"/embed","stream":"none","body":"{\"in\":{{.Prompt}}}","usage":{"input":"/meta/tokens"}}`)
)

var templateCases = []wireCase{
	{name: "llama.cpp", p: native, body: `
@100 data: {"index":0,"content":" offering","tokens":[6766],"stop":false,"stop_type":"none","tokens_predicted":1,"tokens_evaluated":3}

@110 data: {"index":0,"content":" two voices","tokens":[8283],"stop":false,"stop_type":"none","tokens_predicted":3,"tokens_evaluated":3}

@112 data: {"index":0,"content":"","tokens":[],"stop":true,"stop_type":"limit","tokens_predicted":3,"tokens_evaluated":3,"timings":{"cache_n":2}}

`,
		outcome: "ok", chunks: "c1 c2 n0", times: "100 100 | 5x2 | 5", osl: "3 usage", input: "3 cached 2", finish: "limit", text: " offering two voices"},
	{name: "llama.cpp, error in the stream", p: native, body: `
@100 data: {"content":" a","stop":false,"tokens_predicted":1}

@110 data: {"error":{"code":500,"message":"slot is gone","type":"server_error"}}

`,
		outcome: "failed: 500 server_error: slot is gone", chunks: "c1", times: "100 100 |  | -", osl: "1 usage"},
	{name: "llama.cpp, cut", p: native, body: `
@100 data: {"content":" a","stop":false,"stop_type":"none","tokens_predicted":1}

`,
		outcome: "truncated: stream ended without a terminal signal", chunks: "c1", times: "100 100 |  | -", osl: "1 usage"},
	{name: "llama.cpp, no JSON", p: native, body: `
@100 data: {"content":" a","stop":false,

@110 data: 7

@120 data: {"content":" b","stop":true}

`,
		outcome: "ok", chunks: "c?", times: "120 120 |  | -", text: " b",
		note: `event 0 is malformed: "{\"content\":\" a\",\"stop\":false,"; 2 events are malformed; no finish reason`},
	{name: "llama.cpp, not streamed", p: native, whole: true, content: "application/json", body: `
@900 {"content":" a b","stop":true,"stop_type":"eos","tokens_predicted":2,"tokens_evaluated":9}`,
		outcome: "not_streamed", times: "- - |  | -", osl: "2 usage", input: "9", finish: "eos", text: " a b", note: "not streamed, although a stream was asked for"},
	{name: "text so far, after thinking so far", p: cumulative, body: `
@100 data: {"o":{"thinking":"Hm"},"n":1}

@110 data: {"o":{"thinking":"Hm","text":"A"},"n":2}

@130 data: {"o":{"thinking":"Hm","text":"A\u0020B"},"n":4}

@131 data: {"o":{"thinking":"Hm","text":"A B","why":"stop"},"n":4}

`,
		outcome: "ok", chunks: "r1 c1 c2 n0", times: "100 110 | 10 10x2 | 10", osl: "4 usage reasoning 1", finish: "stop", text: "A B<Hm>"},
	{name: "lines, a key with a slash, counts at the end", p: lines, content: "application/json", body: `
@100 {"parts":[{"t/x":"A"}]}
@120 {"parts":[{"t/x":" B"},{"t/x":"not this"}],"ping":{"whole":"nor this"}}
@121 {"code":0,"end":1,"u":[7,5]}
`,
		outcome: "ok", chunks: "c? c?", times: "100 100 |  | -", osl: "5 usage", input: "7", text: "A B", note: "no finish reason"},
	{name: "lines, error by code", p: lines, content: "application/json", body: `
@100 {"parts":[{"t/x":"A"}]}
@120 {"code":17}
`,
		outcome: "failed: 17", chunks: "c?", times: "100 100 |  | -"},
	{name: "lines, the first pointer wins", p: lines, content: "application/json", body: `
@100 {"whole":"later","parts":[{"t/x":"A"}],"end":true}
`,
		outcome: "ok", chunks: "c?", times: "100 100 |  | -", text: "A", note: "no finish reason"},
}

func TestTemplateWire(t *testing.T) {
	for _, c := range templateCases {
		s := parseScript(c.body)
		for _, cut := range cuts {
			if (c.whole || c.p.Lines()) && cut.name == "comments between events" {
				continue
			}
			t.Run(c.name+"/"+cut.name, func(t *testing.T) { c.check(t, cut.reads(s), cut.times) })
		}
	}
}

// An API that makes no text is answered by any body that is no error.
func TestTemplateWithoutText(t *testing.T) {
	r := NewResponse(textless, false, 0)
	r.Start(nil)
	r.Head(200, "application/json")
	if err := r.Feed([]byte(`{"vector":[1,2],"meta":{"tokens":6}}`), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if s := r.Close(ledger.Ending{At: time.Millisecond}); s.Outcome != "ok" || s.Input != trace.Some(int64(6)) || s.Output.Known {
		t.Errorf("%s, input %v, output %v", s.Outcome, s.Input, s.Output)
	}
}

func TestTemplateBody(t *testing.T) {
	eight := trace.Some(int64(8))
	pieces := [][]byte{[]byte(`say \"`), []byte(`hi\"`)}
	for name, c := range map[string]struct {
		p    *Template
		r    Request
		want string // the body, or "error: " and a part of it
	}{
		"all":             {native, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: eight, MinTokens: eight, IgnoreEOS: true}, `{"prompt":"say \"hi\"","stream":true,"ignore_eos":true,"n_predict":8}`},
		"least":           {native, Request{Prompt: pieces}, `{"prompt":"say \"hi\"","stream":false,"ignore_eos":false}`},
		"extra":           {native, Request{Prompt: pieces, Extra: [][]byte{[]byte(`{"stream":1,"x":[2]}`)}}, `{"prompt":"say \"hi\"","stream":1,"ignore_eos":false,"x":[2]}`},
		"messages":        {lines, Request{Stream: true, Messages: []byte(`[{"role":"user","content":"x"}]`)}, `{"m":[{"role":"user","content":"x"}]}`},
		"prompt as one":   {lines, Request{Stream: true, Prompt: pieces}, `{"m":[{"role":"user","content":"say \"hi\""}]}`},
		"no output":       {textless, Request{Prompt: pieces, MaxTokens: eight, MinTokens: eight}, `{"in":"say \"hi\""}`},
		"needs a prompt":  {native, Request{Stream: true, Messages: []byte(`[]`)}, "error: sends a prompt, but the request has messages"},
		"limit dropped":   {lines, Request{Stream: true, Prompt: pieces, MaxTokens: eight}, "error: .MaxTokens is not sent"},
		"length dropped":  {lines, Request{Stream: true, Prompt: pieces, MinTokens: eight}, "error: cannot ask for an exact output length"},
		"eos dropped":     {lines, Request{Stream: true, Prompt: pieces, IgnoreEOS: true}, "error: cannot ignore the end token"},
		"tools dropped":   {native, Request{Stream: true, Prompt: pieces, Tools: []byte(`[]`)}, "error: .Tools is not sent"},
		"only streams":    {lines, Request{Prompt: pieces}, "error: only streams"},
		"never streams":   {textless, Request{Stream: true, Prompt: pieces}, "error: has no streams"},
		"literal body":    {native, Request{Stream: true, Body: []byte(`{}`)}, "error: writes bodies of its own"},
		"several choices": {native, Request{Stream: true, Prompt: pieces, Choices: 2}, "error: gives one choice"},
		"nothing":         {native, Request{}, "error: no prompt, messages or body"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.p.AppendBody([]byte("before "), &c.r)
			if part, bad := strings.CutPrefix(c.want, "error: "); bad {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %s, error %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, "body", string(got), "before "+c.want)
		})
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                "protocol template: EOF",
		`[]`:                              "protocol template: cannot unmarshal array",
		`{"path":"/x"} {}`:                "more text behind the object",
		`{"txet":"/a"}`:                   `unknown field "txet"`,
		`{"usage":{"in":""}}`:             `unknown field "in"`,
		`{"path":7}`:                      "path: a number cannot stand here",
		`{"path":"x"}`:                    `path: "x" does not begin with /`,
		`{"path":"/x","stream":"ndjson"}`: `stream: "ndjson" is not sse, lines or none`,
		`{"path":"/x","stream":"sse"}`:    "text: a stream needs a place for its text",
		`{"path":"/x","stream":"sse","text":"a"}`:                                             `text: JSON pointer "a" does not begin with /`,
		`{"path":"/x","stream":"sse","text":"/a","usage":{"output":["/u","/b~2"]}}`:           `usage.output: JSON pointer "/b~2": ~ stands only before 0 and 1`,
		`{"path":"/x","stream":"sse","text":"/a","body":"{\"p\":{{.Promt}}}"}`:                "body: template: body:1:",
		`{"path":"/x","stream":"sse","text":"/a","body":"{\"p\":{{.Prompt}"}`:                 "body: template: body:1:",
		`{"path":"/x","stream":"sse","text":"/a","body":"{\"p\":\"{{.Prompt}}\"}"}`:           "body: rendered body",
		`{"path":"/x","stream":"sse","text":"/a","body":"{\"p\":1}"}`:                         "body: neither .Prompt nor .Messages is sent",
		`{"path":"/x","stream":"sse","text":"/a","finish":"/~","body":"{\"p\":{{.Prompt}}}"}`: "finish: JSON pointer",
		`{"path":"/x","stream":"sse","text":{"a":1},"body":"{\"p\":{{.Prompt}}}"}`:            "a object cannot stand here",
	} {
		if _, err := ParseTemplate([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "protocol template: ") {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func FuzzTemplate(f *testing.F)           { fuzzProtocol(f, native, templateCases) }
func FuzzTemplateCumulative(f *testing.F) { fuzzProtocol(f, cumulative, templateCases) }
func FuzzTemplateLines(f *testing.F)      { fuzzProtocol(f, lines, templateCases) }

// A template that is taken renders every prompt as valid JSON.
func FuzzParseTemplate(f *testing.F) {
	f.Add([]byte(llamaCpp), "hi")
	f.Add([]byte(`{"path":"/g","stream":"none","text":["/0/a~0","/b"],"body":"{\"m\":{{.Messages}},\"x\":{{.Model}}}"}`), "\xff\u2028\"\\")
	f.Fuzz(func(t *testing.T, text []byte, prompt string) {
		p, err := ParseTemplate(text)
		if err != nil {
			return
		}
		body, err := p.AppendBody(nil, &Request{Model: "m", Prompt: [][]byte{EscapeText(nil, prompt)}, Stream: p.config.Stream != TemplateNone})
		if err == nil && !json.Valid(body) {
			t.Errorf("%s renders %s", text, body)
		}
	})
}

// An event costs no memory: a template is walked, not unmarshalled.
func TestTemplateEventsDoNotAllocate(t *testing.T) {
	r := NewResponse(native, true, 0)
	event := []byte("data: {\"content\":\" a\\n\",\"stop\":false,\"stop_type\":\"none\",\"tokens_predicted\":1,\"timings\":{\"cache_n\":2}}\n\n")
	r.Start(make([]results.Entry, 0, 2000))
	r.Head(200, "text/event-stream")
	if n := testing.AllocsPerRun(1000, func() {
		if err := r.Feed(event, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations an event", n)
	}
}
