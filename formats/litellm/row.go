package litellm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/trace"
)

// known are the fields that stay in attributes.
var known = append([]string{"spend", "call_type", "model_id", "model_group", "custom_llm_provider", "api_base", "cache_hit", "cache_key", "total_tokens", "mcp_namespaced_tool_name", "response", "messages"}, privateFields...)

// row reads one call and adds it.
func (s *state) row(f jsonx.Row, req *trace.Request) (err error) {
	if err := s.times(f, req); err != nil {
		return err
	}
	if err := s.counts(f, req); err != nil {
		return err
	}
	for _, c := range []struct {
		to    *trace.Optional[string]
		field string
	}{{&req.SourceID, "request_id"}, {&req.Model, "model"}, {&req.Session, "session_id"}} {
		if *c.to, err = f.String(c.field); err != nil {
			return err
		}
		if c.to.Value == "" {
			c.to.Known = false
		}
	}
	req.Operation = operation(f)
	req.ClientID = s.client(f)
	s.status(f, req)
	s.texts(f, req)
	s.hide(f)
	s.Attributes(req, "", f, known...)
	return s.Add(req)
}

// times reads start, end and first token. A first token at the end is how the
// proxy writes that there was no stream.
func (s *state) times(f jsonx.Row, req *trace.Request) (err error) {
	if req.Arrival, err = s.clock.Take(f, "startTime"); err != nil {
		return err
	}
	if !req.Arrival.Known {
		return jsonx.Bad("startTime", "missing")
	}
	end, err := s.clock.Take(f, "endTime")
	if err != nil {
		return err
	}
	first, err := s.clock.Take(f, "completionStartTime")
	if err != nil {
		return err
	}
	took, err := rows.TakeSpan(f, time.Millisecond, "request_duration_ms")
	if err != nil {
		return err
	}
	switch d := end.Value - req.Arrival.Value; {
	case end.Known && d >= 0:
		req.RecordedE2E = trace.Some(d)
	case end.Known:
		s.Note("rows that end before they start, latency unknown", 1)
	default:
		req.RecordedE2E = took
	}
	if d := first.Value - req.Arrival.Value; first.Known && d >= 0 && (!end.Known || first.Value < end.Value) {
		req.RecordedTTFT, req.Streaming = trace.Some(d), trace.Some(true)
	}
	return nil
}

// counts reads the tokens. Details are in the usage that metadata holds.
func (s *state) counts(f jsonx.Row, req *trace.Request) (err error) {
	if req.InputTokens, err = f.Int("prompt_tokens"); err != nil {
		return err
	}
	if req.OutputTokens, err = f.Int("completion_tokens"); err != nil {
		return err
	}
	if total, err := jsonx.Int(f["total_tokens"]); err == nil && total == req.InputTokens.Value+req.OutputTokens.Value {
		delete(f, "total_tokens")
	}
	var meta struct {
		Usage json.RawMessage `json:"usage_object"`
	}
	if json.Unmarshal(unquoted(f["metadata"]), &meta) != nil || len(meta.Usage) == 0 || meta.Usage[0] != '{' {
		return nil
	}
	var details trace.Request
	body := append(append([]byte(`{"usage":`), meta.Usage...), '}')
	if _, err := openai.Response(body, &details); err == nil {
		req.CachedTokens, req.CacheWriteTokens, req.ReasoningTokens = details.CachedTokens, details.CacheWriteTokens, details.ReasoningTokens
		if req.ReasoningTokens.Value > req.OutputTokens.Value {
			req.ReasoningTokens.Known = false
		}
	}
	return nil
}

// unquoted returns the JSON that a string of JSON holds; else raw.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return json.RawMessage(text)
	}
	return raw
}

// status marks failures. Their counts are 0 where the proxy got no usage, which is
// not a count.
func (s *state) status(f jsonx.Row, req *trace.Request) {
	status, err := f.StringOnly("status")
	switch {
	case err != nil || !status.Known:
	case status.Value == "success":
		req.Status = trace.Some(trace.StatusOK)
	case status.Value == "failure":
		req.Status = trace.Some(trace.StatusError)
		s.Note("failed calls (status error)", 1)
		if req.InputTokens.Value == 0 && req.OutputTokens.Value == 0 {
			req.InputTokens, req.OutputTokens = trace.Optional[int64]{}, trace.Optional[int64]{}
		}
	default:
		f["status"] = json.RawMessage(jsonx.Quote(status.Value))
	}
}

// operation reads call_type: the proxy's function, a for asynchronous before it.
func operation(f jsonx.Row) string {
	kind, _ := jsonx.Row{"call_type": f["call_type"]}.StringOnly("call_type")
	switch strings.TrimPrefix(kind.Value, "a") {
	case "completion", "/chat/completions":
		return trace.OpChat
	case "text_completion":
		return trace.OpCompletion
	case "embedding":
		return trace.OpEmbedding
	case "responses":
		return trace.OpResponses
	case "nthropic_messages":
		return trace.OpMessages
	}
	return trace.OpOther
}

// texts reads what the proxy stores if it is told to: messages and response.
func (s *state) texts(f jsonx.Row, req *trace.Request) {
	if raw := unquoted(f["messages"]); len(raw) > 0 {
		switch {
		case raw[0] == '[' && string(raw) != "[]":
			if text, err := (jsonx.Row{"m": raw}).Array("m"); err == nil {
				req.Messages, req.MessagesMode = text, trace.Some(trace.MessagesFull)
				req.Media = openai.Media(raw)
				delete(f, "messages")
			}
		case string(raw) == "{}", string(raw) == "[]":
			delete(f, "messages")
		}
	}
	raw := unquoted(f["response"])
	if len(raw) == 0 {
		return
	}
	if string(raw) == "{}" {
		delete(f, "response")
		return
	}
	text := *req
	if rest, err := openai.Response(raw, &text); err == nil {
		delete(f, "response")
		text.InputTokens, text.OutputTokens = req.InputTokens, req.OutputTokens // the proxy's own counts stand
		*req = text
		s.Attributes(req, "response.", rest, slices.Collect(maps.Keys(rest))...)
	}
}
