package protocol

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"reprise/trace"
)

func TestAppendBody(t *testing.T) {
	pieces := [][]byte{[]byte("one"), []byte(` two\n`), []byte("three")}
	for _, c := range []struct {
		name string
		p    Protocol
		r    Request
		want string
	}{
		{"chat of pieces", Chat{}, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: trace.Some[int64](8), MinTokens: trace.Some[int64](8), IgnoreEOS: true},
			`{"model":"m","messages":[{"role":"user","content":"one two\nthree"}],"max_tokens":8,"min_tokens":8,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`},
		{"chat of messages", Chat{}, Request{Model: `a"b`, Messages: []byte(`[{"role":"user","content":"x"}]`), Tools: []byte(`[{"type":"function"}]`), Choices: 2},
			`{"model":"a\"b","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function"}],"n":2,"stream":false}`},
		{"completions, continuous usage", Completions{}, Request{Model: "m", Stream: true, Prompt: pieces, ContinuousUsage: true},
			`{"model":"m","prompt":"one two\nthree","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		{"extra members win", Chat{}, Request{Model: "m", Prompt: pieces, MaxTokens: trace.Some[int64](8), Extra: [][]byte{[]byte(`{"max_tokens": 9, "x":{"y":[1, 2]}}`), []byte(`{"x":1}`)}},
			`{"model":"m","messages":[{"role":"user","content":"one two\nthree"}],"stream":false,"max_tokens":9,"x":1}`},
		{"no model", Completions{}, Request{Prompt: pieces}, `{"prompt":"one two\nthree","stream":false}`},
		{"empty prompt", Completions{}, Request{Prompt: [][]byte{}}, `{"prompt":"","stream":false}`},

		{"messages", Messages{}, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: trace.Some[int64](8)},
			`{"model":"m","messages":[{"role":"user","content":"one two\nthree"}],"max_tokens":8,"stream":true}`},
		{"responses", Responses{}, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: trace.Some[int64](8)},
			`{"model":"m","input":[{"role":"user","content":"one two\nthree"}],"max_output_tokens":8,"stream":true}`},
		{"tgi", TGI{}, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: trace.Some[int64](8)},
			`{"inputs":"one two\nthree","parameters":{"max_new_tokens":8,"details":true}}`},
		{"sglang", SGLang{}, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: trace.Some[int64](8), MinTokens: trace.Some[int64](8), IgnoreEOS: true},
			`{"text":"one two\nthree","sampling_params":{"max_new_tokens":8,"min_new_tokens":8,"ignore_eos":true},"stream":true}`},
		{"sglang body", SGLang{}, Request{Stream: true, Body: []byte(`{"text":"x","sampling_params":{"temperature":0.5}}`), MaxTokens: trace.Some[int64](8)},
			`{"text":"x","sampling_params":{"temperature":0.5,"max_new_tokens":8},"stream":true}`},
		{"ollama", Ollama{}, Request{Model: "m", Stream: true, Prompt: pieces, MaxTokens: trace.Some[int64](8)},
			`{"model":"m","messages":[{"role":"user","content":"one two\nthree"}],"options":{"num_predict":8},"stream":true}`},
		{"embeddings", Embeddings{}, Request{Model: "m", Prompt: pieces, MaxTokens: trace.Some[int64](8)},
			`{"model":"m","input":"one two\nthree"}`},

		{"body keeps its bytes", Chat{}, Request{Model: "new", Stream: true, Body: []byte(" {\n  \"temperature\": 0.70,\n  \"model\" : \"old\",\n  \"messages\": [ ],\n  \"stream\": false\n}\n")},
			" {\n  \"temperature\": 0.70,\n  \"model\" : \"new\",\n  \"messages\": [ ],\n  \"stream\": true,\"stream_options\":{\"include_usage\":true}\n}\n"},
		{"body keeps its model and options", Chat{}, Request{Stream: true, Body: []byte(`{"model":"old","stream":true,"stream_options":{"x":1,"include_usage":false}}`)},
			`{"model":"old","stream":true,"stream_options":{"x":1,"include_usage":true}}`},
		{"body without a stream has no options", Chat{}, Request{Body: []byte(`{"stream_options":{"include_usage":true}, "model":"m" , "stream":true}`)},
			`{ "model":"m" , "stream":false}`},
		{"body keeps the name of its limit", Chat{}, Request{Body: []byte(`{"max_completion_tokens":5,"stream":false}`), MaxTokens: trace.Some[int64](7)},
			`{"max_completion_tokens":7,"stream":false}`},
		{"empty body", Chat{}, Request{Model: "m", Body: []byte(`{}`)}, `{"model":"m","stream":false}`},
		{"extra over body", Chat{}, Request{Model: "m", Body: []byte(`{"a":1,"model":"x"}`), Extra: [][]byte{[]byte(`{"model":"y","b":2}`)}},
			`{"a":1,"model":"y","stream":false,"b":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.p.AppendBody([]byte("keep"), &c.r)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "keep"+c.want {
				t.Errorf("\n got %s\nwant %s", got[4:], c.want)
			}
			if !json.Valid(got[4:]) {
				t.Error("not valid JSON")
			}
		})
	}
}

