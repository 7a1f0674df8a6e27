package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// Requests are rendered before they are due: as many as make up for a machine
// that is busy with something else, and no more than memory has room for.
const (
	aheadRequests = 1024
	aheadBytes    = 16 << 20
	firstRequests = 32 // are there before the run begins
)

// Run replays c.Trace and writes the run directory. It returns what run.json
// says; an error with a run that was begun means that records are missing or
// that the trace could not be read to its end. When ctx ends, sending stops, requests in flight
// get the grace, and everything is written.
func Run(ctx context.Context, c Config) (*results.Run, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	survey, err := Look(ctx, &c)
	if err != nil {
		return nil, err
	}
	if _, err := survey.room(&c); err != nil {
		return nil, err
	}
	r := &run{c: &c, survey: survey}
	if c.paced() {
		r.pacer = newPacer(&c)
	}
	if c.Selection.Load.Kind == LoadTrees {
		r.forest = newForest(&c, r.now, r.pacer.signal)
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	return r.record, r.do(ctx)
}

// A run is one replay.
type run struct {
	c         *Config
	survey    *Survey
	record    *results.Run
	targets   []*target
	responses pool
	recorder  *recorder
	live      *live     // nil unless somebody looks
	spare     sync.Pool // of *flight
	rows      sync.Pool // of *trace.Request
	buffers   sync.Pool // of *[]byte: requests
	slabs     sync.Pool // of *[]results.Entry: ledgers
	room      int       // bytes before a request's body, for the longest head
	renderer  *renderer
	pacer     *pacer  // nil for PaceSchedule
	forest    *forest // nil but for LoadTrees
	base      atomic.Pointer[time.Time]

	refused bool // Config.Admit has refused the next row of the trace
	flights sync.WaitGroup
	places  *places // nil = as many as come

	sent, done, failed, capped atomic.Int64
	errors                     atomic.Int64 // of done: failed, and not given up on purpose
	abort                      context.CancelCauseFunc
	nextDue, worst             atomic.Int64
	allSent, stopped           atomic.Bool
	realtime                   bool         // the sender's thread goes before all others
	outOfFiles, outOfPorts     atomic.Int64 // requests that got no connection for that

	plannedIn, plannedOut *int64 // tokens of what was sent; nil if none is known

	inFlight inFlight
	last     atomic.Int64 // end of the last response
}

// now is the run's clock: time since the start, below 0 before it.
func (r *run) now() time.Duration {
	if base := r.base.Load(); base != nil {
		return time.Since(*base)
	}
	return -1
}

// open finds the models, readies the targets and begins the run directory.
func (r *run) open(ctx context.Context) error {
	c := r.c
	p := c.protocol()
	for _, base := range c.URLs {
		u, err := endpoint(base, p.Path())
		if err != nil {
			return err
		}
		head, err := requestHead(u, c)
		if err != nil {
			return err
		}
		dial, err := dialer(u, c)
		if err != nil {
			return err
		}
		connect := c.carrier(u, dial)
		r.targets = append(r.targets, &target{name: publicURL(u), head: head, client: connect(r.now), connect: connect})
		r.room = max(r.room, len(head)+headEnd)
	}
	served, err := c.served(ctx, r.survey.Models)
	if err != nil {
		return err
	}
	models, err := c.resolveModels(r.survey.Models, served)
	if err != nil {
		return err
	}
	c.Models = models
	r.responses.protocol = p
	switch {
	case c.Selection.Load.Kind == LoadConcurrency:
		r.places = newPlaces(c.Selection.Load.N, c.Selection.Load.Ramp, c.Shard.From)
	case c.MaxInFlight > 0:
		r.places = newPlaces(c.MaxInFlight, 0, 0)
	}
	r.record = r.describe()
	if err := r.provenance(); err != nil {
		return err
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	c.runningUsage = c.Stream != StreamOff
	if !c.NoProbe {
		p, err := r.probe(ctx, r.targets[0])
		if err != nil {
			return err
		}
		if err := r.apply(p); err != nil {
			return err
		}
	}
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
	}
	if err := results.WriteRun(c.Dir, r.record); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	if c.Progress != nil {
		r.live = newLive(r.now)
		r.live.whole = c.Histograms
	}
	if r.recorder, err = newRecorder(c, r.live, r.recorded); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	return nil
}

// Label says in words how the load is made.
func (c *Config) Label() string {
	label := "open loop"
	switch c.pace() {
	case PaceCausal:
		label = "causal: a request also waits for those it comes after"
	case PaceThink:
		label = "think: a turn follows the end of the one before by its recorded delay"
	}
	if l := c.Selection.Load; l.Kind != "" {
		label = l.String()
	}
	if c.MaxInFlight > 0 {
		capped := fmt.Sprintf("capped at %d in flight", c.MaxInFlight)
		if c.paced() {
			label += ", " + capped
		} else {
			label = capped
		}
	}
	if s := c.Selection.speed(); s != 1 {
		label += fmt.Sprintf(", time compressed x%g", s)
	}
	for _, a := range []struct {
		name string
		law  Arrivals
	}{{"arrivals", c.Selection.Arrivals}, {"session arrivals", c.Selection.SessionArrivals}} {
		if a.law.Kind != "" {
			label += fmt.Sprintf(", %s %s", a.name, a.law)
		}
	}
	return label
}

// describe fills what is known before the first request.
func (r *run) describe() *results.Run {
	c := r.c
	run := &results.Run{
		HTTP: c.httpVersion(), Version: c.Version, Label: c.Label(), Labels: c.Labels, Pace: c.pace(), Speed: c.Selection.speed(), Seed: c.Selection.Seed,
		Protocol: c.protocol().Name(), Models: c.Models, Flags: c.Flags, Planned: r.survey.Planned, Warnings: r.survey.Warnings(c),
		Host: results.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()},
	}
	for _, t := range r.targets {
		run.URLs = append(run.URLs, t.name)
	}
	run.Warnings = append(run.Warnings, c.Warnings...)
	if w := c.wordWarning(); w != "" {
		run.Warnings = append(run.Warnings, w)
	}
	if c.HTTP2 {
		run.Warnings = append(run.Warnings, sharedConnections)
	}
	if c.TLS.Insecure {
		run.Warnings = append(run.Warnings, "--insecure: the server's certificate was not checked")
	}
	return run
}

