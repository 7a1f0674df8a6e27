package runpage

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// mostCauses is how many causes are followed over time; what comes later counts
// as nameOthers.
const mostCauses = 32

// mostTokensPerChunk is the largest chunk with a bar of its own.
const mostTokensPerChunk = 64

// A Collector gathers what a page draws. Give every result of a run to Add, and then
// call Page.
type Collector struct {
	clock *clock
	end   time.Duration // latest end of a request
	n     int64         // requests, without the warm-up

	// The load: all requests that were sent.
	waiting, streaming, tokens, in, out *curve
	sent, uncounted                     int64 // requests; of these, with tokens per chunk that are not known

	// Latency over time and by input, of the successful ones.
	ttft, itl, e2e, stall *plane
	ttftByInput           *plane
	e2eByInput            *plane
	withoutInput          int64
	models, urls          groups
	sessions              sessionBook

	perChunk  [mostTokensPerChunk + 2]int64 // chunks by tokens; the last is of larger ones
	stalls    *hdrhistogram.Histogram       // ns
	causes    map[string]*curve
	timeline  window
	input     account
	output    account
	cached    *curve
	cachedOf  *curve
	ttftPairs *plane // recorded against replayed
	e2ePairs  *plane
}

// An account sets planned against counted tokens.
type account struct {
	plane
	zeros int64 // pairs with a 0, which a logarithmic axis has not
}

// NewCollector returns a collector for a run.
func NewCollector(run *results.Run) *Collector {
	length := time.Duration(run.Planned.DurationNS)
	if run.Ended != nil {
		length = time.Duration(run.Ended.DurationNS)
	}
	k := newClock(length)
	return &Collector{
		clock: k, waiting: k.curve(), streaming: k.curve(), tokens: k.curve(), in: k.curve(), out: k.curve(),
		ttft: k.plane(), itl: k.plane(), e2e: k.plane(), stall: k.plane(), ttftByInput: &plane{}, e2eByInput: &plane{},
		models: groups{}, urls: groups{}, sessions: sessionBook{open: map[string]*conversation{}},
		stalls: hdrhistogram.New(1, 1<<53, 3), causes: map[string]*curve{}, cached: k.curve(), cachedOf: k.curve(),
		ttftPairs: &plane{}, e2ePairs: &plane{},
	}
}

// A request is a result with what is asked of it more than once.
type request struct {
	*results.Result
	successful      bool
	ttft, tpot, e2e trace.Optional[time.Duration]
}

func requestOf(r *results.Result) request {
	q := request{Result: r, successful: analysis.Successful(r)}
	for _, m := range []struct {
		to *trace.Optional[time.Duration]
		of func(*results.Result) (time.Duration, bool)
	}{{&q.ttft, results.TTFT}, {&q.tpot, results.TPOT}, {&q.e2e, results.E2E}} {
		m.to.Value, m.to.Known = m.of(r)
	}
	return q
}

// Add takes one result. Those of the warm-up are in no number.
func (c *Collector) Add(result *results.Result) {
	if !result.Measured() {
		return
	}
	r := requestOf(result)
	c.n++
	c.timeline.add(&r)
	c.models.add(r.Model.Or(nameUnknown), &r)
	c.urls.add(r.URL, &r)
	c.sessions.add(&r)
	if r.Sent.Known && r.End.Known {
		c.addLoad(&r)
	}
	if !r.successful {
		c.addCause(result)
		return
	}
	c.addLatency(&r)
	c.addTokens(&r)
}

