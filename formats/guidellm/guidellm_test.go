package guidellm_test

import (
	"strings"
	"testing"
	"time"

	"reprise/formats/guidellm"
	"reprise/formats/importtest"
	"reprise/trace"
)

func exported(t *testing.T, rows ...trace.Request) (text, lost, advice string) {
	t.Helper()
	e := &guidellm.Exporter{}
	var b strings.Builder
	losses, err := e.Export(t.Context(), trace.Meta{Clock: trace.ClockTrace}, importtest.Made(rows...), &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), strings.Join(losses, "; "), strings.Join(e.Advice(), "; ")
}

func row(s float64, in, out int64, ids ...uint64) trace.Request {
	r := trace.Request{Arrival: trace.Some(time.Duration(s * 1e9)), InputTokens: trace.Some(in), OutputTokens: trace.Some(out), Blocks: ids}
	if ids != nil {
		r.BlockTokens = trace.Some[int32](16)
	}
	return r
}

// Every row has an id for each block that its prompt begins.
func TestBlocks(t *testing.T) {
	text, lost, advice := exported(t, row(0, 40, 5, 1<<63, 9, 4), row(0.25, 40, 0, 1<<63, 9), row(1, 20, 1), row(2, 0, 1), trace.Request{})
	want := `{"timestamp":0,"input_length":40,"output_length":5,"hash_ids":[0,1,2]}
{"timestamp":0.25,"input_length":40,"output_length":0,"hash_ids":[0,1,3]}
{"timestamp":1,"input_length":20,"output_length":1,"hash_ids":[4,5]}
{"timestamp":2,"input_length":0,"output_length":1,"hash_ids":[]}
`
	if text != want || lost != "whole row (no arrival, or no count of tokens) of 1 rows" || !strings.HasSuffix(advice, "kind mooncake, hash_id_block_size=16") {
		t.Errorf("%s\nlost %s\n%s", text, lost, advice)
	}
}

func TestLengths(t *testing.T) {
	r := row(0.001, 4, 5)
	r.RecordedE2E = trace.Some(1500 * time.Millisecond)
	text, lost, advice := exported(t, r, row(1, 20, 1, 7, 8))
	want := `{"timestamp":0.001,"input_length":4,"output_length":5,"duration":1.5}
{"timestamp":1,"input_length":20,"output_length":1}
`
	if text != want || lost != "prefix blocks of 1 rows" || !strings.HasSuffix(advice, "kind trace_synthetic") {
		t.Errorf("%s\nlost %s\n%s", text, lost, advice)
	}
	r1 := importtest.Text(t, guidellm.Importer(0), "a.jsonl", text)
	if in, out := r1.Sums(); len(r1.Rows) != 2 || in != 24 || out != 6 || r1.Rows[1].Arrival.Value != 999*time.Millisecond {
		t.Errorf("read back: %+v", r1.Rows)
	}
}

func TestNoClock(t *testing.T) {
	for _, clock := range []string{trace.ClockSession, trace.ClockNone} {
		_, err := (&guidellm.Exporter{}).Export(t.Context(), trace.Meta{Clock: clock}, importtest.Made(), &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), clock) || trace.Fix(err) == "" {
			t.Errorf("%s: %v", clock, err)
		}
	}
}
