// Package sagemaker reads the data capture of Amazon SageMaker endpoints: JSON
// lines in endpoint/variant/yyyy/mm/dd/hh/*.jsonl, each with the body of a request,
// that of its response, and the time of the inference.
//
// The source leaves out: latencies, sessions, users, prefixes, what sampling left
// out; and token counts where the response has none.
package sagemaker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reprise/formats/jsonx"
	"reprise/formats/openai"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells data capture by the keys of its first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || h.Keys["captureData"] != "object" || !h.Has("eventMetadata") {
		return "", false
	}
	return "first record has captureData and eventMetadata", true
}

// An Importer reads data capture.
type Importer struct {
	Zone rows.Clock // of times without one
}

// Import implements formats.Importer. It holds the ids of all events: retries
// repeat them.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := &state{Sink: rows.New(emit, reject), clock: im.Zone, events: map[string]bool{}}
	s.Epoch = true
	if err := s.Objects(ctx, src, s.visit); err != nil {
		return trace.Meta{}, err
	}
	s.clock.Note(s.Sink, "inference times without a zone")
	return s.Meta("sagemaker", "")
}

// state is one import.
type state struct {
	*rows.Sink
	clock  rows.Clock
	events map[string]bool
}

// A side is what was captured of one direction.
type side struct {
	body []byte // nil if nothing was captured
	text bool   // it is text, not JSON or bytes
	rest jsonx.Row
}

func (s *state) visit(r *rows.Record) error {
	req := r.Place(trace.OpOther)
	meta, err := object(r.Row, "eventMetadata")
	if err != nil {
		return err
	}
	if req.SourceID, err = meta.String("eventId"); err != nil {
		return err
	}
	if req.Arrival, err = s.clock.Take(meta, "inferenceTime"); err != nil {
		return err
	}
	if !req.Arrival.Known {
		return jsonx.Bad("inferenceTime", "missing")
	}
	capture, err := object(r.Row, "captureData")
	if err != nil {
		return err
	}
	in, err := captured(capture, "endpointInput")
	if err != nil {
		return err
	}
	out, err := captured(capture, "endpointOutput")
	if err != nil {
		return err
	}
	if id, ok := req.SourceID.Get(); ok {
		if s.events[id] {
			return s.Merge(r.File, r.Line, string(r.Raw), "eventId again", "an event of this id came before")
		}
		s.events[id] = true
	}
	if err := s.input(in, &req); err != nil {
		return err
	}
	if err := s.output(out, &req); err != nil {
		return err
	}
	s.Attributes(&req, "", meta, "inferenceId", "customAttributes")
	s.Attributes(&req, "", capture)
	delete(r.Row, "eventVersion")
	s.Attributes(&req, "", r.Row)
	return s.Add(&req)
}

// object takes an object that must be there.
func object(r jsonx.Row, name string) (jsonx.Row, error) {
	raw, ok := r[name]
	if !ok {
		return nil, jsonx.Bad(name, "missing")
	}
	delete(r, name)
	var o jsonx.Row
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return nil, jsonx.Bad(name, "not an object")
	}
	return o, nil
}

// captured decodes one direction. Without an encoding the data is base64, unless
// it is JSON as it stands.
func captured(f jsonx.Row, name string) (side, error) {
	if raw, ok := f[name]; !ok || string(raw) == "null" {
		return side{}, nil
	}
	o, err := object(f, name)
	if err != nil {
		return side{}, err
	}
	sd := side{rest: o}
	if raw := o["data"]; len(raw) > 0 && raw[0] == '{' {
		sd.body = raw
		delete(o, "data")
		return sd, nil
	}
	data, err := o.String("data")
	if err != nil || !data.Known {
		return sd, err
	}
	encoding, err := o.String("encoding")
	if err != nil {
		return sd, err
	}
	switch e := strings.ToUpper(encoding.Or("BASE64")); e {
	case "JSON":
		sd.body = []byte(data.Value)
	case "CSV":
		sd.body, sd.text = []byte(data.Value), true
	case "BASE64":
		if sd.body, err = base64.StdEncoding.DecodeString(data.Value); err != nil {
			if !json.Valid([]byte(data.Value)) {
				return sd, jsonx.Bad(name, "data is no base64: %v", err)
			}
			sd.body = []byte(data.Value)
		}
	default:
		return sd, jsonx.Bad(name, "encoding %q is none of JSON, BASE64, CSV", e)
	}
	sd.body = []byte(jsonx.Valid(string(sd.body)))
	delete(o, "mode")
	if string(o["observedContentType"]) == `"application/json"` {
		delete(o, "observedContentType")
	}
	return sd, nil
}

func (s *state) input(in side, req *trace.Request) error {
	s.Attributes(req, "endpointInput.", in.rest, "observedContentType", "mode")
	if in.body == nil {
		s.Note("rows without a captured input", 1)
		return nil
	}
	if err := openai.Request(bytes.TrimSpace(in.body), req); in.text || err != nil {
		s.Note("inputs that are no JSON object, kept in attributes", 1)
		keep(req, "endpointInput.data", in.body)
	}
	return nil
}

func (s *state) output(out side, req *trace.Request) error {
	s.Attributes(req, "endpointOutput.", out.rest, "observedContentType", "mode")
	if out.body == nil {
		s.Note("rows without a captured output", 1)
		return nil
	}
	rest, err := openai.Response(out.body, req)
	if err != nil {
		s.Note("outputs that could not be read as a response, kept in attributes", 1)
		keep(req, "endpointOutput.data", out.body)
		return nil
	}
	s.Attributes(req, "response.", rest, slices.Collect(maps.Keys(rest))...)
	if !req.OutputTokens.Known {
		s.Note("outputs without a count of tokens", 1)
	}
	return nil
}

// keep puts a body into the attributes, as the JSON that it is or as a string.
func keep(req *trace.Request, name string, body []byte) {
	if req.Attributes == nil {
		req.Attributes = map[string]string{}
	}
	req.Attributes[name] = jsonx.Quote(string(body))
}
