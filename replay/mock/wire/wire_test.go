package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
)

var blocks4 = Template{BlockTokens: 4}

func parse(t *testing.T, op Operation, template Template, body string) *Request {
	t.Helper()
	r, err := Parse([]byte(body), op, template)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

func TestParseReadsEveryField(t *testing.T) {
	got := parse(t, Chat, blocks4, ` {"model":"m", "stream":true,"n":2,"max_completion_tokens":7,"min_tokens":3,"ignore_eos":true,
		"stream_options":{"include_usage":true,"continuous_usage_stats":true},"return_token_ids":true,"temperature":0.5,
		"mock_fault":"reset","tool_choice":null,"m\u0065ssages":[{"role":"user","content":"one two"}]} `)
	want := &Request{
		Model: "m", Stream: true, Choices: 2, MaxTokens: trace.Some[int64](7), MinTokens: 3, IgnoreEOS: true,
		StreamOptions: true, IncludeUsage: true, ContinuousUsage: true, TokenIDs: true, Fault: "reset",
		Fields: []string{"model", "stream", "n", "max_completion_tokens", "min_tokens", "ignore_eos", "stream_options", "return_token_ids", "temperature", "mock_fault", "tool_choice", "messages"},
		Prompt: Prompt{Tokens: 2, Hash: got.Prompt.Hash},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestTokensOfEachShape(t *testing.T) {
	framed := Template{BlockTokens: 4, Prefix: 3, Suffix: 2, PerMessage: 5}
	tests := []struct {
		name     string
		op       Operation
		template Template
		body     string
		tokens   int
	}{
		{"text", Completion, framed, `{"prompt":" a  b\nc\td "}`, 4},
		{"empty", Completion, framed, `{"prompt":""}`, 0},
		{"token ids", Completion, framed, `{"prompt":[5,6,7]}`, 3},
		{"one prompt in a list", Completion, framed, `{"prompt":["a b"]}`, 2},
		{"ids in a list", Completion, framed, `{"prompt":[[5,6,7]]}`, 3},
		{"chat", Chat, blocks4, `{"messages":[{"role":"user","content":"a b"},{"content":"c","role":"assistant"}]}`, 3},
		{"chat template", Chat, framed, `{"messages":[{"role":"user","content":"a b"},{"role":"user","content":"c"}]}`, 3 + 2 + 2*5 + 3},
		{"parts", Chat, blocks4, `{"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"image_url","image_url":{"url":"data:,x"}}]}]}`, 3},
		{"null content, tool calls", Chat, blocks4, `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id": "x"}]}]}`, 2},
		{"tools", Chat, blocks4, `{"messages":[],"tools":[{"a": 1}, 2]}`, 3},
		{"responses text", Responses, framed, `{"input":"a b","instructions":"c"}`, 3 + 2 + 2*5 + 3},
		{"responses items", Responses, blocks4, `{"input":[{"role":"user","content":[{"type":"input_text","text":"a b c"}]},{"type":"function_call_output","output":"d"}]}`, 4},
		{"messages", Messages, blocks4, `{"system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":"a"}],"max_tokens":5}`, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := parse(t, test.op, test.template, test.body).Prompt; got.Tokens != test.tokens || len(got.Blocks) != got.Tokens/4 {
				t.Errorf("%d tokens, %d blocks; want %d tokens in blocks of 4", got.Tokens, len(got.Blocks), test.tokens)
			}
		})
	}
}

func TestParseErrorsNameTheField(t *testing.T) {
	tests := []struct {
		op   Operation
		body string
		want string
	}{
		{Chat, ``, "not valid JSON: want an object at byte 0"},
		{Chat, `{"messages":[]`, "not valid JSON: want a comma or } at byte 14"},
		{Chat, `{"messages":[]}x`, "not valid JSON: want the end at byte 15"},
		{Chat, `{"model":"m"}`, "messages: missing"},
		{Chat, `{"messages":7}`, "messages: want a list"},
		{Chat, `{"messages":["x"]}`, "messages: want a list of objects"},
		{Chat, `{"messages":[{"content":3}]}`, "content: want text or a list of parts"},
		{Chat, `{"messages":[],"max_tokens":"7"}`, `max_tokens: want a whole number, got "7"`},
		{Completion, `{}`, "prompt: missing"},
		{Completion, `{"prompt":{}}`, "prompt: want text or token ids"},
		{Completion, `{"prompt":["a","b"]}`, ErrPrompts.Error()},
	}
	for _, test := range tests {
		if _, err := Parse([]byte(test.body), test.op, blocks4); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.body, err, test.want)
		}
	}
}

