package replay

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/protocol"
	"reprise/replay/transport"
	"reprise/trace"
	"reprise/trace/results"
	"reprise/trace/tokens"
)

// A Probe is what a few small requests before the run found out about the
// endpoint, so that no request of the run fails for what could be known.
type Probe struct {
	Requests     int
	ExactFields  bool                  // min_tokens and ignore_eos are accepted; false if the run does not send them
	RunningUsage bool                  // usage comes on every event when asked for
	Overhead     trace.Optional[int64] // tokens that the template adds to a prompt; unknown if the server does not count one token a word
	Notes        []string
}

// probeWords are the lengths of the two prompts whose counts tell the template
// overhead, in tokens: intercept and slope.
var probeWords = [2]int{16, 80}

// probeTimeout bounds each request of the probe.
const probeTimeout = 60 * time.Second

// probe asks t for a few tokens. A server that refuses everything is an error
// with its own words.
func (r *run) probe(ctx context.Context, t *target) (Probe, error) {
	var p Probe
	p.ExactFields, p.RunningUsage = r.c.exactLength(), true
	model := r.probeModel()
	var counted [2]trace.Optional[int64]
	for i, n := range probeWords {
		s, err := r.probeOnce(ctx, t, &p, model, n)
		if err != nil {
			return p, err
		}
		counted[i] = s.Input
		if i == 0 && p.RunningUsage && r.c.Stream != StreamOff && !hasRunning(s) {
			p.RunningUsage = false
			p.Notes = append(p.Notes, "the server sends no usage on every event: "+r.c.withoutRunningUsage())
		}
	}
	p.learnOverhead(counted)
	return p, nil
}

// exactLength tells whether requests carry min_tokens and ignore_eos; some
// protocols refuse to write them.
func (c *Config) exactLength() bool { return cmp.Or(c.Output, DefaultOutput) == OutputExact }

// withoutRunningUsage says what becomes of tokens per chunk.
func (c *Config) withoutRunningUsage() string {
	if c.Tokenizer != nil {
		return "tokens per chunk are counted with the local tokenizer"
	}
	return "tokens per chunk are not known, so there is no ITL"
}

// probeModel is the model that most requests of the run ask for.
func (r *run) probeModel() string {
	best, most := "", int64(-1)
	for recorded, n := range r.survey.Models {
		name := r.c.Models[recorded]
		if n > most || n == most && name < best {
			best, most = name, n
		}
	}
	return best
}

// probeOnce sends one request, and again with fewer fields while the server
// refuses them: first running usage, then min_tokens and ignore_eos.
func (r *run) probeOnce(ctx context.Context, t *target, p *Probe, model string, words int) (ledger.Summary, error) {
	for {
		req := protocol.Request{Model: model, Stream: r.c.Stream != StreamOff, Extra: r.c.ExtraBody, MaxTokens: trace.Some(int64(4))}
		req.Prompt = [][]byte{r.probeText(words)}
		req.ContinuousUsage = p.RunningUsage && req.Stream
		if p.ExactFields {
			req.MinTokens, req.IgnoreEOS = trace.Some(int64(4)), true
		}
		body, err := r.c.protocol().AppendBody(nil, &req)
		if err != nil {
			return ledger.Summary{}, err
		}
		p.Requests++
		s, err := r.exchange(ctx, t, fmt.Sprintf("reprise-probe-%d", p.Requests), body, req.Stream)
		refused := s.Status.Value == 400 || s.Status.Value == 422
		switch {
		case err != nil:
			return s, err
		case s.Outcome == results.OutcomeOK || s.Outcome == results.OutcomeNotStreamed:
			return s, nil
		case refused && req.ContinuousUsage:
			p.RunningUsage = false
			p.Notes = append(p.Notes, "the server refuses continuous_usage_stats: "+s.Cause.Value)
		case refused && p.ExactFields:
			p.ExactFields = false
			p.Notes = append(p.Notes, "the server refuses min_tokens or ignore_eos: "+s.Cause.Value)
		default:
			return s, trace.WithFix(fmt.Errorf("%s refuses a request of %d words: %s", t.name, words, s.Cause.Or(s.Outcome)), probeFix(s))
		}
	}
}

func probeFix(s ledger.Summary) string {
	switch s.Status.Value {
	case 401, 403:
		return "name the variable that holds the key with --api-key-env"
	case 404:
		return "check --url, --protocol and --model"
	}
	return "check --url, --protocol, --model and --extra-body; --probe=false sends the run's requests without asking first"
}

