package weka

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// describe sets source and attributes.
func (ses *session) describe(rows []*row) error {
	for _, r := range rows {
		r.req.Session = trace.Some(ses.name)
		r.req.SourceFile, r.req.SourceRow = trace.Some(ses.file.Base()), trace.Some(ses.line)
		r.keepExact("api_time", r.req.RecordedE2E)
		r.keepExact("ttft", r.req.RecordedTTFT)
		r.keepExact("think_time", r.req.Delay)
		ses.unknown(r.rest, "request", "input_types", "output_types", "type", "t", "api_time", "ttft", "think_time", attrEarly)
		r.req.Attributes = r.rest.Attributes()
		if r.pair != nil {
			r.set(attrPair, r.pair)
		}
		ses.tick.Add(r.at())
		if r.req.RecordedE2E.Known {
			ses.e2e++
		}
		if r.think.Known {
			ses.think++
		}
	}
	ses.unknown(ses.fields, "session", "id", "models", "block_size", "hash_id_scope", "tool_tokens", "system_tokens", "totals", "kind", "_start_ts", "_analysis")
	rows[0].set(attrSession, ses.fields)
	if ses.about != (imported{}) {
		rows[0].set(attrImport, ses.about)
	}
	return ses.describeSubs(rows)
}

// describeSubs keeps the fields of sub-agents with their first row, or, if they
// have none, with the row that follows.
func (ses *session) describeSubs(rows []*row) error {
	next := map[*row][]jsonx.Row{}
	var behind []jsonx.Row
	for _, sub := range ses.subs {
		ses.unknown(sub.fields, "sub-agent", "t", "type", "agent_id", "subagent_type", "duration_ms", "total_tokens", "tool_use_count", "status", "models", "tool_tokens", "system_tokens")
		if len(sub.rows) > 0 {
			sub.rows[0].set(attrSubagent, sub.fields)
			continue
		}
		i := slices.IndexFunc(rows, func(r *row) bool { return r.pos > sub.pos })
		if i < 0 {
			behind = append(behind, sub.fields)
		} else {
			next[rows[i]] = append(next[rows[i]], sub.fields)
		}
	}
	for r, list := range next {
		r.set(attrBefore, list)
	}
	if behind != nil {
		rows[len(rows)-1].set(attrAfter, behind)
	}
	return nil
}

// set keeps a value as compact JSON.
func (r *row) set(key string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(errors.Join(errors.New("weka: "+key), err)) // made of JSON that was read
	}
	if r.req.Attributes == nil {
		r.req.Attributes = map[string]string{}
	}
	var b bytes.Buffer
	json.Compact(&b, raw)
	r.req.Attributes[key] = b.String()
}

func (ses *session) unknown(f jsonx.Row, of string, known ...string) {
	for k, v := range f {
		if string(v) != "null" && !slices.Contains(known, k) {
			ses.note("unknown "+of+" field "+k+" kept in attributes", 1)
		}
	}
}
