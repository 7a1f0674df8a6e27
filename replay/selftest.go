package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// Rates and bounds of a self-test.
const (
	SelfTestRate  = 1000.0           // requests/s at which the dispatch error is measured
	SelfTestLate  = time.Millisecond // p99 lateness up to which a rate counts as sent on time: what a verdict takes as valid at least
	selfTestMost  = 2000             // requests in flight; a sink that falls behind by more is not kept up with
	pacedStreams  = 200
	mostPerRead   = 1.5 // chunks; more, and the client had fallen behind
	mostTime      = 1.2 // of what was planned
	floodStreams  = 64
	floodTokens   = 2000 // chunks of each stream
	answerTimeout = 2 * time.Second
	shortSelfTest = 3 * time.Second // bound of the one before a run
)

// selfTestRates are tried in turn until one is not kept up with, requests/s.
var selfTestRates = []float64{2000, 4000, 8000, 16_000, 32_000}

// selfTestChunks are likewise rates of chunks, chunks/s.
var selfTestChunks = []float64{5000, 10_000, 20_000, 40_000, 80_000}

// A SelfTest is what this machine can do, with the engine of a run and a server
// within this process that answers at once, on loopback. Client and server share
// the machine, so it can do more against a server elsewhere, as far as its network
// goes.
type SelfTest struct {
	Dispatch Rate   `json:"dispatch"` // the dispatch error at SelfTestRate
	Rates    []Rate `json:"rates"`    // higher ones, up to the first that was not kept up with

	RequestsPerS float64 `json:"requests_per_s"`         // highest rate that was sent on time; 0 = none of those tried
	KeptUpPerS   float64 `json:"requests_per_s_kept_up"` // highest rate that was kept up with, likewise

	Reading    []Reading `json:"reading"`      // of paced streams, up to the first rate that was not kept up with
	ChunksPerS float64   `json:"chunks_per_s"` // highest of these that was; 0 = none of those tried
	Flood      Reading   `json:"flood"`        // of streams that came as fast as they could: many chunks a read, which cost little each

	CPUs   int   `json:"cpus"`
	TookNS int64 `json:"took_ns"`
}

// A Rate is how late requests were at an even rate: dispatched - eligible.
type Rate struct {
	PerS   float64 `json:"requests_per_s"`
	N      int64   `json:"n"`
	P50NS  int64   `json:"p50_ns"`
	P99NS  int64   `json:"p99_ns"`
	MaxNS  int64   `json:"max_ns"`
	Capped int64   `json:"capped"`  // requests that had to wait for others, since too many were in flight
	OnTime bool    `json:"on_time"` // all were answered, and the p99 is up to SelfTestLate
	KeptUp bool    `json:"kept_up"` // all were answered, and the median is: what disturbs the machine at times is no lack of speed
}

// A Reading is how the client read streams.
type Reading struct {
	ChunksPerS    float64 `json:"chunks_per_s"` // that were sent; of a flood, that were read
	N             int64   `json:"n"`            // chunks
	ChunksPerRead float64 `json:"chunks_per_read"`
	ReceiveP99NS  *int64  `json:"receive_delay_p99_ns"` // from the kernel's receipt to our read; null where it is not measured
	KeptUp        bool    `json:"kept_up"`              // it took as long as was planned, with no more than mostPerRead
}

// RunSelfTest measures this machine for some five seconds, and writes only into a
// temporary directory.
func RunSelfTest(ctx context.Context) (*SelfTest, error) {
	return selfTest(ctx, time.Second, answerTimeout, selfTestRates, selfTestChunks)
}

// SelfTestFor measures for at most three seconds what a plan needs.
func SelfTestFor(ctx context.Context, s *Survey) (*SelfTest, error) {
	ctx, cancel := context.WithTimeout(ctx, shortSelfTest)
	defer cancel()
	var rates []float64
	if s.PeakRate > SelfTestRate {
		rates = []float64{min(s.PeakRate, selfTestRates[len(selfTestRates)-1])}
	}
	chunks := []float64{min(max(s.chunksPerS(), selfTestChunks[0]), selfTestChunks[len(selfTestChunks)-1])}
	return selfTest(ctx, time.Second/2, answerTimeout, rates, chunks)
}

// chunksPerS is what the plan expects on average, at a token a chunk; 0 if it is
// not known.
func (s *Survey) chunksPerS() float64 {
	if s.Planned.OutputTokens == nil || s.Planned.DurationNS == 0 {
		return 0
	}
	return float64(*s.Planned.OutputTokens) / (float64(s.Planned.DurationNS) / 1e9)
}