// probeText has words of its own, so that it warms no cache for the run.
func (r *run) probeText(words int) []byte {
	text := tokens.Text{Seed: r.c.Selection.Seed, Scope: r.c.Scope + "probe"}
	return text.AppendPrompt(nil, tokens.Plan{Tokens: words, Fill: uint64(words)})
}

// hasRunning tells whether tokens per chunk came from running usage.
func hasRunning(s ledger.Summary) bool {
	for _, e := range s.Ledger {
		if e.Source == results.SourceUsage && e.Tokens.Value > 0 {
			return true
		}
	}
	return false
}

// learnOverhead holds the two counts against a straight line of slope 1.
func (p *Probe) learnOverhead(counted [2]trace.Optional[int64]) {
	short, ok1 := counted[0].Get()
	long, ok2 := counted[1].Get()
	switch {
	case !ok1 || !ok2:
		p.Notes = append(p.Notes, "the server does not count prompt tokens, so planned input lengths cannot be checked")
	case long-short != int64(probeWords[1]-probeWords[0]) || short < int64(probeWords[0]):
		p.Notes = append(p.Notes, fmt.Sprintf("prompts of %d and %d words count %d and %d tokens: not one token a word, so input lengths are not exact here", probeWords[0], probeWords[1], short, long))
	default:
		p.Overhead = trace.Some(short - int64(probeWords[0]))
	}
}

// exchange sends one body to t outside the schedule and waits for the answer.
func (r *run) exchange(ctx context.Context, t *target, id string, body []byte, stream bool) (ledger.Summary, error) {
	response := r.responses.Get(stream)
	response.Start(nil)
	room := len(t.head) + headEnd
	whole := append(make([]byte, room, room+len(body)), body...)
	x := &transport.Exchange{Request: t.request(whole, room, []byte(id)), Limits: transport.Limits{Total: probeTimeout}}
	asked := &question{x: x, response: response, done: make(chan struct{})}
	x.Sink = asked
	probe := t.connect(r.wall())
	defer probe.Close()
	probe.Send(x)
	select {
	case <-asked.done:
	case <-ctx.Done():
		return ledger.Summary{}, context.Cause(ctx)
	}
	if x.End == transport.EndRefused {
		return ledger.Summary{}, x.Err
	}
	end := ledger.Ending{Kind: endKind(x.End)}
	if sent, ok := x.Sent(); ok {
		end.At = x.Ended - sent
	}
	if x.Err != nil {
		end.Cause = x.Err.Error()
	}
	s := response.Close(end)
	s.Cause.Value, s.Note.Value = r.c.hide(s.Cause.Value), r.c.hide(s.Note.Value)
	return s, nil
}

// A question is a request outside the schedule.
type question struct {
	x        *transport.Exchange
	response *protocol.Response
	done     chan struct{}
}

// OnHead implements transport.Sink.
func (q *question) OnSent() {}

func (q *question) OnHead(h *transport.Head, _ time.Duration) { q.response.Head(h.Status, h.Type) }

// OnBody implements transport.Sink.
func (q *question) OnBody(p []byte, at time.Duration) error {
	sent, _ := q.x.Sent()
	return q.response.Feed(p, at-sent)
}

// Done implements transport.Sink.
func (q *question) Done(*transport.Exchange) { close(q.done) }

// wall is a clock for what happens before the run's own begins.
func (r *run) wall() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// apply takes what the probe found into the configuration, and says so in
// run.json. An exact length that the server cannot be asked for is refused now.
func (r *run) apply(p Probe) error {
	c := r.c
	if c.exactLength() {
		if !p.ExactFields {
			return trace.WithFix(fmt.Errorf("--output-length exact: %s", strings.Join(p.Notes, "; ")), "use --output-length cap: answers may then end early, which the report shows")
		}
	}
	c.runningUsage = p.RunningUsage
	c.overhead, c.overheadKnown = int(p.Overhead.Or(0)), p.Overhead.Known
	r.record.Probe = &results.Probe{Requests: p.Requests, RunningUsage: p.RunningUsage, ExactFields: p.ExactFields}
	if v, ok := p.Overhead.Get(); ok {
		shortest := int64(tokens.Shortest(int(v)))
		r.record.Probe.TemplateTokens, r.record.Probe.ShortestExact = &v, &shortest
	}
	r.record.Warnings = append(r.record.Warnings, p.Notes...)
	return nil
}
