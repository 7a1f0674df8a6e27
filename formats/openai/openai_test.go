package openai_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"reprise/formats/openai"
	"reprise/trace"
)

func TestRequest(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url"},{"type":"image_url"}]}],"max_tokens":9,"stream":true,"n":2}`: "chat m 9 true 2 [{image {2 true} {0 false}}]",
		`{"prompt":"x","max_completion_tokens":5,"max_tokens":7}`:                   "completion  5 false 0 []",
		`{"inputs":"x","parameters":{"max_new_tokens":64}}`:                         "completion  64 false 0 []",
		`{"model":"m","input":"x","max_output_tokens":3,"stream":false}`:            "responses m 3 false 0 []",
		`{"anthropic_version":"a","max_tokens":3,"messages":[],"model":7,"n":"x"}`:  "messages  3 false 0 []",
		`{"messages":"x","max_tokens":"many","parameters":[],"max_new_tokens":1.5}`: "chat  0 false 0 []",
	} {
		var r trace.Request
		if err := openai.Request([]byte(body), &r); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if got := fmt.Sprint(r.Operation, " ", r.Model.Value, " ", r.MaxOutputTokens.Value, " ", r.Streaming.Value, " ", r.Choices.Value, " ", r.Media); got != want || r.Body.Value == "" {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for _, body := range []string{"", "[]", `"x"`, `{"a":`} {
		if err := openai.Request([]byte(body), new(trace.Request)); err == nil {
			t.Errorf("%q was read", body)
		}
	}
}

func TestResponse(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}`: `5 2 4 1 "hi" "" stop ok [id model usage]`,
		`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}]}`:                                                                                                                                                       `0 0 0 0 "" "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"x\"}]}" tool_calls ok []`,
		`{"choices":[{"index":0,"text":"a"},{"index":1,"text":"b"}]}`: `0 0 0 0 "a" ""   [choices]`,
		`{"content":[{"type":"text","text":"a"},{"type":"tool_use"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":10}}`: `3 2 10 0 "a" "" end_turn ok [content usage]`,
		`{"output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}],"usage":{"input_tokens":3,"output_tokens":2}}`:    `3 2 0 0 "ab" ""   [output usage]`,
		`{"error":{"message":"x"}}`: `0 0 0 0 "" ""  error [error]`,
		"data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n": `7 2 0 0 "ab" "" length ok []`,
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{}]}}]}\n": `0 0 0 0 "" ""   [stream]`,
	} {
		var r trace.Request
		rest, err := openai.Response([]byte(body), &r)
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		got := fmt.Sprintf("%d %d %d %d %q %q %s %s %v", r.InputTokens.Value, r.OutputTokens.Value, r.CachedTokens.Value, r.ReasoningTokens.Value, r.OutputText.Value, r.OutputMessage.Value, r.FinishReason.Value, r.Status.Value, slices.Sorted(maps.Keys(rest)))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
	for _, body := range []string{"", "plain text", "[1]", `{"a":`, `{"usage":{"prompt_tokens":-1}}`, "data: x\n"} {
		if _, err := openai.Response([]byte(body), new(trace.Request)); err == nil {
			t.Errorf("%q was read", body)
		}
	}
}

// Anthropic's input leaves out what came from the cache.
func TestAnthropicInput(t *testing.T) {
	r := trace.Request{Operation: trace.OpMessages}
	if _, err := openai.Response([]byte(`{"usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":10,"cache_creation_input_tokens":20}}`), &r); err != nil || r.InputTokens.Value != 33 {
		t.Errorf("%v, %v", r.InputTokens, err)
	}
}

func FuzzResponse(f *testing.F) {
	f.Add(`{"choices":[{"index":0,"message":{"content":"hi"}}],"usage":{"prompt_tokens":5}}`)
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n")
	f.Fuzz(func(t *testing.T, body string) {
		var r trace.Request
		rest, err := openai.Response([]byte(body), &r)
		if err == nil && rest == nil && !r.OutputText.Known {
			t.Errorf("%q left nothing", body)
		}
		openai.Request([]byte(body), &r)
	})
}
