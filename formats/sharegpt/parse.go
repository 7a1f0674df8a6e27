package sharegpt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// Roles a message can have, whatever the source calls them.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
	roleTool      = "tool"
	roleCall      = "function_call" // an answer that calls tools
)

// roleNames are the names in use, in lower case.
var roleNames = map[string]string{
	"human": roleUser, "user": roleUser,
	"gpt": roleAssistant, "chatgpt": roleAssistant, "bing": roleAssistant, "bard": roleAssistant, "assistant": roleAssistant, "model": roleAssistant,
	"system": roleSystem, "developer": roleSystem,
	"tool": roleTool, "observation": roleTool, "function": roleTool, "function_response": roleTool,
	"function_call": roleCall, "tool_call": roleCall,
}

// A message is one element of a conversation.
type message struct {
	raw   json.RawMessage // as it stands in the list
	name  string          // its role, as the source has it
	role  string
	text  string      // value, or the text of its parts
	body  jsonx.Row   // OpenAI's form, as far as the source has it: content, tool_calls, ...
	calls []call      // of roleCall
	empty bool        // no text at all
	media []mediaPart // attachments among its parts
}

type mediaPart string // image, audio, video

// A conversation is one record.
type conversation struct {
	id       trace.Optional[string]
	fields   jsonx.Row // but the messages
	key      string    // conversations, messages or items
	messages []*message
	system   trace.Optional[string] // top-level system prompt
	tools    trace.Optional[string] // as OpenAI has them
	model    trace.Optional[string]
	badTools bool
	segments []segment
}

// A reasonError has a class of its own, under which it is counted.
type reasonError struct {
	class string
	text  string
}

func (e *reasonError) Error() string { return e.text }

func reason(field, class, format string, args ...any) error {
	return &jsonx.FieldError{Field: field, Err: &reasonError{class, fmt.Sprintf(format, args...)}}
}

// parse reads one record.
func parse(o jsonx.Object) (*conversation, error) {
	if o.Err != nil {
		return nil, o.Err
	}
	f, err := jsonx.Parse(o.Raw)
	if err != nil {
		return nil, err
	}
	c := &conversation{fields: f}
	for _, key := range []string{"conversations", "conversation", "messages", "items"} {
		if _, ok := f[key]; ok {
			c.key = key
			break
		}
	}
	if c.key == "" {
		return nil, reason("conversations", "no conversation", "missing, and no messages or items instead")
	}
	list, err := elements(c.key, f[c.key])
	if err != nil {
		return nil, err
	}
	delete(f, c.key)
	for i, raw := range list {
		m, err := parseMessage(raw, fmt.Sprintf("%s[%d]", c.key, i))
		if err != nil {
			return nil, err
		}
		c.messages = append(c.messages, m)
	}
	if c.id, err = peek(f, "id").String("id"); err != nil {
		return nil, err
	}
	return c, c.parseFields()
}

func peek(f jsonx.Row, key string) jsonx.Row {
	if raw, ok := f[key]; ok {
		return jsonx.Row{key: raw}
	}
	return jsonx.Row{}
}

// elements returns the messages of a list, which some exports keep as a string.
func elements(key string, raw json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	switch raw = unquoted(raw); {
	case string(raw) == "null":
		return nil, reason(key, "no conversation", "null instead of a list")
	case json.Unmarshal(raw, &list) != nil:
		return nil, reason(key, "no conversation", "not a list")
	case len(list) == 0:
		return nil, reason(key, "no messages", "empty")
	}
	return list, nil
}

// unquoted returns the JSON object or list that a JSON string holds, or raw.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return raw
	}
	if text = strings.TrimSpace(text); len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return raw
	}
	return json.RawMessage(text)
}

