package weka

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// Attributes of our own. Fields of the source that have no column keep their
// names; so do those whose column cannot hold the exact value.
const (
	attrSession  = "weka.session"         // first row of a session: its fields but requests
	attrImport   = "weka.import"          // first row of a session: an imported
	attrSubagent = "weka.subagent"        // first row of a sub-agent: its fields but requests
	attrBefore   = "weka.empty_subagents" // sub-agents without requests, before this row
	attrAfter    = "weka.empty_after"     // the same behind the session's last row
	attrPair     = "weka.pair"            // what the s row said that its n row says otherwise
	attrEarly    = "weka.recorded_t"      // seconds on the session's clock, of a row clamped to its start
)

// A row is one request entry.
type row struct {
	req  trace.Request
	raw  json.RawMessage
	path string  // requests[3].requests[0]
	pos  int     // position of the entry, or of its marker, in the session's list
	t    float64 // seconds, as recorded
	rest jsonx.Row
	kind string // type: n, s, ?; "" if it is missing

	think trace.Optional[time.Duration]
	exact map[string]json.RawMessage // t, think_time, api_time, ttft as they were written
	sub   *subagent                  // nil at the top level
	pair  map[string]json.RawMessage
}

// A subagent is one marker entry.
type subagent struct {
	fields jsonx.Row // without requests
	path   string
	pos    int
	t      float64
	name   string
	base   time.Duration                 // t, but not before the session's start
	end    trace.Optional[time.Duration] // recorded: t + duration_ms
	status string
	rows   []*row
}

// parse reads a request entry.
func parse(f jsonx.Row) (*row, error) {
	r := &row{rest: f, exact: map[string]json.RawMessage{}, req: trace.Request{Operation: trace.OpChat}}
	if err := r.times(f); err != nil {
		return nil, err
	}
	if err := r.lengths(f); err != nil {
		return nil, err
	}
	var err error
	if r.req.Model, err = text(f, "model"); err != nil {
		return nil, err
	}
	if r.req.FinishReason, err = text(f, "stop"); err != nil {
		return nil, err
	}
	kind, err := text(f, "type")
	if err != nil {
		return nil, err
	}
	switch r.kind = kind.Value; r.kind {
	case "n", "s":
		r.req.Streaming = trace.Some(r.kind == "s")
	case "?":
		f["type"] = json.RawMessage(`"?"`)
	case "":
		if kind.Known {
			return nil, jsonx.Bad("type", "empty")
		}
	default:
		return nil, &jsonx.FieldError{Field: "type", Err: jsonx.Bad("", "%q", r.kind).Err, Fix: "known types are n, s, ? and subagent"}
	}
	return r, nil
}

func (r *row) times(f jsonx.Row) error {
	for _, key := range []string{"t", "api_time", "think_time", "ttft"} {
		raw := f[key]
		d, v, err := f.Time(time.Second, key)
		if err != nil {
			return err
		}
		if !d.Known {
			if key == "t" {
				return jsonx.Bad("t", "missing")
			}
			continue
		}
		if v < 0 && key != "t" {
			return jsonx.Bad(key, "%v is below 0", v)
		}
		r.exact[key] = raw
		switch key {
		case "t":
			r.t = v
		case "api_time":
			r.req.RecordedE2E = d
		case "think_time":
			r.think = d
		case "ttft":
			r.req.RecordedTTFT = d
		}
	}
	return nil
}

func (r *row) lengths(f jsonx.Row) (err error) {
	if r.req.InputTokens, err = f.Int("in"); err != nil {
		return err
	}
	if !r.req.InputTokens.Known {
		return jsonx.Bad("in", "missing")
	}
	if r.req.OutputTokens, err = f.Int("out"); err != nil {
		return err
	}
	if _, raw, ok := f.Take("hash_ids"); ok {
		r.req.Blocks, err = parseIDs(raw)
	}
	return err
}

// text takes a string, and nothing that merely looks like one.
func text(f jsonx.Row, key string) (trace.Optional[string], error) {
	if raw, ok := f[key]; ok && string(raw) != "null" && raw[0] != '"' {
		return trace.Optional[string]{}, jsonx.Bad(key, "%.40s is no string", raw)
	}
	return f.String(key)
}

// seconds returns what export would write for d.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// keepExact keeps a time as it was written unless export would write the same.
func (r *row) keepExact(key string, d trace.Optional[time.Duration]) {
	raw, ok := r.exact[key]
	if !ok {
		return
	}
	if v, err := strconv.ParseFloat(string(raw), 64); err == nil && d.Known && seconds(d.Value) == v {
		return
	}
	r.rest[key] = raw
}

// parseMarker reads the fields of a sub-agent; f has no requests any more.
func parseMarker(f jsonx.Row) (*subagent, error) {
	s := &subagent{fields: f}
	at, ok, err := peek(f, "t").Float("t")
	if err == nil && !ok {
		err = jsonx.Bad("t", "missing")
	}
	if err == nil && math.Abs(at) > 1e9 {
		err = jsonx.Bad("t", "%v is out of range", at)
	}
	if err != nil {
		return nil, err
	}
	s.t = at
	ms, ok, err := peek(f, "duration_ms").Float("duration_ms")
	if err != nil {
		return nil, err
	}
	if ok && ms >= 0 && ms < 1e12 {
		s.end = trace.Some(toDuration(at) + time.Duration(math.Round(ms*1e6)))
	}
	name, err := peek(f, "agent_id").String("agent_id")
	if err != nil {
		return nil, err
	}
	s.name = name.Value
	status, err := peek(f, "status").String("status")
	s.status = status.Value
	return s, err
}

func toDuration(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// peek returns a row with only the field key, if it is there; taking from it
// leaves f as it is.
func peek(f jsonx.Row, key string) jsonx.Row {
	if raw, ok := f[key]; ok {
		return jsonx.Row{key: raw}
	}
	return jsonx.Row{}
}