// selfTest measures for each of the rates for about as long as each says; an answer may
// take up to timeout.
func selfTest(ctx context.Context, each, timeout time.Duration, rates, chunks []float64) (*SelfTest, error) {
	begin := time.Now()
	sink, err := newLoopback()
	if err != nil {
		return nil, fmt.Errorf("self-test: %w", err)
	}
	defer sink.close()
	dir, err := os.MkdirTemp("", "reprise-self-test-*")
	if err != nil {
		return nil, fmt.Errorf("self-test: %w", err)
	}
	defer os.RemoveAll(dir)
	t := &SelfTest{CPUs: runtime.NumCPU(), Rates: []Rate{}, Reading: []Reading{}}
	m := &selfMeter{dir: dir, url: sink.url(), timeout: timeout}
	if _, err := m.rate(ctx, SelfTestRate, each/5); err != nil { // connections, pools, caches
		return nil, err
	}
	if t.Dispatch, err = m.rate(ctx, SelfTestRate, each); err != nil {
		return nil, err
	}
	for last, i := t.Dispatch, 0; ; i++ {
		if last.OnTime {
			t.RequestsPerS = last.PerS
		}
		if last.KeptUp {
			t.KeptUpPerS = last.PerS
		}
		if i == len(rates) || !last.KeptUp {
			break
		}
		if last, err = m.rate(ctx, rates[i], each/2); err != nil {
			return nil, err
		}
		t.Rates = append(t.Rates, last)
	}
	for _, rate := range chunks {
		r, err := m.paced(ctx, rate, each/2)
		if err != nil {
			return nil, err
		}
		t.Reading = append(t.Reading, r)
		if !r.KeptUp {
			break
		}
		t.ChunksPerS = rate
	}
	if t.Flood, err = m.flood(ctx); err != nil {
		return nil, err
	}
	t.TookNS = int64(time.Since(begin))
	return t, nil
}

// Doubts are what the plan asks for beyond what the machine can do.
func (t *SelfTest) Doubts(s *Survey) []string {
	var out []string
	ms := func(ns int64) string { return fmt.Sprintf("%.3f ms", float64(ns)/1e6) }
	switch late := t.Dispatch; {
	case !late.OnTime:
		out = append(out, fmt.Sprintf("self-test: at %.0f requests/s this machine dispatches with a p99 error of %s (n %d): the client may be late in the run", late.PerS, ms(late.P99NS), late.N))
	case s.PeakRate <= t.RequestsPerS || len(t.Rates) == 0:
	case t.Rates[len(t.Rates)-1].OnTime:
		out = append(out, fmt.Sprintf("self-test: %.0f requests are due in the busiest second; no more than %.0f requests/s were tried", s.PeakRate, t.RequestsPerS))
	default:
		last := t.Rates[len(t.Rates)-1]
		out = append(out, fmt.Sprintf("self-test: %.0f requests are due in the busiest second, and at %.0f requests/s this machine was late: p99 %s (n %d)", s.PeakRate, last.PerS, ms(last.P99NS), last.N))
	}
	if wants := s.chunksPerS(); wants > t.ChunksPerS && len(t.Reading) > 0 {
		last := t.Reading[len(t.Reading)-1]
		kept := fmt.Sprintf("no more than %.0f were tried", last.ChunksPerS)
		if !last.KeptUp {
			kept = fmt.Sprintf("this machine did not keep up with %.0f (n %d, %.1f chunks a read)", last.ChunksPerS, last.N, last.ChunksPerRead)
		}
		out = append(out, fmt.Sprintf("self-test: some %.0f chunks/s are expected on average, at a token a chunk; %s", wants, kept))
	}
	return out
}

// A selfMeter replays against the sink.
type selfMeter struct {
	dir, url string
	timeout  time.Duration // of each answer
	runs     int
}

// replay runs rows and returns the run and its results.
func (m *selfMeter) replay(ctx context.Context, path string, rows *evenRows) (*results.Run, []results.Result, error) {
	m.runs++
	dir := filepath.Join(m.dir, fmt.Sprint(m.runs))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("self-test: %w", err)
	}
	c := Config{
		URLs: []string{m.url + path}, Dir: dir, Model: "m", NoProbe: true, Proxy: ProxyNone, MaxInFlight: selfTestMost, Timeout: m.timeout, Grace: m.timeout,
		source: func() rowReader { again := *rows; return &again },
	}
	run, err := Run(ctx, c)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it took too long on this machine")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("self-test: %w", err)
	}
	opened, err := results.OpenRun(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("self-test: %w", err)
	}
	var list []results.Result
	for r, err := range opened.Results() {
		if err != nil {
			return nil, nil, fmt.Errorf("self-test: %w", err)
		}
		list = append(list, r)
	}
	return run, list, nil
}

