package mock

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// created hides the one thing in an answer that is of the day.
var created = regexp.MustCompile(`("created(_at)?":)\d+`)

// identity of chat events, which the tables leave out.
const chatHead = `{"id":"chatcmpl-7","object":"chat.completion.chunk","created":0,"model":"mock",`

// shape returns an answer's events or body in a form to compare.
func (a answer) shape() []string {
	lines := a.texts()
	if a.events == nil {
		lines = []string{strings.TrimSuffix(a.body, "\n")}
	}
	for i, line := range lines {
		lines[i] = strings.Replace(created.ReplaceAllString(line, "${1}0"), chatHead, "{", 1)
	}
	return lines
}

func TestStreamShapes(t *testing.T) {
	const one = `"model":"mock","stream":true,"max_tokens":2,"ignore_eos":true`
	const message = `,"messages":[{"role":"user","content":"a b c"}]`
	const asked = `,"stream_options":{"include_usage":true}`
	const running = `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	const role = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`
	const first = `{"choices":[{"index":0,"delta":{"content":"than"},"logprobs":null,"finish_reason":null}]}`
	const second = `{"choices":[{"index":0,"delta":{"content":" will"},"logprobs":null,"finish_reason":null}]}`
	const fin = `{"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}`
	const use = `{"choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`
	const done = `[DONE]`
	counted := func(event string, n int) string {
		return strings.TrimSuffix(event, "}") + fmt.Sprintf(`,"usage":{"prompt_tokens":3,"total_tokens":%d,"completion_tokens":%d}}`, 3+n, n)
	}
	tests := []struct {
		name   string
		config Config
		path   string
		body   string
		want   []string
	}{
		{"chat", Config{}, "chat/completions", one + message, []string{role, first, second, fin, done}},
		{"chat, final usage", Config{}, "chat/completions", one + message + asked, []string{role, first, second, fin, use, done}},
		{"chat, running usage", Config{}, "chat/completions", one + message + running,
			[]string{counted(role, 0), counted(first, 1), counted(second, 2), counted(fin, 2), use, done}},
		{"chat, running usage forced", Config{Usage: UsageRunning}, "chat/completions", one + message,
			[]string{counted(role, 0), counted(first, 1), counted(second, 2), counted(fin, 2), use, done}},
		{"chat, final usage only", Config{Usage: UsageFinal}, "chat/completions", one + message + running, []string{role, first, second, fin, use, done}},
		{"chat, no usage", Config{Usage: UsageNone}, "chat/completions", one + message + running, []string{role, first, second, fin, done}},
		{"chat, no role", Config{Role: RoleNone, TokensPerChunk: 2}, "chat/completions", one + message,
			[]string{`{"choices":[{"index":0,"delta":{"content":"than will"},"logprobs":null,"finish_reason":null}]}`, fin, done}},
		{"chat, role and finish with tokens", Config{Role: RoleWithFirst, FinishWithLast: true}, "chat/completions", one + message, []string{
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":"than"},"logprobs":null,"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"content":" will"},"logprobs":null,"finish_reason":"length"}]}`, done}},
		{"chat, reasoning", Config{ReasoningShare: 0.5, ReasoningKey: "reasoning"}, "chat/completions", one + message + asked, []string{role,
			`{"choices":[{"index":0,"delta":{"reasoning":"with"},"logprobs":null,"finish_reason":null}]}`, first, fin,
			`{"choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":1}}}`, done}},
		{"chat, both kinds in one event", Config{ReasoningShare: 0.5, TokensPerChunk: 2}, "chat/completions", one + message, []string{role,
			`{"choices":[{"index":0,"delta":{"reasoning_content":"with","content":"than"},"logprobs":null,"finish_reason":null}]}`, fin, done}},
		{"chat, token ids", Config{TokensPerChunk: 2}, "chat/completions", one + message + `,"return_token_ids":true`, []string{role,
			`{"choices":[{"index":0,"delta":{"content":"than will"},"logprobs":null,"finish_reason":null,"token_ids":[55,44]}]}`, fin, done}},
		{"completions", Config{}, "completions", one + `,"prompt":"a b c"` + asked, []string{
			`{"id":"cmpl-7","object":"text_completion","created":0,"model":"mock","choices":[{"index":0,"text":"when","logprobs":null,"finish_reason":null}]}`,
			`{"id":"cmpl-7","object":"text_completion","created":0,"model":"mock","choices":[{"index":0,"text":" were","logprobs":null,"finish_reason":null}]}`,
			`{"id":"cmpl-7","object":"text_completion","created":0,"model":"mock","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}`,
			`{"id":"cmpl-7","object":"text_completion","created":0,"model":"mock","choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
			done}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, test.config, func(r *rig) {
				got := r.post("/v1/"+test.path, "{"+test.body+"}", "X-Request-Id", "7").shape()
				if a, b := strings.Join(got, "\n"), strings.Join(test.want, "\n"); a != b {
					t.Errorf("got\n%s\nwant\n%s", a, b)
				}
			})
		})
	}
}

func TestWholeAnswers(t *testing.T) {
	bubble(t, Config{ReasoningShare: 0.25}, func(r *rig) {
		a := r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":8,"ignore_eos":true,"n":2}`)
		c := decode(t, a.body)
		if c.Object != "chat.completion" || c.Model != "mock" || len(c.Choices) != 2 {
			t.Fatalf("got %s", a.body)
		}
		for i, one := range c.Choices {
			if one.Index != i || words(one.Message.Content) != 6 || words(one.Message.Reasoning_content) != 2 || *one.Finish_reason != "length" {
				t.Errorf("choice %d: %+v", i, one)
			}
		}
		if c.Choices[0].Message.Content == c.Choices[1].Message.Content {
			t.Error("both choices say the same")
		}
		want := usage{Prompt_tokens: 3, Completion_tokens: 16, Total_tokens: 19}
		want.Completion_tokens_details.Reasoning_tokens = 4
		if *c.Usage != want {
			t.Errorf("usage %+v, want %+v", *c.Usage, want)
		}
		if a.end != 80*ms+600*time.Microsecond { // both choices' prefill in one step
			t.Errorf("end at %v", a.end)
		}
		c = decode(t, r.post("/v1/completions", `{"prompt":"a b c","max_tokens":8,"ignore_eos":true}`).body)
		if c.Object != "text_completion" || words(c.Choices[0].Text) != 8 || c.Usage.Completion_tokens != 8 {
			t.Errorf("completion %+v", c)
		}
	})
}

