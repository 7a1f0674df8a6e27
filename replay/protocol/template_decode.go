package protocol

import (
	"bytes"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
	"reprise/trace/results"
)

// templated decodes the answers of a Template.
type templated struct {
	scratch
	t                  *Template
	stream, cumulative bool
	said, thought      []byte // text so far, of a cumulative stream
	reason             []byte // finish reason that waits for the end
}

func (d *templated) Reset() {
	d.said, d.thought, d.reason = d.said[:0], d.thought[:0], d.reason[:0]
}

func (d *templated) Event(e sse.Event, a *ledger.Account) {
	if len(d.t.config.Done) > 0 {
		a.ExpectMarker()
	}
	s, data, more := begin(e, a)
	if !more {
		return
	}
	p, ok := d.parse(data)
	switch {
	case !ok:
		a.Malformed(s, data)
	case p.failure != nil:
		a.Error(errorCause(p.failure))
	default:
		d.event(&p, s, a)
	}
}

// event books what an event that is no error says.
func (d *templated) event(p *templateEvent, s ledger.Stamp, a *ledger.Account) {
	d.wait(p)
	if d.cumulative {
		p.delta.Content = rest(&d.said, p.delta.Content)
		p.delta.Reasoning = rest(&d.thought, p.delta.Reasoning)
	}
	if p.text || len(p.delta.Finish) > 0 {
		d.deltas = append(d.deltas, p.delta)
		a.Chunk(s, d.deltas, &p.usage)
	} else if p.usage != (ledger.Usage{}) {
		a.Usage(s, &p.usage)
	}
	if p.done {
		a.Done()
	}
}

// wait holds a finish reason back until the event that is done: some servers
// send one, such as "none", with every event.
func (d *templated) wait(p *templateEvent) {
	if len(d.t.config.Done) == 0 {
		return
	}
	if len(p.delta.Finish) > 0 {
		d.reason = append(d.reason[:0], p.delta.Finish...)
	}
	if p.delta.Finish = nil; p.done {
		p.delta.Finish = d.reason
	}
}

// rest is what text has behind so, the text so far, which grows by it. A text
// that does not begin with so is all new.
func rest(so *[]byte, text []byte) []byte {
	text = bytes.TrimPrefix(text, *so)
	*so = append(*so, text...)
	return text
}

func (d *templated) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok:
		notObject(body, a)
	case p.failure != nil:
		a.Error(errorCause(p.failure))
	case len(d.t.config.Text)+len(d.t.config.Reasoning) == 0:
		a.Answered(p.usage)
	case !p.text:
		noAnswer(body, a)
	default:
		d.deltas = append(d.deltas, p.delta)
		a.Body(d.deltas, p.usage, !d.stream)
	}
}

// templateEvent is what an event or a body says.
type templateEvent struct {
	text, done bool // text: it has a place for text, empty or not
	delta      ledger.Delta
	usage      ledger.Usage
	failure    []byte
}

// parse reads one payload; ok is false unless it is a valid object or array.
func (d *templated) parse(data []byte) (p templateEvent, ok bool) {
	d.clear()
	c := cursor{b: data}
	if first := c.peek(); first != '{' && first != '[' {
		return p, false
	}
	var f found
	if d.t.places.walk(&c, &f); !c.ended() {
		return p, false
	}
	p.delta.Reasoning = d.string(f.value[slotReasoning])
	p.delta.Content = d.string(f.value[slotText])
	p.delta.Finish = d.string(f.value[slotFinish])
	p.text = isString(f.value[slotText]) || isString(f.value[slotReasoning])
	if isString(f.value[slotText]) && len(p.delta.Reasoning) == 0 {
		p.delta.Kind = results.KindContent
	}
	p.usage = ledger.Usage{Input: number(f.value[slotInput]), Output: number(f.value[slotOutput]), Cached: number(f.value[slotCached])}
	p.done = !nothing(f.value[slotDone])
	if raw := f.value[slotError]; !nothing(raw) {
		p.failure = raw
	}
	return p, true
}

// nothing tells values that mean no: an error code of 0 is none.
func nothing(raw []byte) bool { return empty(raw) || string(raw) == "0" || string(raw) == "[]" }

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

func (d *templated) string(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	return d.str(&cursor{b: raw})
}

func number(raw []byte) (n trace.Optional[int64]) {
	if len(raw) == 0 {
		return n
	}
	c := cursor{b: raw}
	return c.count()
}
