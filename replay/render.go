package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"reprise/replay/ledger"
	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
	"reprise/trace/tokens"
)

// A renderer turns rows into requests. It keeps the messages of conversations
// that come as deltas until their last turn.
type renderer struct {
	c     *Config
	text  *tokens.Cache
	spare sync.Pool        // of *draft
	turns map[string]int64 // rows with delta messages by session, from the survey

	mu      sync.Mutex
	history map[string]*conversation
}

// A conversation is what has been said so far, the inside of a JSON array.
type conversation struct {
	messages []byte
	left     int64  // rows to come
	answer   []byte // live: the last answer as a message, to go before the next turn; nil if there is none
}

func newRenderer(c *Config, turns map[string]int64) *renderer {
	text := tokens.Text{Seed: c.Selection.Seed, Scope: c.Scope}
	return &renderer{c: c, text: tokens.NewCache(text, keptBlocks), history: map[string]*conversation{}, turns: turns}
}

// keptBlocks bounds the text of blocks that is kept for requests to come, bytes.
const keptBlocks = 64 << 20

// A draft is a request that is being written; it is used again.
type draft struct {
	renderer *renderer
	row      *trace.Request
	req      protocol.Request
}

// draft begins a request for row.
func (r *renderer) draft(row *trace.Request) *draft {
	d, ok := r.spare.Get().(*draft)
	if !ok {
		d = &draft{renderer: r}
	}
	d.row = row
	d.req.Begin()
	return d
}

// streams tells whether a stream is asked for.
func (c *Config) streams(row *trace.Request) bool {
	switch c.Stream {
	case StreamOff:
		return false
	case StreamRecorded:
		return row.Streaming.Or(true)
	}
	return true
}

// sendable says why a row cannot be sent; "" if it can.
func sendable(row *trace.Request) string {
	switch {
	case row.Body.Known, row.Messages.Known, row.Prompt.Known, row.InputTokens.Known:
		return ""
	case row.NewInputTokens.Known:
		return "only the new tokens of the turn are known, not the whole prompt"
	}
	return "neither content nor a number of input tokens"
}

// body appends the request body for row and fills in what res says of the plan.
func (r *renderer) body(dst []byte, row *trace.Request, res *results.Result) ([]byte, error) {
	d := r.draft(row)
	defer r.spare.Put(d)
	req := &d.req
	req.Stream, req.Extra, req.Choices = r.c.streams(row), r.c.ExtraBody, row.Choices.Or(0)
	req.ContinuousUsage = req.Stream && r.c.runningUsage
	req.Model, _ = r.c.model(row.Model.Or(""))
	if req.Model != "" {
		res.Model = trace.Some(req.Model)
	}
	res.PlannedInputTokens = row.InputTokens
	if extra, ok := row.Extra.Get(); ok {
		req.Extra = append([][]byte{[]byte(extra)}, req.Extra...)
	}
	if tools, ok := row.Tools.Get(); ok {
		req.Tools = []byte(tools)
	}
	r.outputLength(req, row, res)
	switch {
	case row.Body.Known:
		req.Body = []byte(row.Body.Value)
	case row.Messages.Known:
		messages, err := r.messages(row)
		if err != nil {
			return dst, err
		}
		if req.Messages, err = r.saltMessages(messages, row); err != nil {
			return dst, err
		}
	case row.Prompt.Known:
		text := r.saltLiteral(row)
		if c := r.c; c.Tokenizer != nil && c.overheadKnown && !row.InputTokens.Known {
			res.PlannedInputTokens = trace.Some(int64(c.Tokenizer(text) + c.overhead))
		}
		req.Prompt = [][]byte{protocol.EscapeText(nil, string(text))}
	default:
		req.Made = d
	}
	return r.c.protocol().AppendBody(dst, req)
}

// outputLength asks for the planned length. A recorded length of 0 cannot be
// asked for; the least is 1.
func (r *renderer) outputLength(req *protocol.Request, row *trace.Request, res *results.Result) {
	mode := r.c.Output
	if mode == "" {
		mode = DefaultOutput
	}
	want, known := row.OutputTokens.Get()
	if mode == OutputFree || !known {
		req.MaxTokens = row.MaxOutputTokens
		return
	}
	n := trace.Some(max(want, 1))
	res.PlannedOutputTokens = n
	req.MaxTokens = n
	if mode == OutputExact {
		req.MinTokens, req.IgnoreEOS = n, true
	}
}

