package sharegpt

import "reprise/formats/source"

// Detect tells ShareGPT by the keys of its first record: a list of messages, and
// nothing that other formats put beside one.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" {
		return "", false
	}
	for _, other := range []string{"timestamp", "delay", "session_id", "input_length", "output_length", "requests", "request_id", "spans", "resourceSpans", "captureData"} {
		if h.Has(other) {
			return "", false
		}
	}
	for _, key := range []string{"conversations", "conversation", "messages", "items"} {
		switch h.Keys[key] {
		case "array", "string":
			return "first record has " + key + " and no times", true
		case "null":
			return "first record has " + key + " and no times", key == "conversations"
		}
	}
	return "", false
}
