package analysis

import (
	"time"

	"reprise/trace/results"
)

// Units, and what one sample is.
const (
	unitMS     = "ms"
	unitTokens = "tokens"

	ofRequest = "request"
	ofToken   = "token"
	ofChunk   = "chunk"
)

// A definition names a metric and says what it is.
type definition struct{ name, unit, of, text string }

// timings are the metrics that have at most one time per request, over the
// successful requests. Each is the function of the same name in
// trace/results, which has the details; why says why a request has none.
var timings = []struct {
	definition
	of  func(*results.Result) (time.Duration, bool)
	why func(*results.Result) string
}{
	{definition{"ttft", unitMS, ofRequest, "time to first token: sent to the first chunk with a token of any kind"},
		results.TTFT, whyToken},
	{definition{"ttfo", unitMS, ofRequest, "time to first output: sent to the first chunk with a token that is not reasoning"},
		results.TTFO, whyOutput},
	{definition{"ttst", unitMS, ofRequest, "first to second chunk with tokens, of one choice"},
		results.TTST, whySecond},
	{definition{"longest_stall", unitMS, ofRequest, "largest chunk gap of a request"},
		results.LongestStall, whySecond},
	{definition{"tpot", unitMS, ofRequest, "(last token - first token) / (OSL - tokens of the first chunk)"},
		results.TPOT, whyTPOT},
	{definition{"tpot_osl1", unitMS, ofRequest, "(last token - first token) / (OSL - 1), the common form; too small where the first chunk holds several tokens"},
		results.TPOTOverOSL1, whyTPOTOverOSL1},
	{definition{"time_to_90", unitMS, ofRequest, "sent to the chunk that completed 90 % of the tokens"},
		results.TimeTo90, whyCounted},
	{definition{"e2e", unitMS, ofRequest, "sent to the end of the stream"},
		results.E2E, func(*results.Result) string { return "not sent, or no end" }},
	{definition{"response_time", unitMS, ofRequest, "due to the end of the stream: holds and lateness included"},
		results.ResponseTime, func(r *results.Result) string {
			if !r.Due.Known {
				return "no due time (pacing)"
			}
			return "no end"
		}},
}

// Metrics that are not one time per successful request.
var (
	defLateness  = definition{"lateness", unitMS, ofRequest, "dispatched - eligible, the client's own delay; all dispatched requests"}
	defHold      = definition{"hold", unitMS, ofRequest, "eligible - due: a cap or an earlier request; the requests that were held"}
	defConnect   = definition{"connect", unitMS, ofRequest, "connected - dispatched; dispatched requests that opened a connection"}
	defITL       = definition{"itl", unitMS, ofToken, "inter-token latency: gap between chunks with tokens, shared evenly among the later chunk's tokens"}
	defChunkGap  = definition{"chunk_gap", unitMS, ofChunk, "gap between chunks with tokens, of one choice"}
	defPerChunk  = definition{"tokens_per_chunk", unitTokens, ofChunk, "tokens of a chunk that has any, where known"}
	defInput     = definition{"input_tokens", unitTokens, ofRequest, "ISL as the server counted it"}
	defOutput    = definition{"output_tokens", unitTokens, ofRequest, "OSL: last usage of the response, reasoning included; else the sum of its ledger"}
	tableOrder   = []string{"lateness", "hold", "connect", "ttft", "ttfo", "ttst", "itl", "chunk_gap", "longest_stall", "tpot", "tpot_osl1", "time_to_90", "e2e", "response_time", "tokens_per_chunk", "input_tokens", "output_tokens"}
	histogramsOf = []string{"lateness", "ttft", "itl", "chunk_gap", "tpot", "e2e", "response_time"}
)

const (
	whyNotStreamed = "not streamed"
	whyNoToken     = "no token"
	whyOneChunk    = "one chunk with tokens"
	whyUnknown     = "tokens of a chunk unknown"
	whyNoOSL       = "OSL unknown"
)

func whyToken(r *results.Result) string {
	if len(r.Ledger) == 0 {
		return whyNotStreamed
	}
	return whyNoToken
}

func whyOutput(r *results.Result) string {
	if _, ok := results.TTFT(r); ok {
		return "reasoning only"
	}
	return whyToken(r)
}

func whySecond(r *results.Result) string {
	if _, ok := results.TTFT(r); ok {
		return whyOneChunk
	}
	return whyToken(r)
}

func whyCounted(r *results.Result) string {
	if _, ok := results.TTFT(r); ok && !results.TokensKnown(r) {
		return whyUnknown
	}
	return whyToken(r)
}

func whyTPOTOverOSL1(r *results.Result) string {
	switch _, gaps := results.LongestStall(r); {
	case !gaps:
		return whySecond(r)
	case !r.OutputTokens.Known:
		return whyNoOSL
	}
	return "one token"
}

func whyTPOT(r *results.Result) string {
	switch _, gaps := results.LongestStall(r); {
	case !gaps:
		return whySecond(r)
	case !r.OutputTokens.Known:
		return whyNoOSL
	case results.CountFell(r):
		return "running count fell"
	case !results.TokensKnown(r):
		return "tokens of the first chunk unknown"
	}
	return "all tokens in the first chunk"
}

func whyITL(r *results.Result) string {
	if _, ok := results.TTFT(r); ok && !results.TokensKnown(r) {
		return whyUnknown
	}
	return whySecond(r)
}
