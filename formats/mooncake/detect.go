package mooncake

import "reprise/formats/source"

// Detect tells a Mooncake file by the keys of its first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" {
		return "", false
	}
	for _, other := range []string{"parent_chat_id", "captureData", "resourceSpans", "spans", "requests", "conversations", "input_tokens_total", "event_type", "chat_id"} {
		if h.Has(other) {
			return "", false
		}
	}
	if kind, ok := h.Keys["hash_ids"]; ok && kind != "array" && kind != "null" {
		return "", false // RAGPulse names pieces of text in an object
	}
	switch {
	case h.Keys["hash_ids"] == "array" && (h.Has("input_length") || h.Has("input_tokens")):
		return "first record has input_length and a list of hash_ids", true
	case h.Has("input_length", "output_length"), h.Has("input_length", "timestamp"), h.Has("input_length", "session_id"):
		return "first record has input_length without hash_ids", true
	case h.Has("text_input"), h.Has("payload"):
		return "first record has text_input or payload", true
	case h.Has("messages") && (h.Has("timestamp") || h.Has("delay") || h.Has("session_id") || h.Has("output_length")):
		return "first record has messages with timestamp, delay, session_id or output_length", true
	}
	return "", false
}
