package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"reprise/trace"
)

// templateData is what a body template sees. It keeps book of what the template
// looked at, so that nothing that a request asks for is dropped in silence.
type templateData struct {
	r    *Request
	used struct{ prompt, messages, stream, maxTokens, minTokens, ignoreEOS, tools bool }
}

func (d *templateData) Model() string {
	if d.r.Model == "" {
		return ""
	}
	return string(append(EscapeText([]byte{'"'}, d.r.Model), '"'))
}

func (d *templateData) Prompt() (string, error) {
	d.used.prompt = true
	if d.r.Messages != nil {
		return "", errors.New("the template sends a prompt, but the request has messages")
	}
	return string(appendPrompt(nil, d.r)), nil
}

func (d *templateData) Messages() string {
	d.used.messages = true
	const key = "m"
	return string(appendMessages(nil, d.r, key)[len(`"":`)+len(key):])
}

func (d *templateData) Stream() bool    { d.used.stream = true; return d.r.Stream }
func (d *templateData) IgnoreEOS() bool { d.used.ignoreEOS = true; return d.r.IgnoreEOS }
func (d *templateData) Tools() string   { d.used.tools = true; return string(d.r.Tools) }

func (d *templateData) MaxTokens() string {
	d.used.maxTokens = true
	return decimal(d.r.MaxTokens)
}

func (d *templateData) MinTokens() string {
	d.used.minTokens = true
	return decimal(d.r.MinTokens)
}

func decimal(n trace.Optional[int64]) string {
	if !n.Known {
		return ""
	}
	return strconv.FormatInt(n.Value, 10)
}

// AppendBody renders the body. Literal bodies are refused: where their model,
// stream and limits stand is not known.
func (t *Template) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(t.Name(), true); err != nil {
		return dst, err
	}
	switch {
	case r.Body != nil:
		return dst, trace.WithFix(errors.New("protocol template writes bodies of its own, but the request has one"), "use the protocol that the bodies were written for")
	case r.Stream && t.config.Stream == TemplateNone:
		return dst, trace.WithFix(errors.New("protocol template has no streams: its stream is none"), "use --stream off")
	}
	if err := r.refuse(t.Name(), false, false, r.Choices > 1); err != nil {
		return dst, err
	}
	data := templateData{r: r}
	body, err := t.render(dst, &data)
	if err != nil {
		return dst, err
	}
	return body, t.dropped(&data)
}

// render appends the body with the members of Extra set.
func (t *Template) render(dst []byte, data *templateData) ([]byte, error) {
	var text bytes.Buffer
	if err := t.body.Execute(&text, data); err != nil {
		return dst, fmt.Errorf("protocol template: body: %w", err)
	}
	extra, err := extraFields(data.r.Extra)
	if err != nil {
		return dst, err
	}
	dst, err = appendEdited(dst, bytes.TrimSpace(text.Bytes()), extra)
	if err != nil {
		return dst, fmt.Errorf("protocol template: body: rendered %w", err)
	}
	return dst, nil
}

// dropped returns an error for what the request asks and the template did not
// look at. An API that makes no text has no output length.
func (t *Template) dropped(d *templateData) error {
	output := len(t.config.Text)+len(t.config.Reasoning) > 0
	switch {
	case d.r.Tools != nil && !d.used.tools:
		return errors.New("protocol template: body: the request has tools, but .Tools is not sent")
	case !d.r.Stream && t.config.Stream != TemplateNone && !d.used.stream:
		return trace.WithFix(errors.New("protocol template only streams: its body does not look at .Stream"), "ask for streams")
	case !output:
		return nil
	case d.r.MaxTokens.Known && !d.used.maxTokens:
		return trace.WithFix(errors.New("protocol template: body: the request has a limit, but .MaxTokens is not sent"), "use .MaxTokens in the template, or --output-length free")
	}
	return d.r.refuse(t.Name(), d.r.MinTokens.Known && !d.used.minTokens, d.r.IgnoreEOS && !d.used.ignoreEOS, false)
}
