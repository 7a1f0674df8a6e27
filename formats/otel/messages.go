package otel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/trace"
)

// texts reads prompts and answers, where they are recorded. What it cannot put
// into the form of OpenAI's API without loss also stays in attributes.
func (s *state) texts(a jsonx.Row, r *trace.Request) {
	s.input(a, r)
	if raw, ok := a["gen_ai.tool.definitions"]; ok {
		if tools := tools(unquoted(raw)); tools != nil {
			r.Tools = trace.Some(string(tools))
			delete(a, "gen_ai.tool.definitions")
		}
	}
	if list, whole, ok := convert(unquoted(a["gen_ai.output.messages"])); ok && len(list) > 0 {
		answer(list[0], r)
		var m struct {
			Finish string `json:"finish_reason"`
		}
		if first, err := firstOf(unquoted(a["gen_ai.output.messages"])); err == nil && json.Unmarshal(first, &m) == nil && m.Finish != "" && !r.FinishReason.Known {
			r.FinishReason = trace.Some(m.Finish)
			r.Status = openai.Status(m.Finish)
		}
		if whole && len(list) == 1 {
			delete(a, "gen_ai.output.messages")
		}
	}
	for _, name := range []string{"gen_ai.output.text", "gen_ai.completion", "gen_ai.completion.0.content", "llm.output_messages.0.message.content"} {
		if r.OutputText.Known {
			break
		}
		if v, err := a.StringOnly(name); err == nil {
			r.OutputText = v
		}
	}
}

func firstOf(raw json.RawMessage) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("no first element")
	}
	return list[0], nil
}

// input reads the prompt: messages, or the text of a completion.
func (s *state) input(a jsonx.Row, r *trace.Request) {
	name := "gen_ai.input.messages"
	if _, ok := a[name]; !ok {
		name = "gen_ai.prompt"
	}
	list, whole, ok := convert(unquoted(a[name]))
	if !ok || len(list) == 0 {
		if prompt, err := a.StringOnly("gen_ai.prompt"); err == nil && prompt.Known {
			r.Prompt = prompt
			return
		}
		list, whole = indexed(a)
		if len(list) == 0 {
			return
		}
	} else if whole {
		delete(a, name)
	}
	if !whole {
		s.Note("prompts with parts that messages cannot hold, kept in attributes as well", 1)
	}
	if system := instructions(a); system != nil {
		list = append([]message{*system}, list...)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return // not reached: the parts were read as JSON
	}
	r.Messages, r.MessagesMode = trace.Some(string(text)), trace.Some(trace.MessagesFull)
	r.Media = openai.Media(text)
}

// instructions takes the system prompt that is recorded apart.
func instructions(a jsonx.Row) *message {
	raw := unquoted(a["gen_ai.system_instructions"])
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	list, whole, ok := convert(json.RawMessage(`[{"role":"system","parts":` + string(raw) + `}]`))
	if !ok || len(list) != 1 || !whole {
		return nil
	}
	delete(a, "gen_ai.system_instructions")
	return &list[0]
}

// A message is one of OpenAI's chat API.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Calls      []toolCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	raw        json.RawMessage // the message was in this form already
}

// MarshalJSON writes a message that was in this form as it was.
func (m message) MarshalJSON() ([]byte, error) {
	if m.raw != nil {
		return m.raw, nil
	}
	type plain message
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(plain(m))
	return bytes.TrimSpace(b.Bytes()), err
}

type toolCall struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// A part is one of the conventions' message parts.
type part struct {
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Response  json.RawMessage `json:"response"`
}

// convert puts messages of the conventions into OpenAI's form; those that have it
// already stay as they are. ok is false if raw is no list of messages, whole if
// nothing was left out.
func convert(raw json.RawMessage) (list []message, whole, ok bool) {
	var in []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &in) != nil {
		return nil, false, false
	}
	whole = true
	for _, one := range in {
		var m struct {
			Role  *string `json:"role"`
			Parts []part  `json:"parts"`
		}
		if json.Unmarshal(one, &m) != nil || m.Role == nil || *m.Role == "" {
			return nil, false, false
		}
		if m.Parts == nil {
			var b bytes.Buffer
			json.Compact(&b, one) // it is valid
			list = append(list, message{raw: b.Bytes()})
			continue
		}
		made, all := parts(*m.Role, m.Parts)
		list = append(list, made...)
		whole = whole && all
	}
	return list, whole, true
}

