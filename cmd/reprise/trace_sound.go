package main

import (
	"fmt"
	"strings"

	"reprise/trace"
	"reprise/trace/column"
)

// A soundness tests rows that are made of a trace that somebody else may have
// written: counts and times are not below 0, and ids that a command keeps occur
// once.
type soundness struct {
	of    string // the trace
	rows  int64
	whole bool           // rows are those of the trace, in its order
	ids   *trace.Checker // nil where ids are given anew
}

func newSoundness(of, command string) *soundness {
	s := &soundness{of: of, whole: command == "trace dequantize" || command == "trace anonymize"}
	if strings.HasPrefix(command, "trace ") && command != "trace merge" {
		s.ids = trace.NewChecker(trace.ClockNone)
	}
	return s
}

// check returns what is wrong with the first row at fault.
func (s *soundness) check(b *trace.Batch) error {
	for _, c := range []struct {
		name string
		of   *column.Flat[int64]
	}{
		{"input_tokens", &b.InputTokens}, {"new_input_tokens", &b.NewInputTokens}, {"output_tokens", &b.OutputTokens}, {"reasoning_tokens", &b.ReasoningTokens}, {"max_output_tokens", &b.MaxOutputTokens},
		{"cached_tokens", &b.CachedTokens}, {"cache_write_tokens", &b.CacheWriteTokens}, {"arrival_ns", &b.ArrivalNS}, {"delay_ns", &b.DelayNS}, {"recorded_e2e_ns", &b.RecordedE2ENS},
	} {
		for i, v := range c.of.Values {
			if v < 0 && !c.of.Null[i] {
				return s.at(b, i, c.name, fmt.Errorf("%d is below 0", v))
			}
		}
	}
	for i := range b.Len() {
		if s.ids == nil {
			break
		}
		var twice error
		s.ids.Row(&trace.Request{ID: b.ID.Values[i]}, func(e *trace.RowError) {
			if e.Field == "id" {
				twice = e.Err
			}
		})
		if twice != nil {
			return s.at(b, i, "id", twice)
		}
	}
	s.rows += int64(b.Len())
	return nil
}

// at names row i of b: by its place in the trace where that is known, and by its
// id.
func (s *soundness) at(b *trace.Batch, i int, field string, err error) error {
	e := &trace.RowError{File: s.of, Field: field, Err: fmt.Errorf("row of id %d: %w", b.ID.Values[i], err), Fix: "see all that is wrong with it: reprise trace check " + s.of}
	if s.whole {
		e.Line = s.rows + int64(i) + 1
	}
	return e
}