// rate measures the lateness at an even rate.
func (m *selfMeter) rate(ctx context.Context, perS float64, d time.Duration) (Rate, error) {
	n := max(1, int(perS*d.Seconds()))
	run, list, err := m.replay(ctx, shortPath, &evenRows{n: n, every: time.Duration(1e9 / perS), tokens: 1})
	if err != nil {
		return Rate{}, err
	}
	var late []int64
	for i := range list {
		if d, ok := results.Lateness(&list[i]); ok && list[i].Outcome == results.OutcomeOK {
			late = append(late, int64(d))
		}
	}
	if len(late) == 0 {
		return Rate{}, errors.New("self-test: no request was answered")
	}
	slices.Sort(late)
	at := func(share float64) int64 { return late[min(len(late)-1, int(share*float64(len(late))))] }
	r := Rate{PerS: perS, N: int64(len(late)), P50NS: at(0.5), P99NS: at(0.99), MaxNS: late[len(late)-1], Capped: run.Ended.Capped}
	all := len(late) == n && r.Capped == 0
	r.OnTime, r.KeptUp = all && r.P99NS <= int64(SelfTestLate), all && r.P50NS <= int64(SelfTestLate)
	return r, nil
}

// paced reads streams whose chunks come one by one.
func (m *selfMeter) paced(ctx context.Context, perS float64, d time.Duration) (Reading, error) {
	every := time.Duration(1e9 * pacedStreams / perS)
	n := min(floodTokens, max(2, int(d/every)))
	run, list, err := m.replay(ctx, fmt.Sprintf("%s/%d/%d", pacedPath, every.Microseconds(), n), &evenRows{n: pacedStreams, every: every / pacedStreams, tokens: int64(n)})
	if err != nil {
		return Reading{}, err
	}
	r, took := readingOf(list)
	r.ChunksPerS = perS
	if d := run.Ended.Client.ReceiveDelay; d != nil {
		r.ReceiveP99NS = &d.P99NS
	}
	r.KeptUp = r.N == int64(n*pacedStreams) && r.ChunksPerRead <= mostPerRead && float64(took) <= mostTime*float64(n+1)*float64(every)
	return r, nil
}

// flood reads streams as fast as they come.
func (m *selfMeter) flood(ctx context.Context) (Reading, error) {
	_, list, err := m.replay(ctx, floodPath, &evenRows{n: floodStreams, tokens: floodTokens})
	if err != nil {
		return Reading{}, err
	}
	r, took := readingOf(list)
	if r.N == 0 || took <= 0 {
		return r, errors.New("self-test: no chunk was read")
	}
	r.ChunksPerS, r.KeptUp = float64(r.N)/took.Seconds(), true
	return r, nil
}

// readingOf counts what was read, from the first request to the last end.
func readingOf(list []results.Result) (r Reading, took time.Duration) {
	var first, last time.Duration
	var shared int
	for i := range list {
		x := &list[i]
		if i == 0 || x.Sent.Value < first {
			first = x.Sent.Value
		}
		last = max(last, x.End.Value)
		s, n := results.SharedReads(x.Ledger)
		shared += s
		r.N += int64(n)
	}
	r.ChunksPerRead = float64(r.N) / float64(max(1, r.N-int64(shared)))
	return r, last - first
}

// evenRows is a trace in memory: n requests, one every so often.
type evenRows struct {
	n, next int
	every   time.Duration
	tokens  int64 // of each answer
}

// Meta implements rowReader.
func (e *evenRows) Meta() trace.Meta { return trace.Meta{Clock: trace.ClockTrace} }

// Close implements rowReader.
func (e *evenRows) Close() error { return nil }

// Read implements rowReader.
func (e *evenRows) Read(b *trace.Batch, n int) error {
	b.Reset()
	if e.next == e.n {
		return io.EOF
	}
	for ; e.next < e.n && b.Len() < n; e.next++ {
		b.Append(&trace.Request{
			ID: int64(e.next), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(e.next) * e.every),
			InputTokens: trace.Some(int64(16)), OutputTokens: trace.Some(e.tokens),
		})
	}
	return nil
}
