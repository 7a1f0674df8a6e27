// Package splitwise reads the traces of the Splitwise simulator
// (Mutinifni/splitwise-sim, traces): tables of arrival in seconds, prompt and token
// sizes.
//
// The source leaves out: models, users, sessions, prefixes, latencies.
package splitwise

import (
	"context"
	"time"

	"reprise/formats/csvx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// Columns of the published files.
const (
	colID   = "request_id"
	colType = "request_type"
	colTime = "arrival_timestamp"
	colIn   = "prompt_size"
	colOut  = "token_size"
)

// typeLLM is the request_type of calls to a model that generates; 0 and 1 are
// plain computations and other networks.
const typeLLM = "2"

// Detect tells a Splitwise trace by its columns.
func Detect(h *source.Head) (evidence string, ok bool) {
	t := csvx.Table{Header: h.Header}
	if h.Container != "csv" || t.Column(colTime) < 0 || t.Column(colIn) < 0 || t.Column(colOut) < 0 {
		return "", false
	}
	return "table with the columns arrival_timestamp, prompt_size and token_size", true
}

// An Importer reads Splitwise traces.
type Importer struct{}

// Import implements formats.Importer.
func (*Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := rows.New(emit, reject)
	err := s.Tables(ctx, src, func(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) { return open(s, f, t) })
	if err != nil {
		return trace.Meta{}, err
	}
	return s.Meta("splitwise", "")
}

func open(s *rows.Sink, f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
	at, err := t.Need(f, colTime, colIn, colOut)
	if err != nil {
		return nil, err
	}
	id, kind := t.Column(colID), t.Column(colType)
	others := t.Others(at[0], at[1], at[2], id)
	file := trace.Some(f.Base())
	return func(r *csvx.Record) error {
		req := trace.Request{Operation: trace.OpCompletion, SourceFile: file, SourceRow: trace.Some(r.Line), SourceID: r.Maybe(id)}
		if kind >= 0 && string(r.Text(kind)) != typeLLM {
			req.Operation = trace.OpOther
			s.Note("rows of a request_type other than 2 (LLM), kept as operation other", 1)
		}
		when, err := r.Time(at[0], time.Second)
		if err != nil {
			return err
		}
		in, err := r.Int(at[1])
		if err != nil {
			return err
		}
		out, err := r.Int(at[2])
		if err != nil {
			return err
		}
		req.Arrival, req.InputTokens, req.OutputTokens = trace.Some(when), trace.Some(in), trace.Some(out)
		req.Attributes = r.Attributes(others)
		return s.Add(&req)
	}, nil
}
