package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// A Survey is what one look at the selected rows shows before the run.
type Survey struct {
	Planned results.Planned
	Clock   string

	InputRows, OutputRows int64            // rows that know their tokens
	Literal               int64            // rows with literal content
	Sessions              int64            // distinct
	Models                map[string]int64 // rows by recorded model; "" = none recorded
	PeakRate              float64          // most requests due within one second (windows from the first due time); 0 in a closed loop
	MaxBurst              int64            // most requests due at one instant
	ZeroOutput            int64            // rows that recorded 0 output tokens; they ask for 1
	Unsendable            int64            // rows that cannot be sent
	UnsendableWhy         string           // of the first of them
	Cancelled             int64            // rows whose recorded client gave up
	TooShort              int64            // rows with 0 input tokens; their prompt has 1
	WarmUp                int64            // requests that stand for what sessions have lived through before
	Passes                int64            // of the trace, in the plan
	Endless               bool             // the plan is one pass of as many as the duration has room for
	OpenHistory           int64            // delta turns whose conversation lacks the answers in between

	// InFlight is the mean number of requests in flight that the recorded
	// latencies imply (Little's law); unknown if fewer than all rows have one.
	InFlight trace.Optional[float64]
	// PeakInFlight is the most at once that they imply, likewise.
	PeakInFlight trace.Optional[int64]

	cool time.Duration // when the cool-down begins

	turns map[string]int64 // rows with delta messages by session
	links *links           // nil for PaceSchedule
}

// Look surveys the rows that c selects.
func Look(ctx context.Context, c *Config) (*Survey, error) {
	s := &Survey{Models: map[string]int64{}, turns: map[string]int64{}}
	r, err := c.open()
	if err != nil {
		return nil, err
	}
	s.Clock = r.Meta().Clock
	r.Close()
	l := looker{Survey: s, closed: c.Selection.Load.closed(), sessions: map[string]struct{}{}, reuse: plannedReuse{c: c}}
	if c.paced() {
		s.links = &links{selected: map[int64]uint64{}, referenced: map[int64]struct{}{}}
	}
	once := *c
	if s.Endless = c.Selection.endless(); s.Endless {
		once.Selection.Recycle = false
	}
	if err := once.each(ctx, l.row); err != nil {
		return nil, err
	}
	l.end()
	if s.cool = c.CoolFrom.Value; !c.CoolFrom.Known {
		if s.cool, err = s.coolDown(c, l.last); err != nil {
			return nil, err
		}
	}
	if !c.Shard.all() {
		return s, nil // others may have all the rows
	}
	if s.Planned.Requests == 0 && c.Selection.placed() {
		return nil, trace.WithFix(errors.New("the load begins no request before it ends"), "make it longer or denser: --duration, --arrivals, --ramp")
	}
	if s.Planned.Requests == 0 {
		return nil, trace.WithFix(fmt.Errorf("%s: no row is selected", c.Trace), "widen --from and --to")
	}
	if s.Unsendable == s.Planned.Requests {
		return nil, fmt.Errorf("%s: no row can be sent: %s", c.Trace, s.UnsendableWhy)
	}
	return s, nil
}

// CoolFrom is when the cool-down begins, if there is one.
func (s *Survey) CoolFrom(c *Config) trace.Optional[time.Duration] {
	return trace.Optional[time.Duration]{Value: s.cool, Known: c.CoolDown > 0}
}

type looker struct {
	*Survey
	closed   bool // there are no due times
	sessions map[string]struct{}
	any      bool
	first    time.Duration
	last     time.Duration
	second   int64 // window being counted
	inSecond int64
	peak     int64
	reuse    plannedReuse
	burst    int64         // requests due at last
	busy     time.Duration // sum of recorded latencies
	crowd    crowd
	latency  int64 // rows that have one
}

func (l *looker) row(b *trace.Batch, i int, s start) error {
	due := s.due
	if l.links != nil {
		id := b.ID.Values[i]
		l.links.selected[id>>6] |= 1 << (id & 63)
		for _, d := range b.AfterOf(i) {
			l.links.referenced[d.ID] = struct{}{}
		}
	}
	if s.warm {
		l.WarmUp++
	}
	l.Passes = max(l.Passes, int64(s.pass)+1)
	l.Planned.Requests++
	if !l.closed {
		l.time(due)
	}
	if n, ok := b.InputTokens.Get(i); ok {
		l.InputRows++
		add(&l.Planned.InputTokens, n)
		if n == 0 {
			l.TooShort++
		}
	}
	if n, ok := b.OutputTokens.Get(i); ok {
		l.OutputRows++
		add(&l.Planned.OutputTokens, n)
		if n == 0 {
			l.ZeroOutput++
		}
	}
	model, _ := b.Model.Get(i)
	l.Models[model]++
	if !b.CancelNS.Null[i] {
		l.Cancelled++
	}
	if e2e, ok := b.RecordedE2ENS.Get(i); ok {
		l.busy += time.Duration(e2e)
		l.latency++
		if l.latency == l.Planned.Requests && !l.closed {
			l.crowd.add(due, time.Duration(e2e))
		}
	}
	l.content(b, i)
	return nil
}

