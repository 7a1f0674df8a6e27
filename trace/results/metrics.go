package results

import (
	"iter"
	"time"

	"reprise/trace"
)

// This file and metrics_chunks.go define every latency of one request, each by
// one function from the stored row, so that a report, a comparison and a query
// over requests.parquet agree. Each returns false where the thing is not
// known: absent is absent, never 0 (R11). Times on the ledger have its
// resolution of 1 us.

// Lateness is the client's own delay, dispatched - eligible.
func Lateness(r *Result) (time.Duration, bool) { return between(r.Eligible, r.Dispatched) }

// E2E is the time from the first byte sent to the end of the stream (R9).
func E2E(r *Result) (time.Duration, bool) { return between(r.Sent, r.End) }

// ResponseTime is the time from when the request was due to the end of the
// stream: what a user of the schedule would have seen, holds and lateness
// included.
func ResponseTime(r *Result) (time.Duration, bool) { return between(r.Due, r.End) }

func between(from, to trace.Optional[time.Duration]) (time.Duration, bool) {
	if !from.Known || !to.Known {
		return 0, false
	}
	return to.Value - from.Value, true
}

// TTFT is the time from sent to the first chunk with a token of any kind (R6).
// A chunk of text whose tokens are not known counts: it holds at least one.
func TTFT(r *Result) (time.Duration, bool) {
	return FirstToken(r.Ledger)
}

// FirstToken is the TTFT of a ledger.
func FirstToken(ledger []Entry) (time.Duration, bool) {
	for c := range Chunks(ledger) {
		if c.HasTokens() {
			return c.At, true
		}
	}
	return 0, false
}

// TTFO is the time from sent to the first chunk with a token that is not
// reasoning (R6).
func TTFO(r *Result) (time.Duration, bool) {
	return FirstOutput(r.Ledger)
}

// FirstOutput is the TTFO of a ledger.
func FirstOutput(ledger []Entry) (time.Duration, bool) {
	for c := range Chunks(ledger) {
		if c.HasTokens() && c.Output {
			return c.At, true
		}
	}
	return 0, false
}

// LastToken is the time from sent to the last chunk with a token.
func LastToken(r *Result) (at time.Duration, ok bool) { return FinalToken(r.Ledger) }

// FinalToken is the LastToken of a ledger.
func FinalToken(ledger []Entry) (at time.Duration, ok bool) {
	for c := range Chunks(ledger) {
		if c.HasTokens() {
			at, ok = c.At, true
		}
	}
	return at, ok
}

// TTST is the time from the first to the second chunk with tokens, of the
// choice that had the first token.
func TTST(r *Result) (time.Duration, bool) {
	var first Chunk
	seen := false
	for c := range Chunks(r.Ledger) {
		switch {
		case !c.HasTokens():
		case !seen:
			first, seen = c, true
		case c.Choice == first.Choice:
			return c.At - first.At, true
		}
	}
	return 0, false
}

// ChunkGaps yields the gap of each chunk with tokens to the previous one of
// the same choice (never across choices), in the order read, with the choice.
func ChunkGaps(r *Result) iter.Seq2[time.Duration, int32] {
	return func(yield func(time.Duration, int32) bool) {
		for g := range gaps(r.Ledger) {
			if !yield(g.gap, g.chunk.Choice) {
				return
			}
		}
	}
}

// LongestStall is the longest of the chunk gaps.
func LongestStall(r *Result) (longest time.Duration, ok bool) {
	for g := range gaps(r.Ledger) {
		longest, ok = max(longest, g.gap), true
	}
	return longest, ok
}

// ITL yields the inter-token latencies (R7), weighted by tokens: a chunk's gap
// to the previous chunk with tokens of its choice, shared evenly among the
// chunk's tokens, and how many tokens have that latency. Tokens of a choice's
// first chunk have none. It yields nothing for a response whose tokens per
// chunk are not all known ([TokensKnown]): such a response has chunk gaps only.
// Each latency is rounded down to 1 ns.
func ITL(r *Result) iter.Seq2[time.Duration, int32] {
	return func(yield func(time.Duration, int32) bool) {
		if !TokensKnown(r) {
			return
		}
		for g := range gaps(r.Ledger) {
			n := g.chunk.Tokens.Value
			if !yield(g.gap/time.Duration(n), n) {
				return
			}
		}
	}
}

// TPOT is the time per output token (R8): (last token - first token) / (OSL -
// tokens in the first chunk). With several choices, whose OSL is a sum, it is
// the sum of their spans over OSL less the tokens of all first chunks. It is
// absent if the divisor is below 1, if there is one chunk only, if the tokens of
// a first chunk or the OSL are unknown, and for a response whose running count fell (its OSL and its
// chunks do not belong to one count).
func TPOT(r *Result) (time.Duration, bool) {
	s, first, known := spans(r.Ledger)
	if !known || !r.OutputTokens.Known || CountFell(r) {
		return 0, false
	}
	return divide(s, r.OutputTokens.Value-first)
}

// TPOTOverOSL1 is the form of TPOT that most tools print, (last token - first
// token) / (OSL - 1). It is too small when the first chunk holds several
// tokens, and is kept under its own name for comparison. With several choices
// 1 is taken off for each.
func TPOTOverOSL1(r *Result) (time.Duration, bool) {
	s, _, _ := spans(r.Ledger)
	if !r.OutputTokens.Known {
		return 0, false
	}
	return divide(s, r.OutputTokens.Value-s.choices)
}

func divide(s span, tokens int64) (time.Duration, bool) {
	if s.gaps == 0 || tokens < 1 {
		return 0, false
	}
	return s.sum / time.Duration(tokens), true
}

// TimeTo90 is the time from sent to the chunk that brought the ledger to 90 %
// of its tokens; absent if the tokens per chunk are not all known.
func TimeTo90(r *Result) (time.Duration, bool) {
	total, ok := LedgerTokens(r.Ledger)
	if !ok || total == 0 {
		return 0, false
	}
	var sum int64
	for c := range Chunks(r.Ledger) {
		sum += int64(c.Tokens.Value)
		if c.HasTokens() && sum*10 >= total*9 {
			return c.At, true
		}
	}
	return 0, false
}
