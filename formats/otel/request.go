package otel

import (
	"encoding/json"
	"math"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/trace"
)

// Names of one thing, newest first.
var (
	inputNames     = []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens", "llm.token_count.prompt"}
	outputNames    = []string{"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens", "llm.token_count.completion"}
	cachedNames    = []string{"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "llm.token_count.prompt_details.cache_read"}
	writtenNames   = []string{"gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write"}
	reasoningNames = []string{"gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "llm.token_count.completion_details.reasoning"}
	limitNames     = []string{"gen_ai.request.max_tokens", "llm.request.max_tokens"}
	modelNames     = []string{"gen_ai.request.model", "llm.model_name", "llm.request.model"}
	ttftNames      = []string{"gen_ai.latency.time_to_first_token", "gen_ai.server.time_to_first_token", "gen_ai.response.time_to_first_chunk"}
	streamNames    = []string{"gen_ai.request.stream", "gen_ai.request.is_stream", "llm.is_streaming", "llm.request.is_streaming"}
)

// request makes a row of a call.
func (s *state) request(sp *span) (*trace.Request, error) {
	a := sp.attributes
	r := &trace.Request{Operation: operation(a), SourceID: trace.Some(sp.id), SourceFile: trace.Some(sp.file.Base()), SourceRow: trace.Some(sp.line)}
	if !sp.start.Known {
		return nil, jsonx.Bad("start_time", "missing")
	}
	r.Arrival = sp.start
	if err := latency(sp, r); err != nil {
		return nil, err
	}
	if err := counts(a, r); err != nil {
		return nil, err
	}
	s.names(sp, r)
	s.texts(a, r)
	s.Attributes(r, "", a, knownAttributes(a)...)
	delete(sp.rest, "parent_span_id")
	rest := sp.rest
	for k, v := range map[string]string{"trace_id": sp.trace, "parent_span_id": sp.parent, "name": sp.name, "kind": sp.kind} {
		if v != "" {
			rest[k] = json.RawMessage(jsonx.Quote(v))
		}
	}
	for k, v := range rest {
		if string(v) == "[]" || string(v) == "{}" || string(v) == `""` {
			delete(rest, k)
		}
	}
	s.Attributes(r, "span.", rest, "trace_id", "parent_span_id", "name", "kind", "events", "links", "resource_attributes", "resource", "status", "flags", "traceState", "trace_state",
		"droppedAttributesCount", "droppedEventsCount", "droppedLinksCount")
	return r, nil
}

// knownAttributes are the names by the conventions: not new to anyone.
func knownAttributes(a jsonx.Row) (names []string) {
	for k := range a {
		for _, prefix := range []string{"gen_ai.", "llm.", "openinference.", "server.", "error.", "http.", "net.", "input.", "output.", "traceloop.", "exgentic."} {
			if len(k) > len(prefix) && k[:len(prefix)] == prefix {
				names = append(names, k)
			}
		}
	}
	return names
}

// latency reads how long the call took and when its first token came. The
// conventions give seconds.
func latency(sp *span, r *trace.Request) (err error) {
	if sp.end.Known && sp.end.Value >= sp.start.Value {
		r.RecordedE2E = trace.Some(sp.end.Value - sp.start.Value)
	} else if r.RecordedE2E, err = rows.TakeSpan(sp.attributes, time.Second, "gen_ai.latency.e2e"); err != nil {
		return err
	}
	r.RecordedTTFT, err = rows.TakeSpan(sp.attributes, time.Second, ttftNames...)
	return err
}

func counts(a jsonx.Row, r *trace.Request) (err error) {
	for _, c := range []struct {
		to    *trace.Optional[int64]
		names []string
	}{
		{&r.InputTokens, inputNames}, {&r.OutputTokens, outputNames}, {&r.CachedTokens, cachedNames}, {&r.CacheWriteTokens, writtenNames},
		{&r.ReasoningTokens, reasoningNames}, {&r.MaxOutputTokens, limitNames},
	} {
		if *c.to, err = a.Int(c.names...); err != nil {
			return err
		}
	}
	if r.OutputTokens.Known && r.ReasoningTokens.Value > r.OutputTokens.Value {
		return jsonx.Bad(reasoningNames[0], "%d of %d output tokens", r.ReasoningTokens.Value, r.OutputTokens.Value)
	}
	n, err := a.Int("gen_ai.request.choice.count")
	if err != nil {
		return err
	}
	if n.Value > 1 && n.Value <= math.MaxInt32 {
		r.Choices = trace.Some(int32(n.Value))
	}
	return nil
}

// names reads model, session, stream and how the call ended.
func (s *state) names(sp *span, r *trace.Request) {
	a := sp.attributes
	for _, name := range append(modelNames, "gen_ai.response.model") {
		if v, err := a.StringOnly(name); err == nil && v.Value != "" {
			r.Model = v
			break
		}
	}
	r.Session = s.session(sp)
	for _, name := range streamNames {
		if raw := string(a[name]); raw == "true" || raw == "false" {
			r.Streaming = trace.Some(raw == "true")
			delete(a, name)
		}
	}
	var reasons []string
	if json.Unmarshal(unquoted(a["gen_ai.response.finish_reasons"]), &reasons) == nil && len(reasons) > 0 {
		r.FinishReason = trace.Some(reasons[0])
		if len(reasons) == 1 {
			delete(a, "gen_ai.response.finish_reasons")
		}
	}
	for _, name := range []string{"gen_ai.response.finish_reason", "llm.response.finish_reason"} {
		if v, err := a.StringOnly(name); err == nil && v.Value != "" && !r.FinishReason.Known {
			r.FinishReason = v
		}
	}
	switch _, failed := a["error.type"]; {
	case sp.failed || failed:
		r.Status = trace.Some(trace.StatusError)
		s.Note("calls that failed (status error)", 1)
	case r.FinishReason.Known && openai.Status(r.FinishReason.Value).Known:
		r.Status = openai.Status(r.FinishReason.Value)
	case r.FinishReason.Value == "tool_call" || sp.ok:
		r.Status = trace.Some(trace.StatusOK)
	}
}

func operation(a jsonx.Row) string {
	var name string
	for _, key := range []string{"gen_ai.operation.name", "llm.request.type"} {
		if json.Unmarshal(a[key], &name) == nil && name != "" {
			break
		}
	}
	switch name {
	case "text_completion", "completion":
		return trace.OpCompletion
	case "embeddings", "embedding":
		return trace.OpEmbedding
	case "responses":
		return trace.OpResponses
	}
	if string(a["openinference.span.kind"]) == `"EMBEDDING"` {
		return trace.OpEmbedding
	}
	return trace.OpChat
}
