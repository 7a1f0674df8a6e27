// Package batch is a model of one inference engine with continuous batching:
// queue, batch, chunked prefill, KV capacity and prefix cache, in virtual time.
// It reads no clock and starts no goroutine, so that the same model answers a
// test that needs hundreds of runs ([Simulate]) and paces a live server.
//
// The shape follows vLLM's V1 scheduler: one step serves every running
// sequence; a step's tokens appear at its end; a request that arrives during a
// step waits for the next one; decodes go first and the rest of the step is
// prefill, first come first served.
package batch

import (
	"math"
	"time"
)

// Defaults of Config. Together they feel like one modern accelerator with an
// 8B to 70B model: 11 ms between tokens for a lone user, 23 ms in a full batch
// of 256, which is then 11,200 tokens a second.
const (
	DefaultPrefillRate     = 20_000.0              // tokens/s
	DefaultStepBase        = 11 * time.Millisecond //
	DefaultStepPerSequence = 46 * time.Microsecond //
	DefaultPrefillChunk    = 8192                  // tokens
	DefaultMaxBatch        = 256                   // sequences
	DefaultKVTokens        = 500_000               // tokens
	DefaultBlockTokens     = 16                    // tokens
)

// A Config describes an engine. A zero field has its default; a negative
// StepBase or StepPerSequence means none, and PrefillRate math.Inf(1) makes
// prefill free.
//
// A step takes
//
//	StepBase + StepPerSequence × decoding sequences + prefill tokens ÷ PrefillRate
type Config struct {
	PrefillRate     float64       // prompt tokens computed per second
	StepBase        time.Duration // of every step, whatever it holds
	StepPerSequence time.Duration // for each sequence that decodes in the step
	PrefillChunk    int           // most prompt tokens in one step; a longer prompt takes several (chunked prefill)
	MaxBatch        int           // most sequences that run at once; more of them wait

	// KVTokens is the room for the tokens that running requests keep. A request
	// takes what it has to compute itself plus its whole output when it is
	// admitted, so nothing is ever preempted; what the prefix cache gave it is
	// in the cache's own room.
	KVTokens int64

	BlockTokens int   // tokens per block of the prefix cache
	CacheTokens int64 // room of the prefix cache, least recently used goes first; 0 = without limit, negative = no cache

	// Speculation has the weights of 1, 2, 3, ... tokens per step and sequence,
	// as speculative decoding gives them; nil is always 1. The first token of a
	// sequence comes alone.
	Speculation []float64

	Jitter float64 // each step's time is drawn evenly from 1±Jitter of what the formula says; 0 = none, at most 1
	Seed   uint64  // of Jitter and Speculation
}

// withDefaults returns c with every zero field set and none negative.
func (c Config) withDefaults() Config {
	if c.PrefillRate <= 0 {
		c.PrefillRate = DefaultPrefillRate
	}
	c.StepBase = durationOr(c.StepBase, DefaultStepBase)
	c.StepPerSequence = durationOr(c.StepPerSequence, DefaultStepPerSequence)
	c.PrefillChunk = positiveOr(c.PrefillChunk, DefaultPrefillChunk)
	c.MaxBatch = positiveOr(c.MaxBatch, DefaultMaxBatch)
	c.KVTokens = positiveOr(c.KVTokens, DefaultKVTokens)
	c.BlockTokens = positiveOr(c.BlockTokens, DefaultBlockTokens)
	c.Jitter = min(max(c.Jitter, 0), 1)
	return c
}

func durationOr(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

func positiveOr[T int | int64](n, def T) T {
	if n <= 0 {
		return def
	}
	return n
}

// Step returns the time of a step in which decoding sequences decode and
// prefill prompt tokens are computed, without jitter.
func (c Config) Step(decoding, prefill int) time.Duration {
	c = c.withDefaults()
	return c.step(decoding, prefill)
}

func (c *Config) step(decoding, prefill int) time.Duration {
	compute := math.Round(float64(prefill) * float64(time.Second) / c.PrefillRate)
	return c.StepBase + time.Duration(decoding)*c.StepPerSequence + time.Duration(compute)
}

// DecodeRate returns the tokens per second of a batch of the given size that
// only decodes, one token per sequence and step: the engine's capacity where
// prefill costs nothing.
func (c Config) DecodeRate(sequences int) float64 {
	return float64(sequences) / c.Step(sequences, 0).Seconds()
}