func TestAppendBodyRefuses(t *testing.T) {
	for _, c := range []struct {
		p    Protocol
		r    Request
		want string
	}{
		{Chat{}, Request{}, "no prompt, messages or body"},
		{Chat{}, Request{Prompt: [][]byte{}, Body: []byte("{}")}, "more than one"},
		{Completions{}, Request{Messages: []byte("[]")}, "protocol completions sends a prompt"},
		{Messages{}, Request{Prompt: [][]byte{}}, "needs a limit of output tokens"},
		{Ollama{}, Request{Prompt: [][]byte{}, IgnoreEOS: true}, "cannot ignore the end token"},
		{TGI{}, Request{Prompt: [][]byte{}, MinTokens: trace.Some[int64](1)}, "cannot ask for an exact output length"},
		{TGI{}, Request{Prompt: [][]byte{}}, "only streams"},
		{Responses{}, Request{Prompt: [][]byte{}, Choices: 3}, "asks for 3"},
		{Chat{}, Request{Body: []byte(`[1]`)}, "is not a JSON object"},
		{Chat{}, Request{Body: []byte(`{"a":`)}, "is not valid JSON"},
		{Chat{}, Request{Prompt: [][]byte{}, Extra: [][]byte{[]byte(`{"a":1`)}}, "extra body"},
		{Chat{}, Request{Prompt: [][]byte{}, Extra: [][]byte{[]byte(`7`)}}, "extra body"},
	} {
		got, err := c.p.AppendBody(nil, &c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %q, error %v", c.r, got, err)
		}
	}
}

func TestByName(t *testing.T) {
	for _, p := range All {
		if got, err := ByName(p.Name()); err != nil || got != p {
			t.Errorf("%s: %v, %v", p.Name(), got, err)
		}
	}
	_, err := ByName("chatt")
	if err == nil || !strings.Contains(trace.Fix(err), "chat") {
		t.Errorf("no way out of %v", err)
	}
}

// FuzzEdit: an edited body is the body with the fields set, for every body
// that encoding/json reads.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{`{}`, `{"model":"a"}`, ` { "stream" : true , "x":[1,{"model":2}],"model":"a","stream_options":{}}`, `{"model":1,"model":2}`, `[`, `{"stream_options":1}`, `{"a":1,"stream_options":null,"b":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := appendEdited(nil, body, []field{{"model", []byte(`"new"`)}, {"stream", jsonTrue}, {"stream_options", nil}})
		var want map[string]json.RawMessage
		if wantErr := json.Unmarshal(body, &want); wantErr != nil || want == nil {
			if err == nil && !errors.As(wantErr, new(*json.UnmarshalTypeError)) {
				t.Fatalf("%q accepted as %q", body, out)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		want["model"], want["stream"] = json.RawMessage(`"new"`), json.RawMessage("true")
		delete(want, "stream_options")
		var got map[string]json.RawMessage
		if err := json.Unmarshal(out, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
	})
}
