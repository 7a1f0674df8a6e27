package weka

import "reprise/formats/source"

// Detect tells a WEKA file by the keys of its first session.
func Detect(h *source.Head) (evidence string, ok bool) {
	switch h.Container {
	case "json", "json array":
		if kind := h.Keys["requests"]; kind != "array" && kind != "string" {
			return "", false
		}
	case "parquet":
	default:
		return "", false
	}
	if !h.Has("requests") || h.Has("session_id") {
		return "", false
	}
	for _, key := range []string{"block_size", "hash_id_scope", "models", "tool_tokens"} {
		if h.Has(key) {
			return "first record has requests and " + key, true
		}
	}
	if h.Container != "parquet" && h.Has("id") {
		return "first record has id and a list of requests", true
	}
	return "", false
}
