// Package results holds what a replay measured: one Result per request with
// its ledger of every chunk and token, results schema 1, and the files of a run
// directory. It is apart from the client, so that a run can be analysed without
// linking what made it.
package results

import (
	"time"

	"reprise/trace"
)

// A Result is what happened to one request: one row of requests.parquet.
// Instants are offsets from the start of the run and unknown if the thing did
// not happen.
type Result struct {
	ID   int64 // trace row
	Pass int32 // which play of it, from 0 (recycled sessions)

	Phase    trace.Optional[string] // warm-up or named phase
	Worker   trace.Optional[string] // load host
	URL      string                 // target
	Protocol string                 // chat, completions, ...
	Model    trace.Optional[string] // what was sent

	Session trace.Optional[string]
	Turn    trace.Optional[int32]
	Agent   trace.Optional[string]

	Due         trace.Optional[time.Duration] // what the schedule wanted
	Eligible    trace.Optional[time.Duration] // due, or the end of a causal hold or of a cap
	HoldCause   trace.Optional[string]        // why eligible is later than due
	GapCut      trace.Optional[time.Duration] // what --gap-cap took off the wait after an earlier request; unknown if nothing
	Dispatched  trace.Optional[time.Duration] // the client acted; dispatched - eligible is its lateness
	Connected   trace.Optional[time.Duration] // a connection was at hand
	Sent        trace.Optional[time.Duration] // first byte written
	SentEnd     trace.Optional[time.Duration] // last byte written
	FirstByte   trace.Optional[time.Duration] // first byte of the response read
	FirstToken  trace.Optional[time.Duration] // first chunk with a token of any kind (R6)
	FirstOutput trace.Optional[time.Duration] // first chunk with a token that is not reasoning (R6)
	LastToken   trace.Optional[time.Duration] // last chunk with a token
	End         trace.Optional[time.Duration] // end of the stream, or when it was given up

	ConnReused trace.Optional[bool]
	BytesOut   trace.Optional[int64] // request bytes written, headers included
	BytesIn    trace.Optional[int64] // response bytes read, headers included

	Outcome      string                 // OutcomeOK, ...
	HTTPStatus   trace.Optional[int32]  //
	Cause        trace.Optional[string] // why it did not end well, in words
	FinishReason trace.Optional[string] // as the server sent it
	Note         trace.Optional[string] // doubts about a response that stands, separated by "; "

	PlannedInputTokens  trace.Optional[int64] // what the trace wanted
	CountedInputTokens  trace.Optional[int64] // prompt_tokens of the server's usage
	CachedTokens        trace.Optional[int64] // of these, from the server's prefix cache
	PlannedOutputTokens trace.Optional[int64]
	OutputTokens        trace.Optional[int64] // OSL (R5)
	ReasoningTokens     trace.Optional[int64]
	OutputSource        trace.Optional[Source] // where OutputTokens came from

	Ledger           []Entry               // every part of every chunk, in the order read
	LedgerDifference trace.Optional[int64] // final usage minus the ledger's sum; unknown without both

	RecordedTTFT trace.Optional[time.Duration] // from the trace, for the comparison
	RecordedE2E  trace.Optional[time.Duration]
}

// Phases whose requests are counted, and stay out of every number.
const (
	PhaseWarmUp   = "warm-up"
	PhaseCoolDown = "cool-down"
)

// Measured tells whether the request is in the numbers of its run.
func (r *Result) Measured() bool {
	return !r.Phase.Known || r.Phase.Value != PhaseWarmUp && r.Phase.Value != PhaseCoolDown
}

// An Entry is one part of a chunk. An event with reasoning and content gives
// two entries of one Event.
type Entry struct {
	At         int64                 // microseconds since Sent, of the read that completed the event (R2)
	Tokens     trace.Optional[int32] // unknown is not 1 (R4); 0 for a role-only or empty chunk
	Choice     int32                 // index of the choice
	Event      int32                 // 0-based ordinal of the event in the response
	Kind       Kind
	Source     Source
	SharedRead bool // the read that completed it had completed an earlier event too
}

// A Kind says what a part of a chunk holds. The zero value says nothing; it is
// in no ledger.
type Kind uint8

const (
	KindNone      Kind = 1 + iota // role-only or empty: 0 tokens
	KindReasoning                 // thinking
	KindContent                   // text of the answer
	KindTool                      // name or arguments of a tool call
	KindRefusal                   // text of a refusal
)

var kindNames = [...]string{"", "none", "reasoning", "content", "tool", "refusal"}

// String returns the name that files have.
func (k Kind) String() string { return kindNames[k] }

// A Source says where a token count came from, in the order of trust of rule R4.
// The zero value says nothing; it is in no ledger.
type Source uint8

const (
	SourceIDs      Source = 1 + iota // token ids in the event
	SourceUsage                      // the server's usage: running (difference to the last) or final
	SourceLogprobs                   // log-probability entries
	SourceFormat                     // the protocol sends one token per event
	SourceLocal                      // a local tokenizer
	SourceUnknown
)

var sourceNames = [...]string{"", "token_ids", "usage", "logprobs", "format", "local", "unknown"}

// String returns the name that files have.
func (s Source) String() string { return sourceNames[s] }

// Outcome classes of Result.Outcome.
const (
	OutcomeOK          = "ok"           // complete, with a terminal signal (R9)
	OutcomeNotStreamed = "not_streamed" // complete, but as one body although a stream was asked for
	OutcomeFailed      = "failed"       // an error object, an error status, or no usable answer (R10)
	OutcomeTruncated   = "truncated"    // the stream ended cleanly without a terminal signal
	OutcomeReset       = "reset"        // the connection broke before the terminal signal
	OutcomeRefused     = "refused"      // no connection could be made
	OutcomeTimeout     = "timeout"      // a limit of time ended it
	OutcomeCancelled   = "cancelled"    // cancelled on purpose, as the trace or a flag says
	OutcomeCut         = "cut"          // in flight when the run ended
	OutcomeUnsent      = "unsent"       // due, but never sent
)
