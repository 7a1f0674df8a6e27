package protocol

import (
	"fmt"
	"strings"
)

// errorCause puts an error object into words: code, type and message, as in
// "500 InternalServerError: engine died". It knows objects and strings, with or
// without the key "error" around them; of anything else it keeps the text.
func errorCause(raw []byte) string {
	c := cursor{b: raw}
	switch c.peek() {
	case '{':
		var e errorText
		e.read(&c)
		if c.ended() && e.message+e.kind != "" {
			return e.String()
		}
	case '"':
		if s, ok := c.str(); ok && c.ended() {
			return string(appendUnescaped(nil, s))
		}
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// errorText is what an error object says.
type errorText struct{ code, kind, message string }

func (e *errorText) read(c *cursor) {
	for c.object(); ; {
		key, ok := c.key()
		if !ok {
			return
		}
		switch string(key) {
		case "error":
			if c.peek() == '{' {
				e.read(c)
			} else {
				set(&e.message, c)
			}
		case "message", "detail", "error_message":
			set(&e.message, c)
		case "type":
			if c.peek() == '"' {
				if raw, _ := c.str(); string(raw) != "error" && e.kind == "" { // the frame of Anthropic's error event
					e.kind = string(appendUnescaped(nil, raw))
				}
			} else {
				c.skip()
			}
		case "error_type":
			set(&e.kind, c)
		case "code", "http_status_code":
			set(&e.code, c)
		default:
			c.skip()
		}
	}
}

// set takes a string or a number; the first one stands.
func set(to *string, c *cursor) {
	value := ""
	if c.peek() == '"' {
		raw, _ := c.str()
		value = string(appendUnescaped(nil, raw))
	} else if raw := c.raw(); !empty(raw) {
		value = string(raw)
	}
	if *to == "" {
		*to = value
	}
}

func (e errorText) String() string {
	head := strings.TrimSpace(e.code + " " + e.kind)
	if e.code == e.kind {
		head = e.code
	}
	if head == "" || e.message == "" {
		return head + e.message
	}
	return head + ": " + e.message
}

// quoteStart shows the first bytes of something that cannot be read.
func quoteStart(b []byte) string { return fmt.Sprintf("%q", b[:min(len(b), 60)]) }