// do runs the schedule and writes what came of it.
func (r *run) do(ctx context.Context) error {
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)
	q := r.prepare(ctx)
	r.nextDue.Store(-1)
	q.next = &r.nextDue
	q.fill() // so that the request due at 0 is not late for being rendered
	r.connect(ctx, q)
	loud := quiet()
	defer loud()
	usage := measureClient()
	begin, err := r.begin(ctx)
	if err != nil {
		q.stop()
		return errors.Join(err, r.recorder.close())
	}
	r.base.Store(&begin)
	r.record.Started = begin.UTC().Format(time.RFC3339Nano)
	over := func(*results.Run) {}
	if r.c.Observe != nil {
		over = r.c.Observe(begin)
	}
	stop := r.progress()
	wait, release := r.waiter(begin)
	sending, done := r.until(ctx, begin)
	first := time.Duration(0)
	if r.c.Closed() {
		first = r.c.Shard.From // what has due times waits for these
	}
	serr := wait.waitUntil(sending, first)
	switch {
	case serr != nil:
	case r.pacer != nil:
		serr = r.paced(sending, q, wait)
	default:
		q.ready = func(f *flight) { f.ready(r.target(f.seq)) }
		serr = dispatch(sending, q, wait, func(int, time.Duration) { r.send(sending, q.taken, q.taken.seq) })
	}
	done()
	release()
	r.nextDue.Store(-1)
	r.allSent.Store(true)
	r.stopped.Store(ctx.Err() != nil)
	r.wait(ctx)
	interrupted := ctx.Err() != nil
	aborted, isAborted := errors.AsType[*AbortError](context.Cause(ctx))
	stop()
	q.stop()
	client := usage()
	over(r.record)
	client.OutOfDescriptors, client.OutOfPorts = r.outOfFiles.Load(), r.outOfPorts.Load()
	for _, t := range r.targets {
		t.client.Close()
		opened, found := t.client.Connections()
		client.ConnsOpened += opened
		client.ConnsReused += found
	}
	client.ReceiveDelay, client.Realtime = r.receiveDelay(), r.realtime // when no reader is left: each notes a read after the response that it ended
	rerr := r.recorder.close()
	if r.c.Progress != nil {
		r.c.Progress(r.state())
	}
	if r.isOver(sending) || r.survey.Endless { // nobody knew how many there would be
		r.record.Planned.Requests = r.sent.Load()
		r.record.Planned.InputTokens, r.record.Planned.OutputTokens, r.record.Planned.ReuseTokens = r.plannedIn, r.plannedOut, nil
		r.record.Planned.UntilNS = new(int64(r.c.Selection.Duration))
	}
	r.record.Ended = &results.Ended{
		DurationNS: r.last.Load(), Sent: r.sent.Load(), Unsent: r.record.Planned.Requests - r.sent.Load(), Interrupted: interrupted && !isAborted,
		Capped: r.capped.Load(), Holds: r.holds(r.isOver(sending)), Overlaps: r.inFlight.overlaps.Load(), RecordsLost: r.recorder.lost, Client: client,
	}
	if rerr != nil {
		r.record.Ended.RecordError = rerr.Error()
	}
	if isAborted {
		r.record.Ended.Aborted = aborted.Error()
		rerr = errors.Join(aborted, rerr)
	}
	werr := results.WriteRun(r.c.Dir, r.record)
	if interrupted || r.isOver(sending) {
		serr = nil // it says so in Ended, or in Planned
	}
	return errors.Join(serr, q.failed(ctx), rerr, werr)
}

func (r *run) waiter(begin time.Time) (waiter, func()) {
	if r.c.portable {
		return newTimerWaiter(begin), func() {}
	}
	w, first, release := newWaiter(begin, !r.c.NoRealtime)
	r.realtime = first
	return w, release
}

// errOver ends the sending of what has no due time, after Selection.Duration.
var errOver = errors.New("the duration is over")

