package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// Response puts a response, which is a JSON object or the text of an event stream,
// into the columns of r that are not known yet. rest is what has no column, as JSON
// by name. The error says why it is no response.
func Response(body []byte, r *trace.Request) (rest jsonx.Row, err error) {
	text := bytes.TrimSpace(body)
	if len(text) == 0 {
		return nil, jsonx.Bad("response", "empty")
	}
	if text[0] != '{' {
		return stream(text, r)
	}
	f, err := jsonx.Parse(text)
	if err != nil {
		return nil, &jsonx.FieldError{Field: "response", Err: err}
	}
	if _, failed := f["error"]; failed && string(f["error"]) != "null" && !r.Status.Known {
		r.Status = trace.Some(trace.StatusError)
	}
	if err := usage(f, r); err != nil {
		return nil, err
	}
	if !r.Model.Known {
		r.Model, _ = jsonx.Row{"model": f["model"]}.StringOnly("model")
	}
	if answer(f, r) {
		delete(f, "choices")
	}
	parts(f, r)
	if !r.Status.Known {
		r.Status = Status(r.FinishReason.Value)
	}
	return f, nil
}

// usage reads the counts of tokens. Anthropic's input leaves out what came from,
// or went to, the cache.
func usage(f jsonx.Row, r *trace.Request) error {
	raw, ok := f["usage"]
	if !ok || len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	u, err := jsonx.Parse(raw)
	if err != nil {
		return &jsonx.FieldError{Field: "usage", Err: err}
	}
	_, anthropic := u["cache_read_input_tokens"]
	var in, out, cached, written, reasoning trace.Optional[int64]
	details := func(name string) jsonx.Row {
		var d jsonx.Row
		json.Unmarshal(u[name], &d) // absent or of another type: none
		return d
	}
	promptDetails, outputDetails := details("prompt_tokens_details"), details("completion_tokens_details")
	if promptDetails == nil {
		promptDetails = details("input_tokens_details")
	}
	if outputDetails == nil {
		outputDetails = details("output_tokens_details")
	}
	for _, c := range []struct {
		to    *trace.Optional[int64]
		row   jsonx.Row
		names []string
	}{
		{&in, u, []string{"prompt_tokens", "input_tokens"}}, {&out, u, []string{"completion_tokens", "output_tokens"}},
		{&cached, u, []string{"cache_read_input_tokens"}}, {&written, u, []string{"cache_creation_input_tokens"}},
		{&reasoning, outputDetails, []string{"reasoning_tokens"}},
	} {
		if *c.to, err = c.row.Int(c.names...); err != nil {
			return &jsonx.FieldError{Field: "usage." + err.(*jsonx.FieldError).Field, Err: err.(*jsonx.FieldError).Err}
		}
	}
	if !cached.Known {
		if cached, err = promptDetails.Int("cached_tokens"); err != nil {
			return &jsonx.FieldError{Field: "usage.cached_tokens", Err: err.(*jsonx.FieldError).Err}
		}
	}
	if anthropic && in.Known && r.Operation == trace.OpMessages {
		in.Value += cached.Value + written.Value
	}
	if reasoning.Value > out.Value {
		reasoning.Known = false
	}
	set(&r.InputTokens, in)
	set(&r.OutputTokens, out)
	set(&r.CachedTokens, cached)
	set(&r.CacheWriteTokens, written)
	set(&r.ReasoningTokens, reasoning)
	return nil
}

func set[T any](to *trace.Optional[T], v trace.Optional[T]) {
	if !to.Known {
		*to = v
	}
}

// answer reads the one choice of a completion; whole is false if there is more in
// the choices than the columns hold.
func answer(f jsonx.Row, r *trace.Request) (whole bool) {
	var choices []jsonx.Row
	if json.Unmarshal(f["choices"], &choices) != nil || len(choices) == 0 {
		return false
	}
	c := choices[0]
	if reason, err := c.StringOnly("finish_reason"); err == nil {
		set(&r.FinishReason, reason)
	}
	delete(c, "index")
	if v, err := c.StringOnly("text"); err == nil && v.Known {
		set(&r.OutputText, v)
	}
	if raw, ok := c["message"]; ok {
		if message(raw, r) {
			delete(c, "message")
		}
	}
	for k, v := range c {
		if string(v) == "null" {
			delete(c, k)
		}
	}
	return len(choices) == 1 && len(c) == 0
}

