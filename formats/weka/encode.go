package weka

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/formats/jsonx"
	"reprise/trace"
)

// request encodes one row; nested rows count from base. Keys come in the order
// of the published files.
func (s *written) request(r *trace.Request, base time.Duration) json.RawMessage {
	f := jsonx.Row{}
	if s.ours {
		for k, v := range r.Attributes {
			if !strings.HasPrefix(k, "weka.") {
				f[k] = json.RawMessage(v)
			}
		}
	}
	put := func(key string, v any, known bool) {
		if _, kept := f[key]; known && !kept {
			f[key] = quote(v)
		}
	}
	put("t", seconds(r.Arrival.Value-s.start-base), true)
	streaming, known := r.Streaming.Get()
	put("type", map[bool]string{true: "s", false: "n"}[streaming], known || !s.ours)
	put("model", r.Model.Value, r.Model.Known)
	put("in", r.InputTokens.Value, r.InputTokens.Known)
	put("out", r.OutputTokens.Value, r.OutputTokens.Known)
	s.in, s.out = s.in+r.InputTokens.Value, s.out+r.OutputTokens.Value
	if r.Blocks != nil || !s.ours {
		f["hash_ids"] = s.ids(r.Blocks)
	}
	put("stop", r.FinishReason.Value, r.FinishReason.Known)
	put("api_time", seconds(r.RecordedE2E.Value), r.RecordedE2E.Known)
	put("ttft", seconds(r.RecordedTTFT.Value), r.RecordedTTFT.Known)
	// The delay of a row that a sub-agent belongs to is no think time.
	put("think_time", seconds(r.Delay.Value), r.Delay.Known && (!s.ours || onlyTurns(r)))
	return ordered(f, "t", "type", "model", "in", "out", "hash_ids", "input_types", "output_types", "stop", "api_time", "ttft", "think_time")
}

func onlyTurns(r *trace.Request) bool {
	return !slices.ContainsFunc(r.After, func(d trace.Dependency) bool { return d.Kind != trace.AfterTurn })
}

func (s *written) ids(ids []uint64) json.RawMessage {
	buf := append(make([]byte, 0, 2+len(ids)*7), '[')
	for i, id := range ids {
		if i > 0 {
			buf = append(buf, ',')
		}
		if s.spaced {
			id, _ = unspaced(id, s.about.Ordinal, s.about.Permuted)
		}
		buf = strconv.AppendUint(buf, id, 10)
	}
	return append(buf, ']')
}

// ordered encodes an object with the given keys first, then the others by name.
func ordered(f jsonx.Row, first ...string) json.RawMessage {
	buf := []byte{'{'}
	add := func(k string) {
		if len(buf) > 1 {
			buf = append(buf, ',')
		}
		buf = append(append(append(buf, quote(k)...), ':'), f[k]...)
	}
	for _, k := range first {
		if _, ok := f[k]; ok {
			add(k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(first, k) {
			add(k)
		}
	}
	return append(buf, '}')
}

func joined(list []json.RawMessage) json.RawMessage {
	buf := []byte{'['}
	for i, raw := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, raw...)
	}
	return append(buf, ']')
}
