package protocol

import (
	"errors"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
	"reprise/trace/results"
)

// Messages is the Anthropic Messages API, /v1/messages, version 2023-06-01.
//
// The prompt is counted as input_tokens plus the tokens read from and written
// to the cache, which that API counts apart.
type Messages struct{}

func (Messages) Name() string                  { return "messages" }
func (Messages) Path() string                  { return "/v1/messages" }
func (Messages) Auth() (header, prefix string) { return "x-api-key", "" }
func (Messages) Headers() []Header             { return []Header{{"anthropic-version", "2023-06-01"}} }
func (Messages) Lines() bool                   { return false }

func (Messages) NewDecoder(stream bool) Decoder { return &anthropic{stream: stream} }

func (p Messages) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), true); err != nil {
		return dst, err
	}
	if err := r.refuse(p.Name(), r.MinTokens.Known, r.IgnoreEOS, r.Choices > 1); err != nil {
		return dst, err
	}
	if r.Body == nil && !r.MaxTokens.Known {
		return dst, trace.WithFix(errors.New("protocol messages needs a limit of output tokens"), "give the request an output length")
	}
	fields := r.intField(r.fields(), "max_tokens", r.MaxTokens)
	if r.Tools != nil {
		fields = append(fields, field{"tools", r.Tools})
	}
	fields = append(fields, boolField("stream", r.Stream))
	return appendBody(dst, r, fields, func(dst []byte) []byte { return appendMessages(dst, r, "messages") })
}

// anthropic decodes messages. A stream ends with message_stop; its output count
// is that of the last message_delta. The count in message_start is a
// placeholder, and is not used.
type anthropic struct {
	scratch
	stream bool
	usage  ledger.Usage // the largest prompt counts so far
}

func (d *anthropic) Reset() { d.usage = ledger.Usage{} }

func (d *anthropic) Event(e sse.Event, a *ledger.Account) {
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
	switch string(p.kind) {
	case "error":
		a.Error(errorCause(data))
	case "message_start":
		p.usage.Output = trace.Optional[int64]{}
		a.Usage(s, &p.usage)
	case "content_block_start", "content_block_delta":
		a.Chunk(s, d.deltas, nil)
	case "message_delta":
		a.Chunk(s, []ledger.Delta{{Finish: p.stop}}, nil)
		a.Usage(s, &p.usage)
	case "message_stop":
		a.Done()
	default:
		if p.err != nil {
			a.Error(errorCause(data))
		}
	}
}

func (d *anthropic) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok || !p.object:
		notObject(body, a)
	case p.err != nil || string(p.kind) == "error":
		a.Error(errorCause(body))
	case !p.answer:
		noAnswer(body, a)
	default:
		d.deltas[0].Finish = p.stop
		a.Body(d.deltas, p.usage, !d.stream)
	}
}

// anthropicEvent is what an event or a body says beside its delta.
type anthropicEvent struct {
	object bool
	answer bool   // it has content
	kind   []byte // of the event
	stop   []byte // stop_reason
	err    []byte
	usage  ledger.Usage
}

// parse reads one payload; what it says of the answer is the only delta.
func (d *anthropic) parse(data []byte) (p anthropicEvent, ok bool) {
	d.clear()
	d.deltas = append(d.deltas, ledger.Delta{})
	c := cursor{b: data}
	if p.object = c.object(); p.object {
		d.object(&c, &p)
	}
	d.deltas[0].Tools = d.tools
	return p, c.ended()
}

// object reads the members of an event, of its message or of a whole message.
func (d *anthropic) object(c *cursor, p *anthropicEvent) {
	index := int32(0)
	tools := len(d.tools)
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "type":
			if raw, _ := c.str(); p.kind == nil {
				p.kind = raw
			}
		case "index":
			index = int32(c.count().Value)
		case "delta", "content_block":
			if c.object() {
				d.block(c, p)
			}
		case "content":
			for array := c.array(); array && c.element(); {
				p.answer = true
				if c.object() {
					d.block(c, p)
				}
			}
		case "message":
			if c.peek() == '{' {
				c.object()
				d.object(c, p)
			} else {
				c.skip()
			}
		case "usage":
			p.usage = d.readUsage(c)
		case "stop_reason":
			p.stop, p.answer = c.str()
		case "error":
			if raw := c.raw(); !empty(raw) {
				p.err = raw
			}
		default:
			c.skip()
		}
	}
	for i := tools; i < len(d.tools); i++ {
		d.tools[i].Index = index + int32(i-tools)
	}
}

// block reads a content block, or a delta of one. A signature has no tokens.
func (d *anthropic) block(c *cursor, p *anthropicEvent) {
	delta := &d.deltas[0]
	var tool ledger.Tool
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "text":
			delta.Content = join(delta.Content, d.str(c))
			delta.Kind = results.KindContent
		case "thinking":
			delta.Reasoning = join(delta.Reasoning, d.str(c))
		case "name":
			tool.Name = d.str(c)
		case "id":
			tool.ID = d.str(c)
		case "partial_json":
			tool.Arguments = d.str(c)
		case "input":
			if raw := c.raw(); !empty(raw) {
				tool.Arguments = raw
			}
		case "stop_reason":
			p.stop, _ = c.str()
		default:
			c.skip()
		}
	}
	if len(tool.Name)+len(tool.Arguments) > 0 {
		d.tools = append(d.tools, tool)
	}
}

// join appends b to a text of the same event, without copying in the usual case
// of one piece.
func join(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return append(a[:len(a):len(a)], b...)
}

// readUsage reads a usage object. Prompt counts are repeated in later objects,
// sometimes only there: the largest counts.
func (d *anthropic) readUsage(c *cursor) (u ledger.Usage) {
	if !c.object() {
		return d.usage
	}
	input, cached, written := trace.Optional[int64]{}, trace.Optional[int64]{}, int64(0)
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "input_tokens":
			input = c.count()
		case "cache_read_input_tokens":
			cached = c.count()
		case "cache_creation_input_tokens":
			written = c.count().Value
		case "output_tokens":
			u.Output = c.count()
		default:
			c.skip()
		}
	}
	if input.Known {
		input.Value += cached.Value + written
	}
	d.usage.Input = larger(d.usage.Input, input)
	d.usage.Cached = larger(d.usage.Cached, cached)
	u.Input, u.Cached = d.usage.Input, d.usage.Cached
	return u
}

func larger(a, b trace.Optional[int64]) trace.Optional[int64] {
	if !a.Known || b.Known && b.Value > a.Value {
		return b
	}
	return a
}
