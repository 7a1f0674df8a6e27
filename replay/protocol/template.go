package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"reprise/trace"
)

// A TemplateConfig describes a JSON API that this package has no code for: how
// to ask it, and where its answers hold what is measured. Places are JSON
// pointers (RFC 6901) into an event of a stream or into a body.
type TemplateConfig struct {
	Path string `json:"path"` // below the server's URL, such as /completion

	// Body is a text/template of the request's JSON body. It may use
	//
	//	.Prompt     JSON string; fails where the request has messages
	//	.Messages   JSON array; a prompt is one message of the user
	//	.Model      JSON string, empty if none is named
	//	.Stream     true or false
	//	.MaxTokens  most tokens to make; empty if not limited
	//	.MinTokens  fewest tokens to make; empty if not asked for
	//	.IgnoreEOS  true to go on after an end token
	//	.Tools      JSON array, empty if there are none
	//
	// and has to use what a request asks for: a request whose limit, least
	// length or tools the template never looks at is refused.
	Body string `json:"body"`

	Stream     string `json:"stream"`     // how streams are framed: sse, lines (of JSON) or none
	Cumulative bool   `json:"cumulative"` // events repeat the text so far; only what is new is booked

	Text      Pointers      `json:"text"`      // string; the answer, or the next part of it
	Reasoning Pointers      `json:"reasoning"` // string; thinking
	Usage     TemplateUsage `json:"usage"`
	Done      Pointers      `json:"done"`   // anything but null, false, 0, "", {} and [] ends the stream, as a "[DONE]" always does
	Error     Pointers      `json:"error"`  // likewise fails the response
	Finish    Pointers      `json:"finish"` // string; the finish reason. With Done, it counts from the event that is done
}

// TemplateUsage says where the server's token counts are. An output count that
// comes with each event and grows gives tokens per chunk.
type TemplateUsage struct {
	Input  Pointers `json:"input"`  // of the whole prompt, cached part included
	Output Pointers `json:"output"` // so far, not of the event alone
	Cached Pointers `json:"cached"` // of the prompt, read from the cache
}

// Pointers are the places that a value may have, one string or a list of them:
// APIs often hold the text of an event and that of a body in different places.
// The first that is there counts; none means that the API does not say it.
type Pointers []string

// UnmarshalJSON takes a string or a list of strings.
func (p *Pointers) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*p = nil
		if one != "" {
			*p = Pointers{one}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(p))
}

// How a template's streams are framed.
const (
	TemplateSSE   = "sse"
	TemplateLines = "lines"
	TemplateNone  = "none"
)

// A Template is a protocol that is data, not code: a [TemplateConfig] that was
// checked. Like all protocols it holds no state and may be shared.
type Template struct {
	config TemplateConfig
	body   *template.Template
	places node
}

// ParseTemplate reads a TemplateConfig written as JSON. Unknown fields are
// refused; errors begin with the field that they are about.
func ParseTemplate(text []byte) (*Template, error) {
	var c TemplateConfig
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, templateSyntax(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("protocol template: more text behind the object")
	}
	return NewTemplate(c)
}

// templateSyntax puts an error of encoding/json into the words of the file.
func templateSyntax(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("protocol template: %s: a %s cannot stand here", wrong.Field, wrong.Value)
	}
	return fmt.Errorf("protocol template: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// NewTemplate checks c: its pointers, and its body with a request that asks for
// everything.
func NewTemplate(c TemplateConfig) (*Template, error) {
	t := &Template{config: c}
	if !strings.HasPrefix(c.Path, "/") {
		return nil, fmt.Errorf("protocol template: path: %q does not begin with /", c.Path)
	}
	switch c.Stream {
	case TemplateSSE, TemplateLines, TemplateNone:
	default:
		return nil, fmt.Errorf("protocol template: stream: %q is not %s, %s or %s", c.Stream, TemplateSSE, TemplateLines, TemplateNone)
	}
	if c.Stream != TemplateNone && len(c.Text)+len(c.Reasoning) == 0 {
		return nil, errors.New("protocol template: text: a stream needs a place for its text")
	}
	if err := t.setPlaces(); err != nil {
		return nil, err
	}
	var err error
	if t.body, err = template.New("body").Parse(c.Body); err != nil {
		return nil, fmt.Errorf("protocol template: body: %w", err)
	}
	return t, t.try()
}

// try renders the body once, so that a run does not fail on its first request.
func (t *Template) try() error {
	one := trace.Some(int64(1))
	r := Request{Model: "m", Prompt: [][]byte{[]byte("p")}, Stream: true, MaxTokens: one, MinTokens: one, IgnoreEOS: true, Tools: []byte("[]")}
	data := templateData{r: &r}
	if _, err := t.render(nil, &data); err != nil {
		return err
	}
	if !data.used.prompt && !data.used.messages {
		return errors.New("protocol template: body: neither .Prompt nor .Messages is sent")
	}
	return nil
}

func (*Template) Name() string                  { return "template" }
func (t *Template) Path() string                { return t.config.Path }
func (*Template) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (*Template) Headers() []Header             { return nil }
func (t *Template) Lines() bool                 { return t.config.Stream == TemplateLines }

func (t *Template) NewDecoder(stream bool) Decoder {
	return &templated{t: t, stream: stream, cumulative: t.config.Cumulative}
}

// String names the path, for messages.
func (t *Template) String() string { return "template " + t.config.Path }