// until is the context for sending: where requests have no due times, it ends after
// the duration.
func (r *run) until(ctx context.Context, begin time.Time) (context.Context, context.CancelFunc) {
	d := r.c.Selection.Duration
	if d == 0 || r.c.pace() != PaceThink && !r.c.Selection.Load.closed() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, begin.Add(d), errOver)
}

// isOver tells that the duration has ended the sending.
func (r *run) isOver(sending context.Context) bool {
	return sending.Err() != nil && errors.Is(context.Cause(sending), errOver)
}

// send acts on a request that is due.
func (r *run) send(ctx context.Context, f *flight, seq int) {
	if f.hasDue {
		f.res.Due = trace.Some(f.due)
	}
	f.res.Eligible = trace.Some(f.eligible)
	if f.unsent == "" && !r.hold(ctx, f) {
		return
	}
	f.res.Phase = r.phase(f, seq)
	r.flights.Add(1)
	if f.unsent != "" {
		f.res.Outcome, f.res.Cause = results.OutcomeUnsent, trace.Some(f.unsent)
		f.res.URL = r.target(seq).name
		r.told(f, r.now())
		r.finish(f)
		return
	}
	if f.res.Session.Known {
		r.inFlight.begins(f.sessionOf())
	}
	r.sent.Add(1)
	f.ready(r.target(seq))
	in, out, eligible := f.res.PlannedInputTokens, f.res.PlannedOutputTokens, f.res.Eligible.Value
	now := r.now()
	f.res.Dispatched = trace.Some(now)
	f.send() // it may have ended when this returns, and be another request
	if in.Known {
		add(&r.plannedIn, in.Value)
	}
	if out.Known {
		add(&r.plannedOut, out.Value)
	}
	if late := int64(now - eligible); late > r.worst.Load() {
		r.worst.Store(late)
	}
}

// target is where a request goes.
func (r *run) target(seq int) *target { return r.targets[seq%len(r.targets)] }

// phase is that of a request.
func (r *run) phase(f *flight, seq int) trace.Optional[string] {
	switch c := r.c; {
	case f.warm || c.WarmUp.holds(f.res.Eligible.Value, seq):
		return trace.Some(results.PhaseWarmUp)
	case c.CoolDown > 0 && f.res.Eligible.Value >= r.survey.cool:
		return trace.Some(results.PhaseCoolDown)
	case c.Phase != "":
		return trace.Some(c.Phase)
	}
	return trace.Optional[string]{}
}

// holds tells whether a request belongs to the warm-up.
func (w WarmUp) holds(eligible time.Duration, seq int) bool {
	return eligible < w.For || int64(seq) < w.Requests
}

// hold waits for a place, in a closed loop or under the cap, and returns false if
// there is no time left for one. It holds up what is due later too: they would have to
// wait in the same line.
func (r *run) hold(ctx context.Context, f *flight) bool {
	closed := r.c.Selection.Load.Kind == LoadConcurrency
	if !r.mayBegin(ctx, f.seq, closed) {
		return false
	}
	if r.places == nil {
		return !r.isOver(ctx)
	}
	since, ok := r.places.try(r.now())
	if ok && !closed {
		return true
	}
	if !ok {
		if !closed {
			r.capped.Add(1)
			f.res.HoldCause = trace.Some("max-in-flight")
		}
		var err error
		if since, err = r.places.wait(ctx, r.now); errors.Is(err, errOver) {
			return false
		} else if err != nil {
			f.unsent = "stopped while it waited for a place under --max-in-flight"
			return !closed
		}
	} else if r.isOver(ctx) {
		return false
	}
	f.res.Eligible = trace.Some(max(f.eligible, since))
	return true
}

// admitEvery is how often Config.Admit is asked again.
const admitEvery = 20 * time.Millisecond

// mayBegin asks whether a request may begin; in a closed loop, which has no due times to
// keep, until it may.
func (r *run) mayBegin(ctx context.Context, seq int, closed bool) bool {
	for r.c.Admit != nil && !r.c.Admit(seq) {
		if !closed {
			return false
		}
		select {
		case <-time.After(admitEvery):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// requestIDLen is room for any name of a request of a run.
const requestIDLen = len("reprise-") + 20 + len("-2147483647")

// requestID appends what names a request to the server: the trace row, and after the
// first, the pass.
func (r *run) requestID(dst []byte, id int64, pass int32) []byte {
	dst = strconv.AppendInt(append(dst, "reprise-"...), id, 10)
	if pass > 0 {
		dst = strconv.AppendInt(append(dst, '-'), int64(pass), 10)
	}
	return dst
}

// provenance names the trace in run.json.
func (r *run) provenance() error {
	if r.c.source != nil {
		return nil
	}
	in, history, err := identify(r.c.Trace)
	if err != nil {
		return err
	}
	r.record.Trace, r.record.History = &in, history
	return nil
}

// holds says what causal and think pacing did; nil for PaceSchedule.
func (r *run) holds(over bool) *results.Holds {
	if r.pacer == nil {
		return nil
	}
	counts := r.pacer.counts
	if !over {
		counts.NeverEligible = int64(len(r.pacer.left()))
	}
	return &counts
}
