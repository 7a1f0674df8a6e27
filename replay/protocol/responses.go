package protocol

import (
	"bytes"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
	"reprise/trace/results"
)

// Responses is the OpenAI Responses API, /v1/responses, as OpenAI, vLLM and
// SGLang serve it. Literal messages are sent as its input, which takes the same
// roles and texts.
type Responses struct{}

func (Responses) Name() string                  { return "responses" }
func (Responses) Path() string                  { return "/v1/responses" }
func (Responses) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (Responses) Headers() []Header             { return nil }
func (Responses) Lines() bool                   { return false }

func (Responses) NewDecoder(stream bool) Decoder { return &responses{stream: stream} }

func (p Responses) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), true); err != nil {
		return dst, err
	}
	if err := r.refuse(p.Name(), false, false, r.Choices > 1); err != nil {
		return dst, err
	}
	fields := r.intField(r.fields(), "max_output_tokens", r.MaxTokens)
	fields = r.intField(fields, "min_tokens", r.MinTokens)
	if r.IgnoreEOS {
		fields = append(fields, boolField("ignore_eos", true))
	}
	if r.Tools != nil {
		fields = append(fields, field{"tools", r.Tools})
	}
	fields = append(fields, boolField("stream", r.Stream))
	return appendBody(dst, r, fields, func(dst []byte) []byte { return appendMessages(dst, r, "input") })
}

// responses decodes responses. Deltas are chunks; events that repeat what was
// said (done, part, item done) are not. The terminal event carries the usage:
// response.completed, response.incomplete (a finish too), response.failed.
type responses struct {
	scratch
	stream bool
	whole  ledger.Delta // what a whole response says
}

func (d *responses) Reset() {}

func (d *responses) Event(e sse.Event, a *ledger.Account) {
	s, data, more := begin(e, a)
	if !more {
		return
	}
	p, ok := d.parse(data)
	if !ok {
		a.Malformed(s, data)
		return
	}
	kind := p.kind
	if len(kind) == 0 {
		kind = e.Name
	}
	switch string(kind) {
	case "response.completed", "response.incomplete", "response.cancelled":
		a.Chunk(s, []ledger.Delta{{Finish: p.finish()}}, nil)
		a.Usage(s, &p.usage)
		a.Done()
	case "response.failed", "error":
		a.Usage(s, &p.usage)
		a.Error(p.cause(data))
	case "response.output_item.added":
		if len(d.tools) > 0 {
			d.book(s, a, ledger.Delta{Tools: d.tools}, &p)
		}
	default:
		if kind, ok := bytes.CutSuffix(kind, []byte(".delta")); ok {
			d.book(s, a, d.delta(kind, &p), &p)
		} else if p.err != nil {
			a.Error(p.cause(data))
		}
	}
}

// delta is the part of the answer that a delta event of that kind brings.
func (d *responses) delta(kind []byte, p *responsesEvent) (delta ledger.Delta) {
	switch string(kind) {
	case "response.output_text":
		delta.Content, delta.Kind = p.delta, results.KindContent
	case "response.refusal":
		delta.Refusal = p.delta
	case "response.reasoning_text", "response.reasoning_summary_text", "response.reasoning", "response.reasoning_summary":
		delta.Reasoning = p.delta
	default: // arguments or input of a call, code
		d.tools = append(d.tools[:0], ledger.Tool{Index: p.index, Arguments: p.delta})
		delta.Tools = d.tools
	}
	if p.logprobs.Value > 0 {
		delta.Logprobs = p.logprobs
	}
	return delta
}

func (d *responses) book(s ledger.Stamp, a *ledger.Account, delta ledger.Delta, p *responsesEvent) {
	d.deltas = append(d.deltas[:0], delta)
	a.Chunk(s, d.deltas, &p.usage)
}

func (d *responses) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok || !p.object:
		notObject(body, a)
	case p.err != nil || string(p.status) == "failed":
		a.Error(p.cause(body))
	case len(p.status) == 0:
		noAnswer(body, a)
	default:
		d.whole.Tools = d.tools
		d.whole.Finish = p.finish()
		d.deltas = append(d.deltas[:0], d.whole)
		a.Body(d.deltas, p.usage, !d.stream)
	}
}

