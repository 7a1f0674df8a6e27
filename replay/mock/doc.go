// Package mock is a simulated inference server with an OpenAI-compatible
// interface, whose times, tokens and cache hits are known: to rehearse a replay
// without an accelerator, and for tests that hold a client's account against
// the server's.
//
// Endpoints: POST /v1/chat/completions, /v1/completions, /v1/responses and
// /v1/messages (Anthropic), streamed or not; GET /v1/models, /health, /metrics
// (with vLLM's names), and /mock/account (the server's own account as JSON
// lines). What is not specified elsewhere follows vLLM 0.11.
//
// One [batch.Batch] paces all answers. Its step times are absolute, so a late
// timer delays one step and not all that follow.
//
// The mock's token is the word: a run of characters between white space. A
// prompt has as many tokens as strings.Fields finds, and an answer as many
// words as tokens.
package mock
