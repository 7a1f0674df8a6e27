package mock

import (
	"fmt"
	"strconv"
	"time"
)

// responses writes the answers of OpenAI's responses API: named events with
// sequence numbers, one item of reasoning (if any) and one message.
type responses struct {
	x       *exchange
	c       *choice
	created int64
	next    int // sequence number of the next event
	item    int // output_index of the open item; -1 before the first
	thought bool
}

func newResponses(x *exchange) *responses {
	return &responses{x: x, c: &x.choices[0], created: time.Now().Unix(), item: -1}
}

// named appends an event with its type and sequence number; rest is what
// follows them in the object.
func (d *responses) named(b []byte, name string, rest string, args ...any) []byte {
	b = fmt.Appendf(b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,", name, name, d.next)
	d.next++
	b = fmt.Appendf(b, rest, args...)
	return append(b, "}\n\n"...)
}

func (d *responses) open(b []byte) []byte {
	response := d.response(nil, "in_progress", false)
	b = d.named(b, "response.created", `"response":%s`, response)
	return d.named(b, "response.in_progress", `"response":%s`, response)
}

// itemID names the item of reasoning or the message.
func (d *responses) itemID(thought bool) string {
	if thought {
		return d.x.responseID("rs_")
	}
	return d.x.responseID("msg_")
}

// part says what the open item's content part is.
func (d *responses) part(thought bool, text []byte) []byte {
	if thought {
		return fmt.Appendf(nil, `{"type":"reasoning_text","text":"%s"}`, text)
	}
	return fmt.Appendf(nil, `{"type":"output_text","text":"%s","annotations":[]}`, text)
}

// itemObject is an item of the output; parts is "" while it has none.
func (d *responses) itemObject(thought bool, status string, part []byte) []byte {
	kind, role := "message", `,"role":"assistant"`
	if thought {
		kind, role = "reasoning", `,"summary":[]`
	}
	return fmt.Appendf(nil, `{"id":%s,"type":%q,"status":%q%s,"content":[%s]}`, quoted(d.itemID(thought)), kind, status, role, part)
}

// begin opens the item for the next tokens, and ends the one before.
func (d *responses) begin(b []byte, thought bool) []byte {
	if d.item >= 0 {
		if d.thought == thought {
			return b
		}
		b = d.done(b)
	}
	d.item++
	d.thought = thought
	b = d.named(b, "response.output_item.added", `"output_index":%d,"item":%s`, d.item, d.itemObject(thought, "in_progress", nil))
	return d.named(b, "response.content_part.added", `"item_id":%s,"output_index":%d,"content_index":0,"part":%s`,
		quoted(d.itemID(thought)), d.item, d.part(thought, nil))
}

// stem is the beginning of the names of the open item's text events.
func (d *responses) stem() string {
	if d.thought {
		return "response.reasoning_text"
	}
	return "response.output_text"
}

// done ends the open item.
func (d *responses) done(b []byte) []byte {
	text, id := d.text(d.thought), quoted(d.itemID(d.thought))
	part := d.part(d.thought, text)
	b = d.named(b, d.stem()+".done", `"item_id":%s,"output_index":%d,"content_index":0,"text":"%s"`, id, d.item, text)
	b = d.named(b, "response.content_part.done", `"item_id":%s,"output_index":%d,"content_index":0,"part":%s`, id, d.item, part)
	return d.named(b, "response.output_item.done", `"output_index":%d,"item":%s`, d.item, d.itemObject(d.thought, "completed", part))
}

// text returns all that was sent of one kind.
func (d *responses) text(thought bool) []byte {
	v := d.x.voice(0, thought)
	if thought {
		return v.say(nil, min(d.c.reasoning, d.c.sent))
	}
	return v.say(nil, max(d.c.sent-d.c.reasoning, 0))
}

func (d *responses) event(b []byte, e event) []byte {
	if e.reasoning > 0 {
		b = d.begin(b, true)
		b = d.delta(b, &d.c.thought, e.reasoning)
	}
	if e.content > 0 {
		b = d.begin(b, false)
		b = d.delta(b, &d.c.content, e.content)
	}
	return b
}

func (d *responses) delta(b []byte, v *voice, tokens int) []byte {
	b = append(b, "event: "...)
	b = append(b, d.stem()...)
	b = append(b, ".delta\ndata: {\"type\":\""...)
	b = append(b, d.stem()...)
	b = append(b, `.delta","sequence_number":`...)
	b = strconv.AppendInt(b, int64(d.next), 10)
	d.next++
	b = append(b, `,"item_id":`...)
	b = append(b, quoted(d.itemID(d.thought))...)
	b = append(b, `,"output_index":`...)
	b = strconv.AppendInt(b, int64(d.item), 10)
	b = append(b, `,"content_index":0,"delta":"`...)
	b = v.say(b, tokens)
	return append(b, "\"}\n\n"...)
}

func (d *responses) close(b []byte) []byte {
	b = d.done(b)
	status := d.status()
	return d.named(b, "response."+status, `"response":%s`, d.response(nil, status, true))
}

// status is how a finished response ended.
func (d *responses) status() string {
	if d.c.finish == finishLength {
		return "incomplete"
	}
	return "completed"
}

func (d *responses) fail(b, _ []byte) []byte {
	return d.named(b, "error", `"code":"server_error","message":"injected fault","param":null`)
}

func (d *responses) whole(b []byte) []byte { return d.response(b, d.status(), true) }

// response appends the response object, with its output if it is finished.
func (d *responses) response(b []byte, status string, finished bool) []byte {
	b = fmt.Appendf(b, `{"id":%s,"object":"response","created_at":%d,"status":%q,"model":%s,"error":null`,
		quoted(d.x.responseID("resp_")), d.created, status, quoted(d.x.model()))
	if status == "incomplete" {
		b = append(b, `,"incomplete_details":{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, `,"incomplete_details":null`...)
	}
	if !finished {
		return append(b, `,"output":[],"usage":null}`...)
	}
	b = append(b, `,"output":[`...)
	if d.c.reasoning > 0 {
		b = append(b, d.itemObject(true, "completed", d.part(true, d.text(true)))...)
	}
	if d.c.sent > d.c.reasoning {
		if d.c.reasoning > 0 {
			b = append(b, ',')
		}
		b = append(b, d.itemObject(false, "completed", d.part(false, d.text(false)))...)
	}
	prompt := d.x.request.Prompt.Tokens
	return fmt.Appendf(b, `],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}}`,
		prompt, d.x.record.CachedTokens, d.c.sent, d.c.reasoning, prompt+d.c.sent)
}