func TestSeveralChoicesInAStream(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		a := r.post("/v1/chat/completions", chat("a b", 5, `,"n":3,"stream_options":{"include_usage":true}`))
		var tokens [3]int
		finished, last := 0, chunk{}
		for _, text := range a.texts() {
			if text == "[DONE]" {
				continue
			}
			last = decode(t, text)
			for _, c := range last.Choices {
				if c.Delta.Content != nil {
					tokens[c.Index] += words(*c.Delta.Content)
				}
				if c.Finish_reason != nil {
					finished++
				}
			}
		}
		if tokens != [3]int{5, 5, 5} || finished != 3 || last.Usage.Completion_tokens != 15 || last.Usage.Prompt_tokens != 2 {
			t.Errorf("tokens %v, %d finished, usage %+v", tokens, finished, last.Usage)
		}
	})
}

// TestTextIsTheSameHoweverItIsSent joins streams of all cuts and holds them
// against the whole answer.
func TestTextIsTheSameHoweverItIsSent(t *testing.T) {
	texts := map[string]bool{}
	for _, per := range []int{1, 3, 100} {
		bubble(t, Config{TokensPerChunk: per, ReasoningShare: 0.3}, func(r *rig) {
			var thought, text strings.Builder
			for _, e := range r.post("/v1/chat/completions", chat("a b", 20, "")).texts() {
				if e == "[DONE]" {
					continue
				}
				for _, c := range decode(t, e).Choices {
					thought.WriteString(c.Delta.Reasoning_content)
					if c.Delta.Content != nil {
						text.WriteString(*c.Delta.Content)
					}
				}
			}
			texts[thought.String()+"|"+text.String()] = true
			whole := decode(t, r.post("/v1/chat/completions", strings.Replace(chat("a b", 20, ""), `"stream":true,`, "", 1)).body).Choices[0].Message
			texts[whole.Reasoning_content+"|"+whole.Content] = true
		})
	}
	if len(texts) != 1 {
		t.Errorf("%d different texts: %v", len(texts), texts)
	}
}

