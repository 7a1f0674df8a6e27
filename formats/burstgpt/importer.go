// Package burstgpt reads BurstGPT (HPMLL/BurstGPT, Wang et al., KDD 2025): tables of
// calls to ChatGPT and GPT-4, as published first (no sessions) and in release v2.0
// (session and elapsed time).
//
// The source leaves out: prefixes, users, the date of the first day, and what a
// failed call failed of.
package burstgpt

import (
	"context"
	"time"

	"reprise/formats/csvx"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Columns of the published files.
const (
	colTime    = "Timestamp"
	colSession = "Session ID"
	colElapsed = "Elapsed time"
	colModel   = "Model"
	colIn      = "Request tokens"
	colOut     = "Response tokens"
	colTotal   = "Total tokens"
)

// Detect tells BurstGPT by its columns.
func Detect(h *source.Head) (evidence string, ok bool) {
	t := csvx.Table{Header: h.Header}
	if h.Container != "csv" || t.Column(colTime) < 0 || t.Column(colIn) < 0 || t.Column(colOut) < 0 {
		return "", false
	}
	if t.Column(colSession) >= 0 {
		return "table with the columns Request tokens, Response tokens and Session ID", true
	}
	return "table with the columns Request tokens and Response tokens", true
}

// An Importer reads BurstGPT.
type Importer struct{ sessions.Chain }

// Import implements formats.Importer.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(false)
	s := rows.New(emit, reject)
	dialect := "v1"
	err := s.Tables(ctx, src, func(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
		if t.Column(colSession) >= 0 {
			dialect = "v2"
		}
		return open(s, f, t)
	})
	if err != nil {
		return trace.Meta{}, err
	}
	return s.Meta("burstgpt", dialect)
}

func open(s *rows.Sink, f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
	at, err := t.Need(f, colTime, colIn, colOut)
	if err != nil {
		return nil, err
	}
	session, elapsed, model, total := t.Column(colSession), t.Column(colElapsed), t.Column(colModel), t.Column(colTotal)
	others := t.Others(at[0], at[1], at[2], session, elapsed, model)
	withoutTotal := t.Others(at[0], at[1], at[2], session, elapsed, model, total)
	file := trace.Some(f.Base())
	return func(r *csvx.Record) error {
		req := trace.Request{Operation: trace.OpChat, SourceFile: file, SourceRow: trace.Some(r.Line), Session: r.Maybe(session), Model: r.Maybe(model)}
		when, err := r.Time(at[0], time.Second)
		if err != nil {
			return err
		}
		req.Arrival = trace.Some(when)
		if req.InputTokens, err = count(r, at[1]); err != nil {
			return err
		}
		if req.OutputTokens, err = count(r, at[2]); err != nil {
			return err
		}
		status(s, &req)
		keep := withoutTotal
		if sum, err := r.MaybeInt(total); err != nil || sum.Known && sum.Value != req.InputTokens.Value+req.OutputTokens.Value {
			s.Note("Total tokens is not the sum, kept in attributes", 1)
			keep = others
		}
		req.Attributes = r.Attributes(keep)
		if err := took(s, r, elapsed, &req); err != nil {
			return err
		}
		return s.Add(&req)
	}, nil
}

func count(r *csvx.Record, column int) (trace.Optional[int64], error) {
	n, err := r.Int(column)
	if err != nil {
		return trace.Optional[int64]{}, err
	}
	return trace.Some(n), nil
}

// took reads the elapsed time, which counts whole seconds to the end of the
// response.
func took(s *rows.Sink, r *csvx.Record, column int, req *trace.Request) error {
	if csvx.Empty(r.Text(column)) {
		return nil
	}
	d, err := r.Time(column, time.Second)
	if err != nil {
		return err
	}
	if d < 0 {
		s.Note("Elapsed time below 0, taken as unknown and kept in attributes", 1)
		if req.Attributes == nil {
			req.Attributes = map[string]string{}
		}
		req.Attributes[colElapsed] = jsonx.Quote(string(r.Text(column)))
		return nil
	}
	req.RecordedE2E = trace.Some(d)
	return nil
}

// status marks failures: the source has no other mark than a response of 0 tokens.
func status(s *rows.Sink, req *trace.Request) {
	req.Status = trace.Some(trace.StatusOK)
	if req.OutputTokens.Value == 0 {
		req.Status = trace.Some(trace.StatusError)
		s.Note("rows with 0 response tokens, which are failed calls (status error)", 1)
	}
}
