package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// Times of a worker.
const (
	beatEvery = 200 * time.Millisecond // up to busBeats of them a second, of all workers
	beatWait  = time.Second            // for an answer
	// fenceAfter is the share of the lease after which a worker that hears nothing
	// stops sending: well before others take over what it has not sent.
	fenceAfter = 0.75
	// orphanAfter is how long a worker whose run is over, or that is fenced, waits
	// for a coordinator that says nothing.
	orphanAfter = time.Minute
	// shareReady is from the arrival of a share that is taken over to its first request:
	// time to look at it.
	shareReady = 200 * time.Millisecond
	clockBurst = 16 // exchanges before the start, and at the end
)

// A Worker sends its shard of a run.
type Worker struct {
	Bus     Bus
	Name    string // among the workers of the run; the bus's user may be bound to it
	Seed    string // nkey of the user; "" = as Bus says
	Dir     string // where results are kept; must not exist, or be empty
	Version string
	Fetch   bool // the trace comes from the object store, even if it is here
	Clock   *Clock
	Log     func(format string, args ...any)
	// Config turns the flags of the plan into a configuration for the trace at path.
	Config func(args []string, path string) (*replay.Config, error)
	// Parent is closed when the process that started this one is gone; nil = none did.
	Parent <-chan struct{}

	send     func(context.Context, replay.Config) (*results.Run, error) // what sends; nil = replay.Run
	answered atomic.Int64                                               // by Clock: when the last beat left that was answered

	nc    *nats.Conn
	nonce string
	plan  plan
	whole bool // the trace is at the plan's path

	mu      sync.Mutex
	state   string
	err     error
	start   int64 // 0 of the run, by this clock; 0 = not known
	first   Estimate
	clock   filter
	legs    []*leg
	wants   map[int]chan share // by leg
	fresh   bool               // progress with histograms that no beat has carried
	told    bool               // the coordinator knows why this worker ends
	denied  error              // what the server does not let this worker do; the first
	started chan struct{}      // closed when start is known
	stop    context.CancelCauseFunc
	sending sync.WaitGroup
}

// A leg is one run of a worker: its own shard, or what it took over.
type leg struct {
	shard    replay.Shard
	progress replay.Progress
	places   int // of a leg that was taken over
	pace     pace
	over     bool
}

// errFenced stops the sending of a worker that has heard nothing for so long that
// others take over.
var errFenced = errors.New("the coordinator was silent for too long, and others take over")

// Run joins a run, sends, hands its results over and returns. An error says where
// the results are kept, if there are any that were not handed over.
func (w *Worker) Run(ctx context.Context) error {
	w.nonce, w.started, w.wants, w.state = rand.Text(), make(chan struct{}), map[int]chan share{}, statePreparing
	var err error
	if w.nc, err = w.Bus.connect(w.Name, w.Name, w.Seed, w.onDenied); err != nil {
		return err
	}
	defer w.nc.Close()
	if err := w.join(ctx); err != nil {
		return err
	}
	w.Log("joined as worker %d of %d, with %d of %d requests", w.plan.Index+1, w.plan.Of, w.plan.Mine, w.plan.Base.Planned.Requests)
	w.answered.Store(w.Clock.Now())
	sending, stop := context.WithCancelCause(ctx)
	w.mu.Lock()
	w.stop = stop
	w.mu.Unlock()
	defer stop(nil)
	w.sending.Go(func() { w.prepare(sending) })
	if w.plan.Stream > 0 {
		w.sending.Go(func() { w.stream(sending) })
	}
	collect, err := w.beats(ctx)
	stop(err)
	w.sending.Wait()
	if kerr := w.keep(); err == nil {
		err = kerr
	}
	if err == nil {
		err = w.deliver(context.WithoutCancel(ctx), collect)
	}
	if w.startsAt() == 0 {
		w.clear()
	}
	if err != nil && w.hasResults() {
		err = trace.WithFix(fmt.Errorf("%w; the results of this worker are kept in %s", err, w.Dir), "assemble them with those of the others: reprise report --recover DIR...")
	}
	return err
}

// clear takes away what a worker has made for a run that did not begin; its directory is
// for the next one.
func (w *Worker) clear() {
	for n := range len(w.legs) {
		os.RemoveAll(filepath.Join(w.Dir, strconv.Itoa(n)))
		s := w.shareAt(n)
		os.Remove(s.trace)
		os.Remove(s.times)
	}
}

// Told tells that the coordinator knows why Run has failed: it has heard the error, or has
// called the run off itself.
func (w *Worker) Told() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}

func (w *Worker) hasResults() bool {
	_, err := os.Stat(filepath.Join(w.Dir, "0", results.RunFile))
	return err == nil
}

// call sends a request and waits for the answer.
func (w *Worker) call(ctx context.Context, what string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, beatWait)
	defer cancel()
	m, err := w.nc.RequestWithContext(ctx, w.Bus.subject(w.Name, what), text)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, out)
}

