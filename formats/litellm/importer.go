// Package litellm reads the spend logs of the LiteLLM proxy (BerriAI/litellm,
// LiteLLM_SpendLogs in schema.prisma): a row per call, as the API gives them (JSON
// array, JSON lines, pages with data) or as the database exports them (CSV).
//
// The source leaves out: prefix blocks, which row retried which, and texts unless
// the proxy stores them. It holds private data, which is left out by default.
package litellm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/formats/csvx"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/sessions"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells spend logs by the keys of the first row, or the columns.
func Detect(h *source.Head) (evidence string, ok bool) {
	const names = "request_id, startTime and prompt_tokens"
	switch h.Container {
	case "csv":
		t := csvx.Table{Header: h.Header}
		if t.Column("request_id") >= 0 && t.Column("startTime") >= 0 && t.Column("prompt_tokens") >= 0 {
			return "table with the columns " + names, true
		}
	case "json", "json array":
		if h.Has("request_id", "startTime") && (h.Has("prompt_tokens") || h.Has("spend")) {
			return "first record has " + names, true
		}
		_, id := h.Inner["data[].request_id"]
		_, start := h.Inner["data[].startTime"]
		if id && start {
			return "first record of data has " + names, true
		}
	}
	return "", false
}

// An Importer reads spend logs.
type Importer struct {
	sessions.Chain

	Zone        rows.Clock // of times without one
	KeepPrivate bool       // keep users, keys, addresses and metadata
}

// Import implements formats.Importer. Its memory grows with the number of clients.
func (im *Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	im.Reset(true)
	s := &state{Sink: rows.New(emit, reject), im: im, clock: im.Zone, clients: map[string]string{}, private: map[string]int64{}, layouts: map[string]bool{}}
	s.Epoch = true
	for _, f := range src {
		if err := s.file(ctx, f); err != nil {
			return trace.Meta{}, err
		}
	}
	s.clock.Note(s.Sink, "times without a zone, as the database exports them; the proxy writes UTC")
	for name, n := range s.private {
		s.Note("private field "+name+" left out; --keep-private keeps it", n)
	}
	return s.Meta("litellm", strings.Join(slices.Sorted(maps.Keys(s.layouts)), " and "))
}

// state is one import.
type state struct {
	*rows.Sink
	im      *Importer
	clock   rows.Clock
	clients map[string]string // who called, to the name made for them
	private map[string]int64  // fields left out
	layouts map[string]bool
}

func (s *state) file(ctx context.Context, f *source.Source) error {
	h, err := f.Head()
	if err != nil {
		return err
	}
	if h.Container == "csv" {
		s.layouts["CSV"] = true
		return s.Tables(ctx, []*source.Source{f}, s.open)
	}
	s.layouts["JSON"] = true
	return s.Records(ctx, []*source.Source{f}, func(r *rows.Record) error {
		raw, page := r.Row["data"]
		if !page || len(raw) == 0 || raw[0] != '[' || r.Row["request_id"] != nil {
			s.Read++
			req := r.Place(trace.OpOther)
			return s.row(r.Row, &req)
		}
		return s.page(r, raw)
	})
}

// page reads the rows of a page; their place is that in the page.
func (s *state) page(r *rows.Record, raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		s.Read++
		return &jsonx.FieldError{Field: "data", Err: err}
	}
	for i, one := range list {
		s.Read++
		row, err := jsonx.Parse(one)
		if err == nil {
			req := r.Place(trace.OpOther)
			req.SourceRow = trace.Some(int64(i + 1))
			err = s.row(row, &req)
		}
		if s.Err() != nil {
			return s.Err()
		}
		if err != nil {
			if err := s.Reject(r.File, int64(i+1), string(one), "row", err); err != nil {
				return err
			}
		}
	}
	return nil
}

// objects are the columns that hold JSON.
var objects = []string{"metadata", "messages", "response", "request_tags", "proxy_server_request"}

// numbers are the columns that hold numbers.
var numbers = []string{"spend", "total_tokens", "prompt_tokens", "completion_tokens", "request_duration_ms"}

// open reads rows of a table as if they were JSON.
func (s *state) open(f *source.Source, t *csvx.Table) (func(*csvx.Record) error, error) {
	if _, err := t.Need(f, "request_id", "startTime", "prompt_tokens"); err != nil {
		return nil, err
	}
	return func(r *csvx.Record) error {
		row := make(jsonx.Row, len(t.Header))
		for i, name := range t.Header {
			text := r.Text(i)
			switch {
			case csvx.Empty(text):
			case slices.Contains(objects, name) && json.Valid(text), slices.Contains(numbers, name):
				row[name] = json.RawMessage(string(text))
			default:
				row[name] = json.RawMessage(jsonx.Quote(string(text)))
			}
		}
		req := trace.Request{Operation: trace.OpOther, SourceFile: trace.Some(f.Base()), SourceRow: trace.Some(r.Line)}
		return s.row(row, &req)
	}, nil
}

// client returns a name for who called, in the order in which they are seen: the
// key, the user or the team, none of which is kept.
func (s *state) client(f jsonx.Row) trace.Optional[string] {
	for _, field := range []string{"api_key", "user", "end_user", "team_id"} {
		who, err := jsonx.Row{field: f[field]}.StringOnly(field)
		if err != nil || who.Or("") == "" {
			continue
		}
		if s.im.KeepPrivate {
			return who
		}
		name := s.clients[field+" "+who.Value]
		if name == "" {
			name = fmt.Sprintf("client-%d", len(s.clients)+1)
			s.clients[field+" "+who.Value] = name
		}
		return trace.Some(name)
	}
	return trace.Optional[string]{}
}

// privateFields hold who called, from where, and what the proxy knows of them.
var privateFields = []string{"api_key", "user", "end_user", "team_id", "organization_id", "requester_ip_address", "metadata", "proxy_server_request", "agent_id", "request_tags"}

// hide takes private fields out of a row.
func (s *state) hide(f jsonx.Row) {
	if s.im.KeepPrivate {
		return
	}
	for _, name := range privateFields {
		raw, ok := f[name]
		if !ok {
			continue
		}
		delete(f, name)
		switch string(raw) {
		case "null", `""`, "{}", "[]":
		default:
			s.private[name]++
		}
	}
}
