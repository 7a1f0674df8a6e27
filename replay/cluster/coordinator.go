package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// Defaults of a Coordinator; the flags read them from here.
const (
	DefaultLease = 15 * time.Second
	DefaultJoin  = 2 * time.Minute
	LeastLease   = 2 * time.Second // several beats, each with the time to be answered
)

// Values of Coordinator.OnLoss.
const (
	LossTakeOver = "take-over" // the others send what the lost one has not
	LossFail     = "fail"      // the run is called off
)

// Times of a coordinator.
const (
	tick         = 50 * time.Millisecond
	startIn      = time.Second            // from all are ready to the start: several beats
	takeOverIn   = 500 * time.Millisecond // from the notice of a loss to the first request that is taken over: two beats, and a look at the trace
	busStreams   = 100                    // likewise: files of results, while the run goes on
	busBeats     = 1000                   // beats a second of all workers: those of more than 200 come less often
	leaseBeats   = 10                     // in the shortest lease
	fineClock    = time.Millisecond / 2   // a bound of all clocks that is worth no wait
	clockBeats   = 10                     // for how many beats the start waits for better clocks
	deliverLimit = 10 * time.Minute       // for the results of a worker, while it is heard
)

// A Coordinator runs one replay by several workers.
type Coordinator struct {
	Config  *replay.Config // of the whole run; Dir must exist and be empty
	Args    []string       // flags for the workers, which make this configuration
	Workers int
	OnLoss  string        // "" = LossTakeOver
	Lease   time.Duration // how long a worker may be silent; 0 = DefaultLease
	Join    time.Duration // how long to wait for workers; 0 = DefaultJoin
	Log     func(format string, args ...any)

	Bus    Bus     // external server; unused with Server
	Server *Server // embedded one
	// Start starts the workers, on this machine, once they are expected; each keeps its
	// results in Dir/workers/NAME. nil = they come by themselves.
	Start func(ctx context.Context) ([]Process, error)

	stream  time.Duration // 0 = streamEvery
	nc      *nats.Conn
	run     string
	base    results.Run
	survey  *replay.Survey
	cool    trace.Optional[time.Duration] // when the cool-down begins
	weights []int64                       // of slots
	rows    []int64                       // likewise: requests
	table   []int                         // likewise: which worker has it at the start
	keep    bool                          // sessions together
	whole   bool                          // and not taken over in their midst
	clock   *Clock

	mu      sync.Mutex
	members []*member // in the order of joining
	allHere time.Time // since when nothing but better clocks is waited for
	start   int64     // instant of time 0; 0 = not yet
	stop    bool
	aborted error // why, where it was --abort-if
	fail    string
	denied  error // what the server does not let the coordinator do; the first
	collect bool
	wishes  []wish // for shares, those that are being made first
	dealing bool   // they are
	closed  bool   // no more are made

	closing chan struct{} // closed with closed
	making  sync.WaitGroup
	store   jetstream.ObjectStore // nil until a share is made; of making
}

// A Process is a worker that was started on this machine.
type Process struct {
	Name string
	Over <-chan error // gets how it ended
}

// Run replays, and assembles the run directory.
func (c *Coordinator) Run(ctx context.Context) (*results.Run, error) {
	if err := c.Config.CheckShared(c.Workers); err != nil {
		return nil, err
	}
	if err := c.plan(ctx); err != nil {
		return nil, err
	}
	c.closing = make(chan struct{})
	b, seed := c.bus()
	var err error
	if c.nc, err = b.connect("coordinator", "coordinator", seed, c.onDenied); err != nil {
		return nil, err
	}
	defer c.nc.Close()
	for what, answer := range map[string]nats.MsgHandler{"hello": c.onHello, "beat": c.onBeat, "rows": c.onRows} {
		sub, err := c.nc.Subscribe(b.subject("*", what), answer)
		if err != nil {
			return nil, err
		}
		sub.SetPendingLimits(-1, 256<<20)
	}
	if err := c.nc.Flush(); err != nil {
		return nil, fmt.Errorf("%s: %w", b.URL, err)
	}
	var processes []Process
	if c.Start != nil {
		if processes, err = c.Start(ctx); err != nil {
			return nil, err
		}
	}
	for _, p := range processes {
		go c.watch(p)
	}
	defer c.farewell(processes)
	defer c.dropShares()
	if err := c.ready(ctx); err != nil {
		c.callOff(err.Error())
		return nil, err
	}
	observed, err := c.send(ctx)
	if err != nil {
		c.callOff(err.Error())
		return nil, trace.WithFix(err, "assemble what the workers have kept: reprise report --recover "+c.keptAt())
	}
	observed(&c.base)
	run, err := c.gather(ctx)
	return run, errors.Join(c.aborted, err)
}

