package main

import (
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// TestSoundness: rows that break the schema are refused with row and column.
func TestSoundness(t *testing.T) {
	row := func(id, input int64) trace.Request {
		return trace.Request{ID: id, Operation: trace.OpChat, Arrival: trace.Some(time.Duration(id)), InputTokens: trace.Some(input)}
	}
	for _, c := range []struct {
		name, command string
		rows          []trace.Request
		want          string // "" = sound
	}{
		{"sound", "trace dequantize", []trace.Request{row(0, 5), row(1, 0)}, ""},
		{"negative", "trace dequantize", []trace.Request{row(0, 5), row(1, 5), row(2, -5)}, "t.parquet:3: input_tokens: row of id 2: -5 is below 0"},
		{"negative, cut", "trace cut", []trace.Request{row(7, 5), row(9, -5)}, "t.parquet: input_tokens: row of id 9: -5 is below 0"},
		{"twice", "trace anonymize", []trace.Request{row(0, 5), row(1, 5), row(0, 5)}, "t.parquet:3: id: row of id 0: 0 occurs twice"},
		{"twice, numbered anew", "synth", []trace.Request{row(0, 5), row(0, 5)}, ""},
	} {
		s := newSoundness("t.parquet", c.command)
		var err error
		for i := range c.rows {
			b := trace.NewBatch()
			b.Append(&c.rows[i])
			if err = s.check(b); err != nil {
				break
			}
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(trace.Fix(err), "reprise trace check t.parquet")):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
