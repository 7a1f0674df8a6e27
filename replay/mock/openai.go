package mock

import (
	"encoding/json"
	"strconv"
	"time"

	"reprise/replay/mock/wire"
)

// openAI writes chat completions and completions. What does not change from
// event to event is made once.
type openAI struct {
	x     *exchange
	chat  bool
	head  []byte // of an event: from "data:" to the choice's index
	id    []byte // of a body: id, object, created, model, up to the choices' [
	final bool   // a last event with the usage
	each  bool   // usage in every event
}

func newOpenAI(x *exchange) *openAI {
	d := &openAI{x: x, chat: x.op == wire.Chat}
	prefix, whole, chunk := "cmpl-", "text_completion", "text_completion"
	if d.chat {
		prefix, whole, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"
	}
	d.id = x.identity(prefix, whole)
	d.head = append([]byte("data: "), x.identity(prefix, chunk)...)
	d.head = append(d.head, `{"index":`...)
	r := x.request
	switch x.server.config.Usage {
	case UsageRunning:
		d.final, d.each = true, true
	case UsageFinal:
		d.final = r.IncludeUsage
	case UsageAsked:
		d.final, d.each = r.IncludeUsage, r.IncludeUsage && r.ContinuousUsage
	}
	return d
}

// identity returns the beginning of an object, up to its choices.
func (x *exchange) identity(prefix, object string) []byte {
	b := append([]byte(`{"id":`), quoted(x.responseID(prefix))...)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, time.Now().Unix(), 10)
	b = append(b, `,"model":`...)
	b = append(b, quoted(x.model())...)
	return append(b, `,"choices":[`...)
}

// responseID names the answer, after the request's own id if it has one, as
// vLLM does.
func (x *exchange) responseID(prefix string) string {
	if id := x.record.RequestID; id != "" {
		return prefix + id
	}
	return prefix + "mock-" + strconv.FormatInt(x.record.Ordinal, 10)
}

// model returns the name that the answer has.
func (x *exchange) model() string {
	if x.request.Model != "" {
		return x.request.Model
	}
	return x.server.config.Models[0]
}

// quoted returns s as JSON.
func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return b
}

const roleAssistant = `"role":"assistant"`

// open has a role-only event for each choice of a chat, if the style says so.
func (d *openAI) open(b []byte) []byte {
	if !d.chat || d.x.server.config.Role != RoleEarly {
		return b
	}
	for i := range d.x.choices {
		c := &d.x.choices[i]
		b = d.begin(b, c)
		b = append(b, roleAssistant+`,"content":""`...)
		b = d.end(b, c, "")
	}
	return b
}

// begin appends an event up to the text of its choice.
func (d *openAI) begin(b []byte, c *choice) []byte {
	b = append(b, d.head...)
	b = strconv.AppendInt(b, int64(c.index), 10)
	if d.chat {
		return append(b, `,"delta":{`...)
	}
	return append(b, `,"text":"`...)
}

// end appends the rest of an event; finish is "" for none.
func (d *openAI) end(b []byte, c *choice, finish string) []byte {
	b = d.endText(b)
	b = appendFinish(b, finish)
	return d.endChoice(b, c)
}

func (d *openAI) endText(b []byte) []byte {
	if d.chat {
		return append(b, `},"logprobs":null,"finish_reason":`...)
	}
	return append(b, `","logprobs":null,"finish_reason":`...)
}

