package protocol

import (
	"bytes"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
	"reprise/trace/results"
)

// openAI decodes chat completions and completions as the OpenAI API describes
// them and as vLLM, SGLang, TGI, TensorRT-LLM, llama.cpp and gateways send
// them. Keys that it does not know are ignored.
type openAI struct {
	scratch
	stream bool         // a stream was asked for
	kind   results.Kind // of a choice's tokens without text, if known from the protocol
}

func (d *openAI) Reset() {}

// Event books one event. The order of the keys does not matter: an event is
// read whole before it is booked.
func (d *openAI) Event(e sse.Event, a *ledger.Account) {
	a.ExpectMarker()
	s, data, more := begin(e, a)
	if !more {
		return
	}
	p, ok := d.parse(data)
	if !ok {
		a.Malformed(s, data)
		return
	}
	d.common(&p, a)
	a.Chunk(s, d.deltas, p.usage)
}

// begin does what all protocols do with an event: it books the end marker and
// named errors. more is false if nothing is left to read.
func begin(e sse.Event, a *ledger.Account) (s ledger.Stamp, data []byte, more bool) {
	s = ledger.Stamp{At: e.At, Event: e.Index, SharedRead: e.SharedRead}
	data = bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return s, nil, false
	case string(data) == "[DONE]":
		a.Done()
		return s, nil, false
	case a.Ended():
		a.Note("events after the end marker")
	}
	if string(e.Name) == "error" {
		a.Error(errorCause(data))
		return s, nil, false
	}
	return s, data, true
}

// notObject books a body that is no JSON object.
func notObject(body []byte, a *ledger.Account) {
	a.Error("response is not a JSON object: " + quoteStart(bytes.TrimSpace(body)))
}

// Body books a whole response that came as one body.
func (d *openAI) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	if !ok || !p.object {
		notObject(body, a)
		return
	}
	d.common(&p, a)
	a.Body(d.deltas, p.usage, !d.stream)
}

// common books what events and bodies share.
func (d *openAI) common(p *payload, a *ledger.Account) {
	if p.err != nil {
		a.Error(errorCause(p.err))
	}
	if p.timings != nil {
		a.Timings(p.timings)
	}
}

// A payload is what an event says beside its deltas, which are in the scratch.
type payload struct {
	object  bool // it is a JSON object
	usage   ledger.Usage
	err     []byte // an error object or text, or the whole payload if it is one
	timings []byte // raw
}

// scratch is the memory of a decoder for one event.
type scratch struct {
	deltas []ledger.Delta
	tools  []ledger.Tool
	text   []byte // unescaped strings
}

func (d *scratch) clear() {
	d.deltas, d.tools, d.text = d.deltas[:0], d.tools[:0], d.text[:0]
}

// str takes a string from c as text; nil for any other value. The text is
// valid until the next event.
func (d *scratch) str(c *cursor) []byte {
	raw, ok := c.str()
	if !ok {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	start := len(d.text)
	d.text = appendUnescaped(d.text, raw)
	return d.text[start:len(d.text):len(d.text)]
}

// parse reads one payload; ok is false if it is not one JSON text.
func (d *openAI) parse(data []byte) (p payload, ok bool) {
	d.clear()
	c := cursor{b: data}
	p.object = c.object()
	isError := false
	for key, more := p.nextKey(&c); more; key, more = p.nextKey(&c) {
		switch string(key) {
		case "choices":
			d.choices(&c)
		case "usage":
			p.usage = openAIUsage(&c)
		case "error":
			if v := c.raw(); !empty(v) {
				p.err = v
				isError = isError || v[0] != '{' // a string: what it is stands beside it
			}
		case "object":
			raw, _ := c.str()
			isError = isError || string(raw) == "error" // vLLM before 0.10: {"object":"error","message":...}
		case "timings":
			p.timings = c.raw() // llama.cpp
		default:
			c.skip()
		}
	}
	if isError {
		p.err = data
	}
	return p, c.ended()
}

func (p *payload) nextKey(c *cursor) ([]byte, bool) {
	if !p.object {
		return nil, false
	}
	return c.key()
}

// empty says whether a raw value is null, or a string or an object that says
// nothing.
func empty(raw []byte) bool {
	switch string(raw) {
	case "", "null", `""`, "{}", "false":
		return true
	}
	return false
}

func (d *openAI) choices(c *cursor) {
	d.deltas = d.deltas[:0]
	if !c.array() {
		return
	}
	for n := int32(0); c.element(); n++ {
		d.deltas = append(d.deltas, ledger.Delta{Choice: n, Kind: d.kind})
		if !c.object() {
			continue
		}
		d.choice(c, &d.deltas[n])
	}
}

func (d *openAI) choice(c *cursor, delta *ledger.Delta) {
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "index":
			if n := c.count(); n.Known && n.Value < 1<<20 {
				delta.Choice = int32(n.Value)
			}
		case "delta", "message":
			if c.object() {
				d.message(c, delta)
			}
		case "text":
			delta.Content = d.str(c)
		case "finish_reason":
			delta.Finish = d.str(c)
		case "token_ids":
			delta.IDs = c.length()
		case "logprobs":
			delta.Logprobs = logprobs(c)
		default:
			c.skip()
		}
	}
}

