package analysis

import (
	"strconv"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// PhaseWarmUp is the phase whose requests are counted, and stay out of every
// number.
const PhaseWarmUp = results.PhaseWarmUp

// Successful says whether a result belongs into the latency tables: the response
// is complete. One that came as a body although a stream was asked for has what
// is defined without chunks.
func Successful(r *results.Result) bool { return successful(r) }

func successful(r *results.Result) bool {
	return r.Outcome == results.OutcomeOK || r.Outcome == results.OutcomeNotStreamed
}

// A collection is what one pass over the results of a run gathers. Its memory
// grows by about 220 bytes a request; tokens and chunks go to histograms of
// fixed size.
type collection struct {
	requests Requests
	outcomes, unwritten, causes, finish, statuses,
	notes, holds, outputSources, ledgerSources counter

	lateness, hold, connect, itl, chunkGap, perChunk, input, output *collector

	timings []*collector
	late    []lateSample

	sessions *rollup
	spans    []*span // of each run; the first is this one's
	tokens   Tokens
	ttft     ratios
	e2e      ratios
	uncounts struct{ input, output int64 } // successful requests without the count

	flown []flown // of this run's requests that were sent and have ended

	erroneous int64
	slo       *SLO       // nil if none was asked for
	goodputs  []*goodput // of each tier
}

func newCollection(slo *SLO) *collection {
	c := &collection{
		slo:      slo,
		outcomes: counter{}, unwritten: counter{}, causes: counter{}, finish: counter{}, statuses: counter{}, notes: counter{}, holds: counter{},
		outputSources: counter{}, ledgerSources: counter{},
		lateness: newCollector(defLateness), hold: newCollector(defHold), connect: newCollector(defConnect),
		itl: newCollector(defITL), chunkGap: newCollector(defChunkGap), perChunk: newCollector(defPerChunk),
		input: newCollector(defInput), output: newCollector(defOutput),
		sessions: newRollup(), spans: []*span{{}},
	}
	for i := range timings {
		c.timings = append(c.timings, newCollector(timings[i].definition))
	}
	if slo != nil {
		for i := range slo.Tiers {
			c.goodputs = append(c.goodputs, newGoodput(&slo.Tiers[i]))
		}
	}
	return c
}

// collectors returns all of them by name.
func (c *collection) collectors() map[string]*collector {
	all := map[string]*collector{}
	for _, m := range append([]*collector{c.lateness, c.hold, c.connect, c.itl, c.chunkGap, c.perChunk, c.input, c.output}, c.timings...) {
		all[m.name] = m
	}
	return all
}

// add takes one result.
func (c *collection) add(r *results.Result) {
	c.requests.Recorded++
	if r.Dispatched.Known {
		c.requests.dispatchedAll++
	}
	if !r.Measured() {
		c.requests.WarmUp++
		return
	}
	m := newFlown(r)
	c.addOutcome(r)
	c.sessions.add(r)
	c.spans[0].add(r)
	c.addClient(r)
	if successful(r) {
		c.requests.Successful++
		c.addLatency(r, &m)
		c.addChunks(r)
		c.addTokens(r)
		c.ttft.add(r.RecordedTTFT, results.TTFT, r)
		c.e2e.add(r.RecordedE2E, results.E2E, r)
	} else {
		c.tokens.Unsuccessful.add(r)
	}
	c.addGood(r)
	if r.Sent.Known && r.End.Known {
		c.flown = append(c.flown, m)
	}
}

// addGood takes what a request is to the error rate and to goals.
func (c *collection) addGood(r *results.Result) {
	if censored(r) {
		c.requests.Censored++
	}
	if erroneous(r) {
		c.erroneous++
	}
	if r.Outcome == results.OutcomeUnsent {
		return
	}
	for _, g := range c.goodputs {
		g.add(r, c.slo.LengthIsBad)
	}
}

func (c *collection) addOutcome(r *results.Result) {
	c.outcomes.add(r.Outcome)
	if r.Outcome == results.OutcomeUnsent {
		c.requests.unsentRows++
	}
	if !successful(r) {
		c.causes.add(r.Outcome + ": " + r.Cause.Or("no cause recorded"))
	}
	if r.FinishReason.Known {
		c.finish.add(r.FinishReason.Value)
	}
	if r.HTTPStatus.Known {
		c.statuses.add(strconv.Itoa(int(r.HTTPStatus.Value)))
	}
	if r.Note.Known {
		for note := range strings.SplitSeq(r.Note.Value, "; ") {
			c.notes.add(note)
		}
	}
}

// addClient takes what the client itself did: it is the same for good and bad
// responses.
func (c *collection) addClient(r *results.Result) {
	if r.Sent.Known {
		c.requests.Sent++
	} else {
		c.unwritten.add(r.Outcome)
	}
	if !r.Dispatched.Known {
		return
	}
	c.requests.Dispatched++
	if late, ok := results.Lateness(r); ok {
		c.lateness.one(int64(late))
		c.late = append(c.late, lateSample{int64(r.Eligible.Value), int64(late)})
	} else {
		c.lateness.absent.add("no eligible time")
	}
	if r.Due.Known && r.Eligible.Known && r.Eligible.Value > r.Due.Value {
		c.hold.one(int64(r.Eligible.Value - r.Due.Value))
		c.holds.add(r.HoldCause.Or("no cause recorded"))
	} else {
		c.hold.absent.add("not held")
	}
	switch reused, known := r.ConnReused.Get(); {
	case !r.Connected.Known || !known:
		c.connect.absent.add("no connection")
	case reused:
		c.connect.absent.add("connection reused")
	default:
		c.connect.one(int64(r.Connected.Value - r.Dispatched.Value))
	}
}

func (c *collection) addLatency(r *results.Result, m *flown) {
	for i := range timings {
		if v, ok := timings[i].of(r); ok {
			c.timings[i].one(int64(v))
			m.take(timings[i].name, int64(v))
		} else {
			c.timings[i].absent.add(timings[i].why(r))
		}
	}
}

// addChunks takes the token-weighted and per-chunk metrics of one response.
func (c *collection) addChunks(r *results.Result) {
	before := [...]int64{c.itl.n, c.chunkGap.n, c.perChunk.n}
	for v, tokens := range results.ITL(r) {
		c.itl.many(int64(v), int64(tokens))
	}
	for v := range results.ChunkGaps(r) {
		c.chunkGap.many(int64(v), 1)
	}
	for chunk := range results.Chunks(r.Ledger) {
		if chunk.HasTokens() && chunk.Tokens.Known {
			c.perChunk.many(int64(chunk.Tokens.Value), 1)
		}
	}
	for i, m := range [...]*collector{c.itl, c.chunkGap, c.perChunk} {
		switch {
		case m.n > before[i]:
			m.requests++
		case m == c.itl:
			m.absent.add(whyITL(r))
		case m == c.chunkGap:
			m.absent.add(whySecond(r))
		default:
			m.absent.add(whyCounted(r))
		}
	}
	shared, chunks := results.SharedReads(r.Ledger)
	c.tokens.Chunks += int64(chunks)
	c.tokens.SharedReads += int64(shared)
	if source, ok := results.LedgerSource(r.Ledger); ok {
		c.ledgerSources.add(source.String())
	}
}

func (c *collection) addTokens(r *results.Result) {
	t := &c.tokens
	t.Input.add(r.PlannedInputTokens, r.CountedInputTokens)
	t.Output.add(r.PlannedOutputTokens, r.OutputTokens)
	if n, ok := r.CountedInputTokens.Get(); ok {
		c.input.one(n)
		if r.CachedTokens.Known {
			t.Cached.add(r.CachedTokens.Value, n)
		}
	} else {
		c.uncounts.input++
		c.input.absent.add("not counted by the server")
	}
	if n, ok := r.OutputTokens.Get(); ok {
		c.output.one(n)
		c.outputSources.add(r.OutputSource.Or(results.SourceUnknown).String())
		if r.ReasoningTokens.Known {
			t.Reasoning.add(r.ReasoningTokens.Value, n)
		}
	} else {
		c.uncounts.output++
		c.output.absent.add(whyNoOSL)
		c.outputSources.add(results.SourceUnknown.String())
	}
	if d, ok := r.LedgerDifference.Get(); ok {
		t.LedgerDifference.add(d)
	}
}

// A span follows the instants of a run that windows are cut from.
type span struct {
	due, sent extent
	lastEnd   time.Duration
	ended     bool
	ends      []time.Duration // of successful requests
}

type extent struct {
	first, last time.Duration
	n           int64
}

func (e *extent) add(t trace.Optional[time.Duration]) {
	if !t.Known {
		return
	}
	if e.n++; e.n == 1 {
		e.first, e.last = t.Value, t.Value
	}
	e.first, e.last = min(e.first, t.Value), max(e.last, t.Value)
}

func (e *extent) length() time.Duration { return e.last - e.first }

func (s *span) add(r *results.Result) {
	s.due.add(r.Due)
	s.sent.add(r.Sent)
	if !r.Sent.Known || !r.End.Known {
		return
	}
	s.ended = true
	s.lastEnd = max(s.lastEnd, r.End.Value)
	if successful(r) {
		s.ends = append(s.ends, r.End.Value)
	}
}

// ratios are replayed over recorded times of the requests that have both.
type ratios []float64

func (s *ratios) add(recorded trace.Optional[time.Duration], of func(*results.Result) (time.Duration, bool), r *results.Result) {
	if v, ok := of(r); ok && recorded.Known && recorded.Value > 0 {
		*s = append(*s, float64(v)/float64(recorded.Value))
	}
}
