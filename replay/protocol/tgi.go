package protocol

import (
	"errors"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
	"reprise/trace/results"
)

// TGI is the native API of Hugging Face text-generation-inference (version 3),
// /generate_stream: a plain prompt and one token per event. Answers in one body
// live elsewhere (/generate), so that it only streams.
type TGI struct{}

func (TGI) Name() string                  { return "tgi" }
func (TGI) Path() string                  { return "/generate_stream" }
func (TGI) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (TGI) Headers() []Header             { return nil }
func (TGI) Lines() bool                   { return false }

func (TGI) NewDecoder(stream bool) Decoder { return &tgi{stream: stream} }

func (p TGI) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), false); err != nil {
		return dst, err
	}
	if err := r.refuse(p.Name(), r.MinTokens.Known, r.IgnoreEOS, r.Choices > 1); err != nil {
		return dst, err
	}
	if !r.Stream {
		return dst, trace.WithFix(errors.New("protocol tgi only streams"), "ask for streams, or use --protocol chat")
	}
	parameters, err := nested(r.Body, "parameters", append(r.intField(r.fields(), "max_new_tokens", r.MaxTokens), boolField("details", true)))
	if err != nil {
		return dst, err
	}
	sent := *r
	sent.Model = "" // a TGI server has one model
	return appendBody(dst, &sent, parameters, func(dst []byte) []byte {
		return appendPrompt(append(dst, `"inputs":`...), r)
	})
}

// nested is a member that is an object: that of a literal body, with fields set.
func nested(body []byte, key string, fields []field) ([]field, error) {
	given := lookup(body, key)
	if len(given) == 0 || given[0] != '{' {
		given = []byte("{}")
	}
	value, err := appendEdited(nil, given, fields)
	if err != nil {
		return nil, err
	}
	return []field{{key, value}}, nil
}

// tgi decodes generate_stream. Each event is one token, special ones included;
// the last has details with the finish reason and the count.
type tgi struct {
	scratch
	stream bool
}

func (d *tgi) Reset() {}

func (d *tgi) Event(e sse.Event, a *ledger.Account) {
	s, data, more := begin(e, a)
	if !more {
		return
	}
	p, ok := d.parse(data)
	switch {
	case !ok || !p.object:
		a.Malformed(s, data)
	case p.failed:
		a.Error(errorCause(data))
	case p.token || len(p.delta.Finish) > 0:
		d.deltas = append(d.deltas, p.delta)
		a.Chunk(s, d.deltas, nil)
		a.Usage(s, &p.usage)
	}
}

func (d *tgi) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok || !p.object:
		notObject(body, a)
	case p.failed:
		a.Error(errorCause(body))
	case p.generated == nil:
		noAnswer(body, a)
	default:
		p.delta.Content = p.generated
		d.deltas = append(d.deltas, p.delta)
		a.Body(d.deltas, p.usage, !d.stream)
	}
}

type tgiEvent struct {
	object, token, failed bool
	delta                 ledger.Delta
	generated             []byte // whole text, in the last event or the body
	usage                 ledger.Usage
}

func (d *tgi) parse(data []byte) (p tgiEvent, ok bool) {
	d.clear()
	c := cursor{b: data}
	if p.object = c.object(); !p.object {
		return p, c.ended()
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "token":
			d.token(&c, &p)
		case "generated_text":
			p.generated = d.str(&c)
		case "details":
			d.details(&c, &p)
		case "error":
			p.failed = !empty(c.raw())
		default:
			c.skip()
		}
	}
	return p, c.ended()
}

func (d *tgi) token(c *cursor, p *tgiEvent) {
	if !c.object() {
		return
	}
	p.token = true
	p.delta.Format = trace.Some[int32](1)
	p.delta.Kind = results.KindContent
	special := false
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "text":
			p.delta.Content = d.str(c)
		case "special":
			special = string(c.raw()) == "true"
		default:
			c.skip()
		}
	}
	if special {
		p.delta.Content = nil // a token, but not of the text
	}
}

func (d *tgi) details(c *cursor, p *tgiEvent) {
	if !c.object() {
		return
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "finish_reason":
			p.delta.Finish = d.str(c)
		case "generated_tokens":
			p.usage.Output = c.count()
		case "input_length":
			p.usage.Input = c.count()
		default:
			c.skip()
		}
	}
}
