// Package vidur reads the traces of the Vidur simulator (microsoft/vidur,
// data/processed_traces): tables of arrival in seconds, prefill and decode tokens.
// Some have no arrivals.
//
// The source leaves out: models, users, sessions, prefixes, latencies.
package vidur

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
	colTime  = "arrived_at"
	colIn    = "num_prefill_tokens"
	colOut   = "num_decode_tokens"
	colTotal = "num_total_tokens"
)

// Detect tells a Vidur trace by its columns.
func Detect(h *source.Head) (evidence string, ok bool) {
	t := csvx.Table{Header: h.Header}
	if h.Container != "csv" || t.Column(colIn) < 0 || t.Column(colOut) < 0 {
		return "", false
	}
	return "table with the columns num_prefill_tokens and num_decode_tokens", true
}

// An Importer reads Vidur traces.
type Importer struct{}

// Import implements formats.Importer.
func (*Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := rows.New(emit, reject)
	dialect := "without arrivals"
	err := s.Tables(ctx, src, func(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
		if t.Column(colTime) >= 0 {
			dialect = "with arrivals"
		}
		return open(s, f, t)
	})
	if err != nil {
		return trace.Meta{}, err
	}
	return s.Meta("vidur", dialect)
}

func open(s *rows.Sink, f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
	at, err := t.Need(f, colIn, colOut)
	if err != nil {
		return nil, err
	}
	arrived, total := t.Column(colTime), t.Column(colTotal)
	others := t.Others(arrived, at[0], at[1])
	withoutTotal := t.Others(arrived, at[0], at[1], total)
	file := trace.Some(f.Base())
	return func(r *csvx.Record) error {
		req := trace.Request{Operation: trace.OpCompletion, SourceFile: file, SourceRow: trace.Some(r.Line)}
		if arrived >= 0 {
			at, err := r.Time(arrived, time.Second)
			if err != nil {
				return err
			}
			req.Arrival = trace.Some(at)
		}
		in, err := r.Int(at[0])
		if err != nil {
			return err
		}
		out, err := r.Int(at[1])
		if err != nil {
			return err
		}
		req.InputTokens, req.OutputTokens = trace.Some(in), trace.Some(out)
		keep := withoutTotal
		if sum, err := r.MaybeInt(total); err != nil || sum.Known && sum.Value != in+out {
			s.Note("num_total_tokens is not the sum, kept in attributes", 1)
			keep = others
		}
		req.Attributes = r.Attributes(keep)
		return s.Add(&req)
	}, nil
}
