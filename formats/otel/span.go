package otel

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// A span is one span of any container. Attributes are plain JSON values by name.
type span struct {
	file *source.Source
	line int64
	raw  string

	trace, id, parent string
	name              string
	kind              string
	start, end        trace.Optional[time.Duration] // Unix time
	failed, ok        bool                          // status
	session           string                        // of the record around it, "" if none
	attributes        jsonx.Row
	rest              jsonx.Row // further fields
}

func (sp *span) key() string { return sp.trace + "/" + sp.id }

// spans visits the spans of a record: OTLP's resourceSpans, a flat list, or a span
// alone. An error of it is one of the whole record.
func (s *state) spans(r *rows.Record, visit func(*span, error) error) error {
	switch {
	case r.Row["resourceSpans"] != nil || r.Row["resource_spans"] != nil:
		return s.otlp(r, visit)
	case r.Row["spans"] != nil:
		return s.flat(r, visit)
	}
	sp, err := s.span(r, r.Row, string(r.Raw))
	return visit(sp, err)
}

// otlp visits the spans of an OTLP export.
func (s *state) otlp(r *rows.Record, visit func(*span, error) error) error {
	name, raw, _ := r.Row.Take("resourceSpans", "resource_spans")
	type scope struct {
		Spans []json.RawMessage `json:"spans"`
	}
	var resources []struct {
		Resource json.RawMessage `json:"resource"`
		Scopes   []scope         `json:"scopeSpans"`
		Snake    []scope         `json:"scope_spans"`
		Older    []scope         `json:"instrumentationLibrarySpans"`
	}
	if err := json.Unmarshal(raw, &resources); err != nil {
		return jsonx.Bad(name, "not a list of spans by resource and scope")
	}
	for _, res := range resources {
		for _, sc := range append(append(res.Scopes, res.Snake...), res.Older...) {
			for _, raw := range sc.Spans {
				if err := s.one(r, raw, res.Resource, "", visit); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// flat visits the spans of one trace or session, a list or a string that holds one.
func (s *state) flat(r *rows.Record, visit func(*span, error) error) error {
	var list []json.RawMessage
	if err := json.Unmarshal(unquoted(r.Row["spans"]), &list); err != nil {
		return jsonx.Bad("spans", "not a list of spans")
	}
	session, _ := r.Row.StringOnly("session_id")
	for _, raw := range list {
		if err := s.one(r, raw, nil, session.Value, visit); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) one(r *rows.Record, raw, resource json.RawMessage, session string, visit func(*span, error) error) error {
	row, err := jsonx.Parse(raw)
	if err != nil {
		return visit(&span{file: r.File, line: r.Line, raw: string(raw)}, err)
	}
	if len(resource) > 0 && row["resource"] == nil {
		row["resource"] = resource
	}
	sp, err := s.span(r, row, string(raw))
	sp.session = session
	return visit(sp, err)
}

// unquoted returns the JSON that a string of JSON holds; else raw.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return json.RawMessage(text)
	}
	return raw
}

// span reads the fields of a span, under the names of OTLP, of its snake case form
// and of the console exporter.
func (s *state) span(r *rows.Record, f jsonx.Row, raw string) (*span, error) {
	sp := &span{file: r.File, line: r.Line, raw: raw}
	if c, err := jsonx.Parse(f["context"]); err == nil {
		for k, v := range c {
			if f[k] == nil {
				f[k] = v
			}
		}
		delete(f, "context")
	}
	for _, c := range []struct {
		to    *string
		names []string
	}{
		{&sp.trace, []string{"traceId", "trace_id"}}, {&sp.id, []string{"spanId", "span_id"}},
		{&sp.parent, []string{"parentSpanId", "parent_span_id", "parent_id"}}, {&sp.name, []string{"name"}}, {&sp.kind, []string{"kind"}},
	} {
		v, err := f.String(c.names...)
		if err != nil {
			return sp, err
		}
		*c.to = v.Value
	}
	if sp.id == "" {
		return sp, jsonx.Bad("span_id", "missing")
	}
	var err error
	if sp.start, err = s.time(f, "startTimeUnixNano", "start_time_unix_nano", "start_time"); err != nil {
		return sp, err
	}
	if sp.end, err = s.time(f, "endTimeUnixNano", "end_time_unix_nano", "end_time"); err != nil {
		return sp, err
	}
	sp.status(f)
	sp.attributes, err = attributes(f["attributes"])
	delete(f, "attributes")
	if resource, rerr := jsonx.Parse(f["resource"]); rerr == nil {
		if a, rerr := attributes(resource["attributes"]); rerr == nil && len(a) > 0 {
			f["resource_attributes"] = object(a)
			delete(f, "resource")
		}
	}
	sp.rest = f
	return sp, err
}

// object writes values by name as one JSON object.
func object(r jsonx.Row) json.RawMessage {
	text, err := json.Marshal(map[string]json.RawMessage(r))
	if err != nil {
		return json.RawMessage("null") // not reached: the values were read as JSON
	}
	return text
}

// time reads a time: nanoseconds where the name says so, a calendar time, or a
// number of a unit that its size tells.
func (s *state) time(f jsonx.Row, nano, snake, plain string) (t trace.Optional[time.Duration], err error) {
	if t, err = rows.TakeUnits(f, time.Nanosecond, nano, snake); err != nil || t.Known {
		return t, err
	}
	raw := f[plain]
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		json.Unmarshal(raw, &text)
		if v, err := strconv.ParseFloat(text, 64); err != nil || v == 0 {
			return s.clock.Take(f, plain)
		}
		raw = json.RawMessage(text)
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return t, nil // absent
	}
	unit := time.Nanosecond
	switch {
	case v < 1e11:
		unit = time.Second
	case v < 1e14:
		unit = time.Millisecond
	case v < 1e17:
		unit = time.Microsecond
	}
	s.Guess("unit of "+plain, rows.Unit(unit), "", "%s is a Unix time of this century in no other unit", raw)
	delete(f, plain)
	at, err := instant.Units(raw, unit)
	if err != nil {
		return t, &jsonx.FieldError{Field: plain, Err: err}
	}
	return trace.Some(at), nil
}

// status reads how the span ended: a code or a word, alone or in an object.
func (sp *span) status(f jsonx.Row) {
	raw := f["status"]
	var o struct {
		Code   json.RawMessage `json:"code"`
		Status json.RawMessage `json:"status_code"`
	}
	if json.Unmarshal(raw, &o) == nil {
		raw = append(o.Code, o.Status...)
	}
	switch strings.TrimPrefix(strings.ToUpper(strings.Trim(string(raw), `"`)), "STATUS_CODE_") {
	case "2", "ERROR":
		sp.failed = true
	case "1", "OK":
		sp.ok = true
		delete(f, "status")
	case "0", "UNSET", "":
		delete(f, "status")
	}
}

// attributes reads a JSON object, or OTLP's list of keys with typed values.
func attributes(raw json.RawMessage) (jsonx.Row, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return jsonx.Row{}, nil
	}
	if raw[0] == '{' {
		return jsonx.Parse(raw)
	}
	var list []struct {
		Key   string  `json:"key"`
		Value anyJSON `json:"value"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, jsonx.Bad("attributes", "neither an object nor a list of keys and values")
	}
	out := make(jsonx.Row, len(list))
	for _, a := range list {
		out[a.Key] = a.Value.plain()
	}
	return out, nil
}

// anyJSON is OTLP's AnyValue.
type anyJSON struct {
	String *string         `json:"stringValue"`
	Int    json.RawMessage `json:"intValue"`
	Double json.RawMessage `json:"doubleValue"`
	Bool   *bool           `json:"boolValue"`
	Bytes  *string         `json:"bytesValue"`
	Array  *struct {
		Values []anyJSON `json:"values"`
	} `json:"arrayValue"`
	List *struct {
		Values []struct {
			Key   string  `json:"key"`
			Value anyJSON `json:"value"`
		} `json:"values"`
	} `json:"kvlistValue"`
}

// plain returns the value as it would be written without types.
func (v anyJSON) plain() json.RawMessage {
	switch {
	case v.String != nil:
		return json.RawMessage(jsonx.Quote(*v.String))
	case len(v.Int) > 0:
		return number(v.Int)
	case len(v.Double) > 0:
		return number(v.Double)
	case v.Bool != nil:
		return json.RawMessage(strconv.FormatBool(*v.Bool))
	case v.Bytes != nil:
		return json.RawMessage(jsonx.Quote(*v.Bytes))
	case v.Array != nil:
		list := make([]json.RawMessage, 0, len(v.Array.Values))
		for _, e := range v.Array.Values {
			list = append(list, e.plain())
		}
		text, _ := json.Marshal(list) // values are JSON
		return text
	case v.List != nil:
		o := jsonx.Row{}
		for _, e := range v.List.Values {
			o[e.Key] = e.Value.plain()
		}
		return object(o)
	}
	return json.RawMessage("null")
}

// number takes the quotes off a number that is written as a string.
func number(raw json.RawMessage) json.RawMessage {
	text := bytes.Trim(raw, `"`)
	if _, err := strconv.ParseFloat(string(text), 64); err != nil || !json.Valid(text) {
		return raw
	}
	return json.RawMessage(text)
}
