package mock

import (
	"math"
	"math/rand/v2"

	"reprise/replay/mock/batch"
	"reprise/replay/mock/wire"
)

// Defaults of Config.
const (
	DefaultModel          = "mock"
	DefaultOutputMedian   = 200  // tokens
	DefaultOutputSigma    = 0.8  // of the logarithm
	DefaultMaxOutput      = 4096 // tokens
	DefaultTokensPerChunk = 1    // tokens
	DefaultReasoningKey   = "reasoning_content"
	DefaultAccountRecords = 65_536    // requests
	DefaultAccountChunks  = 4_000_000 // chunks, 24 bytes each
	DefaultMaxBodyBytes   = 64 << 20  // bytes
)

// A Config describes a server. The zero value is a server with the defaults.
type Config struct {
	Engine batch.Config // speed and capacity; its Seed, if 0, is Seed
	Models []string     // names it serves, all of one engine; another is answered with 404; nil = DefaultModel
	Seed   uint64       // of lengths, texts and faults

	TemplatePrefix     int // tokens that a chat template puts before each prompt (not for completions)
	TemplateSuffix     int // tokens that it puts after each prompt
	TemplatePerMessage int // tokens that it puts before each message

	// An answer without ignore_eos has a natural length: FixedOutput, or drawn by
	// seed and prompt (so the same prompt has the same length in any order) from
	// a lognormal law with median DefaultOutputMedian and DefaultOutputSigma.
	FixedOutput int // tokens; 0 = drawn
	MaxOutput   int // tokens; the limit of a request that names none

	// TokensPerChunk is how many tokens are gathered before an event is sent, as
	// vLLM's stream interval does; the last event has the rest. Several tokens of
	// one step (Engine.Speculation) come in one event in any case.
	TokensPerChunk int

	Role           RoleStyle // of a chat's first event
	FinishWithLast bool      // finish_reason comes with the last tokens (as in vLLM), not in an event of its own (as in OpenAI)
	ReasoningShare float64   // of each answer's tokens that come first, as reasoning; 0 = none, 1 = all; not for completions
	ReasoningKey   string    // of a chat's delta: reasoning_content or reasoning
	Usage          UsageStyle

	Refuse []string // body fields that are answered with 400, as servers do that know no ignore_eos, say
	Faults []Fault  // the first that takes a request is injected

	AccountRecords int   // most requests in the account, later ones are only counted; negative = no account
	AccountChunks  int   // most chunks in the account; later requests have none
	MaxBodyBytes   int64 // longer bodies are answered with 413
}

// A RoleStyle says how a streamed chat begins.
type RoleStyle string

const (
	RoleEarly     RoleStyle = ""      // a role-only event as soon as the request is accepted, long before a token
	RoleWithFirst RoleStyle = "first" // the role in the event with the first tokens
	RoleNone      RoleStyle = "none"  // no role
)

// A UsageStyle says when chat and completions streams report token counts.
type UsageStyle string

const (
	UsageAsked   UsageStyle = ""        // as stream_options ask: include_usage, continuous_usage_stats (vLLM)
	UsageFinal   UsageStyle = "final"   // include_usage only (OpenAI)
	UsageRunning UsageStyle = "running" // in every event, and in a last one, asked or not
	UsageNone    UsageStyle = "none"    // never
)

// withDefaults returns c with every zero field set.
func (c Config) withDefaults() Config {
	if len(c.Models) == 0 {
		c.Models = []string{DefaultModel}
	}
	if c.Engine.Seed == 0 {
		c.Engine.Seed = c.Seed
	}
	if c.ReasoningKey == "" {
		c.ReasoningKey = DefaultReasoningKey
	}
	c.MaxOutput = orDefault(c.MaxOutput, DefaultMaxOutput)
	c.TokensPerChunk = orDefault(c.TokensPerChunk, DefaultTokensPerChunk)
	c.AccountRecords = orDefault(c.AccountRecords, DefaultAccountRecords)
	c.AccountChunks = orDefault(c.AccountChunks, DefaultAccountChunks)
	c.MaxBodyBytes = orDefault(c.MaxBodyBytes, DefaultMaxBodyBytes)
	c.ReasoningShare = min(max(c.ReasoningShare, 0), 1)
	return c
}

func orDefault[T int | int64](n, def T) T {
	if n == 0 {
		return def
	}
	return n
}

// outputTokens returns how long the answer to r gets, and why it ends there.
func (c *Config) outputTokens(r *wire.Request) (n int, finish string) {
	limit := int(r.MaxTokens.Or(max(int64(c.MaxOutput), r.MinTokens)))
	natural := c.FixedOutput
	if natural <= 0 {
		draws := rand.New(rand.NewPCG(c.Seed, r.Prompt.Hash))
		natural = int(math.Round(DefaultOutputMedian * math.Exp(DefaultOutputSigma*draws.NormFloat64())))
	}
	natural = max(natural, int(r.MinTokens), 1)
	if r.IgnoreEOS || natural >= limit {
		return limit, finishLength
	}
	return natural, finishStop
}

// Finish reasons of chat and completions.
const (
	finishLength = "length"
	finishStop   = "stop"
)
