package ledger

import (
	"fmt"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// closeCounts sets the token counts of the whole response (R5): the last usage,
// else the sum of the counted chunks under the label of the least trusted, else
// unknown.
func (a *Account) closeCounts(s *Summary) {
	sum, summed := results.LedgerTokens(a.entries)
	switch {
	case a.usage.Output.Known:
		s.Output, s.OutputSource = a.usage.Output, trace.Some(results.SourceUsage)
	case a.body && a.whole.any && !a.whole.gap:
		s.Output, s.OutputSource = trace.Some(a.whole.tokens), trace.Some(a.whole.source)
	case summed && sum > 0:
		source, _ := results.LedgerSource(a.entries)
		s.Output, s.OutputSource = trace.Some(sum), trace.Some(source)
	}
	if a.usage.Output.Known && len(a.entries) > 0 && (summed || a.count.lost) {
		s.Difference = trace.Some(a.usage.Output.Value - a.settled())
	}
	s.Reasoning = a.reasoning()
}

// settled is the sum of the known counts. After a fall of the running count it
// is what was booked before.
func (a *Account) settled() (sum int64) {
	for i := range a.entries {
		sum += int64(a.entries[i].Tokens.Value)
	}
	return sum
}

// reasoning is the server's count, else the sum of the reasoning chunks where
// each has its own count. A server that says 0 although it sent reasoning is
// not believed.
func (a *Account) reasoning() trace.Optional[int64] {
	var sum int64
	seen, gap := false, false
	for i := range a.entries {
		if e := &a.entries[i]; e.Kind == results.KindReasoning {
			seen = true
			gap = gap || !e.Tokens.Known
			sum += int64(e.Tokens.Value)
		}
	}
	said := a.usage.Reasoning
	if said.Known && (said.Value > 0 || !seen) {
		return said
	}
	if said.Known {
		a.Note(fmt.Sprintf("usage says %d reasoning tokens, but reasoning was sent", said.Value))
	}
	if seen && !gap {
		return trace.Some(sum)
	}
	return trace.Optional[int64]{}
}

// Fill writes the summary into the columns of r that it knows. r.Sent must be
// set before, for the instants to be known.
func (s *Summary) Fill(r *results.Result) {
	r.Outcome, r.Cause, r.FinishReason, r.Note = s.Outcome, s.Cause, s.FinishReason, s.Note
	r.HTTPStatus = s.Status
	r.CountedInputTokens, r.CachedTokens = s.Input, s.Cached
	r.OutputTokens, r.OutputSource, r.ReasoningTokens = s.Output, s.OutputSource, s.Reasoning
	r.Ledger, r.LedgerDifference = s.Ledger, s.Difference
	if sent := r.Sent; sent.Known {
		r.FirstToken = after(sent.Value, s.FirstToken)
		r.FirstOutput = after(sent.Value, s.FirstOutput)
		r.LastToken = after(sent.Value, s.LastToken)
		r.End = trace.Some(sent.Value + s.End)
	}
}

func after(sent time.Duration, at trace.Optional[time.Duration]) trace.Optional[time.Duration] {
	if !at.Known {
		return at
	}
	return trace.Some(sent + at.Value)
}
