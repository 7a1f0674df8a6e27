package sharegpt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// A segment is what one request adds to the conversation: new messages, and the
// run of answers that follows. Segments in order are the whole conversation.
type segment struct {
	inputs  []*message
	answers []*message
	rest    []*message // of the last segment: messages that nothing follows and that ask nothing
}

func (g *segment) all() []*message {
	return slices.Concat(g.inputs, g.answers, g.rest)
}

// turns cuts the conversation into segments. Answers before the first user
// message are context of the first request; an answer that follows another
// without a new message belongs to the same segment.
func (c *conversation) turns() error {
	var cur segment
	asked := false
	for _, m := range c.messages {
		answer := m.role == roleAssistant || m.role == roleCall
		if answer && asked {
			cur.answers = append(cur.answers, m)
			continue
		}
		if len(cur.answers) > 0 {
			c.segments = append(c.segments, cur)
			cur = segment{}
		}
		cur.inputs = append(cur.inputs, m)
		asked = asked || m.role == roleUser
	}
	if !asked {
		return reason(c.key, "no user message", "no user message among %d", len(c.messages))
	}
	asks := func(m *message) bool { return m.role == roleUser || m.role == roleTool }
	if n := len(c.segments); n > 0 && len(cur.answers) == 0 && !slices.ContainsFunc(cur.inputs, asks) {
		c.segments[n-1].rest = cur.inputs
		return nil
	}
	c.segments = append(c.segments, cur)
	return nil
}

// A writer gives messages the form that an OpenAI-compatible server accepts.
type writer struct {
	made    int      // ids made for tool calls
	pending []string // ids of calls whose results have not come yet
}

// inputs returns the messages before an answer. A tool's result that follows no
// call is sent as the user's, since servers refuse it otherwise; so is a call
// before any question sent as plain text.
func (w *writer) inputs(list []*message) (out []json.RawMessage) {
	for _, m := range list {
		switch m.role {
		case roleTool:
			out = append(out, w.result(m))
		case roleCall:
			out = append(out, object(roleAssistant, m.body))
		default:
			out = append(out, object(m.role, m.body))
		}
	}
	w.pending = nil
	return out
}

func (w *writer) result(m *message) json.RawMessage {
	if _, ok := m.body["tool_call_id"]; ok {
		return object(roleTool, m.body)
	}
	if len(w.pending) == 0 {
		return object(roleUser, m.body)
	}
	body := maps.Clone(m.body)
	body["tool_call_id"] = encode(w.pending[0])
	w.pending = w.pending[1:]
	return object(roleTool, body)
}

// answers returns a run of answers as messages. A call joins the text before it;
// calls that get no results are plain text where something follows, since
// servers refuse them otherwise.
func (w *writer) answers(run []*message, next *segment) (out []json.RawMessage) {
	calls := 0
	for _, m := range run {
		calls += len(m.calls)
	}
	asCalls := next == nil || results(next) >= calls
	var last jsonx.Row
	var joined []toolCall // of last
	for _, m := range run {
		if m.role != roleCall || !asCalls || len(m.calls) == 0 {
			last, joined = maps.Clone(m.body), nil
			out = append(out, object(roleAssistant, last))
			continue
		}
		if last == nil {
			last = jsonx.Row{"content": json.RawMessage("null")}
			out = append(out, nil)
		}
		joined = append(joined, w.toolCalls(m.calls)...)
		last["tool_calls"] = encode(joined)
		out[len(out)-1] = object(roleAssistant, last)
	}
	return out
}

// results counts the tool results with which a segment begins.
func results(g *segment) (n int) {
	for _, m := range g.inputs {
		if m.role != roleTool {
			break
		}
		n++
	}
	return n
}

// A toolCall is a call in OpenAI's form.
type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON text
}

func (w *writer) toolCalls(calls []call) (list []toolCall) {
	for _, c := range calls {
		w.made++
		id := fmt.Sprintf("call_%d", w.made)
		w.pending = append(w.pending, id)
		list = append(list, toolCall{id, "function", function{c.name, c.arguments}})
	}
	return list
}

// object encodes a message: role, content, then the rest by name.
func object(role string, body jsonx.Row) json.RawMessage {
	buf := append([]byte(`{"role":`), encode(role)...)
	keys := slices.Sorted(maps.Keys(body))
	if i := slices.Index(keys, "content"); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "content")
	}
	for _, k := range keys {
		buf = append(append(append(append(buf, ','), encode(k)...), ':'), body[k]...)
	}
	return append(buf, '}')
}

func array(list []json.RawMessage) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	b.WriteByte(']')
	return b.String()
}

