package protocol

import (
	"errors"
	"fmt"
	"strconv"

	"reprise/trace"
)

// A Request is what to ask. Exactly one of Prompt, Messages and Body holds the
// content. All JSON is checked only as far as it has to be read.
type Request struct {
	Model  string // as the server knows it; "" leaves the model of Body as it is
	Stream bool

	// Prompt is a text in pieces that are joined: each as it stands between the
	// quotes of a JSON string ([EscapeText]). Protocols that take messages send
	// it as one message of the user.
	Prompt [][]byte
	// Messages is a literal JSON array of messages.
	Messages []byte
	// Tools is a literal JSON array of tools; nil for none.
	Tools []byte
	// Body is a whole literal body, a JSON object. It is sent byte for byte but
	// for the members that this request sets: model, stream and stream_options,
	// and of MaxTokens, MinTokens, IgnoreEOS and Choices those that are set.
	Body []byte

	MaxTokens       trace.Optional[int64] // most tokens to make
	MinTokens       trace.Optional[int64] // fewest tokens to make (vLLM, SGLang)
	IgnoreEOS       bool                  // go on after an end token (vLLM, SGLang)
	Choices         int32                 // n; 0 and 1 leave it out
	ContinuousUsage bool                  // ask for usage on every event (vLLM, SGLang)

	// Extra are JSON objects whose members are set in the body, over any other
	// member of that name; of several the last wins. They are not merged into
	// deeper objects.
	Extra [][]byte
}

// A field is one member of a JSON object: its key as it stands between the
// quotes, and its value. A nil value takes the member away.
type field struct {
	key   string
	value []byte
}

// appendBody appends an object of the model, the content and the fields, or
// r.Body with model and fields set; in both cases with the members of r.Extra.
// content appends the member that holds the prompt.
func appendBody(dst []byte, r *Request, fields []field, content func([]byte) []byte) ([]byte, error) {
	extra, err := extraFields(r.Extra)
	if err != nil {
		return dst, err
	}
	model := stringField("model", r.Model)
	if r.Body != nil {
		return appendEdited(dst, r.Body, append(append(model, fields...), extra...))
	}
	dst = append(dst, '{')
	start := len(dst)
	dst = appendFields(dst, start, model, extra)
	dst = content(comma(dst, start))
	dst = appendFields(dst, start, fields, extra)
	for i := range extra {
		dst = appendFields(dst, start, extra[i:i+1], extra[i+1:])
	}
	return append(dst, '}'), nil
}

// appendFields appends the fields that over does not set.
func appendFields(dst []byte, start int, fields, over []field) []byte {
	for _, f := range fields {
		if f.value != nil && last(over, []byte(f.key)) < 0 {
			dst = appendField(comma(dst, start), f)
		}
	}
	return dst
}

func comma(dst []byte, start int) []byte { return commaIf(dst, len(dst) > start) }

func appendField(dst []byte, f field) []byte {
	dst = append(dst, '"')
	dst = append(dst, f.key...)
	dst = append(dst, `":`...)
	return append(dst, f.value...)
}

func extraFields(objects [][]byte) (fields []field, err error) {
	for _, text := range objects {
		c := cursor{b: text}
		if c.peek() != '{' {
			return nil, fmt.Errorf("extra body %s is not a JSON object", quoteStart(text))
		}
		c.object()
		for key, ok := c.key(); ok; key, ok = c.key() {
			fields = append(fields, field{string(EscapeText(nil, string(key))), c.raw()})
		}
		if !c.ended() {
			return nil, fmt.Errorf("extra body %s is not valid JSON", quoteStart(text))
		}
	}
	return fields, nil
}

