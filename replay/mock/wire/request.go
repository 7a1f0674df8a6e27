// Package wire reads the requests that the mock server gets: what to generate,
// how to answer, and the prompt as counted words and named prefix blocks. A
// body is scanned in place, so that prompts of a hundred thousand words are cheap.
//
// It follows the OpenAI API (chat completions, completions, responses) with
// vLLM's extra fields (ignore_eos, min_tokens, stream_options.
// continuous_usage_stats, return_token_ids), and Anthropic's messages.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"reprise/trace"
)

// An Operation is what an endpoint does, in the words of trace.Request.
type Operation string

// The operations that generate text.
const (
	Chat       Operation = trace.OpChat
	Completion Operation = trace.OpCompletion
	Responses  Operation = trace.OpResponses
	Messages   Operation = trace.OpMessages
)

// A Request is one request to generate text.
type Request struct {
	Model     string // "" if not given
	Stream    bool
	Choices   int                   // n; 1 if not given
	MaxTokens trace.Optional[int64] // most tokens to generate
	MinTokens int64                 // fewest; 0 if not given
	IgnoreEOS bool                  // generate MaxTokens, whatever the model would say

	StreamOptions   bool // stream_options was given
	IncludeUsage    bool // a last event with the usage
	ContinuousUsage bool // running usage in every event (vLLM)
	TokenIDs        bool // token ids in every event (vLLM's return_token_ids)

	Fault  string   // field mock_fault: a fault to inject, in the caller's grammar
	Fields []string // names of all fields, in the order sent

	Prompt Prompt
}

// A Template says how prompts are counted.
type Template struct {
	BlockTokens int // tokens per prefix block; at least 1
	Prefix      int // tokens before each chat, responses or messages prompt
	Suffix      int // tokens after it
	PerMessage  int // tokens before each message
}

// ErrPrompts means a completions request with several prompts.
var ErrPrompts = errors.New("prompt: one prompt per request is served here")

// Names of template tokens: any value that no word can have.
const (
	prefixToken = iota + 1
	suffixToken
	messageToken
	partToken
)

// fields has the parts of a body that make the prompt, as raw JSON. They are
// gathered first and counted in the order of a chat template, whatever the
// order in which they were sent.
type fields struct {
	prompt, messages, system, tools []byte
}

// Parse reads the body of a request. An error names what is wrong with it, for
// a status of 400.
func Parse(body []byte, op Operation, t Template) (*Request, error) {
	r := &Request{Choices: 1}
	var f fields
	err := walkObject(body, func(key, value []byte) error {
		name := string(key)
		r.Fields = append(r.Fields, name)
		if string(value) == "null" {
			return nil
		}
		return r.field(&f, op, name, value)
	})
	if err != nil {
		return nil, err
	}
	c := newCounter(max(t.BlockTokens, 1), r.Model)
	if op == Completion {
		err = c.completion(f.prompt)
	} else {
		err = c.conversation(&f, t)
	}
	r.Prompt = c.done()
	return r, err
}

// field takes one field of the body.
func (r *Request) field(f *fields, op Operation, name string, value []byte) error {
	switch name {
	case "model":
		return set(name, value, &r.Model)
	case "stream":
		return set(name, value, &r.Stream)
	case "n":
		return set(name, value, &r.Choices)
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		r.MaxTokens.Known = true
		return set(name, value, &r.MaxTokens.Value)
	case "min_tokens":
		return set(name, value, &r.MinTokens)
	case "ignore_eos":
		return set(name, value, &r.IgnoreEOS)
	case "return_token_ids":
		return set(name, value, &r.TokenIDs)
	case "mock_fault":
		return set(name, value, &r.Fault)
	case "stream_options":
		var o struct {
			IncludeUsage    bool `json:"include_usage"`
			ContinuousUsage bool `json:"continuous_usage_stats"`
		}
		err := set(name, value, &o)
		r.StreamOptions, r.IncludeUsage, r.ContinuousUsage = true, o.IncludeUsage, o.ContinuousUsage
		return err
	case "prompt":
		f.prompt = value
	case "tools":
		f.tools = value
	case "messages":
		f.messages = value
	case "input":
		if op == Responses {
			f.messages = value
		}
	case "system", "instructions":
		f.system = value
	}
	return nil
}

