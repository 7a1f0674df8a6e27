package replay

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"testing"

	"reprise/trace"
	"reprise/trace/results"
	"reprise/trace/tokens"
)

// conversations are rows of every kind of content: block ids with shared roots,
// lengths only, literal prompts, and conversations in deltas.
func conversations() []trace.Request {
	var rows []trace.Request
	for i := range 120 {
		r := at(int64(i), int64(40+13*i%700), int64(1+i%9))
		r.ID = int64(i)
		r.Session = trace.Some(fmt.Sprint("s", i%17))
		switch i % 17 % 4 {
		case 0:
			r.BlockTokens, r.BlockTail = trace.Some(int32(64)), trace.Some(trace.TailPartial)
			for b := range (r.InputTokens.Value + 63) / 64 {
				r.Blocks = append(r.Blocks, uint64(b)*(1+uint64(i%17)/8))
			}
		case 1:
			r.Prompt = trace.Some(fmt.Sprintf("Prompt %d \"quoted\"", i))
		case 2:
			r.Messages, r.MessagesMode = trace.Some(fmt.Sprintf(`[{"role":"user","content":"turn %d"}]`, i)), trace.Some(trace.MessagesDelta)
		}
		rows = append(rows, r)
	}
	return rows
}

// bodies renders rows as one of several senders would.
func bodies(t *testing.T, c *Config, rows []trace.Request) map[int64][]byte {
	t.Helper()
	turns := map[string]int64{}
	for i := range rows {
		if rows[i].MessagesMode.Or("") == trace.MessagesDelta {
			turns[rows[i].Session.Value]++
		}
	}
	r, out := newRenderer(c, turns), map[int64][]byte{}
	for i := range rows {
		var res results.Result
		body, err := r.body(nil, &rows[i], &res)
		if err != nil {
			t.Fatal(err)
		}
		out[rows[i].ID] = body
	}
	return out
}

// TestBodiesDependOnSeedAndRowAlone deals sessions to 1, 2 and 8 senders, and
// leaves rows out: each request that is left has the same bytes, and another
// seed gives others.
func TestBodiesDependOnSeedAndRowAlone(t *testing.T) {
	config := func(seed uint64) *Config {
		return &Config{Model: "m", Selection: Selection{Seed: seed}, overhead: 9, Salt: SaltSession}
	}
	rows := conversations()
	whole := bodies(t, config(7), rows)
	for _, senders := range []int{1, 2, 8} {
		seen := 0
		for sender := range senders {
			var own []trace.Request
			for _, r := range rows {
				h := fnv.New32a()
				h.Write([]byte(r.Session.Value))
				if int(h.Sum32())%senders == sender {
					own = append(own, r)
				}
			}
			for id, body := range bodies(t, config(7), own) {
				seen++
				if !bytes.Equal(body, whole[id]) {
					t.Fatalf("%d senders: request %d\n%s\nalone\n%s", senders, id, body, whole[id])
				}
			}
		}
		if seen != len(rows) {
			t.Errorf("%d senders: %d requests, want %d", senders, seen, len(rows))
		}
	}
	var subset []trace.Request
	for _, r := range rows {
		if r.ID%17 < 5 { // whole conversations
			subset = append(subset, r)
		}
	}
	for id, body := range bodies(t, config(7), subset) {
		if !bytes.Equal(body, whole[id]) {
			t.Errorf("subset: request %d\n%s\nwhole\n%s", id, body, whole[id])
		}
	}
	other := bodies(t, config(8), rows)
	if bytes.Equal(other[0], whole[0]) || bytes.Equal(other[3], whole[3]) {
		t.Error("another seed gives the same prompts")
	}
}

// TestPlannedReuse counts leading blocks once another prompt has brought them,
// and the common text of a conversation.
func TestPlannedReuse(t *testing.T) {
	blocks := func(id int64, input int64, ids ...uint64) trace.Request {
		r := at(id, input, 1)
		r.ID, r.Blocks, r.BlockTokens = id, ids, trace.Some(int32(10))
		r.Session = trace.Some(fmt.Sprint("b", id))
		return r
	}
	grown := func(id, input int64) trace.Request {
		r := at(id, input, 1)
		r.ID, r.Session = id, trace.Some("c")
		return r
	}
	literal := at(6, 50, 1)
	literal.ID, literal.Prompt = 6, trace.Some("x")
	rows := []trace.Request{blocks(0, 25, 1, 2, 3), blocks(1, 25, 1, 2, 4), blocks(2, 20, 9, 2), grown(3, 30), grown(4, 50), grown(5, 20), literal}
	for salt, want := range map[Salt]int64{SaltNone: 20 + 30 + 20, SaltSession: 30 + 20} {
		s, err := Look(t.Context(), &Config{Model: "m", Salt: salt, source: traceOf(trace.ClockTrace, rows...)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Planned.ReuseTokens == nil || *s.Planned.ReuseTokens != want {
			t.Errorf("salt %q: reuse of %v tokens, want %d", salt, s.Planned.ReuseTokens, want)
		}
	}
	s, err := Look(t.Context(), &Config{Model: "m", source: traceOf(trace.ClockTrace, literal)})
	if err != nil || s.Planned.ReuseTokens != nil {
		t.Errorf("literal prompts alone: reuse %v, error %v", s.Planned.ReuseTokens, err)
	}
}

func TestWordsAreCheckedWithTheTokenizer(t *testing.T) {
	one := func(text []byte) int { return bytes.Count(text, []byte(" ")) }
	halves := func(text []byte) int { return 2 * bytes.Count(text, []byte(" ")) }
	for name, c := range map[string]struct {
		count func([]byte) int
		unfit int
	}{"one token a word": {one, 0}, "two tokens a word": {halves, len(tokens.Words())}} {
		if got := unfitWords(c.count); got != c.unfit {
			t.Errorf("%s: %d words do not fit, want %d", name, got, c.unfit)
		}
		warning := (&Config{Tokenizer: c.count}).wordWarning()
		if (warning != "") != (c.unfit > 0) {
			t.Errorf("%s: warning %q", name, warning)
		}
	}
	if w := (&Config{}).wordWarning(); w != "" {
		t.Errorf("without a tokenizer: %q", w)
	}
}

// TestLiteralPromptIsPlannedWithTheTokenizer counts what the trace does not.
func TestLiteralPromptIsPlannedWithTheTokenizer(t *testing.T) {
	words := func(text []byte) int { return len(bytes.Fields(text)) }
	row := trace.Request{Prompt: trace.Some("three \"quoted\" words")}
	for name, c := range map[string]struct {
		config  Config
		planned trace.Optional[int64]
	}{
		"counted":           {Config{Tokenizer: words, overhead: 4, overheadKnown: true}, trace.Some(int64(7))},
		"with a salt":       {Config{Tokenizer: words, overhead: 4, overheadKnown: true, Salt: SaltRun}, trace.Some(int64(7 + 1 + SaltTokens))},
		"template unknown":  {Config{Tokenizer: words}, trace.Optional[int64]{}},
		"without tokenizer": {Config{overhead: 4, overheadKnown: true}, trace.Optional[int64]{}},
	} {
		c.config.Model = "m"
		var res results.Result
		if _, err := newRenderer(&c.config, nil).body(nil, &row, &res); err != nil {
			t.Fatal(err)
		}
		if res.PlannedInputTokens != c.planned {
			t.Errorf("%s: planned %v, want %v", name, res.PlannedInputTokens, c.planned)
		}
	}
}