// responsesEvent is what an event, or the response in it, says.
type responsesEvent struct {
	object   bool
	kind     []byte
	delta    []byte
	index    int32
	logprobs trace.Optional[int32]
	status   []byte
	reason   []byte // why it is incomplete
	err      []byte
	usage    ledger.Usage
}

// finish is the status of the response, or why it is incomplete.
func (p *responsesEvent) finish() []byte {
	switch {
	case len(p.reason) > 0:
		return p.reason
	case len(p.status) > 0:
		return p.status
	}
	return bytes.TrimPrefix(p.kind, []byte("response."))
}

func (p *responsesEvent) cause(data []byte) string {
	if p.err != nil {
		return errorCause(p.err)
	}
	return errorCause(data)
}

func (d *responses) parse(data []byte) (p responsesEvent, ok bool) {
	d.clear()
	d.whole = ledger.Delta{}
	c := cursor{b: data}
	if p.object = c.object(); p.object {
		d.object(&c, &p)
	}
	return p, c.ended()
}

// object reads the members of an event, of its response or of a whole response.
func (d *responses) object(c *cursor, p *responsesEvent) {
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "type":
			p.kind, _ = c.str()
		case "delta":
			p.delta = d.str(c)
		case "output_index":
			if n := c.count(); n.Value < 1<<20 {
				p.index = int32(n.Value)
			}
		case "logprobs":
			p.logprobs = c.length()
		case "response":
			if c.object() {
				kind := p.kind
				d.object(c, p)
				p.kind = kind
			}
		case "status":
			p.status, _ = c.str()
		case "incomplete_details":
			p.reason = d.stringMember(c, "reason")
		case "usage":
			p.usage = openAIUsage(c)
		case "error":
			if raw := c.raw(); !empty(raw) {
				p.err = raw
			}
		case "item":
			d.item(c, p)
		case "output":
			for array := c.array(); array && c.element(); {
				d.item(c, p)
			}
		default:
			c.skip()
		}
	}
	for i := range d.tools {
		d.tools[i].Index = p.index + int32(i)
	}
}

// item reads one item of the output: a message, reasoning or a call.
func (d *responses) item(c *cursor, p *responsesEvent) {
	if !c.object() {
		return
	}
	var kind []byte
	var text [2][]byte // content, summary
	var tool ledger.Tool
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "type":
			kind, _ = c.str()
		case "content":
			text[0] = d.texts(c)
		case "summary":
			text[1] = d.texts(c)
		case "name":
			tool.Name = d.str(c)
		case "call_id":
			tool.ID = d.str(c)
		case "arguments", "input":
			tool.Arguments = d.str(c)
		default:
			c.skip()
		}
	}
	switch {
	case string(kind) == "reasoning":
		d.whole.Reasoning = join(d.whole.Reasoning, join(text[0], text[1]))
	case string(kind) == "message":
		d.whole.Content = join(d.whole.Content, text[0])
	case len(tool.Name)+len(tool.Arguments) > 0:
		d.tools = append(d.tools, tool)
	}
}

// texts joins the texts of a list of parts, or takes a string.
func (d *responses) texts(c *cursor) (text []byte) {
	if c.peek() != '[' {
		return d.str(c)
	}
	for c.array(); c.element(); {
		if !c.object() {
			continue
		}
		for key, ok := c.key(); ok; key, ok = c.key() {
			if string(key) == "text" || string(key) == "refusal" {
				text = join(text, d.str(c))
			} else {
				c.skip()
			}
		}
	}
	return text
}

// stringMember returns one string of an object and skips the others.
func (d *scratch) stringMember(c *cursor, name string) (text []byte) {
	if !c.object() {
		return nil
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		if string(key) == name {
			text = d.str(c)
		} else {
			c.skip()
		}
	}
	return text
}
