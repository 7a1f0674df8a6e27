package weka

import (
	"encoding/json"
	"fmt"
	"slices"

	"reprise/trace"
)

// merge puts an s row and the n row that follows it with the same model, input
// and ids into one: old generations tell a streamed call twice. Markers between
// the two do not matter.
func (ses *session) merge() error {
	var err error
	if ses.parent, err = ses.mergeList(ses.parent); err != nil {
		return err
	}
	for _, sub := range ses.subs {
		if sub.rows, err = ses.mergeList(sub.rows); err != nil {
			return err
		}
	}
	return nil
}

func (ses *session) mergeList(rows []*row) ([]*row, error) {
	var out []*row
	for i := 0; i < len(rows); i++ {
		r := rows[i]
		out = append(out, r)
		if i+1 == len(rows) || !isPair(r, rows[i+1]) {
			continue
		}
		i++
		n := rows[i]
		r.answerOf(n)
		ses.pairs++
		e := &trace.RowError{File: ses.file.Name, Line: ses.line, Field: n.path, Merged: true, Reason: "n row that repeats an s row", Raw: string(n.raw),
			Err: fmt.Errorf("the same call as %s", r.path), Fix: "pass --keep-pairs to keep both"}
		if err := ses.reject(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func isPair(s, n *row) bool {
	return s.kind == "s" && n.kind == "n" && s.req.InputTokens == n.req.InputTokens && s.req.Model == n.req.Model &&
		(s.req.Blocks == nil) == (n.req.Blocks == nil) && slices.Equal(s.req.Blocks, n.req.Blocks)
}

// answerOf takes the answer from n, which is told in full; start, latencies and
// think time stay.
func (r *row) answerOf(n *row) {
	r.pair = map[string]json.RawMessage{}
	if v, ok := r.req.OutputTokens.Get(); ok {
		r.pair["out"] = json.RawMessage(fmt.Sprint(v))
	}
	if v, ok := r.req.FinishReason.Get(); ok {
		r.pair["stop"], _ = json.Marshal(v) // a string always encodes
	}
	if v, ok := r.rest["output_types"]; ok {
		r.pair["output_types"] = v
	}
	r.req.OutputTokens, r.req.FinishReason = n.req.OutputTokens, n.req.FinishReason
	delete(r.rest, "output_types")
	if v, ok := n.rest["output_types"]; ok {
		r.rest["output_types"] = v
	}
}