// join says hello until a coordinator has room.
func (w *Worker) join(ctx context.Context) error {
	h := hello{Version: w.Version, Protocol: protocolVersion, Nonce: w.nonce, Host: host()}
	said := ""
	for {
		var answer welcome
		err := w.call(ctx, "hello", h, &answer)
		switch {
		case err == nil && answer.Plan != nil:
			w.plan = *answer.Plan
			return nil
		case err == nil && answer.Refused != "":
			return trace.WithFix(errors.New(answer.Refused), answer.Fix)
		case err == nil && answer.Wait != "" && answer.Wait != said:
			said = answer.Wait
			w.Log("%s", said)
		case err != nil && w.isDenied() != nil:
			return w.isDenied()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.Parent:
			return errors.New("the coordinator is gone")
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// onDenied notes what the server does not allow. It ends a worker that is not ready; one
// that sends goes on, since sending needs no bus.
func (w *Worker) onDenied(err error) {
	w.mu.Lock()
	first := w.denied == nil
	if first {
		w.denied = err
	}
	joined, preparing := w.stop != nil, w.state == statePreparing
	w.mu.Unlock()
	switch {
	case joined && preparing:
		w.fail(err)
		w.stop(err)
	case joined && first:
		w.Log("%v", err)
	}
}

func (w *Worker) isDenied() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.denied
}

func host() results.Host {
	return results.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
}

// prepare looks for the trace and begins the first leg.
func (w *Worker) prepare(ctx context.Context) {
	w.findTrace()
	w.begin(ctx, replay.Shard{Owns: w.plan.Slots.has, Sessions: w.plan.Sessions}, 0)
}

func (w *Worker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.state, w.err = stateFailed, err
	}
}

// begin begins a leg; places are those that come with what is taken over.
func (w *Worker) begin(ctx context.Context, shard replay.Shard, places int) {
	w.mu.Lock()
	n := len(w.legs)
	l := &leg{shard: shard, places: places, progress: unheard()}
	w.legs = append(w.legs, l)
	w.mu.Unlock()
	w.sending.Go(func() {
		if err := w.replay(ctx, n, l); err != nil {
			w.fail(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		l.over, l.progress.Sending, l.progress.Unheard = true, false, false // also of one that failed before it had said anything
		if w.state == stateRunning && w.allOver() {
			w.state = stateDone
		}
	})
}

// allOver tells that no leg sends or waits for answers. The caller holds mu.
func (w *Worker) allOver() bool {
	for _, l := range w.legs {
		if !l.over {
			return false
		}
	}
	return true
}

// replay runs a leg.
func (w *Worker) replay(ctx context.Context, n int, l *leg) error {
	from, err := w.sourceOf(ctx, n)
	if err != nil {
		return err
	}
	c, err := w.Config(w.plan.Args, from.trace)
	if err != nil {
		return err
	}
	if places := c.Places(w.plan.Index, w.plan.Of); n > 0 {
		c.SetPlaces(l.places)
	} else if places > 0 {
		c.SetPlaces(places)
	}
	c.ShareWarmUp(w.plan.Index, w.plan.Of, n > 0)
	if n > 0 || w.plan.Index > 0 {
		c.Flush = "" // once for the run
	}
	if c.Times = from.times; n > 0 && c.Times != "" { // it was due while its share came
		now := time.Duration(w.Clock.Now() - w.startsAt())
		l.shard.From = max(l.shard.From, now+shareReady)
	}
	c.Shard, c.Dir, c.Version = l.shard, filepath.Join(w.Dir, strconv.Itoa(n)), w.Version
	c.Begin = func() error { return os.MkdirAll(c.Dir, 0o755) }
	c.Progress = func(p replay.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.Lateness = max(p.Lateness, l.progress.Lateness) // until a beat has taken it
		l.progress, w.fresh = p, true
	}
	c.Histograms, c.AbortErrorRate = true, 0 // the coordinator looks at all requests
	if at := w.plan.CoolFrom; at != nil {
		c.CoolFrom = trace.Some(*at)
	}
	if w.plan.TakeOver {
		c.Admit = w.admit(l, w.plan.Closed)
	}
	c.Start = func(ctx context.Context) (time.Time, error) { return w.await(ctx, l) }
	send := replay.Run
	if w.send != nil {
		send = w.send
	}
	run, err := send(ctx, *c)
	if run != nil && run.Ended != nil && ctx.Err() != nil {
		return nil // it was stopped, and says so
	}
	return err
}

// startsAt is 0 of the run, by this clock; 0 = not known.
func (w *Worker) startsAt() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start
}

// await reports that all is ready, and waits for the start.
func (w *Worker) await(ctx context.Context, l *leg) (time.Time, error) {
	w.mu.Lock()
	if w.state == statePreparing {
		w.state = stateReady
	}
	w.mu.Unlock()
	select {
	case <-w.started:
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == stateReady || w.state == stateDone {
		w.state = stateRunning
	}
	l.pace.begin(max(w.start, w.Clock.Now()))
	return w.Clock.At(w.start), nil
}

// keep writes worker.json.
func (w *Worker) keep() error {
	w.mu.Lock()
	k := kept{Worker: w.Name, Plan: w.plan, Start: w.start, First: w.first, Clock: w.clock, Host: host(), State: w.state, Legs: len(w.legs)}
	w.mu.Unlock()
	k.Plan.Args = nil
	if k.Start == 0 {
		return nil
	}
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return err
	}
	return results.WriteJSON(filepath.Join(w.Dir, keptFile), k)
}
