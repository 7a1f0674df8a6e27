// Package azure reads and writes the traces of Azure's LLM inference services
// (Azure/AzurePublicDataset): tables of arrival, context and generated tokens, as
// published in 2023 (Patel et al., ISCA 2024), 2024 (Stojkovic et al., HPCA 2025)
// and, with images, 2025 (Qiu et al., SoCC 2025).
//
// The source leaves out: models, users, sessions, prefixes, latencies.
package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/formats/csvx"
	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// Columns of the published files.
const (
	colTime   = "TIMESTAMP"
	colImages = "NumImages"
	colIn     = "ContextTokens"
	colOut    = "GeneratedTokens"
)

// Forms of the published files, kept as the dialect, which the exporter follows.
const (
	form2023  = "2023"       // no zone, 7 digits, CRLF, no line end after the last row
	form2024  = "2024"       // +00:00, 6 digits or none
	formMedia = "multimodal" // ISO 8601 with Z, 3 digits, NumImages
)

// Detect tells an Azure trace by its columns.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "csv" {
		return "", false
	}
	t := csvx.Table{Header: h.Header}
	if t.Column(colTime) < 0 || t.Column(colIn) < 0 || t.Column(colOut) < 0 {
		return "", false
	}
	if t.Column(colImages) >= 0 {
		return "table with the columns ContextTokens, GeneratedTokens and NumImages", true
	}
	return "table with the columns ContextTokens and GeneratedTokens", true
}

// An Importer reads Azure traces. The zero value takes times without a zone for
// UTC.
type Importer struct {
	Zone rows.Clock // of times without one
}

// Import implements formats.Importer.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := &state{Sink: rows.New(emit, reject), clock: im.Zone, forms: map[string]bool{}}
	s.Epoch = true
	if err := s.Tables(ctx, src, s.open); err != nil {
		return trace.Meta{}, err
	}
	s.clock.Note(s.Sink, "times without a zone, as in the files of 2023; their own documentation names none")
	return s.Meta("azure", s.dialect())
}

// state is one import.
type state struct {
	*rows.Sink
	clock rows.Clock
	forms map[string]bool
	extra []string // columns beside the published ones, in order
	last  struct { // the row before: many rows share their form
		stamp instant.Stamp
		form  string
	}
}

// withColumns stands in a dialect before the names of columns beside the published
// ones, which are a JSON array.
const withColumns = " with the columns "

// dialect is the form of the rows, or the richest of their forms.
func (s *state) dialect() string {
	text := ""
	for _, form := range []string{formMedia, form2024, form2023} {
		if s.forms[form] {
			text = form
			break
		}
	}
	if len(s.forms) > 1 {
		text += ", mixed with others"
	}
	if len(s.extra) > 0 {
		names, _ := json.Marshal(s.extra) // strings always encode
		text += withColumns + string(names)
	}
	return text
}

func (s *state) open(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
	at, err := t.Need(f, colTime, colIn, colOut)
	if err != nil {
		return nil, err
	}
	images := t.Column(colImages)
	others := t.Others(at[0], at[1], at[2], images)
	for _, i := range others {
		if name := t.Header[i]; !slices.Contains(s.extra, name) {
			s.extra = append(s.extra, name)
		}
	}
	file := trace.Some(f.Base())
	return func(r *csvx.Record) error {
		req := trace.Request{Operation: trace.OpCompletion, SourceFile: file, SourceRow: trace.Some(r.Line)}
		when, stamp, err := s.clock.Parse(r.Text(at[0]))
		if err != nil {
			return &jsonx.FieldError{Field: colTime, Err: err}
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
		if images >= 0 {
			if req.Media, err = media(r, images); err != nil {
				return err
			}
		}
		req.Attributes = r.Attributes(others)
		s.seen(stamp, images >= 0)
		return s.Add(&req)
	}, nil
}

func media(r *csvx.Record, column int) ([]trace.Media, error) {
	n, err := r.Int(column)
	if err != nil {
		return nil, err
	}
	if n > math.MaxInt32 {
		return nil, jsonx.Bad(colImages, "%d is no number of images", n)
	}
	if n == 0 {
		return nil, nil
	}
	return []trace.Media{{Kind: "image", Count: trace.Some(int32(n))}}, nil
}

// seen notes the form of a row.
func (s *state) seen(stamp instant.Stamp, images bool) {
	stamp.NS, stamp.Digits = 0, 0
	if s.last.form != "" && stamp == s.last.stamp && images == (s.last.form == formMedia) {
		return
	}
	form := form2024
	switch {
	case images:
		form = formMedia
	case !stamp.Zoned:
		form = form2023
	}
	s.forms[form] = true
	s.last.stamp, s.last.form = stamp, form
}

// parseDialect returns the form and the further columns that a dialect names.
func parseDialect(dialect string) (form string, extra []string) {
	text, names, _ := strings.Cut(dialect, withColumns)
	form, _, _ = strings.Cut(text, ",")
	json.Unmarshal([]byte(names), &extra) // none if it is empty
	return form, extra
}

// appendTime writes a time in a form. Digits are those of the form, and more
// where the time needs them.
func appendTime(b []byte, at time.Duration, form string) []byte {
	t := time.Unix(0, int64(at)).UTC()
	digits, layout, zone := 7, "2006-01-02 15:04:05", ""
	switch form {
	case form2024:
		digits, zone = 6, "+00:00"
		if t.Nanosecond() == 0 {
			digits = 0
		}
	case formMedia:
		digits, layout, zone = 3, "2006-01-02T15:04:05", "Z"
	}
	for scale := int(math.Pow10(9 - digits)); scale > 1 && t.Nanosecond()%scale != 0; scale /= 10 {
		digits++
	}
	b = t.AppendFormat(b, layout)
	if digits > 0 {
		b = append(b, '.')
		b = append(b, fmt.Sprintf("%09d", t.Nanosecond())[:digits]...)
	}
	return append(b, zone...)
}
