// Package vllm reads the results of vLLM's benchmark client (vllm bench serve
// --save-result --save-detailed; vllm/benchmarks/serve.py) and of those that write
// the same (SGLang's bench_serving): one JSON object per run, with a list per
// measure, an element a request.
//
// The source leaves out: sessions, users, prefix blocks, prompts, and in older
// versions when each request was sent.
package vllm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reprise/formats/instant"
	"reprise/formats/jsonx"
	"reprise/formats/rows"
	"reprise/formats/source"
	"reprise/trace"
)

// Detect tells a result by the keys of its first record.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "json" && h.Container != "json array" || h.Keys["input_lens"] != "array" || h.Keys["output_lens"] != "array" {
		return "", false
	}
	return "first record has the lists input_lens and output_lens", true
}

// An Importer reads results.
type Importer struct{}

// leastUnixTime is the least time that is taken for a Unix time: clocks that count
// from the start of a machine do not get there.
const leastUnixTime = 1_000_000_000 * time.Second

// Import implements formats.Importer. It holds one run at a time.
func (*Importer) Import(ctx context.Context, src []*source.Source, emit func(*trace.Batch) error, reject func(*trace.RowError) error) (trace.Meta, error) {
	s := &state{Sink: rows.New(emit, reject)}
	if err := s.Records(ctx, src, s.run); err != nil {
		return trace.Meta{}, err
	}
	dialect := s.backend
	if !s.timed && !s.Epoch {
		s.Guess("clock", "none", "", "the results have no start_times; rows are in the order of the run's list")
	}
	return s.Meta("vllm", dialect)
}

// state is one import.
type state struct {
	*rows.Sink
	timed   bool // a run on a clock of its own was read
	backend string
}

// A run is the lists of one result; those that are not there are empty.
type run struct {
	input, output, ttft, itls, start, text, errors []json.RawMessage
}

// run reads one result.
func (s *state) run(r *rows.Record) error {
	before := s.Read
	err := s.requests(r)
	if err != nil && s.Err() == nil && s.Read == before {
		s.Read++ // the run is refused as a whole
	}
	return err
}

