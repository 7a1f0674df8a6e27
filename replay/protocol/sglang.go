package protocol

import (
	"bytes"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace/results"
)

// SGLang is the native API of SGLang (version 0.5): /generate, a plain prompt,
// and events that repeat the text so far.
type SGLang struct{}

func (SGLang) Name() string                  { return "sglang" }
func (SGLang) Path() string                  { return "/generate" }
func (SGLang) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (SGLang) Headers() []Header             { return nil }
func (SGLang) Lines() bool                   { return false }

func (SGLang) NewDecoder(stream bool) Decoder { return &sglang{stream: stream} }

func (p SGLang) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), false); err != nil {
		return dst, err
	}
	if err := r.refuse(p.Name(), false, false, r.Choices > 1); err != nil {
		return dst, err
	}
	sampling := r.intField(r.intField(r.fields(), "max_new_tokens", r.MaxTokens), "min_new_tokens", r.MinTokens)
	if r.IgnoreEOS {
		sampling = append(sampling, boolField("ignore_eos", true))
	}
	fields, err := nested(r.Body, "sampling_params", sampling)
	if err != nil {
		return dst, err
	}
	sent := *r
	sent.Model = "" // an SGLang server has one model
	return appendBody(dst, &sent, append(fields, boolField("stream", r.Stream)), func(dst []byte) []byte {
		return appendPrompt(append(dst, `"text":`...), r)
	})
}

// sglang decodes /generate. Its text replaces the text before; what is new is
// the rest behind that. Servers that run with incremental output send deltas:
// then all of it is new.
type sglang struct {
	scratch
	stream bool
	said   []byte // text so far
}

func (d *sglang) Reset() { d.said = d.said[:0] }

func (d *sglang) Event(e sse.Event, a *ledger.Account) {
	a.ExpectMarker()
	s, data, more := begin(e, a)
	if !more {
		return
	}
	p, ok := d.parse(data)
	switch {
	case !ok || !p.object:
		a.Malformed(s, data)
	case p.err != nil:
		a.Error(errorCause(data))
	case p.known:
		if rest, ok := bytes.CutPrefix(p.delta.Content, d.said); ok {
			p.delta.Content = rest
		}
		d.said = append(d.said, p.delta.Content...)
		d.deltas = append(d.deltas, p.delta)
		a.Chunk(s, d.deltas, &p.usage)
		if p.abort != nil {
			a.Error(errorCause(p.abort))
		}
	}
}

func (d *sglang) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok || !p.object:
		notObject(body, a)
	case p.err != nil:
		a.Error(errorCause(body))
	case !p.known:
		noAnswer(body, a)
	default:
		d.deltas = append(d.deltas, p.delta)
		a.Body(d.deltas, p.usage, !d.stream)
		if p.abort != nil {
			a.Error(errorCause(p.abort))
		}
	}
}

type sglangEvent struct {
	object, known bool // known: it has text or counts
	delta         ledger.Delta
	usage         ledger.Usage
	err           []byte
	abort         []byte // finish reason of a request that was given up, with the message
}

func (d *sglang) parse(data []byte) (p sglangEvent, ok bool) {
	d.clear()
	p.delta.Kind = results.KindContent
	c := cursor{b: data}
	if p.object = c.object(); !p.object {
		return p, c.ended()
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "text":
			p.delta.Content = d.str(&c)
			p.known = true
		case "meta_info":
			d.metaInfo(&c, &p)
		case "error":
			if raw := c.raw(); !empty(raw) {
				p.err = raw
			}
		default:
			c.skip()
		}
	}
	return p, c.ended()
}

func (d *sglang) metaInfo(c *cursor, p *sglangEvent) {
	if !c.object() {
		return
	}
	p.known = true
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "prompt_tokens":
			p.usage.Input = c.count()
		case "completion_tokens":
			p.usage.Output = c.count()
		case "cached_tokens":
			p.usage.Cached = c.count()
		case "finish_reason":
			d.finish(c, p)
		default:
			c.skip()
		}
	}
}

// finish reads a finish reason: {"type":"stop","matched":2}, or a string.
func (d *sglang) finish(c *cursor, p *sglangEvent) {
	if c.peek() != '{' {
		p.delta.Finish = d.str(c)
		return
	}
	raw := c.raw()
	inner := cursor{b: raw}
	p.delta.Finish = d.stringMember(&inner, "type")
	if string(p.delta.Finish) == "abort" {
		p.abort = raw
	}
}
