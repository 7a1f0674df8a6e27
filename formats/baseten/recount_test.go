package baseten_test

import (
	"strings"
	"testing"

	"reprise/formats/baseten"
	"reprise/trace"
)

// TestRecount puts a tokenizer's counts in the place of the recorded ones; an
// export gives the recorded ones back.
func TestRecount(t *testing.T) {
	data := asParquet(t, record(t, plainTypes(), []cells{
		base(1, cells{"prompt": "one two three", "input_tokens": int64(3), "output_text": "a b", "output_tokens": int64(5)}),
		base(2, cells{"prompt": "one two", "total_hashes": []any{int64(1), int64(2), int64(3)}, "block_size": int64(1), "input_tokens": int64(3)}),
		base(3, cells{"prompt": "x", "output_text": "", "output_tokens": int64(0)}),
	}))
	words := func(s string) int { return len(strings.Fields(s)) }
	in := mustImport(t, &baseten.Importer{Recount: words, Counter: "words"}, "x.parquet", data)
	for i, want := range []struct {
		input, output int64
		kept          string // recorded counts in attributes
	}{{3, 2, "output_tokens=5"}, {2, 10, "input_tokens=3"}, {1, 0, "input_tokens=100"}} {
		r := in.rows[i]
		if r.InputTokens != trace.Some(want.input) || r.OutputTokens != trace.Some(want.output) {
			t.Errorf("row %d: %v and %v tokens, want %d and %d", i, r.InputTokens, r.OutputTokens, want.input, want.output)
		}
		name, value, _ := strings.Cut(want.kept, "=")
		if r.Attributes[name] != value {
			t.Errorf("row %d: attributes %v, want %s", i, r.Attributes, want.kept)
		}
	}
	if got := in.rows[1].BlockTail; got != trace.Some(trace.TailOther) {
		t.Errorf("3 blocks of 1 token for 2 tokens: tail %v", got)
	}
	if n := in.meta.Counts.Notes["output_tokens without a text to recount, kept as recorded"]; n != 1 {
		t.Errorf("notes %v", in.meta.Counts.Notes)
	}
	sameContent(t, exported(t, in), data)
}