// addLoad takes what the server had at hand.
func (c *Collector) addLoad(r *request) {
	sent, end := r.Sent.Value, r.End.Value
	c.end = max(c.end, end)
	c.clock.bin(end)
	c.sent++
	token := end
	if ttft, ok := r.ttft.Get(); ok {
		token = min(sent+ttft, end)
		c.streaming.span(token, end, 1)
	}
	c.waiting.span(sent, token, 1)
	if n, ok := inputOf(r); ok {
		c.in.spread(sent, token, float64(n))
		c.tokens.span(sent, end, float64(n))
	}
	unknown := false
	for chunk := range results.Chunks(r.Ledger) {
		if n, known := chunk.Tokens.Get(); known {
			at := min(sent+chunk.At, end)
			c.out.instant(at, float64(n))
			c.tokens.span(at, end, float64(n))
			if r.successful && n > 0 {
				c.perChunk[min(int(n), mostTokensPerChunk+1)]++
			}
		} else {
			unknown = unknown || chunk.HasTokens()
		}
	}
	if unknown || len(r.Ledger) == 0 {
		c.uncounted++
	}
}

// inputOf is the input as the server counted it, else as it was planned.
func inputOf(r *request) (int64, bool) {
	if n, ok := r.CountedInputTokens.Get(); ok {
		return n, true
	}
	return r.PlannedInputTokens.Get()
}

func (c *Collector) addCause(r *results.Result) {
	name := r.Outcome + ": " + r.Cause.Or("no cause recorded")
	u := c.causes[name]
	if u == nil && len(c.causes) >= mostCauses {
		name = nameOthers
		u = c.causes[name]
	}
	if u == nil {
		u = c.clock.curve()
		c.causes[name] = u
	}
	u.instant(r.End.Or(r.Sent.Or(r.Due.Or(0))), 1)
}

func (c *Collector) addLatency(r *request) {
	at := c.clock.bin(r.Sent.Or(r.Due.Or(0)))
	ttft, streamed := r.ttft.Get()
	e2e, ended := r.e2e.Get()
	if streamed {
		c.ttft.add(at, int64(ttft), 1)
	}
	if ended {
		c.e2e.add(at, int64(e2e), 1)
	}
	if longest, ok := results.LongestStall(r.Result); ok {
		c.stall.add(at, int64(longest), 1)
		c.stalls.RecordValue(min(int64(longest), 1<<53)) // within its range: no error
	}
	for v, tokens := range results.ITL(r.Result) {
		c.itl.add(at, int64(v), int64(tokens))
	}
	n, ok := inputOf(r)
	if !ok {
		c.withoutInput++
		return
	}
	x := bucketOf(max(n, 0), inputBits)
	if streamed {
		c.ttftByInput.add(x, int64(ttft), 1)
	}
	if ended {
		c.e2eByInput.add(x, int64(e2e), 1)
	}
}

// inputBits and pairBits say how wide a bucket is along x: of input lengths, and of
// values that are set against others.
const (
	inputBits = 1
	pairBits  = 2
)

func (c *Collector) addTokens(r *request) {
	c.input.set(r.PlannedInputTokens, r.CountedInputTokens)
	c.output.set(r.PlannedOutputTokens, r.OutputTokens)
	if n, ok := r.CountedInputTokens.Get(); ok && r.CachedTokens.Known && r.Sent.Known {
		c.cachedOf.instant(r.Sent.Value, float64(n))
		c.cached.instant(r.Sent.Value, float64(r.CachedTokens.Value))
	}
	pair(c.ttftPairs, r.RecordedTTFT, r.ttft)
	pair(c.e2ePairs, r.RecordedE2E, r.e2e)
}

func (a *account) set(planned, counted trace.Optional[int64]) {
	switch {
	case !planned.Known || !counted.Known:
	case planned.Value < 1 || counted.Value < 1:
		a.zeros++
	default:
		a.add(bucketOf(planned.Value, pairBits), counted.Value, 1)
	}
}

func pair(p *plane, recorded, replayed trace.Optional[time.Duration]) {
	if recorded.Known && replayed.Known && recorded.Value > 0 && replayed.Value > 0 {
		p.add(bucketOf(int64(recorded.Value), pairBits), int64(replayed.Value), 1)
	}
}