func TestOutputLength(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		body   string
		tokens int
		finish string
	}{
		{"ignore_eos", Config{FixedOutput: 3}, `"max_tokens":9,"ignore_eos":true`, 9, "length"},
		{"natural", Config{FixedOutput: 3}, `"max_tokens":9`, 3, "stop"},
		{"cut by the limit", Config{FixedOutput: 30}, `"max_completion_tokens":9`, 9, "length"},
		{"min_tokens", Config{FixedOutput: 3}, `"max_tokens":9,"min_tokens":5`, 5, "stop"},
		{"min is max", Config{FixedOutput: 3}, `"max_tokens":9,"min_tokens":9`, 9, "length"},
		{"min_tokens without a limit", Config{FixedOutput: 30, MaxOutput: 20}, `"min_tokens":25`, 25, "length"},
		{"no limit", Config{FixedOutput: 30, MaxOutput: 20}, `"ignore_eos":true`, 20, "length"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, test.config, func(r *rig) {
				c := decode(t, r.post("/v1/completions", `{"prompt":"a",`+test.body+`}`).body)
				if c.Usage.Completion_tokens != test.tokens || words(c.Choices[0].Text) != test.tokens || *c.Choices[0].Finish_reason != test.finish {
					t.Errorf("%d tokens, %s; want %d, %s", c.Usage.Completion_tokens, *c.Choices[0].Finish_reason, test.tokens, test.finish)
				}
			})
		})
	}
}

func TestNaturalLengthsAreSeeded(t *testing.T) {
	lengths := func(seed uint64, order []int) map[int]int {
		got := map[int]int{}
		bubble(t, Config{Seed: seed}, func(r *rig) {
			for _, i := range order {
				got[i] = decode(t, r.post("/v1/completions", fmt.Sprintf(`{"prompt":"p %d"}`, i)).body).Usage.Completion_tokens
			}
		})
		return got
	}
	one, two, other := lengths(1, []int{0, 1, 2, 3}), lengths(1, []int{3, 1, 0, 2}), lengths(2, []int{0, 1, 2, 3})
	if fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("the order changed lengths: %v and %v", one, two)
	}
	if fmt.Sprint(one) == fmt.Sprint(other) || one[0] == one[1] {
		t.Errorf("lengths %v, with another seed %v", one, other)
	}
}

func TestTemplateOverheadIsCounted(t *testing.T) {
	bubble(t, Config{TemplatePrefix: 5, TemplateSuffix: 3, TemplatePerMessage: 4}, func(r *rig) {
		body := `{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b c"}],"max_tokens":1}`
		if got := decode(t, r.post("/v1/chat/completions", body).body).Usage.Prompt_tokens; got != 5+3+2*4+3 {
			t.Errorf("%d prompt tokens, want 19", got)
		}
		if got := decode(t, r.post("/v1/completions", `{"prompt":"a b","max_tokens":1}`).body).Usage.Prompt_tokens; got != 2 {
			t.Errorf("%d prompt tokens of a completion, want 2", got)
		}
	})
}

