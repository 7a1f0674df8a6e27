package runpage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// madeRun is run.json of a made-up run of n requests at rate per second.
func madeRun(n int, rate float64) *results.Run {
	cpu := 1.5
	length := int64(float64(n) / rate * 1e9)
	return &results.Run{
		Version: "0.0.0", Started: "2026-01-02T03:04:05Z", Label: "open loop", Pace: "schedule", Speed: 1, Seed: 7, Protocol: "chat", HTTP: results.HTTP1,
		Trace:  &trace.Input{Name: "prod.parquet", SHA256: "5d41402abc4b2a76b9719d911017c592", Bytes: 12345},
		URLs:   []string{"http://a:8000/v1/chat/completions", "http://b:8000/v1/chat/completions"},
		Models: map[string]string{"large": "large-1", "small": "small-1"}, Labels: map[string]string{"gpu": "none of ours"},
		Flags:   map[string]string{"speed": "1", "model": "[large=large-1 small=small-1]", "header": "X-Token", "abort-if": "error_rate>50%"},
		Planned: results.Planned{Requests: int64(n), InputTokens: new(int64(n) * 900), OutputTokens: new(int64(n) * 60), ReuseTokens: new(int64(n) * 500), DurationNS: length},
		Ended:   &results.Ended{DurationNS: length + 20e9, Sent: int64(n), Client: results.Client{CPUSeconds: &cpu, ConnsOpened: 9, ConnsReused: int64(n) - 9}},
		Host:    results.Host{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26"},
	}
}

// madeResult makes the i-th request: two models on two servers, sessions of ten
// turns, chunks of several tokens, a failure in thirty, recorded times that are
// shorter than the replayed ones.
func madeResult(r *rand.Rand, i int, rate float64, ledger []results.Entry) results.Result {
	at := func(d time.Duration) trace.Optional[time.Duration] { return trace.Some(d) }
	due := time.Duration(float64(i) / rate * 1e9)
	late := time.Duration(r.ExpFloat64() * 5e4)
	sent := due + late + 20*time.Microsecond
	input, output := int64(60*math.Exp(r.NormFloat64())*15)+1, int64(40*math.Exp(0.8*r.NormFloat64()))+1
	model, url := "large-1", "http://a:8000/v1/chat/completions"
	if i%3 == 0 {
		model, url = "small-1", "http://b:8000/v1/chat/completions"
	}
	res := results.Result{
		ID: int64(i), URL: url, Protocol: "chat", Model: trace.Some(model), Session: trace.Some(fmt.Sprintf("session %d", i/10)), Turn: trace.Some(int32(i % 10)),
		Due: at(due), Eligible: at(due), Dispatched: at(due + late), Connected: at(due + late), ConnReused: trace.Some(true), Sent: at(sent), SentEnd: at(sent),
		Outcome: results.OutcomeOK, HTTPStatus: trace.Some(int32(200)), FinishReason: trace.Some("stop"),
		PlannedInputTokens: trace.Some(input), CountedInputTokens: trace.Some(input + int64(i%2)), CachedTokens: trace.Some(input / 2),
		PlannedOutputTokens: trace.Some(output),
	}
	ttft := time.Duration(2e7 + float64(input)*2e4*r.ExpFloat64())
	if i%30 == 7 {
		res.Outcome, res.Cause, res.End = results.OutcomeFailed, trace.Some(fmt.Sprintf("HTTP 50%d: overloaded", i%4)), at(sent+ttft)
		res.HTTPStatus, res.FinishReason, res.CountedInputTokens, res.CachedTokens = trace.Some(int32(500)), trace.Optional[string]{}, trace.Optional[int64]{}, trace.Optional[int64]{}
		return res
	}
	left, t := output, int64(ttft/time.Microsecond)
	for event := int32(0); left > 0; event++ {
		n := min(left, 1+r.Int64N(3))
		ledger = append(ledger, results.Entry{At: t, Tokens: trace.Some(int32(n)), Kind: results.KindContent, Source: results.SourceUsage, Event: event, SharedRead: r.IntN(50) == 0})
		left -= n
		t += 8000 + r.Int64N(8000)
	}
	res.Ledger = ledger
	last := sent + time.Duration(ledger[len(ledger)-1].At)*time.Microsecond
	res.FirstByte, res.FirstToken, res.LastToken, res.End = at(sent+ttft), at(sent+ttft), at(last), at(last+time.Millisecond)
	res.OutputTokens, res.OutputSource, res.LedgerDifference = trace.Some(output), trace.Some(results.SourceUsage), trace.Some(int64(0))
	res.RecordedTTFT, res.RecordedE2E = at(ttft*2/3), at((last-sent)*3/4)
	return res
}

// writeRun makes a run directory.
func writeRun(t testing.TB, run *results.Run, n int, result func(i int) results.Result) string {
	t.Helper()
	dir := t.TempDir()
	if err := results.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
	w, err := results.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := result(i)
		w.Add(&r)
		if w.Pending() >= 20_000 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if run.Ended == nil {
		err = w.Flush()
	} else {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// made writes a run of n made-up requests.
func made(t testing.TB, n int) string {
	const rate = 8
	r := rand.New(rand.NewPCG(1, 2))
	return writeRun(t, madeRun(n, rate), n, func(i int) results.Result { return madeResult(r, i, rate, nil) })
}

// summed reads a run once, for its summary and its page.
func summed(t testing.TB, dir string) (*analysis.Summary, *Collector, *results.Opened) {
	t.Helper()
	o, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector(&o.Run)
	s, err := analysis.Summarize(t.Context(), o, c.Add)
	if err != nil {
		t.Fatal(err)
	}
	return s, c, o
}
