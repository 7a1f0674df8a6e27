package export

import (
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// Units of AIPerf, as it prints them.
const (
	unitMS       = "ms"
	unitSec      = "sec"
	unitTokens   = "tokens"
	unitRequests = "requests"
	unitPercent  = "%"
	unitRatio    = "ratio"
	unitPerSec   = "requests/sec"
	unitTokenSec = "tokens/sec"
	unitPerUser  = "tokens/sec/user"
)

const (
	tagChunkGap = "inter_chunk_latency"
	tagInput    = "input_sequence_length"
	tagOutput   = "output_sequence_length"
	tagVisible  = "output_token_count"
	tagReasons  = "reasoning_token_count"
)

// A recordMetric is one number of a successful request: AIPerf's tag, header and
// display unit, and its formula.
type recordMetric struct {
	tag, header, unit string
	of                func(*results.Result) (float64, bool)
}

// perRecord are the metrics of a record in the order of their tags. Sources:
// aiperf 0.13, aiperf/metrics/types.
var perRecord = []recordMetric{
	{"decode_duration", "Decode Duration", unitMS, decode},
	{"e2e_output_token_throughput", "E2E Output Token Throughput", unitPerUser, func(r *results.Result) (float64, bool) {
		latency, ok := requestLatency(r)
		return ratio(float64(r.OutputTokens.Value), latency.Seconds(), ok && r.OutputTokens.Known)
	}},
	{tagInput, "Input Sequence Length", unitTokens, count(func(r *results.Result) trace.Optional[int64] { return r.CountedInputTokens })},
	{"inter_token_latency", "Inter Token Latency", unitMS, millis(results.TPOTOverOSL1)},
	{tagOutput, "Output Sequence Length", unitTokens, count(func(r *results.Result) trace.Optional[int64] { return r.OutputTokens })},
	{tagVisible, "Output Token Count", unitTokens, func(r *results.Result) (float64, bool) {
		return float64(r.OutputTokens.Value - r.ReasoningTokens.Or(0)), r.OutputTokens.Known
	}},
	{"output_token_throughput_per_user", "Output Token Throughput Per User", unitPerUser, func(r *results.Result) (float64, bool) {
		itl, ok := results.TPOTOverOSL1(r)
		return ratio(1, itl.Seconds(), ok)
	}},
	{"prefill_throughput_per_user", "Prefill Throughput Per User", unitPerUser, func(r *results.Result) (float64, bool) {
		ttft, ok := results.TTFT(r)
		return ratio(float64(r.CountedInputTokens.Value), ttft.Seconds(), ok && r.CountedInputTokens.Known)
	}},
	{tagReasons, "Reasoning Token Count", unitTokens, count(func(r *results.Result) trace.Optional[int64] { return r.ReasoningTokens })},
	{"request_latency", "Request Latency", unitMS, millis(requestLatency)},
	{"time_to_first_output_token", "Time to First Output Token", unitMS, millis(results.TTFO)},
	{"time_to_first_token", "Time to First Token", unitMS, millis(results.TTFT)},
	{"time_to_second_token", "Time to Second Token", unitMS, millis(results.TTST)},
}

// requestLatency ends at the last content, where AIPerf's does, and not at the end
// of the stream.
func requestLatency(r *results.Result) (time.Duration, bool) {
	return lastAnswer(r) - r.Sent.Value, r.Sent.Known && r.End.Known
}

func decode(r *results.Result) (float64, bool) {
	ttft, ok := results.TTFT(r)
	latency, ended := requestLatency(r)
	return float64(latency-ttft) / 1e6, ok && ended
}

func millis(of func(*results.Result) (time.Duration, bool)) func(*results.Result) (float64, bool) {
	return func(r *results.Result) (float64, bool) {
		d, ok := of(r)
		return float64(d) / 1e6, ok
	}
}

func count(of func(*results.Result) trace.Optional[int64]) func(*results.Result) (float64, bool) {
	return func(r *results.Result) (float64, bool) {
		n := of(r)
		return float64(n.Value), n.Known
	}
}

func ratio(a, b float64, known bool) (float64, bool) {
	if !known || b <= 0 {
		return 0, false
	}
	return a / b, true
}

// chunkGaps are the gaps of a response in ms.
func chunkGaps(r *results.Result) []float64 {
	var list []float64
	for gap := range results.ChunkGaps(r) {
		list = append(list, float64(gap)/1e6)
	}
	return list
}