func TestResponses(t *testing.T) {
	bubble(t, Config{ReasoningShare: 0.5}, func(r *rig) {
		body := `{"input":[{"role":"user","content":"a b c"}],"max_output_tokens":4,"ignore_eos":true`
		a := r.post("/v1/responses", body+`,"stream":true}`)
		var types []string
		var last struct {
			Type     string
			Sequence int `json:"sequence_number"`
			Delta    string
			Response json.RawMessage
		}
		var thought, text string
		for i, e := range a.texts() {
			if err := json.Unmarshal([]byte(e), &last); err != nil {
				t.Fatalf("%s: %v", e, err)
			}
			if last.Sequence != i {
				t.Errorf("event %d has number %d", i, last.Sequence)
			}
			types = append(types, strings.TrimPrefix(last.Type, "response."))
			switch last.Type {
			case "response.reasoning_text.delta":
				thought += last.Delta
			case "response.output_text.delta":
				text += last.Delta
			}
		}
		want := "created in_progress " +
			"output_item.added content_part.added reasoning_text.delta reasoning_text.delta reasoning_text.done content_part.done output_item.done " +
			"output_item.added content_part.added output_text.delta output_text.delta output_text.done content_part.done output_item.done incomplete"
		if got := strings.Join(types, " "); got != want {
			t.Errorf("events %s\nwant   %s", got, want)
		}
		type response struct {
			Status string
			Output []struct {
				Type    string
				Content []struct{ Text string }
			}
			Usage struct {
				Input  int `json:"input_tokens"`
				Output int `json:"output_tokens"`
				Total  int `json:"total_tokens"`
				Detail struct {
					Reasoning int `json:"reasoning_tokens"`
				} `json:"output_tokens_details"`
			}
		}
		var streamed, whole response
		if err := json.Unmarshal(last.Response, &streamed); err != nil {
			t.Fatal(err)
		}
		if u := streamed.Usage; u.Input != 3 || u.Output != 4 || u.Total != 7 || u.Detail.Reasoning != 2 {
			t.Errorf("usage %+v", u)
		}
		if streamed.Output[0].Content[0].Text != thought || streamed.Output[1].Content[0].Text != text || words(text) != 2 {
			t.Errorf("output %+v, deltas %q and %q", streamed.Output, thought, text)
		}
		if err := json.Unmarshal([]byte(r.post("/v1/responses", body+"}").body), &whole); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(whole) != fmt.Sprint(streamed) {
			t.Errorf("whole    %+v\nstreamed %+v", whole, streamed)
		}
	})
}

func TestMessages(t *testing.T) {
	bubble(t, Config{ReasoningShare: 0.5}, func(r *rig) {
		body := `{"model":"mock","system":"a","messages":[{"role":"user","content":"b c"}],"max_tokens":2,"ignore_eos":true`
		a := r.post("/v1/messages", body+`,"stream":true}`, "X-Request-Id", "7")
		want := []string{
			`{"type":"message_start","message":{"id":"msg_7","type":"message","role":"assistant","model":"mock","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"T"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"bW9jaw=="}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"T"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`,
		}
		word := regexp.MustCompile(`("thinking"|"text"):"[a-z]+"}}`)
		for i, got := range a.texts() {
			if got = word.ReplaceAllString(got, `$1:"T"}}`); i >= len(want) || got != want[i] {
				t.Errorf("event %d: %s", i, got)
			}
		}
		if len(a.events) != len(want) {
			t.Errorf("%d events, want %d", len(a.events), len(want))
		}
		var whole struct {
			Content []struct{ Type, Text, Thinking string }
			Stop    string         `json:"stop_reason"`
			Usage   map[string]int `json:"usage"`
		}
		if err := json.Unmarshal([]byte(r.post("/v1/messages", body+"}").body), &whole); err != nil {
			t.Fatal(err)
		}
		if len(whole.Content) != 2 || words(whole.Content[0].Thinking) != 1 || words(whole.Content[1].Text) != 1 ||
			whole.Stop != "max_tokens" || whole.Usage["output_tokens"] != 2 {
			t.Errorf("whole %+v", whole)
		}
	})
}
