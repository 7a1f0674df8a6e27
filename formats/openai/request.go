// Package openai reads recorded requests and responses of OpenAI's API and its
// relatives (completions, chat, responses, embeddings; Anthropic's messages; TGI's
// generate), for formats that keep such bodies.
package openai

import (
	"encoding/json"
	"math"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// Request puts a request body into r, verbatim, and what it says into the columns
// that are not known yet. The error says why it is no such body.
func Request(body json.RawMessage, r *trace.Request) error {
	row := jsonx.Row{"body": body}
	text, err := row.Object("body")
	if err != nil || !text.Known {
		return jsonx.Bad("request", "the body is no JSON object")
	}
	var f struct {
		Model     json.RawMessage `json:"model"`
		Messages  json.RawMessage `json:"messages"`
		Prompt    json.RawMessage `json:"prompt"`
		Input     json.RawMessage `json:"input"`
		Inputs    json.RawMessage `json:"inputs"`
		System    json.RawMessage `json:"system"`
		Anthropic json.RawMessage `json:"anthropic_version"`
		Stream    json.RawMessage `json:"stream"`
		N         json.RawMessage `json:"n"`

		MaxTokens           json.RawMessage `json:"max_tokens"`
		MaxCompletionTokens json.RawMessage `json:"max_completion_tokens"`
		MaxOutputTokens     json.RawMessage `json:"max_output_tokens"`
		Parameters          struct {
			MaxNewTokens json.RawMessage `json:"max_new_tokens"`
		} `json:"parameters"`
	}
	json.Unmarshal(body, &f) // what has another type stays unread
	r.Body = text
	switch {
	case isSet(f.Messages) && (isSet(f.System) || isSet(f.Anthropic)):
		r.Operation = trace.OpMessages
	case isSet(f.Messages):
		r.Operation = trace.OpChat
	case isSet(f.Prompt), isSet(f.Inputs):
		r.Operation = trace.OpCompletion
	case isSet(f.Input):
		r.Operation = trace.OpResponses
	}
	if !r.Model.Known {
		r.Model, _ = jsonx.Row{"model": f.Model}.StringOnly("model")
	}
	for _, limit := range []json.RawMessage{f.MaxCompletionTokens, f.MaxOutputTokens, f.MaxTokens, f.Parameters.MaxNewTokens} {
		if n, err := jsonx.Int(limit); err == nil && n >= 0 && !r.MaxOutputTokens.Known {
			r.MaxOutputTokens = trace.Some(n)
		}
	}
	if n, err := jsonx.Int(f.N); err == nil && n > 1 && n <= math.MaxInt32 {
		r.Choices = trace.Some(int32(n))
	}
	switch string(f.Stream) {
	case "true":
		r.Streaming = trace.Some(true)
	case "false":
		r.Streaming = trace.Some(false)
	}
	if r.Media == nil {
		r.Media = Media(f.Messages)
	}
	return nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Media counts the attachments in the parts of messages, by kind.
func Media(messages json.RawMessage) (media []trace.Media) {
	var list []struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &list) != nil {
		return nil
	}
	counts := map[string]int32{}
	for _, m := range list {
		if len(m.Content) == 0 || m.Content[0] != '[' {
			continue
		}
		var parts []struct {
			Type string `json:"type"`
		}
		json.Unmarshal(m.Content, &parts) // parts of another shape are no attachments
		for _, p := range parts {
			switch p.Type {
			case "image_url", "image", "input_image":
				counts["image"]++
			case "input_audio", "audio_url", "audio":
				counts["audio"]++
			case "video_url", "video":
				counts["video"]++
			}
		}
	}
	for _, kind := range []string{"image", "audio", "video"} {
		if n := counts[kind]; n > 0 {
			media = append(media, trace.Media{Kind: kind, Count: trace.Some(n)})
		}
	}
	return media
}

// Status tells by a finish reason how a request ended; unknown for words that are
// not known.
func Status(finish string) trace.Optional[string] {
	switch finish {
	case "stop", "length", "tool_calls", "function_call", "content_filter", "eos", "eos_token", "stop_sequence", "end_turn", "max_tokens", "tool_use", "completed":
		return trace.Some(trace.StatusOK)
	case "abort", "aborted", "cancel", "cancelled", "canceled":
		return trace.Some(trace.StatusCancelled)
	case "error", "failed":
		return trace.Some(trace.StatusError)
	}
	return trace.Optional[string]{}
}