// AppendText implements protocol.Text: text of the planned length whose block
// prefixes repeat as the block ids say.
func (d *draft) AppendText(dst []byte) []byte {
	r, row := d.renderer, d.row
	room := int(row.InputTokens.Value)
	if r.c.Salt != SaltNone {
		room -= SaltTokens
	}
	from := len(dst)
	dst = r.text.AppendPrompt(dst, tokens.Plan{
		Tokens: room, Blocks: row.Blocks, BlockTokens: int(row.BlockTokens.Or(0)),
		Overhead: r.c.overhead, Fill: fillOf(row),
	})
	return r.saltMade(dst, from, row)
}

// fillOf names the text behind the blocks: one per conversation, so that a
// prompt without block ids grows from turn to turn, else one per row.
func fillOf(row *trace.Request) uint64 {
	if s, ok := row.Session.Get(); ok {
		return fnvAdd(fnvAdd(fnvAdd(fnvStart, s), "\x00"), row.Agent.Or("")) | 1<<63
	}
	return uint64(row.ID)
}

// fnvAdd is the 64-bit FNV-1a of hash/fnv, which would allocate.
func fnvAdd(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

const fnvStart = 14695981039346656037

// messages returns the whole conversation up to row.
func (r *renderer) messages(row *trace.Request) ([]byte, error) {
	text := []byte(row.Messages.Value)
	session, ok := row.Session.Get()
	if row.MessagesMode.Or(trace.MessagesFull) != trace.MessagesDelta || !ok {
		return text, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.history[session]
	if c == nil {
		name, _, _ := strings.Cut(session, passMark)
		c = &conversation{left: r.turns[name]}
		r.history[session] = c
	}
	if c.answer != nil {
		var err error
		if text, err = c.withAnswer(text); err != nil {
			return nil, fmt.Errorf("id %d: %w", row.ID, err)
		}
	}
	inside := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("[")), []byte("]"))
	if len(inside) > 0 && len(c.messages) > 0 {
		c.messages = append(c.messages, ',')
	}
	c.messages = append(c.messages, inside...)
	if c.left--; c.left == 0 {
		delete(r.history, session)
	}
	whole := make([]byte, 0, len(c.messages)+2)
	whole = append(append(append(whole, '['), c.messages...), ']')
	if !json.Valid(whole) {
		return nil, fmt.Errorf("id %d: messages are no JSON array", row.ID)
	}
	return whole, nil
}

// answered keeps what the server said in a session for its next turn.
func (r *renderer) answered(session string, said *ledger.Transcript) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.history[session]
	if c == nil || len(said.Choices) == 0 || len(said.Choices[0].Content) == 0 {
		return
	}
	c.answer = append([]byte(`{"role":"assistant","content":"`), protocol.EscapeText(nil, string(said.Choices[0].Content))...)
	c.answer = append(c.answer, `"}`...)
}

// withAnswer puts the live answer in the place of the recorded one, with which
// the delta of a later turn begins. A recorded tool call stays: the results that
// follow name its id.
func (c *conversation) withAnswer(delta []byte) ([]byte, error) {
	var messages []json.RawMessage
	if err := json.Unmarshal(delta, &messages); err != nil {
		return nil, fmt.Errorf("messages are no JSON array: %w", err)
	}
	for len(messages) > 0 {
		var m struct {
			Role      string          `json:"role"`
			ToolCalls json.RawMessage `json:"tool_calls"`
		}
		if err := json.Unmarshal(messages[0], &m); err != nil || m.Role != "assistant" {
			break
		}
		if m.ToolCalls != nil {
			c.answer = nil
			return delta, nil
		}
		messages = messages[1:]
	}
	messages = append([]json.RawMessage{c.answer}, messages...)
	c.answer = nil
	return json.Marshal(messages)
}

// headEnd is room for what follows the target's head before a body.
const headEnd = len("X-Request-Id: \r\nContent-Length: \r\n\r\n") + 2*requestIDLen

// request returns the whole HTTP request for the body behind the first room
// bytes of buf; the head is written into these.
func (t *target) request(buf []byte, room int, id []byte) []byte {
	var end [headEnd]byte
	tail := append(end[:0], "X-Request-Id: "...)
	tail = append(tail, id...)
	tail = append(tail, "\r\nContent-Length: "...)
	tail = strconv.AppendInt(tail, int64(len(buf)-room), 10)
	tail = append(tail, "\r\n\r\n"...)
	at := room - len(tail)
	copy(buf[at:], tail)
	at -= len(t.head)
	copy(buf[at:], t.head)
	return buf[at:]
}
