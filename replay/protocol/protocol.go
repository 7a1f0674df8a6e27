// Package protocol speaks the request and response formats of inference
// servers: it writes request bodies and books responses into a ledger.
//
// HTTP itself (status, headers, transfer coding) belongs to the caller, which
// hands the bytes of a response's body to a [Response].
package protocol

import (
	"fmt"
	"strings"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
	"reprise/trace"
)

// A Protocol is one way to ask a model. Its values hold no state.
type Protocol interface {
	// Name is what the --protocol flag calls it.
	Name() string
	// Path is where it lives below the server's URL.
	Path() string
	// Auth returns the header that carries an API key, and what stands before
	// the key in it.
	Auth() (header, prefix string)
	// Headers are the fixed headers that it needs beside Content-Type; headers
	// of the user win.
	Headers() []Header
	// AppendBody appends the body of a request. The error names what the
	// protocol cannot say.
	AppendBody(dst []byte, r *Request) ([]byte, error)
	// Lines says that its streams are lines of JSON, not server-sent events.
	Lines() bool
	// NewDecoder returns a decoder; stream says that a stream is asked for.
	NewDecoder(stream bool) Decoder
}

// A Header is one request header.
type Header struct{ Name, Value string }

// A Decoder books the events of responses, one response after the other. It
// keeps scratch memory, so that it does not allocate per event. What it cannot
// read it books as malformed.
type Decoder interface {
	// Reset forgets the response before.
	Reset()
	// Event books one event of a stream.
	Event(e sse.Event, a *ledger.Account)
	// Body books a response that is one JSON text, whether or not a stream was
	// asked for; it was complete at at.
	Body(body []byte, at time.Duration, a *ledger.Account)
}

// All lists the protocols in the order the help prints them.
var All = []Protocol{Chat{}, Completions{}, Messages{}, Responses{}, TGI{}, SGLang{}, Ollama{}, Embeddings{}}

// ByName returns the protocol of that name.
func ByName(name string) (Protocol, error) {
	var names []string
	for _, p := range All {
		if p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, trace.WithFix(fmt.Errorf("no protocol %q", name), "protocols: "+strings.Join(names, ", "))
}
