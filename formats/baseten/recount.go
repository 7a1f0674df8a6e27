package baseten

import "reprise/trace"

// recount puts the tokenizer's counts in the place of the recorded ones, which
// stay in attributes where they differ, so that an export gives them back. A
// recorded output without text keeps its count, and an empty answer its 0.
func (s *state) recount(l *layout, i int, r *trace.Request) {
	if s.im.Recount == nil {
		return
	}
	s.recounted(l, i, r, colInput, &r.InputTokens, r.Prompt)
	if r.OutputTokens.Value > 0 {
		s.recounted(l, i, r, colOutput, &r.OutputTokens, r.OutputText)
	}
	if len(r.Blocks) > 0 {
		r.BlockTail = trace.Some(tail(r.InputTokens.Value, int64(r.BlockTokens.Value), int64(len(r.Blocks))))
	}
}

func (s *state) recounted(l *layout, i int, r *trace.Request, column string, have *trace.Optional[int64], text trace.Optional[string]) {
	if !text.Known {
		s.note(column+" without a text to recount, kept as recorded", 1)
		return
	}
	n := int64(s.im.Recount(text.Value))
	if n == have.Value {
		s.note(column+" recounted: as recorded", 1)
		return
	}
	keep(l, i, r, column)
	*have = trace.Some(n)
	s.note(column+" recounted: differs from the record, which is kept in attributes", 1)
}