// time counts what is due with others.
func (l *looker) time(due time.Duration) {
	if !l.any {
		l.any, l.first = true, due
	}
	if l.Planned.Requests == 1 || due != l.last {
		l.burst = 0
	}
	l.burst++
	l.MaxBurst = max(l.MaxBurst, l.burst)
	l.last = due
	if w := int64((due - l.first) / time.Second); w != l.second {
		l.second, l.inSecond = w, 0
	}
	l.inSecond++
	l.peak = max(l.peak, l.inSecond)
}

// add sums what is known; the sum is unknown until something is.
func add(sum **int64, n int64) {
	if *sum == nil {
		*sum = new(int64)
	}
	**sum += n
}

func (l *looker) content(b *trace.Batch, i int) {
	row := trace.Request{
		InputTokens: trace.Optional[int64]{Known: !b.InputTokens.Null[i]}, NewInputTokens: trace.Optional[int64]{Known: !b.NewInputTokens.Null[i]},
		Prompt: trace.Optional[string]{Known: !b.Prompt.Null[i]}, Messages: trace.Optional[string]{Known: !b.Messages.Null[i]}, Body: trace.Optional[string]{Known: !b.Body.Null[i]},
	}
	if why := sendable(&row); why != "" {
		if l.Unsendable == 0 {
			l.UnsendableWhy = fmt.Sprintf("id %d has %s", b.ID.Values[i], why)
		}
		l.Unsendable++
	}
	literal := row.Prompt.Known || row.Messages.Known || row.Body.Known
	if literal {
		l.Literal++
	}
	session, ok := b.SessionID.Get(i)
	if !literal && row.InputTokens.Known {
		blocks, _ := b.Blocks(i)
		l.reuse.row(&trace.Request{
			ID: b.ID.Values[i], Model: optional(b.Model.Get(i)), Session: trace.Optional[string]{Value: session, Known: ok}, Agent: optional(b.Agent.Get(i)),
			InputTokens: optional(b.InputTokens.Get(i)), Blocks: blocks, BlockTokens: optional(b.BlockTokens.Get(i)),
		})
	}
	if !ok {
		return
	}
	_, seen := l.sessions[session]
	l.sessions[session] = struct{}{}
	if mode, _ := b.MessagesMode.Get(i); mode == trace.MessagesDelta {
		l.turns[session]++
		if seen && !strings.Contains(b.Messages.Values[i], `"assistant"`) {
			l.OpenHistory++
		}
	}
}

func optional[T any](v T, known bool) trace.Optional[T] {
	return trace.Optional[T]{Value: v, Known: known}
}

func (l *looker) end() {
	l.Planned.ReuseTokens = l.reuse.planned(l.Survey)
	l.Sessions = int64(len(l.sessions))
	l.PeakRate = float64(l.peak)
	l.Planned.DurationNS = int64(l.last - l.first)
	if l.latency != l.Planned.Requests || l.closed {
		return
	}
	l.PeakInFlight = trace.Some(l.crowd.peak)
	if span := l.last - l.first; span > 0 {
		l.InFlight = trace.Some(l.busy.Seconds() / span.Seconds())
	}
}

// Warnings are the doubts that a survey raises.
func (s *Survey) Warnings(c *Config) []string {
	var out []string
	add := func(n int64, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d of %d requests ", n, s.Planned.Requests)+fmt.Sprintf(format, args...))
		}
	}
	add(s.Unsendable, "cannot be sent and are recorded as unsent: %s", s.UnsendableWhy)
	add(s.ZeroOutput, "recorded 0 output tokens; they ask for 1")
	if s.Passes > 1 || s.Endless {
		add(s.Literal, "have literal content, which stands in each pass of the trace as it is: a prefix cache finds it from the second on (--cache-salt session tells passes apart)")
	}
	add(s.TooShort, "recorded 0 input tokens; their prompt has 1")
	add(s.OpenHistory, "continue a conversation whose recorded answers are not in the trace; their history has only the user's side")
	if c.Cancel == (Cancel{}) {
		add(s.Cancelled, "were given up by their client when they were recorded; here they run to their end (--cancel recorded gives them up at that time)")
	}
	if s.Planned.Requests-s.OutputRows-s.Unsendable > 0 {
		add(s.Planned.Requests-s.OutputRows, "do not know their output length; the server decides it")
	}
	if text, err := s.room(c); err != nil {
		out = append(out, "the run would be refused: "+err.Error())
	} else if text != "" {
		out = append(out, text)
	}
	return out
}

// resolveModels maps every recorded model, so that no request fails in the run
// for a name. served lists what the endpoint offers; nil if it does not say.
func (c *Config) resolveModels(recorded map[string]int64, served []string) (map[string]string, error) {
	out := map[string]string{}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		to, ok := c.model(name)
		switch {
		case ok:
			out[name] = to
		case slices.Contains(served, name) && name != "":
			out[name] = name
		case len(served) == 1 && len(c.Models) == 0:
			out[name] = served[0]
		default:
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	offers := "the endpoint does not list its models"
	if len(served) > 0 {
		offers = "the endpoint offers " + strings.Join(served, ", ")
	}
	if missing[0] == "" {
		return nil, trace.WithFix(fmt.Errorf("no model to ask for: the trace records none for %s, and %s", trace.Plural(recorded[""], "request"), offers), "name one with --model NAME")
	}
	return nil, trace.WithFix(fmt.Errorf("recorded model %q is mapped to nothing; %s", missing[0], offers), fmt.Sprintf("map it with --model %s=NAME, or name one model for all with --model NAME", missing[0]))
}