func parseMessage(raw json.RawMessage, path string) (*message, error) {
	f, err := jsonx.Parse(unquoted(raw))
	if err != nil {
		return nil, reason(path, "message", "%v", err)
	}
	m := &message{raw: raw, body: jsonx.Row{}}
	name, _, _ := first(f, "from", "role")
	text, content, ok := first(f, "value", "content", "text")
	if err := json.Unmarshal(f[name], &m.name); err != nil || m.name == "" {
		return nil, reason(path+"."+name, "role", "no role")
	}
	if m.role = roleNames[strings.ToLower(m.name)]; m.role == "" {
		return nil, reason(path+"."+name, "role", "%q is no role that is known", m.name)
	}
	for _, k := range []string{"tool_calls", "tool_call_id", "name", "refusal", "audio"} {
		if v, ok := f[k]; ok && name == "role" && string(v) != "null" {
			m.body[k] = v
		}
	}
	_, calls := m.body["tool_calls"]
	if (!ok || string(content) == "null") && !(calls && m.role == roleAssistant) {
		if !ok {
			return nil, reason(path+"."+text, "no text", "missing")
		}
		return nil, reason(path+"."+text, "no text", "null instead of a text")
	}
	if err := m.content(content); err != nil {
		return nil, reason(path+"."+text, "text", "%v", err)
	}
	if m.role == roleCall {
		m.calls = parseCalls(m.text)
	}
	return m, nil
}

// first returns the first of the keys that is there; if none is, the first.
func first(f jsonx.Row, keys ...string) (string, json.RawMessage, bool) {
	for _, k := range keys {
		if v, ok := f[k]; ok {
			return k, v, true
		}
	}
	return keys[0], nil, false
}

// content reads a text or a list of parts.
func (m *message) content(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		m.body["content"] = json.RawMessage("null")
		return nil
	}
	if json.Unmarshal(raw, &m.text) == nil {
		m.empty = m.text == ""
		m.body["content"] = encode(m.text)
		return nil
	}
	var parts []jsonx.Row
	if raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		return fmt.Errorf("%.40s is neither a text nor a list of parts", raw)
	}
	for i, p := range parts {
		if p == nil {
			return fmt.Errorf("part %d is null", i)
		}
		if err := m.part(p); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	m.empty = m.text == "" && m.media == nil
	m.body["content"] = encode(parts)
	return nil
}

// part reads one part and gives it the form that OpenAI has.
func (m *message) part(p jsonx.Row) error {
	var kind string
	if raw, ok := p["type"]; ok && json.Unmarshal(raw, &kind) != nil {
		return fmt.Errorf("type: %.40s is no string", raw)
	}
	if kind == "text" || kind == "" {
		key, raw, _ := first(p, "text", "value")
		var text string
		if json.Unmarshal(raw, &text) != nil || string(raw) == "null" {
			return fmt.Errorf("%s: no text", key)
		}
		delete(p, "value")
		p["type"], p["text"] = json.RawMessage(`"text"`), encode(text)
		m.text += text
		return nil
	}
	for _, media := range []string{"image", "audio", "video"} {
		if strings.Contains(kind, media) {
			m.media = append(m.media, mediaPart(media))
		}
	}
	return nil
}

// parseFields reads what stands beside the messages.
func (c *conversation) parseFields() error {
	var text string
	if json.Unmarshal(c.fields["system"], &text) == nil && text != "" {
		c.system = trace.Some(text)
	}
	if raw := c.fields["model"]; len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		c.model = trace.Some(text)
	}
	raw, ok := c.fields["tools"]
	if !ok || string(raw) == "null" || string(raw) == `""` {
		return nil
	}
	var list []jsonx.Row
	if json.Unmarshal(unquoted(raw), &list) != nil {
		c.badTools = true
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	for i, tool := range list {
		if _, wrapped := tool["function"]; !wrapped && tool["name"] != nil {
			list[i] = jsonx.Row{"type": json.RawMessage(`"function"`), "function": encode(tool)}
		}
	}
	c.tools = trace.Some(string(encode(list)))
	return nil
}

// A call is one tool call.
type call struct {
	name      string
	arguments string // JSON text, as OpenAI wants it
}

// parseCalls reads {"name", "arguments"} or a list of them; nil if text is
// something else.
func parseCalls(text string) []call {
	raw := json.RawMessage(strings.TrimSpace(text))
	if len(raw) > 0 && raw[0] == '{' {
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var list []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var calls []call
	for _, c := range list {
		if c.Name == "" {
			return nil
		}
		k := call{name: c.Name}
		if json.Unmarshal(c.Arguments, &k.arguments) != nil {
			var b bytes.Buffer
			json.Compact(&b, c.Arguments)
			k.arguments = b.String()
		}
		if k.arguments == "" || k.arguments == "null" {
			k.arguments = "{}"
		}
		calls = append(calls, k)
	}
	return calls
}
