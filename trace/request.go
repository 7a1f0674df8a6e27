package trace

import "time"

// A Request is one call to a model, as recorded or as generated: one row of a
// canonical trace.
//
// Order of rows: with one clock ([ClockTrace]) by Arrival, ties in source
// order; otherwise sessions in source order, within a session by Arrival, then
// Turn, then source order.
type Request struct {
	ID       int64            // unique in the file; survives cut and sort
	OriginID Optional[int64]  // of a row made by scaling: the row it copies
	Copy     Optional[int32]  // of a row made by scaling: which copy, from 0
	SourceID Optional[string] // the request's own id in the source

	Operation string                  // chat, completion, responses, messages, embedding, other
	Arrival   Optional[time.Duration] // since the trace (or session) began; the earliest is 0; unknown if the source has no clock

	Session  Optional[string]        // conversation the call belongs to
	Turn     Optional[int32]         // 0-based position in Session; not unique where a conversation branches
	After    []Dependency            // requests that must end before this one may start in causal pacing
	Delay    Optional[time.Duration] // recorded wait from the end of the last of After to this start (think or tool time)
	Agent    Optional[string]        // sub-agent within the session
	ClientID Optional[string]        // user, tenant or key
	Model    Optional[string]        // as recorded

	Streaming Optional[bool]  // as recorded
	Choices   Optional[int32] // n, if more than one was asked for

	InputTokens      Optional[int64] // input sequence length (ISL), shared prefix included; unknown where only an increment is known
	NewInputTokens   Optional[int64] // tokens not in the previous turn's context, where the source says so
	OutputTokens     Optional[int64] // output sequence length (OSL) that came back, reasoning included; 0 is a count
	ReasoningTokens  Optional[int64] // of OutputTokens, reasoning
	MaxOutputTokens  Optional[int64] // the limit that was asked for
	CachedTokens     Optional[int64] // prompt tokens the recorded server took from its prefix cache
	CacheWriteTokens Optional[int64] // prompt tokens the recorded server put into its cache

	Blocks      []uint64         // prefix block ids, first to last; nil = not recorded, empty = none
	BlockTokens Optional[int32]  // tokens per block of this row
	BlockTail   Optional[string] // TailPartial, TailDropped or TailOther

	Prompt        Optional[string] // literal completion prompt
	Messages      Optional[string] // literal messages, a JSON array
	MessagesMode  Optional[string] // MessagesFull or MessagesDelta
	Tools         Optional[string] // literal tools, a JSON array
	Body          Optional[string] // whole literal request body, a JSON object, sent verbatim
	Extra         Optional[string] // JSON object merged into the body
	Media         []Media          // images, audio, video of the prompt
	OutputText    Optional[string] // recorded answer as text
	OutputMessage Optional[string] // recorded answer as JSON (tool calls)

	RecordedTTFT Optional[time.Duration] // time to first token that production measured
	RecordedE2E  Optional[time.Duration] // end to end latency that production measured
	Cancel       Optional[time.Duration] // when the client gave up, since its start
	Status       Optional[string]        // StatusOK, StatusError, StatusCancelled or StatusEmpty
	FinishReason Optional[string]        // as recorded

	SourceFile Optional[string] // base name of the file the row was read from
	SourceRow  Optional[int64]  // 1-based line or row a person would find; unknown for generated rows

	Attributes map[string]string // what the source has and the schema has not, values as JSON text
}

// A Dependency names a request that must end before another may start.
type Dependency struct {
	ID   int64  // Request.ID, in the same file
	Kind string // AfterTurn, AfterSpawn or AfterJoin
}

// A Media counts the attachments of one kind in a prompt.
type Media struct {
	Kind   string          // image, audio, video
	Count  Optional[int32] // attachments
	Tokens Optional[int64] // prompt tokens they took
}

// Values of Dependency.Kind.
const (
	AfterTurn  = "turn"  // the previous turn of the conversation
	AfterSpawn = "spawn" // the parent turn that started a sub-agent
	AfterJoin  = "join"  // the sub-agent turn whose result the parent waits for
)

// Values of Request.BlockTail.
const (
	TailPartial = "partial" // the last block is short: blocks = ceil(input/block)
	TailDropped = "dropped" // the tail that fills no block has no id: blocks = floor(input/block)
	TailOther   = "other"   // neither rule holds for this row
)

// Values of Request.MessagesMode.
const (
	MessagesFull  = "full"  // the whole conversation so far
	MessagesDelta = "delta" // only what is new since the previous turn
)

// Values of Request.Status.
const (
	StatusOK        = "ok"
	StatusError     = "error"
	StatusCancelled = "cancelled"
	StatusEmpty     = "empty" // ended without a token
)

// Values of Request.Operation.
const (
	OpChat       = "chat"
	OpCompletion = "completion"
	OpResponses  = "responses"
	OpMessages   = "messages"
	OpEmbedding  = "embedding"
	OpOther      = "other"
)