func set[T any](name string, value []byte, to *T) error {
	if json.Unmarshal(value, to) == nil {
		return nil
	}
	want := "an object"
	switch any(to).(type) {
	case *string:
		want = "text"
	case *bool:
		want = "true or false"
	case *int, *int64:
		want = "a whole number"
	}
	if len(value) > 40 {
		value = append(value[:40:40], "..."...)
	}
	return fmt.Errorf("%s: want %s, got %s", name, want, value)
}

// completion counts the prompt of a completions request: text, token ids, or a
// list of one of either.
func (c *counter) completion(prompt []byte) error {
	switch {
	case prompt == nil:
		return errors.New("prompt: missing")
	case prompt[0] == '"':
		c.text(inner(prompt))
		return nil
	case prompt[0] != '[':
		return errors.New("prompt: want text or token ids")
	}
	n := 0
	return walkArray(prompt, func(value []byte) error {
		n++
		if value[0] >= '0' && value[0] <= '9' {
			id, err := strconv.ParseUint(string(value), 10, 64)
			if err != nil {
				return fmt.Errorf("prompt: token id %s", value)
			}
			c.token(id << 8)
			return nil
		}
		if n > 1 {
			return ErrPrompts
		}
		return c.completion(value)
	})
}

// conversation counts tools, system prompt and messages with the template's
// tokens.
func (c *counter) conversation(f *fields, t Template) error {
	if f.messages == nil {
		return errors.New("messages: missing")
	}
	c.tokens(prefixToken, t.Prefix)
	if f.tools != nil {
		c.json(f.tools)
	}
	if f.system != nil {
		if err := c.message([]byte("system"), f.system, nil, t); err != nil {
			return err
		}
	}
	var err error
	switch f.messages[0] {
	case '"':
		err = c.message([]byte("user"), f.messages, nil, t)
	case '[':
		err = walkArray(f.messages, func(value []byte) error { return c.element(value, t) })
	default:
		err = errors.New("messages: want a list")
	}
	c.tokens(suffixToken, t.Suffix)
	return err
}

// element counts one message of a list.
func (c *counter) element(value []byte, t Template) error {
	if value[0] != '{' {
		return errors.New("messages: want a list of objects")
	}
	var role, content, calls []byte
	err := walkObject(value, func(key, value []byte) error {
		switch string(key) {
		case "role":
			role = value
		case "content", "output", "arguments":
			content = value
		case "tool_calls":
			calls = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.message(role, content, calls, t)
}

// message counts one message: text or parts, then tool calls as they were sent.
func (c *counter) message(role, content, calls []byte, t Template) error {
	c.mark(role)
	c.tokens(messageToken, t.PerMessage)
	if content != nil && string(content) != "null" {
		if err := c.content(content); err != nil {
			return err
		}
	}
	if calls != nil && string(calls) != "null" {
		c.json(calls)
	}
	return nil
}

// content counts text, or a list of parts: the text of text parts; any other
// part (an image, say) is one token.
func (c *counter) content(value []byte) error {
	switch value[0] {
	case '"':
		c.text(inner(value))
		return nil
	case '[':
		return walkArray(value, c.part)
	}
	return errors.New("content: want text or a list of parts")
}

func (c *counter) part(value []byte) error {
	if value[0] == '"' {
		c.text(inner(value))
		return nil
	}
	if value[0] != '{' {
		return errors.New("content: want a list of text or objects")
	}
	var text []byte
	err := walkObject(value, func(key, value []byte) error {
		if string(key) == "text" && value[0] == '"' {
			text = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if text != nil {
		c.text(inner(text))
		return nil
	}
	c.mark(value)
	c.token(partToken)
	return nil
}

func (c *counter) tokens(id uint64, n int) {
	for range n {
		c.token(id)
	}
}

// inner returns a string without its quotes.
func inner(s []byte) []byte { return s[1 : len(s)-1] }