func appendFinish(b []byte, finish string) []byte {
	if finish == "" {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = append(b, finish...)
	return append(b, '"')
}

// endChoice ends the choice and the event; running usage counts this choice's
// own tokens, as vLLM's does.
func (d *openAI) endChoice(b []byte, c *choice) []byte {
	b = append(b, "}]"...)
	if d.each {
		b = append(b, `,"usage":`...)
		b = d.x.appendCounts(b, c.sent)
		b = append(b, '}')
	}
	return append(b, "}\n\n"...)
}

func (d *openAI) event(b []byte, e event) []byte {
	c, config := e.choice, &d.x.server.config
	thought, content := c.thought, c.content // before these tokens
	b = d.begin(b, c)
	if d.chat {
		if config.Role == RoleWithFirst && c.sent == e.reasoning+e.content {
			b = append(b, roleAssistant+`,`...)
		}
		b = d.delta(b, e)
	} else {
		b = c.content.say(b, e.content)
	}
	finish := ""
	if e.last && config.FinishWithLast {
		finish = c.finish
	}
	b = d.endText(b)
	b = appendFinish(b, finish)
	if d.x.request.TokenIDs {
		b = append(b, `,"token_ids":[`...)
		b = thought.ids(b, e.reasoning)
		b = content.ids(b, e.content)
		b[len(b)-1] = ']' // for the last comma: an event has at least one token
	}
	return d.endChoice(b, c)
}

// ids appends the ids of the next n words, each with a comma.
func (v *voice) ids(b []byte, n int) []byte {
	for range n {
		b = strconv.AppendInt(b, int64(v.next()), 10)
		b = append(b, ',')
	}
	return b
}

// delta appends the text of a chat's event, without what surrounds it.
func (d *openAI) delta(b []byte, e event) []byte {
	c := e.choice
	if e.reasoning > 0 {
		b = append(b, '"')
		b = append(b, d.x.server.config.ReasoningKey...)
		b = append(b, `":"`...)
		b = c.thought.say(b, e.reasoning)
		b = append(b, '"')
		if e.content > 0 {
			b = append(b, ',')
		}
	}
	if e.content > 0 {
		b = append(b, `"content":"`...)
		b = c.content.say(b, e.content)
		b = append(b, '"')
	}
	return b
}

func (d *openAI) close(b []byte) []byte {
	total := 0
	for i := range d.x.choices {
		c := &d.x.choices[i]
		total += c.sent
		if !d.x.server.config.FinishWithLast {
			b = d.begin(b, c)
			b = d.end(b, c, c.finish)
		}
	}
	if d.final {
		b = append(b, d.head[:len(d.head)-len(`{"index":`)]...)
		b = append(b, `],"usage":`...)
		b = d.x.appendUsage(b, total)
		b = append(b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// fail has the error as vLLM sends it in mid-stream: as an event, then the end
// marker.
func (d *openAI) fail(b, object []byte) []byte {
	b = append(b, "data: "...)
	b = append(b, object...)
	return append(b, "\n\ndata: [DONE]\n\n"...)
}

func (d *openAI) whole(b []byte) []byte {
	b = append(b, d.id...)
	total := 0
	for i := range d.x.choices {
		c := &d.x.choices[i]
		total += c.sent
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(c.index), 10)
		if d.chat {
			b = append(b, `,"message":{`+roleAssistant+`,`...)
			b = d.delta(b, event{choice: c, reasoning: c.reasoning, content: c.sent - c.reasoning})
			if c.sent == c.reasoning {
				b = append(b, `,"content":null`...)
			}
		} else {
			b = append(b, `,"text":"`...)
			b = c.content.say(b, c.sent)
		}
		b = d.endText(b)
		b = appendFinish(b, c.finish)
		b = append(b, '}')
	}
	b = append(b, `],"usage":`...)
	b = d.x.appendUsage(b, total)
	return append(b, '}')
}

// appendCounts appends a usage object without its details and closing brace.
func (x *exchange) appendCounts(b []byte, completion int) []byte {
	prompt := x.request.Prompt.Tokens
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt+completion), 10)
	b = append(b, `,"completion_tokens":`...)
	return strconv.AppendInt(b, int64(completion), 10)
}

// appendUsage appends the usage of the whole answer, with the details that the
// server knows.
func (x *exchange) appendUsage(b []byte, completion int) []byte {
	b = x.appendCounts(b, completion)
	if x.server.config.Engine.CacheTokens >= 0 {
		b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
		b = strconv.AppendInt(b, int64(x.record.CachedTokens), 10)
		b = append(b, '}')
	}
	if x.server.config.ReasoningShare > 0 && x.op == wire.Chat {
		b = append(b, `,"completion_tokens_details":{"reasoning_tokens":`...)
		b = strconv.AppendInt(b, int64(x.reasoningTokens()), 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

// reasoningTokens returns the tokens of reasoning of all choices.
func (x *exchange) reasoningTokens() int {
	n := 0
	for i := range x.choices {
		n += x.choices[i].reasoning
	}
	return n
}