// rows returns the requests of the conversation; IDs count from 0. Their tokens
// are known if count is not nil.
func (c *conversation) rows(session, file string, line int64, count func(string) int) []trace.Request {
	w := &writer{}
	style := c.style(session)
	media := newAttachments(c)
	rows := make([]trace.Request, len(c.segments))
	var before []json.RawMessage // answers of the segment before
	for k := range c.segments {
		g := &c.segments[k]
		delta := before
		if k == 0 && c.system.Known {
			delta = append(delta, object(roleSystem, jsonx.Row{"content": encode(c.system.Value)}))
		}
		delta = append(delta, w.inputs(g.inputs)...)
		var next *segment
		if k+1 < len(c.segments) {
			next = &c.segments[k+1]
		}
		before = w.answers(g.answers, next)
		r := &rows[k]
		*r = trace.Request{ID: int64(k), Operation: trace.OpChat, Session: trace.Some(session), Turn: trace.Some(int32(k)), Model: c.model, Tools: c.tools,
			Messages: trace.Some(array(delta)), MessagesMode: trace.Some(trace.MessagesDelta), Media: media.upTo(g),
			SourceFile: trace.Some(file), SourceRow: trace.Some(line), Attributes: map[string]string{}}
		if k == 0 {
			r.Attributes[attrConversation] = string(encode(style))
		} else {
			r.After = []trace.Dependency{{ID: int64(k - 1), Kind: trace.AfterTurn}}
		}
		if len(before) > 0 {
			setAnswer(r, before[0], g.answers[0])
		}
		keepOriginal(r, style, g)
	}
	if count != nil {
		c.count(rows, count)
	}
	return rows
}

// count sets the token counts of the conversation's requests: input is the text
// of all messages so far and of the tools, new input that of the turn's own,
// output that of the recorded answer. What the chat template puts around them is
// not counted. Attachments have tokens that no text shows, and a tool call is
// written in each model's own form, so that neither is guessed.
func (c *conversation) count(rows []trace.Request, count func(string) int) {
	context := int64(count(c.tools.Or("")))
	if c.system.Known {
		context += int64(count(c.system.Value))
	}
	whole := true // no attachment so far
	for k := range rows {
		r, g := &rows[k], &c.segments[k]
		var fresh int64
		for _, m := range g.inputs {
			fresh += int64(count(m.text))
		}
		if k == 0 {
			fresh += context
			context = 0
		}
		context += fresh
		if whole = whole && len(r.Media) == 0; whole {
			r.InputTokens, r.NewInputTokens = trace.Some(context), trace.Some(fresh)
		}
		for i, m := range g.answers {
			n := int64(count(m.text))
			context += n
			if i == 0 && m.role == roleAssistant && len(m.calls) == 0 {
				r.OutputTokens = trace.Some(n)
			}
		}
	}
}

// setAnswer keeps the first message of a run of answers as the recorded answer.
func setAnswer(r *trace.Request, answer json.RawMessage, first *message) {
	var m struct {
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(answer, &m) != nil {
		return
	}
	if m.Calls != nil || len(m.Content) == 0 || m.Content[0] != '"' {
		r.OutputMessage = trace.Some(string(answer))
	}
	if first.role == roleAssistant && string(m.Content) != "null" {
		r.OutputText = trace.Some(first.text)
	} else if m.Calls == nil {
		r.OutputText = trace.Some(first.text)
	}
}

// attachments count images, audio and video up to a request.
type attachments struct {
	listed map[string]int // kind: how many the record lists
	marked map[string]int // kind: placeholders in its texts
	seen   map[string]int
}

var mediaKeys = map[string]string{"image": "image", "images": "image", "video": "video", "videos": "video", "audio": "audio", "audios": "audio"}

func newAttachments(c *conversation) *attachments {
	a := &attachments{listed: map[string]int{}, marked: map[string]int{}, seen: map[string]int{}}
	for key, kind := range mediaKeys {
		raw, ok := c.fields[key]
		var list []json.RawMessage
		switch {
		case !ok || string(raw) == "null":
		case json.Unmarshal(raw, &list) == nil:
			a.listed[kind] += len(list)
		default:
			a.listed[kind]++
		}
	}
	for _, m := range c.messages {
		for _, p := range m.media {
			delete(a.listed, string(p)) // the list says again what the parts say
		}
	}
	for _, m := range c.messages {
		for kind := range a.listed {
			a.marked[kind] += strings.Count(m.text, "<"+kind+">")
		}
	}
	return a
}

// upTo adds the attachments of a segment's inputs. Those that the record lists
// without a placeholder belong to its first request.
func (a *attachments) upTo(g *segment) (out []trace.Media) {
	for kind, n := range a.listed {
		if a.marked[kind] == 0 {
			a.seen[kind], a.listed[kind] = a.seen[kind]+n, 0
		}
	}
	for _, m := range g.inputs {
		for _, p := range m.media {
			a.seen[string(p)]++
		}
		for kind := range a.listed {
			a.seen[kind] += strings.Count(m.text, "<"+kind+">")
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(a.seen)) {
		if a.seen[kind] > 0 {
			out = append(out, trace.Media{Kind: kind, Count: trace.Some(int32(a.seen[kind]))})
		}
	}
	return out
}
