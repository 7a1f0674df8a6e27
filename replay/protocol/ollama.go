package protocol

import (
	"strconv"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
)

// Ollama is the native chat API of Ollama, /api/chat: lines of JSON, the last
// of them with done and the counts. How many tokens a line holds is not said.
type Ollama struct{}

func (Ollama) Name() string                  { return "ollama" }
func (Ollama) Path() string                  { return "/api/chat" }
func (Ollama) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (Ollama) Headers() []Header             { return nil }
func (Ollama) Lines() bool                   { return true }

func (Ollama) NewDecoder(stream bool) Decoder { return &ollama{stream: stream} }

func (p Ollama) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), true); err != nil {
		return dst, err
	}
	if err := r.refuse(p.Name(), r.MinTokens.Known, r.IgnoreEOS, r.Choices > 1); err != nil {
		return dst, err
	}
	var fields []field
	if r.MaxTokens.Known {
		var err error
		if fields, err = nested(r.Body, "options", []field{{"num_predict", strconv.AppendInt(nil, r.MaxTokens.Value, 10)}}); err != nil {
			return dst, err
		}
	}
	if r.Tools != nil {
		fields = append(fields, field{"tools", r.Tools})
	}
	fields = append(fields, boolField("stream", r.Stream))
	return appendBody(dst, r, fields, func(dst []byte) []byte { return appendMessages(dst, r, "messages") })
}

// ollama decodes /api/chat. Its messages have the shape of OpenAI's, with
// thinking under its own key.
type ollama struct {
	openAIReading
	stream bool
}

func (d *ollama) Reset() {}

func (d *ollama) Event(e sse.Event, a *ledger.Account) {
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
	case p.known:
		a.Chunk(s, d.deltas, nil)
		a.Usage(s, &p.usage)
		d.done(&p, data, a)
	}
}

// done books the end; the line holds the durations that the server measured.
func (d *ollama) done(p *ollamaLine, data []byte, a *ledger.Account) {
	if p.done {
		a.Done()
		if len(data) <= 4096 {
			a.Timings(data)
		}
	}
}

func (d *ollama) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok || !p.object:
		notObject(body, a)
	case p.failed:
		a.Error(errorCause(body))
	case !p.known:
		noAnswer(body, a)
	default:
		a.Body(d.deltas, p.usage, !d.stream)
		d.done(&p, body, a)
	}
}

type ollamaLine struct {
	object, known, done, failed bool
	usage                       ledger.Usage
}

func (d *ollama) parse(data []byte) (p ollamaLine, ok bool) {
	d.clear()
	d.deltas = append(d.deltas, ledger.Delta{})
	delta := &d.deltas[0]
	c := cursor{b: data}
	if p.object = c.object(); !p.object {
		return p, c.ended()
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "message":
			if c.object() {
				d.message(&c, delta)
				p.known = true
			}
		case "done":
			p.done = string(c.raw()) == "true"
			p.known = p.known || p.done
		case "done_reason":
			delta.Finish = d.str(&c)
		case "prompt_eval_count":
			p.usage.Input = c.count()
		case "eval_count":
			p.usage.Output = c.count()
		case "error":
			p.failed = !empty(c.raw())
		default:
			c.skip()
		}
	}
	return p, c.ended()
}
