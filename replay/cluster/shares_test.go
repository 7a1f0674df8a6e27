//go:build !noserver

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/replay"
	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/trace"
	"reprise/trace/results"
)

// A stage is what a run of workers within this process needs: a NATS server with
// JetStream, an endpoint, and a trace that the workers do not have.
type stage struct {
	t      *testing.T
	bus    Bus
	target *mock.Server
	config replay.Config // of the whole run
	lease  time.Duration
	stream time.Duration // how often workers hand over results

	mu   sync.Mutex
	said []string // by the coordinator
}

// stageLease is so long that no worker but the one that is cut off is silent for it, also
// where this process has little of one processor: then beats are 1.3 s apart at most.
const stageLease = 4 * time.Second

// newStage has an endpoint whose tokens are a step apart.
func newStage(t *testing.T, c replay.Config, step time.Duration, rows []trace.Request) *stage {
	t.Helper()
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	if !nats.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server is not ready")
	}
	target := mock.New(mock.Config{Engine: batch.Config{StepBase: step, StepPerSequence: -1, PrefillRate: 1e7}, AccountRecords: 1 << 16})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- target.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-over })
	path := filepath.Join(t.TempDir(), "t.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, b := trace.NewWriter(f), trace.NewBatch()
	for i := range rows {
		rows[i].ID, rows[i].Operation = int64(i), trace.OpChat
		b.Append(&rows[i])
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		t.Fatal(err)
	}
	c.Trace, c.URLs, c.Model, c.NoProbe, c.Version = path, []string{"http://" + l.Addr().String()}, mock.DefaultModel, true, "1"
	return &stage{t: t, bus: Bus{URL: nats.ClientURL()}, target: target, config: c, lease: stageLease}
}

// run runs with so many workers; one for which lose returns true is cut off for good
// when it has sent so many requests.
func (s *stage) run(workers int, sent int64, lose func(i int) bool) (*results.Run, map[requestKey]results.Result, error) {
	s.t.Helper()
	s.config.Dir = s.t.TempDir()
	co := &Coordinator{Config: &s.config, Workers: workers, Lease: s.lease, stream: s.stream, Bus: s.bus, Join: time.Minute, Log: func(format string, args ...any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.said = append(s.said, fmt.Sprintf(format, args...))
	}}
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(s.t.Context())
	gone := make(chan struct{})
	for i := range workers {
		w := &Worker{Bus: s.bus, Name: fmt.Sprint("w", i), Dir: s.t.TempDir(), Version: "1", Fetch: true, Clock: NewClock(0), Parent: gone, Log: func(string, ...any) {}}
		w.Config = func(_ []string, path string) (*replay.Config, error) {
			c := s.config
			c.Trace = path
			return &c, nil
		}
		all.Go(func() { w.Run(ctx) })
		if lose != nil && lose(i) {
			all.Go(func() { cutOff(ctx, w, sent) })
		}
	}
	run, err := co.Run(ctx)
	stop()
	close(gone)
	all.Wait()
	if run != nil {
		for _, w := range run.Workers {
			s.t.Logf("worker %s: %s, took over %d times, silent for up to %v", w.Name, w.State, w.TookOver, time.Duration(w.SilentNS).Round(time.Millisecond))
		}
	}
	rows := map[requestKey]results.Result{}
	if opened, oerr := results.OpenRun(s.config.Dir); oerr == nil {
		for r, err := range opened.Results() {
			if err != nil {
				s.t.Fatal(err)
			}
			rows[requestKey{r.ID, r.Pass}] = r
		}
	}
	return run, rows, err
}

// cutOff cuts a worker off once it has sent so many requests.
func cutOff(ctx context.Context, w *Worker, sent int64) {
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		w.mu.Lock()
		n := int64(0)
		for _, l := range w.legs {
			n += l.progress.Sent
		}
		w.mu.Unlock()
		if n >= sent {
			w.nc.Close()
			return
		}
	}
}

// once holds that the endpoint got no request twice, and returns how many it got.
func (s *stage) once() int {
	s.t.Helper()
	list, _ := s.target.Account()
	seen := map[string]bool{}
	for _, r := range list {
		if seen[r.RequestID] {
			s.t.Errorf("request %s was sent twice", r.RequestID)
		}
		seen[r.RequestID] = true
	}
	return len(seen)
}

// evenly is a trace of n requests, one each so often.
func evenly(n int, every time.Duration) []trace.Request {
	rows := make([]trace.Request, n)
	for i := range rows {
		rows[i] = trace.Request{Arrival: trace.Some(time.Duration(i) * every), InputTokens: trace.Some(int64(20)), OutputTokens: trace.Some(int64(3)), OutputText: trace.Some("what was said")}
	}
	return rows
}

