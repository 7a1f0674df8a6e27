package dynamo

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/trace"
)

// payload reads a request_payload, which goes into the row of its request.
func (s *state) payload(r *rows.Record, row jsonx.Row) error {
	f, err := object(row, "payload")
	if err != nil {
		return err
	}
	id, err := f.String("request_id")
	if err != nil {
		return err
	}
	if !id.Known {
		return jsonx.Bad("payload", "without a request_id")
	}
	p := &payload{file: r.File, line: r.Line, raw: string(r.Raw), row: f}
	if h := s.waiting[id.Value]; h != nil {
		delete(s.waiting, id.Value)
		return s.join(&h.req, p)
	}
	if s.early[id.Value] != nil {
		return s.Merge(r.File, r.Line, p.raw, "payload again", "a payload of its request came before")
	}
	s.early[id.Value] = p
	return nil
}

// join puts a payload into the row of its request.
func (s *state) join(req *trace.Request, p *payload) error {
	delete(s.payloads, req.SourceID.Value) // another request of this id has none
	if raw, ok := p.row["request"]; ok && string(raw) != "null" {
		if err := openai.Request(raw, req); err == nil {
			delete(p.row, "request")
		} else {
			s.Note("payloads whose request is no JSON object, kept in attributes", 1)
		}
	}
	operation(p.row, req)
	if raw, ok := p.row["response"]; ok && string(raw) != "null" {
		body := []byte(raw)
		var text string
		if json.Unmarshal(raw, &text) == nil {
			body = []byte(text)
		}
		if rest, err := openai.Response(body, req); err == nil {
			delete(p.row, "response")
			s.Attributes(req, "payload.response.", rest, slices.Collect(maps.Keys(rest))...)
		} else {
			s.Note("payloads whose response could not be read, kept in attributes", 1)
		}
	}
	s.Attributes(req, "payload.", p.row, "endpoint", "model", "http_request_headers", "payload_complete", "payload_drop_reason", "request", "response")
	if err := s.Add(req); err != nil {
		return err
	}
	return s.Merge(p.file, p.line, "", "payload", "went into the row of its request")
}

// operation reads the endpoint, which says more than the body.
func operation(f jsonx.Row, req *trace.Request) {
	switch string(f["endpoint"]) {
	case `"chat_completions"`, `"/v1/chat/completions"`, `"chat"`:
		req.Operation = trace.OpChat
	case `"completions"`, `"/v1/completions"`:
		req.Operation = trace.OpCompletion
	case `"responses"`, `"/v1/responses"`:
		req.Operation = trace.OpResponses
	case `"embeddings"`, `"/v1/embeddings"`:
		req.Operation = trace.OpEmbedding
	case `"messages"`, `"/v1/messages"`:
		req.Operation = trace.OpMessages
	}
}

// rest lets go of what waited in vain, in the order in which it came.
func (s *state) rest() error {
	waiting := slices.SortedFunc(maps.Values(s.waiting), func(a, b *held) int {
		return cmp.Or(cmp.Compare(a.req.SourceFile.Value, b.req.SourceFile.Value), cmp.Compare(a.req.SourceRow.Value, b.req.SourceRow.Value))
	})
	for _, h := range waiting {
		s.Note("requests whose payload did not come", 1)
		if err := s.Add(&h.req); err != nil {
			return err
		}
	}
	early := slices.SortedFunc(maps.Values(s.early), func(a, b *payload) int {
		return cmp.Or(cmp.Compare(a.file.Name, b.file.Name), cmp.Compare(a.line, b.line))
	})
	for _, p := range early {
		if err := s.Reject(p.file, p.line, p.raw, "payload", jsonx.Bad("payload", "its request has no request_end in the sources")); err != nil {
			return err
		}
	}
	return nil
}
