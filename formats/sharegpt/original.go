package sharegpt

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// Attributes of our own.
const (
	attrConversation = "sharegpt.conversation" // first row: a style
	attrMessages     = "sharegpt.messages"     // the messages of this row's segment, where they do not follow from the columns
)

// A style says how a conversation is written; the zero value is the published
// dump's.
type style struct {
	Session string            `json:"session"`         // the name it was given
	Fields  jsonx.Row         `json:"fields"`          // all but the messages
	Key     string            `json:"key,omitempty"`   // of the messages; "" = conversations
	Role    string            `json:"role,omitempty"`  // of a message's role; "" = from
	Text    string            `json:"text,omitempty"`  // of its text; "" = value
	Names   map[string]string `json:"names,omitempty"` // role: its name, where that is not the dump's
}

// defaultNames are the dump's, and LLaMA-Factory's for tools.
var defaultNames = map[string]string{roleUser: "human", roleAssistant: "gpt", roleSystem: "system", roleTool: "observation", roleCall: "function_call"}

func (s *style) name(role string) string {
	if n, ok := s.Names[role]; ok {
		return n
	}
	return defaultNames[role]
}

// style finds how the conversation is written by its first messages.
func (c *conversation) style(session string) *style {
	s := &style{Session: session, Fields: c.fields}
	if c.key != "conversations" {
		s.Key = c.key
	}
	if f, err := jsonx.Parse(unquoted(c.messages[0].raw)); err == nil {
		if k, _, ok := first(f, "from", "role"); ok && k != "from" {
			s.Role = k
		}
		if k, _, ok := first(f, "value", "content", "text"); ok && k != "value" {
			s.Text = k
		}
	}
	for i := len(c.messages) - 1; i >= 0; i-- { // the first of each role stands
		m := c.messages[i]
		if s.Names == nil {
			s.Names = map[string]string{}
		}
		s.Names[m.role] = m.name
	}
	for role, name := range s.Names {
		if name == defaultNames[role] {
			delete(s.Names, role)
		}
	}
	return s
}

// keepOriginal keeps the segment's own messages unless export would make the
// same from the columns.
func keepOriginal(r *trace.Request, s *style, g *segment) {
	var raws []json.RawMessage
	for _, m := range g.all() {
		raws = append(raws, m.raw)
	}
	original := []byte(array(raws))
	made := s.messages(r, r.Turn.Value == 0)
	if equal(original, []byte(array(made))) {
		return
	}
	var b bytes.Buffer
	if json.Compact(&b, original) == nil {
		r.Attributes[attrMessages] = b.String()
	}
}

// equal compares JSON as values. What Go reads as U+FFFD may have been half of a
// surrogate pair, so it is never equal.
func equal(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y) && !bytes.Contains(b, []byte("\ufffd"))
}

// A chat is one message in OpenAI's form.
type chat struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// messages makes the messages of a row's segment from its columns: what is new
// in its delta, and its answer.
func (s *style) messages(r *trace.Request, first bool) (out []json.RawMessage) {
	var delta []json.RawMessage
	json.Unmarshal([]byte(r.Messages.Value), &delta)
	leading := !first
	for _, raw := range delta {
		var m chat
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if leading = leading && m.Role == roleAssistant; leading {
			continue // the answer of the turn before
		}
		out = append(out, s.write(raw, &m)...)
	}
	if text, ok := r.OutputMessage.Get(); ok {
		var m chat
		if json.Unmarshal([]byte(text), &m) == nil {
			out = append(out, s.write(json.RawMessage(text), &m)...)
		}
	} else if text, ok := r.OutputText.Get(); ok {
		out = append(out, s.pair(roleAssistant, encode(text)))
	}
	return out
}

// write gives a message the style. In OpenAI's form it stays as it is; else
// calls stand behind the text as messages of their own.
func (s *style) write(raw json.RawMessage, m *chat) (out []json.RawMessage) {
	if s.openAI() && s.name(m.Role) == m.Role {
		return []json.RawMessage{raw}
	}
	if len(m.Content) > 0 && string(m.Content) != "null" {
		out = append(out, s.pair(m.Role, m.Content))
	}
	for _, c := range m.Calls {
		value := `{"name": ` + string(encode(c.Function.Name)) + `, "arguments": ` + spaced(c.Function.Arguments) + `}`
		out = append(out, s.pair(roleCall, encode(value)))
	}
	return out
}

func (s *style) openAI() bool { return s.Role == "role" && s.Text == "content" }

func (s *style) pair(role string, text json.RawMessage) json.RawMessage {
	from, value := s.Role, s.Text
	if from == "" {
		from = "from"
	}
	if value == "" {
		value = "value"
	}
	return json.RawMessage(`{` + string(encode(from)) + `:` + string(encode(s.name(role))) + `,` + string(encode(value)) + `:` + string(text) + `}`)
}

// spaced writes JSON with the blanks that Python's json.dumps puts.
func spaced(compact string) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, c := range []byte(compact) {
		b.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