// keptAt is where workers have their results when the run is called off.
func (c *Coordinator) keptAt() string {
	if c.Start != nil {
		return c.Config.Dir
	}
	return "DIR..., the directories that reprise worker has with -o"
}

func (c *Coordinator) bus() (Bus, string) {
	if c.Server == nil {
		return c.Bus, ""
	}
	return Bus{URL: c.Server.URL, Cluster: c.Bus.Cluster}, c.Server.own
}

// plan looks at the whole run.
func (c *Coordinator) plan(ctx context.Context) error {
	c.run, c.clock = "run-"+strings.ToLower(rand.Text()[:12]), NewClock(0)
	survey, err := replay.Look(ctx, c.Config)
	if err != nil {
		return err
	}
	if c.rows, c.weights, c.keep, err = replay.Weigh(ctx, c.Config, survey); err != nil {
		return err
	}
	base, err := replay.Describe(c.Config, survey)
	if err != nil {
		return err
	}
	c.base, c.survey, c.whole, c.cool = *base, survey, c.Config.WholeSessions(survey), survey.CoolFrom(c.Config)
	return nil
}

// ready waits until all workers have joined and are ready.
func (c *Coordinator) ready(ctx context.Context) error {
	limit := c.Join
	if limit == 0 {
		limit = DefaultJoin
	}
	late, again := time.After(limit), time.NewTicker(tick)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			c.mu.Lock()
			defer c.mu.Unlock()
			ready := c.count(func(m *member) bool { return m.state == stateReady })
			return trace.WithFix(fmt.Errorf("%d of %d workers joined within %v, and %d of them are ready", len(c.members), c.Workers, limit, ready), "start more with: reprise worker --nats URL; or raise --join-timeout")
		case <-again.C:
		}
		if done, err := c.allReady(); done || err != nil {
			return err
		}
	}
}

// onDenied notes what the server does not allow: before the start it ends the run.
func (c *Coordinator) onDenied(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied == nil {
		c.denied = err
		if c.start != 0 {
			c.Log("%v", err)
		}
	}
}

func (c *Coordinator) allReady() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied != nil {
		return false, c.denied
	}
	for _, m := range c.members {
		switch {
		case m.state == stateFailed:
			return false, trace.WithFix(fmt.Errorf("worker %s: %s", m.name, m.err), m.fix)
		case m.over:
			return false, fmt.Errorf("worker %s ended before the start: %s", m.name, m.lostWhy)
		case c.silent(m):
			return false, fmt.Errorf("worker %s has been silent for %v before the start", m.name, c.lease())
		}
	}
	return len(c.members) == c.Workers && c.count(func(m *member) bool { return m.state == stateReady && m.clock != nil }) == c.Workers && c.clocksAreFine(), nil
}

// clocksAreFine tells whether the clocks are known well, or as well as some more beats
// can make them: many that join at once disturb the exchanges of one another. The caller
// holds mu.
func (c *Coordinator) clocksAreFine() bool {
	if c.count(func(m *member) bool { return m.clock.Bound > int64(fineClock) }) == 0 {
		return true
	}
	if c.allHere.IsZero() {
		c.allHere = time.Now()
	}
	return time.Since(c.allHere) > clockBeats*c.beatEvery()
}

// count counts members. The caller holds mu.
func (c *Coordinator) count(is func(*member) bool) int {
	n := 0
	for _, m := range c.members {
		if is(m) {
			n++
		}
	}
	return n
}

func (c *Coordinator) lease() time.Duration {
	return max(cmp.Or(c.Lease, DefaultLease), leaseBeats*c.beatEvery())
}

// beatEvery is from beat to beat of a worker: so many of them are not to keep a bus busy.
func (c *Coordinator) beatEvery() time.Duration {
	return max(beatEvery, time.Duration(c.Workers)*time.Second/busBeats)
}

// streamEvery is how often a worker hands over results while the run goes on.
func (c *Coordinator) streamEvery() time.Duration {
	return max(cmp.Or(c.stream, streamEvery), time.Duration(c.Workers)*time.Second/busStreams)
}

// beats is a time that holds as many beats as it does with few workers.
func (c *Coordinator) beats(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(c.beatEvery()) / float64(beatEvery))
}

// send starts all at one instant, and watches until all that can be sent has been.
func (c *Coordinator) send(ctx context.Context) (observed func(*results.Run), err error) {
	c.mu.Lock()
	c.start = c.clock.Now() + int64(c.beats(startIn))
	c.base.Started = time.Unix(0, c.start).UTC().Format(time.RFC3339Nano)
	c.mu.Unlock()
	if err := results.WriteRun(c.Config.Dir, &c.base); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	observed = func(*results.Run) {}
	if c.Config.Observe != nil {
		observed = c.Config.Observe(c.clock.At(c.start))
	}
	again := time.NewTicker(tick)
	defer again.Stop()
	defer c.view()()
	stopped := ctx.Done()
	for {
		select {
		case <-stopped:
			stopped = nil
			c.mu.Lock()
			c.stop = true
			c.mu.Unlock()
		case <-again.C:
		}
		if err := c.losses(); err != nil {
			observed(&c.base)
			return nil, err
		}
		c.mu.Lock()
		c.abort()
		over := c.count((*member).sends) == 0
		c.collect = over
		c.mu.Unlock()
		if over {
			return observed, nil
		}
	}
}

