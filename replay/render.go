package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
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
	text  tokens.Text
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
	return &renderer{c: c, text: tokens.Text{Seed: c.Selection.Seed, Scope: c.Scope}, history: map[string]*conversation{}, turns: turns}
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
	req := protocol.Request{Stream: r.c.streams(row), Extra: r.c.ExtraBody, Choices: row.Choices.Or(0)}
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
	r.outputLength(&req, row, res)
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
		req.Prompt = [][]byte{r.prompt(row)}
	}
	return r.c.protocol().AppendBody(dst, &req)
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

// prompt makes text of the planned length whose block prefixes repeat as the
// block ids say.
func (r *renderer) prompt(row *trace.Request) []byte {
	room := int(row.InputTokens.Value)
	if r.c.Salt != SaltNone {
		room -= SaltTokens
	}
	return r.saltMade(r.text.AppendPrompt(nil, tokens.Plan{
		Tokens: room, Blocks: row.Blocks, BlockTokens: int(row.BlockTokens.Or(0)),
		Overhead: r.c.overhead, Fill: fillOf(row),
	}), row)
}

// fillOf names the text behind the blocks: one per conversation, so that a
// prompt without block ids grows from turn to turn, else one per row.
func fillOf(row *trace.Request) uint64 {
	h := fnv.New64a()
	if s, ok := row.Session.Get(); ok {
		h.Write([]byte(s))
		h.Write([]byte{0})
		h.Write([]byte(row.Agent.Or("")))
		return h.Sum64() | 1<<63
	}
	return uint64(row.ID)
}

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
		c = &conversation{left: r.turns[session]}
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

// request appends the whole HTTP request for a body.
func (t *target) request(dst []byte, id string, body []byte) []byte {
	dst = append(dst, t.head...)
	dst = append(dst, "X-Request-Id: "...)
	dst = append(dst, id...)
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}
