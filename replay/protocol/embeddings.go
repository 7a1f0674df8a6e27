package protocol

import (
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
)

// Embeddings is OpenAI embeddings, /v1/embeddings: a prompt, and one body back.
// Output limits do not apply.
type Embeddings struct{}

func (Embeddings) Name() string                  { return "embeddings" }
func (Embeddings) Path() string                  { return "/v1/embeddings" }
func (Embeddings) Auth() (header, prefix string) { return "Authorization", "Bearer " }
func (Embeddings) Headers() []Header             { return nil }
func (Embeddings) Lines() bool                   { return false }

func (Embeddings) NewDecoder(bool) Decoder { return &embeddings{} }

func (p Embeddings) AppendBody(dst []byte, r *Request) ([]byte, error) {
	if err := r.check(p.Name(), false); err != nil {
		return dst, err
	}
	return appendBody(dst, r, nil, func(dst []byte) []byte {
		return appendPrompt(append(dst, `"input":`...), r)
	})
}

type embeddings struct{ openAIReading }

func (d *embeddings) Reset() {}

// Event books a stream, which embeddings are not.
func (d *embeddings) Event(e sse.Event, a *ledger.Account) {
	if s, data, more := begin(e, a); more {
		a.Malformed(s, data)
	}
}

func (d *embeddings) Body(body []byte, _ time.Duration, a *ledger.Account) {
	p, ok := d.parse(body)
	switch {
	case !ok || !p.object:
		notObject(body, a)
	case p.err != nil:
		a.Error(errorCause(p.err))
	case len(lookup(body, "data")) == 0:
		a.Error("response has no embeddings: " + quoteStart(body))
	default:
		p.usage.Output = trace.Optional[int64]{} // some servers send 0
		a.Answered(p.usage)
	}
}
