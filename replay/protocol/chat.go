package protocol

import (
	"reprise/trace"
	"reprise/trace/results"
)

// Chat is OpenAI chat completions, /v1/chat/completions, as vLLM, SGLang,
// llama.cpp, TGI, TensorRT-LLM and gateways serve it.
//
// The output limit is sent as max_tokens, which all of them know;
// max_completion_tokens, its later name at OpenAI, is not known to older
// servers. A literal body that has max_completion_tokens keeps that name.
type Chat struct{}

func (Chat) Name() string                  { return "chat" }
func (Chat) Path() string                  { return "/v1/chat/completions" }
func (Chat) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (Chat) Headers() []Header             { return nil }
func (Chat) Lines() bool                   { return false }

func (Chat) NewDecoder(stream bool) Decoder { return &openAI{stream: stream} }

func (p Chat) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), true); err != nil {
		return dst, err
	}
	return appendBody(dst, r, openAIFields(r), func(dst []byte) []byte {
		return appendMessages(dst, r, "messages")
	})
}

// Completions is OpenAI completions, /v1/completions: a plain prompt, and text
// back.
type Completions struct{}

func (Completions) Name() string                  { return "completions" }
func (Completions) Path() string                  { return "/v1/completions" }
func (Completions) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (Completions) Headers() []Header             { return nil }
func (Completions) Lines() bool                   { return false }

func (Completions) NewDecoder(stream bool) Decoder {
	return &openAI{stream: stream, kind: results.KindContent}
}

func (p Completions) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), false); err != nil {
		return dst, err
	}
	return appendBody(dst, r, openAIFields(r), func(dst []byte) []byte {
		return appendPrompt(append(dst, `"prompt":`...), r)
	})
}

// openAIFields are the members of a body beside model and content.
func openAIFields(r *Request) []field {
	fields := r.fields()
	if r.Tools != nil {
		fields = append(fields, field{"tools", r.Tools})
	}
	fields = r.intField(fields, limitName(r.Body), r.MaxTokens)
	fields = r.intField(fields, "min_tokens", r.MinTokens)
	if r.IgnoreEOS {
		fields = append(fields, boolField("ignore_eos", true))
	}
	if r.Choices > 1 {
		fields = r.intField(fields, "n", trace.Some(int64(r.Choices)))
	}
	return append(fields, boolField("stream", r.Stream), field{"stream_options", streamOptions(r)})
}

// limitName is the name of the output limit: that of a literal body, if it has
// one.
func limitName(body []byte) string {
	if body != nil && lookup(body, "max_completion_tokens") != nil {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

var (
	finalOptions   = []byte(`{"include_usage":true}`)
	runningOptions = []byte(`{"include_usage":true,"continuous_usage_stats":true}`)
)

// streamOptions asks for usage at the end of a stream, and for usage on every
// event if that is wanted. Options of a literal body stay. Without a stream
// there must be none: OpenAI and vLLM refuse them then.
func streamOptions(r *Request) []byte {
	if !r.Stream {
		return nil
	}
	switch {
	case r.Body != nil:
	case r.ContinuousUsage:
		return runningOptions
	default:
		return finalOptions
	}
	fields := []field{boolField("include_usage", true)}
	if r.ContinuousUsage {
		fields = append(fields, boolField("continuous_usage_stats", true))
	}
	given := lookup(r.Body, "stream_options")
	if len(given) == 0 || given[0] != '{' {
		given = []byte("{}")
	}
	options, err := appendEdited(nil, given, fields)
	if err != nil {
		return finalOptions // the body is not valid: its own edit says so
	}
	return options
}