// completion returns the prompt of text, with or without escapes for all that
// is not ASCII.
func completion(t testing.TB, text string, ascii bool) Prompt {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if ascii {
		var b strings.Builder
		for _, r := range string(quoted) {
			switch {
			case r < 0x80:
				b.WriteRune(r)
			case r < 0x10000:
				fmt.Fprintf(&b, `\u%04X`, r)
			default:
				fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			}
		}
		quoted = []byte(b.String())
	}
	r, err := Parse(slices.Concat([]byte(`{"prompt":`), quoted, []byte("}")), Completion, blocks4)
	if err != nil {
		t.Fatal(err)
	}
	return r.Prompt
}

func TestBlocksNamePrefixes(t *testing.T) {
	base := completion(t, "a b c d e f g h i", false)
	if len(base.Blocks) != 2 {
		t.Fatalf("%d blocks of 9 words", len(base.Blocks))
	}
	tests := []struct {
		text   string
		shared int
	}{
		{"a b c d e f g h other end", 2},
		{"  a b\nc d e f\u00a0g h", 2}, // white space is not a token
		{"a b c d e f g x i", 1},
		{"a b c d ef g h i", 1},
		{"a b cd e f g h i j", 0},
		{"x b c d e f g h i", 0},
	}
	for _, test := range tests {
		got, shared := completion(t, test.text, false).Blocks, 0
		for shared < min(2, len(got)) && got[shared] == base.Blocks[shared] {
			shared++
		}
		if shared != test.shared {
			t.Errorf("%q shares %d blocks, want %d", test.text, shared, test.shared)
		}
	}
}

func TestModelsAndRolesShareNothing(t *testing.T) {
	body := `{"model":"%s","messages":[{"role":"%s","content":"a b c d"}]}`
	seen := map[uint64]bool{}
	for _, model := range []string{"x", "y"} {
		for _, role := range []string{"user", "system"} {
			seen[parse(t, Chat, blocks4, fmt.Sprintf(body, model, role)).Prompt.Blocks[0]] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d different first blocks, want 4", len(seen))
	}
}

func TestSeveralPromptsAreRefusedAsSuch(t *testing.T) {
	if _, err := Parse([]byte(`{"prompt":["a","b"]}`), Completion, blocks4); !errors.Is(err, ErrPrompts) {
		t.Errorf("error %v, want ErrPrompts", err)
	}
}

// FuzzWords holds the word count against strings.Fields, and the blocks of a
// text against those of the same text in escapes.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"a b", "", " \t\n\v\f\r ", "naïve caf\u00e9\u00a0x\u2003y\u3000z", "\u0085", "\\n \"q\" </>", "😀 b 😀", "\x00 \x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\ufffd")
		one := completion(t, text, false)
		if want := len(strings.Fields(text)); one.Tokens != want || len(one.Blocks) != want/4 {
			t.Fatalf("%q: %d tokens in %d blocks, want %d", text, one.Tokens, len(one.Blocks), want)
		}
		if two := completion(t, text, true); !reflect.DeepEqual(one, two) {
			t.Fatalf("%q: %v, in escapes %v", text, one, two)
		}
	})
}

// FuzzParse holds the scanner against encoding/json: both take the same bodies,
// and read the same model from them.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"a b"}],"x":[1,-2.5e+3,0.1,true,false,null,{}]}`,
		`{"prompt":["a"]}`, `{"prompt":[1,2]}`, `{"input":"x"}`, `[]`, `{`, `{"a":01}`, `{"a":1.}`, `{"a":"\ud800"}`, `{"a":"\x"}`, "{\"a\":\"\n\"}",
		`{"a":1,}`, `{"model":"a","model":"b"}`, `{"a":tru}`, `{"a":-}`, `{"m\u006fdel":"e"}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := walkObject(body, func(_, value []byte) error {
			if !json.Valid(value) {
				t.Fatalf("%q: took %q for a value", body, value)
			}
			return nil
		})
		valid := json.Valid(body) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{"))
		if (err == nil) != valid {
			t.Fatalf("%q: valid %v, scanner says %v", body, valid, err)
		}
		for _, op := range []Operation{Chat, Completion, Responses, Messages} {
			r, err := Parse(body, op, Template{BlockTokens: 2, Prefix: 1})
			if err != nil {
				continue
			}
			all := map[string]json.RawMessage{}
			if err := json.Unmarshal(body, &all); err != nil {
				t.Fatalf("%q: parsed, but %v", body, err)
			}
			var model string
			if json.Unmarshal(all["model"], &model) == nil && r.Model != model {
				t.Fatalf("%q: model %q, want %q", body, r.Model, model)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat(" word", 130_000) + `"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(body, Chat, Template{BlockTokens: 16}); err != nil {
			b.Fatal(err)
		}
	}
}
