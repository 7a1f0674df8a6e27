package protocol

import (
	"sync"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace/results"
)

// openAI decodes chat completions and completions as the OpenAI API describes
// them and as vLLM, SGLang, TGI, TensorRT-LLM, llama.cpp and gateways send
// them. Keys that it does not know are ignored.
type openAI struct {
	stream bool         // a stream was asked for
	kind   results.Kind // of a choice's tokens without text, if known from the protocol
	like   likeness     // the event before
}

// An openAIReading is one event or body that is read in full. Most events are not,
// so that all decoders share the memory for it.
type openAIReading struct {
	scratch
	kind results.Kind
	read payload
}

var openAIReadings = sync.Pool{New: func() any { return new(openAIReading) }}

func (d *openAI) Reset() {}

// Event books one event. The order of the keys does not matter: an event is
// read whole before it is booked.
func (d *openAI) Event(e sse.Event, a *ledger.Account) {
	a.ExpectMarker()
	s, data, more := begin(e, a)
	if !more {
		return
	}
	if text, ok := d.like.match(data); ok {
		a.Text(s, d.like.choice, text, d.like.usage())
		return
	}
	d.unlike(s, data, a)
}

// known returns what books, into a, the event that p begins with if it is like the one
// before from its "data:" to the empty line: neither its lines nor its JSON are read
// then. See [sse.Reader].
//
//go:noinline
func (d *openAI) known(a *ledger.Account) func(p []byte, at time.Duration, index int, shared bool) int {
	return func(p []byte, at time.Duration, index int, shared bool) int {
		if d.like.lines || a.Ended() {
			return 0
		}
		text, end := d.like.matchLine(p)
		if end == 0 {
			return 0
		}
		a.ExpectMarker()
		a.Text(ledger.Stamp{At: at, Event: index, SharedRead: shared}, d.like.choice, text, d.like.usage())
		return end
	}
}

// unlike books an event that is not like the one before.
func (d *openAI) unlike(s ledger.Stamp, data []byte, a *ledger.Account) {
	r := openAIReadings.Get().(*openAIReading)
	defer openAIReadings.Put(r)
	r.kind = d.kind
	p, ok := r.parse(data)
	if !ok {
		a.Malformed(s, data)
		return
	}
	p.common(a)
	d.like.learn(data, r.deltas, p)
	a.Chunk(s, r.deltas, &p.usage)
}

// Body books a whole response that came as one body.
func (d *openAI) Body(body []byte, _ time.Duration, a *ledger.Account) {
	r := openAIReadings.Get().(*openAIReading)
	defer openAIReadings.Put(r)
	r.kind = d.kind
	p, ok := r.parse(body)
	if !ok || !p.object {
		notObject(body, a)
		return
	}
	p.common(a)
	if len(r.deltas) == 0 {
		noAnswer(body, a)
	}
	a.Body(r.deltas, p.usage, !d.stream)
}

// common books what events and bodies share.
func (p *payload) common(a *ledger.Account) {
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

// parse reads one payload, valid until the next; ok is false if it is not one
// JSON text.
func (d *openAIReading) parse(data []byte) (p *payload, ok bool) {
	d.clear()
	p = &d.read
	*p = payload{}
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

func (d *openAIReading) choices(c *cursor) {
	d.deltas = d.deltas[:0]
	if !c.array() {
		return
	}
	for n := int32(0); c.element(); n++ {
		d.deltas = append(d.deltas, ledger.Delta{})
		d.deltas[n].Choice, d.deltas[n].Kind = n, d.kind
		if !c.object() {
			continue
		}
		d.choice(c, &d.deltas[n])
	}
}

func (d *openAIReading) choice(c *cursor, delta *ledger.Delta) {
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

func (d *openAIReading) message(c *cursor, delta *ledger.Delta) {
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
		delta.Kind = 0 // an empty content beside a role or a tool call says nothing
	}
}

// content takes a text, or the texts of a list of parts.
func (d *openAIReading) content(c *cursor) []byte {
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
func (d *openAIReading) toolCalls(c *cursor) {
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

func (d *openAIReading) function(c *cursor, at int) {
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
