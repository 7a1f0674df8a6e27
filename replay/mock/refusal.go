package mock

import (
	"encoding/json"
	"net/http"
	"strconv"

	"reprise/replay/mock/wire"
)

// A refusal is an error in place of an answer.
type refusal struct {
	status  int    // HTTP
	param   string // the field at fault, "" if none
	message string
}

func badRequest(param, message string) *refusal {
	return &refusal{http.StatusBadRequest, param, message}
}

// tooLong is the refusal of what could never run.
func (x *exchange) tooLong() *refusal {
	prompt, output := x.request.Prompt.Tokens, x.choices[0].planned
	return badRequest("max_tokens", "This model's maximum context length is "+
		strconv.FormatInt(x.server.config.Engine.KVTokens, 10)+" tokens. However, you requested "+
		strconv.Itoa(prompt+output)+" tokens ("+strconv.Itoa(prompt)+" in the prompt, "+
		strconv.Itoa(output)+" in the completion).")
}

// kind returns the type of the error in vLLM's words.
func (r *refusal) kind() string {
	switch r.status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusTooManyRequests:
		return "RateLimitError"
	}
	if r.status >= 500 {
		return "InternalServerError"
	}
	return "InvalidRequestError"
}

// object returns the error object of the protocol: OpenAI's as vLLM fills it,
// or Anthropic's.
func (r *refusal) object(op wire.Operation) []byte {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	var v any
	if op == wire.Messages {
		type anthropic struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}
		v = struct {
			Type  string    `json:"type"`
			Error anthropic `json:"error"`
		}{"error", anthropic{r.anthropicKind(), r.message}}
	} else {
		d := detail{Message: r.message, Type: r.kind(), Code: r.status}
		if r.param != "" {
			d.Param = &r.param
		}
		v = struct {
			Error detail `json:"error"`
		}{d}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return b
}

func (r *refusal) anthropicKind() string {
	switch r.status {
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	if r.status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func (r *refusal) write(w http.ResponseWriter, op wire.Operation) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	w.Write(append(r.object(op), '\n')) // the client alone can be at fault, and it is gone then
}