// appendEdited appends a JSON object with fields set, and leaves every byte as
// it is that it need not touch: the value of a member that exists is replaced
// in its place, a new one is added at the end, of equal names the last field
// wins.
func appendEdited(dst, object []byte, fields []field) ([]byte, error) {
	start := len(dst)
	c := cursor{b: object}
	if c.peek() != '{' {
		return dst, fmt.Errorf("body %s is not a JSON object", quoteStart(object))
	}
	dst = append(dst, object[:c.i+1]...)
	members, set := 0, make([]bool, len(fields))
	from, end := c.i+1, c.i+1 // of a member: behind the brace or comma before it; behind its value
	c.object()
	for key, ok := c.key(); ok; key, ok = c.key() {
		value := c.raw()
		end = c.i
		f := last(fields, key)
		kept := f < 0 || fields[f].value != nil
		if kept {
			dst = commaIf(dst, members > 0)
			members++
		}
		switch {
		case f < 0:
			dst = append(dst, object[from:end]...)
		case kept:
			set[f] = true
			dst = append(dst, object[from:end-len(value)]...)
			dst = append(dst, fields[f].value...)
		}
		if c.peek() == ',' {
			if kept {
				dst = append(dst, object[end:c.i]...)
			}
			from = c.i + 1
		}
	}
	if !c.ended() {
		return dst[:start], fmt.Errorf("body %s is not valid JSON", quoteStart(object))
	}
	for i, f := range fields {
		if f.value != nil && !set[i] && last(fields, []byte(f.key)) == i {
			dst = appendField(commaIf(dst, members > 0), f)
			members++
		}
	}
	return append(dst, object[end:]...), nil
}

func commaIf(dst []byte, yes bool) []byte {
	if yes {
		dst = append(dst, ',')
	}
	return dst
}

// last returns the index of the last field with that key, or -1.
func last(fields []field, key []byte) int {
	for i := len(fields) - 1; i >= 0; i-- {
		if fields[i].key == string(key) {
			return i
		}
	}
	return -1
}

// lookup returns the raw value of a member of a JSON object, nil if it has none.
func lookup(object []byte, name string) (value []byte) {
	c := cursor{b: object}
	for c.object(); ; {
		key, ok := c.key()
		if !ok {
			return value
		}
		if raw := c.raw(); string(key) == name {
			value = raw
		}
	}
}

// stringField is a member whose value is a string; "" leaves it as it is.
func stringField(key, value string) []field {
	if value == "" {
		return nil
	}
	quoted := append(EscapeText([]byte{'"'}, value), '"')
	return []field{{key, quoted}}
}

func intField(key string, n trace.Optional[int64]) []field {
	if !n.Known {
		return nil
	}
	return []field{{key, strconv.AppendInt(nil, n.Value, 10)}}
}

var (
	jsonTrue  = []byte("true")
	jsonFalse = []byte("false")
)

func boolField(key string, v bool) field {
	if v {
		return field{key, jsonTrue}
	}
	return field{key, jsonFalse}
}

// appendPrompt appends the joined pieces of a prompt as a JSON string.
func appendPrompt(dst []byte, pieces [][]byte) []byte {
	dst = append(dst, '"')
	for _, p := range pieces {
		dst = append(dst, p...)
	}
	return append(dst, '"')
}

// appendMessages appends the member that holds the messages.
func appendMessages(dst []byte, r *Request, key string) []byte {
	dst = append(append(append(dst, '"'), key...), `":`...)
	if r.Messages != nil {
		return append(dst, r.Messages...)
	}
	dst = append(dst, `[{"role":"user","content":`...)
	dst = appendPrompt(dst, r.Prompt)
	return append(dst, `}]`...)
}

// check says whether r holds content that a protocol can send; messages says
// whether it can send messages.
func (r *Request) check(name string, messages bool) error {
	n := 0
	for _, has := range []bool{r.Prompt != nil, r.Messages != nil, r.Body != nil} {
		if has {
			n++
		}
	}
	switch {
	case n == 0:
		return errors.New("request has no prompt, messages or body")
	case n > 1:
		return errors.New("request has more than one of prompt, messages and body")
	case r.Messages != nil && !messages:
		return trace.WithFix(fmt.Errorf("protocol %s sends a prompt, but the request has messages", name), "use --protocol chat")
	}
	return nil
}

// refuse returns an error for what was asked and the protocol cannot say.
func (r *Request) refuse(name string, minTokens, ignoreEOS, choices bool) error {
	switch {
	case minTokens:
		return trace.WithFix(fmt.Errorf("protocol %s cannot ask for an exact output length", name), "use --output-length cap or free")
	case ignoreEOS:
		return trace.WithFix(fmt.Errorf("protocol %s cannot ignore the end token", name), "use --output-length cap or free")
	case choices:
		return fmt.Errorf("protocol %s gives one choice, but the request asks for %d", name, r.Choices)
	}
	return nil
}