// parts makes messages of the parts of one: results of tools are messages of their
// own.
func parts(role string, list []part) (out []message, whole bool) {
	m := message{Role: role, Content: json.RawMessage("null")}
	var texts []string
	var results []message
	whole = true
	for _, p := range list {
		var text string
		switch p.Type {
		case "text":
			if json.Unmarshal(p.Content, &text) != nil {
				whole = false
				continue
			}
			texts = append(texts, text)
		case "tool_call":
			c := toolCall{ID: p.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = p.Name, textOf(p.Arguments)
			m.Calls = append(m.Calls, c)
		case "tool_call_response":
			result := p.Result
			if len(result) == 0 {
				result = p.Response
			}
			if len(result) == 0 {
				result = p.Content
			}
			results = append(results, message{Role: "tool", ToolCallID: p.ID, Content: json.RawMessage(jsonx.Quote(textOf(result)))})
		default:
			whole = false
		}
	}
	switch {
	case len(texts) == 1:
		m.Content = json.RawMessage(jsonx.Quote(texts[0]))
	case len(texts) > 1:
		var list []string
		for _, t := range texts {
			list = append(list, `{"type":"text","text":`+jsonx.Quote(t)+`}`)
		}
		m.Content = json.RawMessage("[" + strings.Join(list, ",") + "]")
	}
	if len(texts) > 0 || len(m.Calls) > 0 || len(results) == 0 {
		out = append(out, m)
	}
	return append(out, results...), whole
}

// textOf returns the text of a JSON string, else the JSON.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// answer reads the recorded answer.
func answer(m message, r *trace.Request) {
	text, _ := json.Marshal(m)
	var plain struct {
		Content json.RawMessage   `json:"content"`
		Calls   []json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(text, &plain) != nil {
		return
	}
	var content string
	if json.Unmarshal(plain.Content, &content) == nil && string(plain.Content) != "null" {
		r.OutputText = trace.Some(content)
	}
	if len(plain.Calls) > 0 || !r.OutputText.Known {
		r.OutputMessage = trace.Some(string(text))
	}
}

// indexed reads messages that are spread over attributes with a number in their
// names, as OpenLLMetry and OpenInference write them.
func indexed(a jsonx.Row) (list []message, whole bool) {
	for _, form := range [][2]string{{"gen_ai.prompt.%d.role", "gen_ai.prompt.%d.content"}, {"llm.prompts.%d.role", "llm.prompts.%d.content"}, {"llm.input_messages.%d.message.role", "llm.input_messages.%d.message.content"}} {
		whole = true
		for i := 0; ; i++ {
			var role string
			if json.Unmarshal(a[fmt.Sprintf(form[0], i)], &role) != nil || role == "" {
				break
			}
			content := a[fmt.Sprintf(form[1], i)]
			if content == nil {
				content = json.RawMessage("null")
				whole = false
			}
			list = append(list, message{Role: role, Content: content})
		}
		if len(list) == 0 {
			continue
		}
		if whole = whole && plain(a, form, len(list)); whole {
			for i := range list {
				delete(a, fmt.Sprintf(form[0], i))
				delete(a, fmt.Sprintf(form[1], i))
			}
		}
		return list, whole
	}
	return nil, false
}

// plain tells whether n messages have nothing but role and content.
func plain(a jsonx.Row, form [2]string, n int) bool {
	prefix, _, _ := strings.Cut(form[0], "%d")
	found := 0
	for k := range a {
		if strings.HasPrefix(k, prefix) {
			found++
		}
	}
	return found == 2*n
}

// tools puts definitions into OpenAI's form; nil if they are no list of objects.
func tools(raw json.RawMessage) json.RawMessage {
	var list []jsonx.Row
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	out := make([]json.RawMessage, 0, len(list))
	for _, t := range list {
		if t == nil {
			return nil
		}
		if t["function"] == nil && t["name"] != nil {
			delete(t, "type")
			t = jsonx.Row{"type": json.RawMessage(`"function"`), "function": object(t)}
		}
		out = append(out, object(t))
	}
	text, _ := json.Marshal(out) // values are JSON
	return text
}
