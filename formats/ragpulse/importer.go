// Package ragpulse reads RAGPulse (flashserve/RAGPulse): JSON lines of requests to
// a question answering service with retrieval, with arrival, lengths, session and
// the ids of the pieces of text that make up each prompt.
//
// The source leaves out: models, users, latencies, texts, and in this file the
// length of each piece.
package ragpulse

import (
	"context"
	"time"

	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells RAGPulse by its first row: hash_ids is an object.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || h.Keys["hash_ids"] != "object" || !h.Has("input_length") {
		return "", false
	}
	return "first record has input_length and hash_ids that are an object", true
}

// An Importer reads RAGPulse.
type Importer struct{ sessions.Chain }

// Import implements formats.Importer.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(false)
	s := rows.New(emit, reject)
	err := s.Objects(ctx, src, func(r *rows.Record) error {
		req, err := parse(r)
		if err != nil {
			return err
		}
		s.Attributes(&req, "", r.Row, "hash_ids")
		return s.Add(&req)
	})
	if err != nil {
		return trace.Meta{}, err
	}
	s.Guess("unit of timestamp", "s", "", "the format says so")
	s.Guess("hash_ids", "kept in attributes", "", "they name pieces of text of unknown lengths, not blocks of one size")
	return s.Meta("ragpulse", "")
}

func parse(r *rows.Record) (req trace.Request, err error) {
	req = r.Place(trace.OpChat)
	if req.Arrival, err = rows.TakeUnits(r.Row, time.Second, "timestamp"); err != nil {
		return req, err
	}
	if !req.Arrival.Known {
		return req, jsonx.Bad("timestamp", "missing")
	}
	if req.InputTokens, err = r.Row.Int("input_length"); err != nil {
		return req, err
	}
	if !req.InputTokens.Known {
		return req, jsonx.Bad("input_length", "missing")
	}
	if req.OutputTokens, err = r.Row.Int("output_length"); err != nil {
		return req, err
	}
	req.Session, err = r.Row.String("session_id")
	return req, err
}
