package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"reprise/trace"
)

// A Text makes a text where it is to stand, as it stands between the quotes of a
// JSON string.
type Text interface{ AppendText(dst []byte) []byte }

// A Request is what to ask. Exactly one of Prompt, Made, Messages and Body holds
// the content. All JSON is checked only as far as it has to be read.
type Request struct {
	Model  string // as the server knows it; "" leaves the model of Body as it is
	Stream bool

	// Prompt is a text in pieces that are joined: each as it stands between the
	// quotes of a JSON string ([EscapeText]). Protocols that take messages send
	// it as one message of the user.
	Prompt [][]byte
	// Made makes such a text.
	Made Text
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

	work work
}

// A work is what a request that is used again keeps for the next body.
type work struct {
	fields  []field
	digits  []byte // of the values of fields
	modelOf string
	model   []field
	extraOf [][]byte
	extra   []field
}

// Begin empties r for another request; what it has learned of the model and of
// Extra stays.
func (r *Request) Begin() { *r = Request{work: r.work} }

// fields begins the list of a body's members.
func (r *Request) fields() []field {
	r.work.digits = r.work.digits[:0]
	return r.work.fields[:0]
}

// model is the member that names the model; none leaves it as it is.
func (r *Request) model() []field {
	if r.Model == "" {
		return nil
	}
	if r.Model != r.work.modelOf {
		r.work.modelOf = r.Model
		r.work.model = []field{{"model", append(EscapeText([]byte{'"'}, r.Model), '"')}}
	}
	return r.work.model
}

// extra are the members of r.Extra. They are read again only when it changes.
func (r *Request) extra() ([]field, error) {
	same := func(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }
	if len(r.Extra) > 0 && slices.EqualFunc(r.Extra, r.work.extraOf, same) {
		return r.work.extra, nil
	}
	fields, err := extraFields(r.Extra)
	if err == nil {
		r.work.extraOf, r.work.extra = append(r.work.extraOf[:0], r.Extra...), fields
	}
	return fields, err
}

// intField appends a member that is a number, if n is known.
func (r *Request) intField(fields []field, key string, n trace.Optional[int64]) []field {
	if !n.Known {
		return fields
	}
	from := len(r.work.digits)
	r.work.digits = strconv.AppendInt(r.work.digits, n.Value, 10)
	return append(fields, field{key, r.work.digits[from:len(r.work.digits):len(r.work.digits)]})
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
	r.work.fields = fields // for the next body, as far as it has room
	extra, err := r.extra()
	if err != nil {
		return dst, err
	}
	model := r.model()
	if r.Body != nil {
		return appendEdited(dst, r.Body, slices.Concat(model, fields, extra))
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

// appendPrompt appends the text of r as a JSON string.
func appendPrompt(dst []byte, r *Request) []byte {
	dst = append(dst, '"')
	for _, p := range r.Prompt {
		dst = append(dst, p...)
	}
	if r.Made != nil {
		dst = r.Made.AppendText(dst)
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
	dst = appendPrompt(dst, r)
	return append(dst, `}]`...)
}

// check says whether r holds content that a protocol can send; messages says
// whether it can send messages.
func (r *Request) check(name string, messages bool) error {
	n := 0
	for _, has := range [...]bool{r.Prompt != nil, r.Made != nil, r.Messages != nil, r.Body != nil} {
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
