package mock

import "fmt"

// messages writes the answers of Anthropic's messages API. Its input_tokens are
// those that were not read from the cache.
type messages struct {
	x       *exchange
	c       *choice
	block   int // index of the open content block; -1 before the first
	thought bool
}

func newMessages(x *exchange) *messages {
	return &messages{x: x, c: &x.choices[0], block: -1}
}

// named appends an event; rest follows its type in the object.
func named(b []byte, name string, rest string, args ...any) []byte {
	b = fmt.Appendf(b, "event: %s\ndata: {\"type\":%q", name, name)
	b = fmt.Appendf(b, rest, args...)
	return append(b, "}\n\n"...)
}

// head is the message object up to its content.
func (d *messages) head() []byte {
	return fmt.Appendf(nil, `{"id":%s,"type":"message","role":"assistant","model":%s`, quoted(d.x.responseID("msg_")), quoted(d.x.model()))
}

// usage is the message's usage object with this many tokens of output.
func (d *messages) usage(output int) []byte {
	cached := d.x.record.CachedTokens
	return fmt.Appendf(nil, `{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d}`,
		d.x.request.Prompt.Tokens-cached, cached, output)
}

func (d *messages) open(b []byte) []byte {
	b = named(b, "message_start", `,"message":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":%s}`, d.head(), d.usage(0))
	return named(b, "ping", "")
}

// begin opens the content block for the next tokens, and ends the one before.
func (d *messages) begin(b []byte, thought bool) []byte {
	if d.block >= 0 {
		if d.thought == thought {
			return b
		}
		b = d.stop(b)
	}
	d.block++
	d.thought = thought
	kind := `{"type":"text","text":""}`
	if thought {
		kind = `{"type":"thinking","thinking":"","signature":""}`
	}
	return named(b, "content_block_start", `,"index":%d,"content_block":%s`, d.block, kind)
}

func (d *messages) stop(b []byte) []byte {
	if d.thought {
		b = named(b, "content_block_delta", `,"index":%d,"delta":{"type":"signature_delta","signature":"bW9jaw=="}`, d.block)
	}
	return named(b, "content_block_stop", `,"index":%d`, d.block)
}

func (d *messages) event(b []byte, e event) []byte {
	if e.reasoning > 0 {
		b = d.begin(b, true)
		b = d.delta(b, `{"type":"thinking_delta","thinking":"`, &d.c.thought, e.reasoning)
	}
	if e.content > 0 {
		b = d.begin(b, false)
		b = d.delta(b, `{"type":"text_delta","text":"`, &d.c.content, e.content)
	}
	return b
}

func (d *messages) delta(b []byte, kind string, v *voice, tokens int) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = append(b, byte('0'+d.block)) // 0 or 1
	b = append(b, `,"delta":`...)
	b = append(b, kind...)
	b = v.say(b, tokens)
	return append(b, "\"}}\n\n"...)
}

// stopReason is Anthropic's word for how the answer ended.
func (d *messages) stopReason() string {
	if d.c.finish == finishLength {
		return "max_tokens"
	}
	return "end_turn"
}

func (d *messages) close(b []byte) []byte {
	b = d.stop(b)
	b = named(b, "message_delta", `,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, d.stopReason(), d.c.sent)
	return named(b, "message_stop", "")
}

func (d *messages) fail(b, object []byte) []byte {
	return fmt.Appendf(b, "event: error\ndata: %s\n\n", object)
}

func (d *messages) whole(b []byte) []byte {
	b = append(b, d.head()...)
	b = append(b, `,"content":[`...)
	if d.c.reasoning > 0 {
		b = append(b, `{"type":"thinking","thinking":"`...)
		b = d.c.thought.say(b, d.c.reasoning)
		b = append(b, `","signature":"bW9jaw=="}`...)
	}
	if d.c.sent > d.c.reasoning {
		if d.c.reasoning > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"text","text":"`...)
		b = d.c.content.say(b, d.c.sent-d.c.reasoning)
		b = append(b, `"}`...)
	}
	return fmt.Appendf(b, `],"stop_reason":%q,"stop_sequence":null,"usage":%s}`, d.stopReason(), d.usage(d.c.sent))
}
