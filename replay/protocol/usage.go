package protocol

import (
	"reprise/replay/ledger"
	"reprise/trace"
)

// logprobs counts log-probability entries: content and refusal in chat,
// tokens in completions.
func logprobs(c *cursor) (n trace.Optional[int32]) {
	if !c.object() {
		return n
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "content", "refusal", "tokens":
			if l := c.length(); l.Known {
				n = trace.Some(n.Value + l.Value)
			}
		default:
			c.skip()
		}
	}
	return n
}

// openAIUsage reads a usage object. total_tokens is ignored: some servers send
// 0 there.
func openAIUsage(c *cursor) (u ledger.Usage) {
	if !c.object() {
		return u
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			u.Input = c.count()
		case "completion_tokens", "output_tokens":
			u.Output = c.count()
		case "prompt_tokens_details", "input_tokens_details":
			u.Cached = member(c, "cached_tokens")
		case "completion_tokens_details", "output_tokens_details":
			if n := member(c, "reasoning_tokens"); n.Known {
				u.Reasoning = n
			}
		case "reasoning_tokens": // SGLang
			if n := c.count(); n.Known && !u.Reasoning.Known {
				u.Reasoning = n
			}
		default:
			c.skip()
		}
	}
	return u
}

// member returns one count of an object and skips the others.
func member(c *cursor, name string) (n trace.Optional[int64]) {
	if !c.object() {
		return n
	}
	for key, ok := c.key(); ok; key, ok = c.key() {
		if string(key) == name {
			n = c.count()
		} else {
			c.skip()
		}
	}
	return n
}