func (d *openAI) message(c *cursor, delta *ledger.Delta) {
	start := len(d.tools)
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "role":
			_, delta.Role = c.str()
		case "content":
			if content := d.content(c); content != nil {
				delta.Content = content
				delta.Kind = results.KindContent
			}
		case "reasoning_content", "reasoning", "thinking": // the last: Ollama
			if text := d.str(c); len(text) > 0 && len(delta.Reasoning) == 0 { // some send both keys with one text
				delta.Reasoning = text
			}
		case "refusal":
			delta.Refusal = d.str(c)
		case "tool_calls":
			d.toolCalls(c)
		case "function_call":
			if c.object() {
				d.tools = append(d.tools, ledger.Tool{})
				d.function(c, len(d.tools)-1)
			}
		default:
			c.skip()
		}
	}
	delta.Tools = d.tools[start:len(d.tools):len(d.tools)]
	if len(delta.Content) == 0 && (len(delta.Tools) > 0 || delta.Role) {
		delta.Kind = "" // an empty content beside a role or a tool call says nothing
	}
}

// content takes a text, or the texts of a list of parts.
func (d *openAI) content(c *cursor) []byte {
	if c.peek() != '[' {
		return d.str(c)
	}
	var parts []byte
	for c.array(); c.element(); {
		if !c.object() {
			continue
		}
		for key, ok := c.key(); ok; key, ok = c.key() {
			if string(key) == "text" {
				parts = append(parts, d.str(c)...)
			} else {
				c.skip()
			}
		}
	}
	return parts
}

// toolCalls takes fragments of tool calls. A fragment without an index belongs
// to the call at its place in the list (Ollama).
func (d *openAI) toolCalls(c *cursor) {
	if !c.array() {
		return
	}
	for n := int32(0); c.element(); n++ {
		d.tools = append(d.tools, ledger.Tool{Index: n})
		at := len(d.tools) - 1
		if !c.object() {
			continue
		}
		for key, ok := c.key(); ok; key, ok = c.key() {
			switch string(key) {
			case "index":
				if i := c.count(); i.Known && i.Value < 1<<20 {
					d.tools[at].Index = int32(i.Value)
				}
			case "id":
				d.tools[at].ID = d.str(c)
			case "function":
				if c.object() {
					d.function(c, at)
				}
			default:
				c.skip()
			}
		}
	}
}

func (d *openAI) function(c *cursor, at int) {
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "name":
			d.tools[at].Name = d.str(c)
		case "arguments":
			if c.peek() == '"' {
				d.tools[at].Arguments = d.str(c)
			} else if raw := c.raw(); !empty(raw) {
				d.tools[at].Arguments = raw // an object instead of its text
			}
		default:
			c.skip()
		}
	}
}

// logprobs counts log-probability entries: content and refusal in chat,
// tokens in completions.
func logprobs(c *cursor) (n trace.Optional[int32]) {
	if !c.object() {
		return n
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "content", "refusal", "tokens":
			if l := c.length(); l.Known {
				n = trace.Some(n.Value + l.Value)
			}
		default:
			c.skip()
		}
	}
	return n
}

// openAIUsage reads a usage object. total_tokens is ignored: some servers send
// 0 there.
func openAIUsage(c *cursor) (u ledger.Usage) {
	if !c.object() {
		return u
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			u.Input = c.count()
		case "completion_tokens", "output_tokens":
			u.Output = c.count()
		case "prompt_tokens_details", "input_tokens_details":
			u.Cached = member(c, "cached_tokens")
		case "completion_tokens_details", "output_tokens_details":
			if n := member(c, "reasoning_tokens"); n.Known {
				u.Reasoning = n
			}
		case "reasoning_tokens": // SGLang
			if n := c.count(); n.Known && !u.Reasoning.Known {
				u.Reasoning = n
			}
		default:
			c.skip()
		}
	}
	return u
}

// member returns one count of an object and skips the others.
func member(c *cursor, name string) (n trace.Optional[int64]) {
	if !c.object() {
		return n
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		if string(key) == name {
			n = c.count()
		} else {
			c.skip()
		}
	}
	return n
}