// message reads an assistant's message: a text, or a message with more than that.
func message(raw json.RawMessage, r *trace.Request) bool {
	var m jsonx.Row
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return false
	}
	plain := true
	for k, v := range m {
		switch {
		case k == "role", string(v) == "null", k == "content" && len(v) > 0 && v[0] == '"', string(v) == "[]":
		default:
			plain = false
		}
	}
	if text, err := m.StringOnly("content"); err == nil && text.Known {
		set(&r.OutputText, text)
	}
	if !plain && !r.OutputMessage.Known {
		r.OutputMessage, _ = jsonx.Row{"m": raw}.Object("m")
	}
	return true
}

// parts reads the answers of Anthropic's messages, OpenAI's responses, and TGI.
func parts(f jsonx.Row, r *trace.Request) {
	if reason, err := (jsonx.Row{"r": f["stop_reason"]}).StringOnly("r"); err == nil && reason.Known {
		set(&r.FinishReason, reason)
		delete(f, "stop_reason")
	}
	if text, err := (jsonx.Row{"t": f["generated_text"]}).StringOnly("t"); err == nil && text.Known {
		set(&r.OutputText, text)
		delete(f, "generated_text")
	}
	type part struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	for _, key := range []string{"content", "output"} {
		var list []part
		if len(f[key]) == 0 || f[key][0] != '[' || json.Unmarshal(f[key], &list) != nil || len(list) == 0 {
			continue
		}
		var text strings.Builder
		for _, p := range list {
			text.WriteString(p.Text)
			for _, c := range p.Content {
				text.WriteString(c.Text)
			}
		}
		if text.Len() > 0 {
			set(&r.OutputText, trace.Some(text.String()))
		}
	}
}

// stream reads the text of a stream of server-sent events, whose chunks are put
// together. The text itself is kept in rest where they are not all of it.
func stream(text []byte, r *trace.Request) (rest jsonx.Row, err error) {
	var out strings.Builder
	whole, events := true, 0
	for line := range bytes.Lines(text) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		f, err := jsonx.Parse(data)
		if err != nil {
			whole = false
			continue
		}
		events++
		if err := usage(f, r); err != nil {
			return nil, err
		}
		if !r.Model.Known {
			r.Model, _ = jsonx.Row{"model": f["model"]}.StringOnly("model")
		}
		if !delta(f, r, &out) {
			whole = false
		}
	}
	if events == 0 {
		return nil, jsonx.Bad("response", "neither a JSON object nor a stream of events")
	}
	r.Streaming = trace.Some(true)
	set(&r.OutputText, trace.Some(out.String()))
	if !r.Status.Known {
		r.Status = Status(r.FinishReason.Value)
	}
	if !whole {
		return jsonx.Row{"stream": json.RawMessage(jsonx.Quote(string(text)))}, nil
	}
	return nil, nil
}

// delta adds what a chunk brings; false if it brings what is not text.
func delta(f jsonx.Row, r *trace.Request, out *strings.Builder) bool {
	var choices []struct {
		Index  int             `json:"index"`
		Text   string          `json:"text"`
		Finish string          `json:"finish_reason"`
		Delta  json.RawMessage `json:"delta"`
	}
	if raw, ok := f["choices"]; !ok || json.Unmarshal(raw, &choices) != nil {
		return false
	}
	whole := true
	for _, c := range choices {
		if c.Index != 0 {
			whole = false
			continue
		}
		if c.Finish != "" {
			set(&r.FinishReason, trace.Some(c.Finish))
		}
		out.WriteString(c.Text)
		var d jsonx.Row
		json.Unmarshal(c.Delta, &d) // none in completions
		if text, err := d.StringOnly("content"); err == nil && text.Known {
			out.WriteString(text.Value)
		}
		for k, v := range d {
			if k != "role" && string(v) != "null" {
				whole = false
			}
		}
	}
	return whole
}
