package mapper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// A kind says how the values of a canonical column are read.
type kind int

const (
	text      kind = iota
	integer        // not below 0
	turn           // an integer, from base on
	flag           // true or false
	choice         // one of a few words
	moment         // a time
	length         // a length of time, not below 0
	array          // JSON
	object         // JSON
	blocks         // a list of ids
	mediaKind      // a number of attachments
)

// A target is a canonical column that a rule can fill.
type target struct {
	name    string
	kind    kind
	choices []string
	text    func(r *trace.Request) *trace.Optional[string]
	number  func(r *trace.Request) *trace.Optional[int64]
}

// targets are in the order in which rows are filled: lengths of time may need the
// arrival, block ids the input tokens.
var targets = []target{
	{name: "arrival", kind: moment},
	{name: "source_id", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.SourceID }},
	{name: "operation", kind: choice, choices: []string{trace.OpChat, trace.OpCompletion, trace.OpResponses, trace.OpMessages, trace.OpEmbedding, trace.OpOther}},
	{name: "session_id", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.Session }},
	{name: "turn", kind: turn},
	{name: "delay", kind: length},
	{name: "agent", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.Agent }},
	{name: "client_id", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.ClientID }},
	{name: "model", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.Model }},
	{name: "streaming", kind: flag},
	{name: "choices", kind: integer},
	{name: "input_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.InputTokens }},
	{name: "new_input_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.NewInputTokens }},
	{name: "output_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.OutputTokens }},
	{name: "reasoning_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.ReasoningTokens }},
	{name: "max_output_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.MaxOutputTokens }},
	{name: "cached_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.CachedTokens }},
	{name: "cache_write_tokens", kind: integer, number: func(r *trace.Request) *trace.Optional[int64] { return &r.CacheWriteTokens }},
	{name: "block_ids", kind: blocks},
	{name: "prompt", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.Prompt }},
	{name: "messages", kind: array, text: func(r *trace.Request) *trace.Optional[string] { return &r.Messages }},
	{name: "messages_mode", kind: choice, choices: []string{trace.MessagesFull, trace.MessagesDelta}, text: func(r *trace.Request) *trace.Optional[string] { return &r.MessagesMode }},
	{name: "tools", kind: array, text: func(r *trace.Request) *trace.Optional[string] { return &r.Tools }},
	{name: "body", kind: object, text: func(r *trace.Request) *trace.Optional[string] { return &r.Body }},
	{name: "extra", kind: object, text: func(r *trace.Request) *trace.Optional[string] { return &r.Extra }},
	{name: "images", kind: mediaKind},
	{name: "output_text", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.OutputText }},
	{name: "output_message", kind: object, text: func(r *trace.Request) *trace.Optional[string] { return &r.OutputMessage }},
	{name: "recorded_ttft", kind: length},
	{name: "recorded_e2e", kind: length},
	{name: "cancel", kind: length},
	{name: "status", kind: choice, choices: []string{trace.StatusOK, trace.StatusError, trace.StatusCancelled, trace.StatusEmpty}, text: func(r *trace.Request) *trace.Optional[string] { return &r.Status }},
	{name: "finish_reason", kind: text, text: func(r *trace.Request) *trace.Optional[string] { return &r.FinishReason }},
}

func targetOf(name string) (target, bool) {
	for _, t := range targets {
		if t.name == name {
			return t, true
		}
	}
	return target{}, false
}

func targetNames() []string {
	var names []string
	for _, t := range targets {
		names = append(names, t.name)
	}
	return names
}

// bounds reads a range of numbers, a..b; ok is false for any other value.
func bounds(key string) (b [2]float64, ok bool, err error) {
	from, to, ok := strings.Cut(key, "..")
	if !ok {
		return b, false, nil
	}
	for i, part := range []string{from, to} {
		if b[i], err = strconv.ParseFloat(strings.TrimSpace(part), 64); err != nil {
			return b, false, fmt.Errorf("values: %q is no range of numbers such as 200..299", key)
		}
	}
	if b[0] > b[1] {
		return b, false, fmt.Errorf("values: %q ends before it begins", key)
	}
	return b, true, nil
}

// A binding is a rule at work on one column.
type binding struct {
	target
	rule   Rule
	ranges []valueRange
	seen   bool // the column was in a row
}

type valueRange struct {
	bounds [2]float64
	to     string
}

func bind(t target, r Rule) *binding {
	b := &binding{target: t, rule: r}
	for key, to := range r.Values {
		if at, ok, _ := bounds(key); ok {
			b.ranges = append(b.ranges, valueRange{at, to})
		}
	}
	return b
}

// value puts a value through the rule; ok is false if it is unknown.
func (b *binding) value(v cell) (out cell, ok bool, err error) {
	if b.rule.Constant != nil {
		return cell{text: []byte(*b.rule.Constant)}, true, nil
	}
	unknown := v.unknown()
	for _, u := range b.rule.Unknown {
		unknown = unknown || string(v.text) == u
	}
	if b.rule.Values != nil && !unknown {
		to, has := b.stands(string(v.text))
		switch {
		case has:
			return cell{text: []byte(to)}, true, nil
		case b.rule.Default == nil:
			return v, false, fmt.Errorf("%s is not among the values of the mapping, which has no default", clip(v.text))
		}
	}
	if unknown || b.rule.Values != nil {
		if b.rule.Default == nil {
			return v, false, nil
		}
		return cell{text: []byte(*b.rule.Default)}, true, nil
	}
	return v, true, nil
}

// anyOther is the key of values for what no other key has.
const anyOther = "*"

// stands returns what a value stands for: exact values go before ranges, of these
// the narrowest, and all before the key for any.
func (b *binding) stands(v string) (to string, ok bool) {
	if to, ok := b.rule.Values[v]; ok {
		return to, true
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		width := 0.0
		for _, r := range b.ranges {
			if w := r.bounds[1] - r.bounds[0]; n >= r.bounds[0] && n <= r.bounds[1] && (!ok || w < width) {
				to, ok, width = r.to, true, w
			}
		}
	}
	if !ok {
		to, ok = b.rule.Values[anyOther]
	}
	return to, ok
}

// fill sets the column of r; arrival is known before the lengths that need it.
func (b *binding) fill(r *trace.Request, v cell, clock *clock) error {
	switch b.kind {
	case moment, length:
		return b.time(r, v, clock)
	case text:
		*b.text(r) = trace.Some(jsonx.Valid(string(v.text)))
	case choice:
		return b.choose(r, string(v.text))
	case flag:
		on, err := strconv.ParseBool(strings.ToLower(string(v.text)))
		if err != nil {
			return fmt.Errorf("%s is neither true nor false", clip(v.text))
		}
		r.Streaming = trace.Some(on)
	case array, object:
		return b.json(r, v)
	case blocks:
		return b.blockIDs(r, v)
	default:
		return b.integer(r, v)
	}
	return nil
}

func (b *binding) choose(r *trace.Request, v string) error {
	for _, c := range b.choices {
		if v != c {
			continue
		}
		if b.text == nil {
			r.Operation = v
		} else {
			*b.text(r) = trace.Some(v)
		}
		return nil
	}
	return fmt.Errorf("%s is none of %s; say under values what it stands for", clip([]byte(v)), strings.Join(b.choices, ", "))
}

func (b *binding) integer(r *trace.Request, v cell) error {
	n, err := jsonx.Int(bytes.TrimSpace(v.text))
	if err != nil {
		return err
	}
	n -= int64(b.rule.Base)
	if n < 0 {
		return fmt.Errorf("%s is below %d", clip(v.text), b.rule.Base)
	}
	if b.number != nil {
		*b.number(r) = trace.Some(n)
		return nil
	}
	if n > 1<<31-1 {
		return fmt.Errorf("%d is out of range", n)
	}
	switch b.name {
	case "turn":
		r.Turn = trace.Some(int32(n))
	case "choices":
		r.Choices = trace.Some(int32(n))
	case "images":
		if n > 0 {
			r.Media = append(r.Media, trace.Media{Kind: "image", Count: trace.Some(int32(n))})
		}
	}
	return nil
}

// json takes JSON as it is, or as a text of it.
func (b *binding) json(r *trace.Request, v cell) error {
	first, what := byte('['), "array"
	if b.kind == object {
		first, what = '{', "object"
	}
	raw := bytes.TrimSpace(v.text)
	var out bytes.Buffer
	if len(raw) == 0 || raw[0] != first || json.Compact(&out, raw) != nil {
		return fmt.Errorf("%s is no JSON %s", clip(v.text), what)
	}
	*b.text(r) = trace.Some(jsonx.Valid(out.String()))
	if b.name == "messages" && !r.MessagesMode.Known {
		r.MessagesMode = trace.Some(trace.MessagesFull)
	}
	return nil
}

func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "..."
	}
	return strconv.Quote(string(b))
}
