// Package baseten reads and writes Baseten traces: tables of completion
// requests with literal prompts, as ai-dynamo/aiperf reads them
// (src/aiperf/dataset/loader/baseten_trace.py), in Parquet or Arrow IPC.
//
// The source leaves out: whether a request was streamed, the limit of output
// tokens that was asked for, and the time a client gave up (a cancelled row has
// its duration). Each row holds a complete prompt; later turns repeat the
// earlier text.
package baseten

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"reprise/formats/jsonx"
	"reprise/formats/source"
	"reprise/trace"
)

// SessionNone as Importer.SessionColumn makes every row a session of its own.
const SessionNone = "none"

// batchBytes is the text that a batch holds before it is handed on.
const batchBytes = 8 << 20

// An Importer reads Baseten traces. The zero value follows the format's rules.
type Importer struct {
	SessionColumn string // column that names the session, or SessionNone; "" = provided_session_id, or poor_man_session_id if the table lacks it
	BlockTokens   int    // tokens per hash of rows whose block_size is null; 0 = such hashes are kept as attributes

	Recount func(text string) int // tokens of a text: the recorded counts go to attributes; nil = the recorded counts stand
	Counter string                // the name of what counts, for the account

	turns map[string]turnState // of Sequence
}

// Import implements formats.Importer. Tables are read one record batch at a
// time, with as many rows as hold a few MB of text.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	if im.BlockTokens < 0 {
		return trace.Meta{}, fmt.Errorf("block size %d: must be above 0", im.BlockTokens)
	}
	im.turns = map[string]turnState{}
	s := &state{im: im, emit: emit, reject: reject, batch: trace.NewBatch()}
	for _, f := range src {
		if err := s.file(ctx, f); err != nil {
			return trace.Meta{}, err
		}
	}
	if err := s.flush(); err != nil {
		return trace.Meta{}, err
	}
	return s.meta(), nil
}

// state is one import.
type state struct {
	im     *Importer
	emit   func(*trace.Batch) error
	reject func(*trace.RowError) error

	batch *trace.Batch
	bytes int // of text in batch
	next  int64
	account
}

func (s *state) file(ctx context.Context, f *source.Source) error {
	t, err := open(ctx, f)
	if err != nil {
		return err
	}
	defer t.close()
	l, err := s.layout(f, t.schema())
	if err != nil {
		return err
	}
	s.opened(t, l)
	for row := int64(1); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		cols, n, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return trace.WithFix(f.Wrap(fmt.Errorf("row %d: %w", row, err)), "the file is damaged or truncated from there on; fetch it again")
		}
		if err := s.rows(f, l, cols, n, row); err != nil {
			return err
		}
		row += int64(n)
	}
}

// rows reads one record batch, the first row of which is number first of its
// file.
func (s *state) rows(f *source.Source, l *layout, cols []arrow.Array, n int, first int64) error {
	l.bind(cols)
	for i := range n {
		s.counts.Read++
		r, err := s.parse(l, i)
		if err != nil {
			if err := s.bad(f, first+int64(i), l, i, err); err != nil {
				return err
			}
			continue
		}
		r.ID = s.next
		s.next++
		r.SourceFile, r.SourceRow = trace.Some(f.Base()), trace.Some(first+int64(i))
		s.seen(l, r)
		s.recount(l, i, r)
		s.batch.Append(r)
		s.bytes += len(r.Prompt.Value) + len(r.OutputText.Value)
		if s.batch.Len() >= trace.BatchRows || s.bytes >= batchBytes {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *state) flush() error {
	if s.batch.Len() == 0 {
		return nil
	}
	err := s.emit(s.batch)
	s.batch.Reset()
	s.bytes = 0
	return err
}

func (s *state) bad(f *source.Source, row int64, l *layout, i int, err error) error {
	e := &trace.RowError{File: f.Name, Line: row, Err: err, Raw: l.rowJSON(i)}
	if field, ok := errors.AsType[*jsonx.FieldError](err); ok {
		e.Field, e.Err, e.Fix = field.Field, field.Err, field.Fix
	}
	if e.Reason = e.Field; e.Reason == "" {
		e.Reason = "row"
	}
	return s.reject(e)
}

func quoteAll(names []string) string {
	if len(names) == 0 {
		return "no columns"
	}
	return strings.Join(names, ", ")
}