// TestWorkersFetchTheirShares: workers without the trace get the rows that they send and
// no others; who takes over gets those of what it takes over.
func TestWorkersFetchTheirShares(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a lease and a trace")
	}
	t.Parallel()
	const n, every = 1200, 6 * time.Millisecond // for longer than a lease and a takeover
	s := newStage(t, replay.Config{}, time.Millisecond, evenly(n, every))
	run, rows, err := s.run(3, 20, func(i int) bool { return i == 1 })
	if err != nil {
		t.Fatalf("%v\n%v", err, s.said)
	}
	s.once()
	if len(rows)+int(run.Ended.Lost) != n || run.Ended.Lost == 0 || run.Ended.Lost > n/3 {
		t.Errorf("%d results and %d lost of %d", len(rows), run.Ended.Lost, n)
	}
	for key, r := range rows {
		if want := time.Duration(key.id) * every; r.Due.Value != want || r.Outcome != results.OutcomeOK {
			t.Fatalf("request %d: due %v, %s %s", key.id, r.Due.Value, r.Outcome, r.Cause.Value)
		}
	}
	taken := 0
	for _, w := range run.Workers {
		taken += w.TookOver
		if w.Name == "w1" != (w.State == results.WorkerLost) {
			t.Errorf("worker %s %s: %d of %d", w.Name, w.State, w.Recorded, w.Planned)
		}
	}
	if taken != 2 || !slices.ContainsFunc(s.said, func(text string) bool {
		return text == "puts 2 shares of the trace into the object store, for workers that do not have it"
	}) {
		t.Errorf("%d took over; the coordinator said %q", taken, s.said)
	}
}

// TestClosedLoopIsTakenOver: of a worker's shard of a closed loop, what it has certainly
// not begun goes to the others with its places, and nothing is sent twice.
func TestClosedLoopIsTakenOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a lease and a run")
	}
	t.Parallel()
	const n = 3900 // at 2 places of 22 ms, a worker's third takes 14 s, and what it may have begun when others take over less than 7
	rows := evenly(200, time.Millisecond)
	for i := range rows {
		rows[i].OutputTokens = trace.Some(int64(5))
		if i%3 > 0 {
			rows[i].Session = trace.Some(fmt.Sprint("s", i/3))
		}
		if i%3 == 2 {
			rows[i].After, rows[i].Delay = []trace.Dependency{{ID: int64(i - 1), Kind: trace.AfterTurn}}, trace.Some(time.Duration(0))
		}
	}
	s := newStage(t, replay.Config{Selection: replay.Selection{Load: replay.Load{Kind: replay.LoadConcurrency, N: 6}, Recycle: true, Limit: n}}, 4*time.Millisecond, rows)
	run, got, err := s.run(3, 150, func(i int) bool { return i == 1 })
	if err != nil {
		t.Fatalf("%v\n%v", err, s.said)
	}
	s.once()
	lost, took := int(run.Ended.Lost), 0
	for _, w := range run.Workers {
		took += w.TookOver
	}
	if len(got)+lost != n || lost == 0 || took != 2 || lost >= n/3 {
		t.Errorf("%d results, %d lost, %d took over; the coordinator said %q", len(got), lost, took, s.said)
	}
	for key, r := range got {
		if r.Outcome != results.OutcomeOK {
			t.Fatalf("request %v: %s %s", key, r.Outcome, r.Cause.Value)
		}
		if late, ok := results.Lateness(&r); ok && late > stageLease/2 {
			t.Fatalf("request %v is %v late: its place was not free so early", key, late)
		}
	}
	t.Logf("%d results and %d lost of %d", len(got), lost, n)
}

// TestThinkIsTakenOver: sessions that the lost worker had not begun go to the others,
// whole; those that it had begun are nobody else's. A cap's places go along.
func TestThinkIsTakenOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a lease and a trace")
	}
	t.Parallel()
	const sessions, turns = 300, 3
	var rows []trace.Request
	for i := range sessions {
		for turn := range turns {
			r := evenly(1, 0)[0]
			r.Arrival, r.Delay = trace.Some(time.Duration(24*i+50*turn)*time.Millisecond), trace.Some(10*time.Millisecond)
			r.Session, r.Turn = trace.Some(fmt.Sprint("s", i)), trace.Some(int32(turn))
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Arrival.Value, b.Arrival.Value) })
	last := map[string]int64{}
	for i := range rows {
		name := rows[i].Session.Value
		if id, ok := last[name]; ok {
			rows[i].After = []trace.Dependency{{ID: id, Kind: trace.AfterTurn}}
		}
		last[name] = int64(i)
	}
	s := newStage(t, replay.Config{Pace: replay.PaceThink, MaxInFlight: 30}, time.Millisecond, rows)
	run, got, err := s.run(3, 20, func(i int) bool { return i == 1 })
	if err != nil {
		t.Fatalf("%v\n%v", err, s.said)
	}
	s.once()
	if lost := int(run.Ended.Lost); len(got)+lost != len(rows) || lost == 0 || lost >= len(rows)/3 {
		t.Errorf("%d results and %d lost of %d; the coordinator said %q", len(got), lost, len(rows), s.said)
	}
	by := map[string]map[string]int{} // session, worker: turns
	for _, r := range got {
		if r.Outcome != results.OutcomeOK {
			t.Fatalf("request %d: %s %s", r.ID, r.Outcome, r.Cause.Value)
		}
		if by[r.Session.Value] == nil {
			by[r.Session.Value] = map[string]int{}
		}
		by[r.Session.Value][r.Worker.Value]++
	}
	for name, workers := range by {
		for worker, n := range workers {
			if len(workers) > 1 || n != turns && worker != "w1" {
				t.Errorf("session %s: %v", name, workers)
			}
		}
	}
	for _, w := range run.Workers {
		if w.Name != "w1" && w.TookOver != 1 {
			t.Errorf("worker %s took over %d times", w.Name, w.TookOver)
		}
	}
}