func (s *state) requests(r *rows.Record) error {
	model, err := r.Row.String("model_id", "model")
	if err != nil {
		return err
	}
	backend, err := r.Row.String("backend", "endpoint_type")
	if err != nil {
		return err
	}
	if s.backend == "" {
		s.backend = backend.Value
	}
	lists, err := s.lists(r)
	if err != nil {
		return err
	}
	if err := s.clock(lists.start); err != nil {
		return err
	}
	for i := range lists.input {
		s.Read++
		req := r.Place(trace.OpCompletion)
		req.SourceRow, req.Model = trace.Some(int64(i+1)), model
		if strings.Contains(backend.Value, "chat") {
			req.Operation = trace.OpChat
		}
		err := s.request(&lists, i, &req)
		if err == nil {
			err = s.Add(&req)
		} else {
			err = s.Reject(r.File, int64(i+1), fmt.Sprintf(`{"input_lens":%s,"output_lens":%s}`, lists.input[i], lists.output[i]), "row", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lists takes the lists of a result, which have an element for each request. A
// list of another length cannot be matched to requests.
func (s *state) lists(r *rows.Record) (l run, err error) {
	for _, c := range []struct {
		to       *[]json.RawMessage
		name     string
		required bool
	}{
		{&l.input, "input_lens", true}, {&l.output, "output_lens", true}, {&l.ttft, "ttfts", false}, {&l.itls, "itls", false},
		{&l.start, "start_times", false}, {&l.text, "generated_texts", false}, {&l.errors, "errors", false},
	} {
		_, raw, ok := r.Row.Take(c.name)
		if !ok && c.required {
			return l, &jsonx.FieldError{Field: c.name, Err: fmt.Errorf("missing"), Fix: "save the result with --save-detailed"}
		}
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, c.to); err != nil {
			return l, jsonx.Bad(c.name, "not a list")
		}
		if len(*c.to) == len(l.input) {
			continue
		}
		if c.required {
			return l, jsonx.Bad(c.name, "%d values for %d requests", len(*c.to), len(l.input))
		}
		s.Note(fmt.Sprintf("lists left out, since they are not as long as input_lens: %s", c.name), 1)
		*c.to = nil
	}
	return l, nil
}

// clock decides what the start times count from. Runs on clocks of their own
// cannot stand on one.
func (s *state) clock(start []json.RawMessage) error {
	if len(start) == 0 {
		return nil
	}
	first, err := instant.Units(start[0], time.Second)
	if err != nil {
		return &jsonx.FieldError{Field: "start_times", Err: err}
	}
	epoch := first >= leastUnixTime
	if s.timed || s.Epoch && !epoch {
		return &jsonx.FieldError{Field: "start_times", Err: fmt.Errorf("another run on a clock of its own"), Fix: "import one result at a time"}
	}
	if epoch {
		s.Epoch = true
		s.Guess("start_times", "Unix time", "", "the first is %s s", start[0])
		return nil
	}
	s.timed = true
	s.Guess("start_times", "a clock of the run", "", "the first is %s s, which is no Unix time", start[0])
	return nil
}

func (s *state) request(l *run, i int, req *trace.Request) error {
	var err error
	if req.InputTokens, err = (jsonx.Row{"input_lens": l.input[i]}).Int("input_lens"); err != nil {
		return err
	}
	if req.OutputTokens, err = (jsonx.Row{"output_lens": l.output[i]}).Int("output_lens"); err != nil {
		return err
	}
	if len(l.start) > 0 {
		if req.Arrival, err = rows.TakeUnits(jsonx.Row{"start_times": l.start[i]}, time.Second, "start_times"); err != nil {
			return err
		}
	}
	failed, err := s.failed(l, i, req)
	if err != nil {
		return err
	}
	if len(l.text) > 0 {
		req.OutputText, _ = jsonx.Row{"t": l.text[i]}.StringOnly("t")
	}
	if failed {
		return nil
	}
	return latencies(l, i, req)
}

// failed reads the error of a request. Its latencies are zeros, which are no
// measurements.
func (s *state) failed(l *run, i int, req *trace.Request) (bool, error) {
	if len(l.errors) == 0 {
		return false, nil
	}
	text, err := jsonx.Row{"errors": l.errors[i]}.StringOnly("errors")
	if err != nil {
		return false, err
	}
	if text.Value == "" {
		req.Status = trace.Some(trace.StatusOK)
		return false, nil
	}
	req.Status = trace.Some(trace.StatusError)
	req.Attributes = map[string]string{"error": jsonx.Quote(text.Value)}
	s.Note("requests with an error (status error)", 1)
	return true, nil
}

// latencies reads the time to the first token, and the gaps after it, which make
// the whole latency.
func latencies(l *run, i int, req *trace.Request) error {
	if len(l.ttft) == 0 {
		return nil
	}
	ttft, err := rows.TakeSpan(jsonx.Row{"ttfts": l.ttft[i]}, time.Second, "ttfts")
	if err != nil {
		return err
	}
	if !ttft.Known || ttft.Value == 0 { // 0 stands for none
		return nil
	}
	req.RecordedTTFT, req.Streaming = ttft, trace.Some(true)
	if len(l.itls) == 0 {
		return nil
	}
	var gaps []json.RawMessage
	if err := json.Unmarshal(l.itls[i], &gaps); err != nil {
		return jsonx.Bad("itls", "not a list of gaps")
	}
	whole := ttft.Value
	for _, g := range gaps {
		d, err := instant.Units(g, time.Second)
		if err != nil || d < 0 {
			return jsonx.Bad("itls", "%s is no gap", g)
		}
		whole += d
	}
	req.RecordedE2E = trace.Some(whole)
	if len(gaps) > 0 {
		text, err := jsonx.Row{"itls": l.itls[i]}.Array("itls")
		if err != nil {
			return err
		}
		req.Attributes = map[string]string{"itls": text.Value}
	}
	return nil
}