// abort ends the run if too much of what has ended has failed. The caller holds mu.
func (c *Coordinator) abort() {
	var failed, ended int64
	for _, m := range c.members {
		failed, ended = failed+m.progress.Errors, ended+m.progress.Done
	}
	if err := c.Config.Abort(failed, ended); err != nil && !c.stop {
		c.aborted, c.stop = err, true // it is said in the end
	}
}

// now is the time of the run. The caller holds mu.
func (c *Coordinator) now() time.Duration { return time.Duration(c.clock.Now() - c.start) }

// The live view is made each second, or so much less often that merging the histograms
// of many workers takes no more than a tenth of the time.
const (
	viewEvery = time.Second
	viewShare = 10
)

// view shows how far all are, beside what watches over them; stop shows it a last time.
func (c *Coordinator) view() (stop func()) {
	if c.Config.Progress == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for wait := viewEvery; ; {
			select {
			case <-over:
				c.Config.Progress(c.progress())
				return
			case <-time.After(wait):
			}
			begin := time.Now()
			c.Config.Progress(c.progress())
			wait = max(viewEvery, viewShare*time.Since(begin))
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// progress is that of all.
func (c *Coordinator) progress() replay.Progress {
	c.mu.Lock()
	all := replay.Progress{
		Elapsed: c.now(), Planned: c.base.Planned.Requests, Endless: c.Config.Endless(), NextDue: -1, Stopped: c.stop,
		Length: time.Duration(c.base.Planned.DurationNS), Outcomes: map[string]int64{},
	}
	var parts []replay.Progress
	for _, m := range c.members {
		p := m.heard(all.Elapsed)
		p.Lateness, m.late = m.late, 0
		parts = append(parts, p)
		if m.lost {
			all.Lost++
		}
	}
	c.mu.Unlock()
	for i := range parts { // without the lock: a beat does not wait for it
		all.Add(&parts[i])
	}
	return all
}

// callOff tells the workers that the run is off, and gives them the time to hear it.
func (c *Coordinator) callOff(why string) {
	c.mu.Lock()
	c.fail = why
	c.mu.Unlock()
	time.Sleep(c.beats(2 * beatEvery))
}

// gather takes the results in, and assembles them.
func (c *Coordinator) gather(ctx context.Context) (*results.Run, error) {
	again, begin := time.NewTicker(tick), time.Now()
	defer again.Stop()
	for range again.C {
		c.mu.Lock()
		waits := c.count(func(m *member) bool { return m.here() && !m.delivered && !c.silent(m) })
		c.mu.Unlock()
		if waits == 0 || time.Since(begin) > deliverLimit {
			break
		}
	}
	return c.assemble(context.WithoutCancel(ctx))
}

// assemble makes one run directory of what is here.
func (c *Coordinator) assemble(ctx context.Context) (*results.Run, error) {
	c.mu.Lock()
	a := assembly{run: c.base, dir: c.Config.Dir, stopped: c.stop, aborted: c.aborted, keep: c.keep}
	for _, m := range c.members {
		p := part{name: m.name, planned: m.planned, silent: m.silence, lostAt: m.lostAt, lostWhy: m.lostWhy, lost: m.lost, told: m.progress.Sent, took: len(m.takeover), host: m.host, slots: m.slots}
		if !m.delivered && !m.lost {
			p.lost, p.lostWhy = true, "its results did not arrive"
		}
		for _, dir := range []string{filepath.Join(c.Config.Dir, receivedDir, m.name), filepath.Join(c.Config.Dir, workersDir, m.name)} {
			if _, err := os.Stat(filepath.Join(dir, keptFile)); err == nil {
				p.dir = dir
				break
			}
		}
		a.parts = append(a.parts, p)
	}
	c.mu.Unlock()
	a.sort()
	run, err := a.write(ctx)
	if err != nil {
		return run, fmt.Errorf("assemble the run: %w", err)
	}
	return run, errors.Join(os.RemoveAll(filepath.Join(c.Config.Dir, receivedDir)), os.RemoveAll(filepath.Join(c.Config.Dir, workersDir)))
}

// Directories within that of a run, while it is not assembled.
const (
	receivedDir = "received" // what came over the bus
	workersDir  = "workers"  // of workers on this machine
)

// WorkerDir is where a worker on this machine keeps its results.
func WorkerDir(run, name string) string { return filepath.Join(run, workersDir, name) }
