//go:build !noserver

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/results"
)

// Variables of a swarm: how many workers, how long they send, and how many requests each
// has. A process of it has its role in swarmRole.
const (
	envSwarm     = "REPRISE_SWARM"
	envSwarmFor  = "REPRISE_SWARM_FOR"
	envSwarmRows = "REPRISE_SWARM_ROWS"
	envSwarmKB   = "REPRISE_SWARM_KB" // that each worker hands over beside them
	swarmRole    = "REPRISE_SWARM_ROLE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(swarmRole) {
	case "server":
		swarmServer()
	case "coordinator":
		swarmCoordinator()
	default:
		os.Exit(m.Run())
	}
}

// A swarmPlan is what the processes of a swarm are told.
type swarmPlan struct {
	URL, Own, Trace, Dir string
	Seeds                map[string]string
	Workers              int
	Lease                time.Duration
}

// A usage is what a process has used at a moment, and what a server has passed on.
type usage struct {
	Phase            string
	At               time.Time
	CPU              time.Duration
	RSS              int64 // bytes
	In, Out          int64 // messages
	InBytes, OutByte int64
	Slow             int64 // consumers that were dropped
	Gap              time.Duration
	Error            string
}

func used(phase string) usage {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	u := usage{Phase: phase, At: time.Now(), CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			u.RSS = pages * int64(os.Getpagesize())
		}
	}
	return u
}

func tell(u usage) {
	text, err := json.Marshal(u)
	if err == nil {
		fmt.Println(string(text))
	}
}

func fatal(err error) {
	if err != nil {
		tell(usage{Phase: "error", Error: err.Error()})
		os.Exit(1)
	}
}

// swarmServer is the NATS server: it says where it is, and then what it has used, twice a second.
func swarmServer() {
	var p swarmPlan
	fatal(json.NewDecoder(os.Stdin).Decode(&p))
	var names []string
	for i := range p.Workers {
		names = append(names, swarmName(i))
	}
	s, err := StartServer("", names)
	fatal(err)
	text, err := json.Marshal(swarmPlan{URL: s.URL, Own: s.own, Seeds: s.Seeds})
	fatal(err)
	fmt.Println(string(text))
	for {
		u := used("server")
		if v, err := s.s.Varz(&server.VarzOptions{}); err == nil {
			u.In, u.Out, u.InBytes, u.OutByte, u.Slow = v.InMsgs, v.OutMsgs, v.InBytes, v.OutBytes, v.SlowConsumers
		}
		tell(u)
		time.Sleep(500 * time.Millisecond)
	}
}

func swarmName(i int) string { return fmt.Sprintf("w%d", i+1) }

func swarmConfig(p *swarmPlan, path, dir string) *replay.Config {
	return &replay.Config{Trace: path, Dir: dir, URLs: []string{"http://127.0.0.1:1"}, Model: "m", NoProbe: true, Version: "1"}
}

// swarmCoordinator is the coordinator, with a live view that is thrown away.
func swarmCoordinator() {
	var p swarmPlan
	fatal(json.NewDecoder(os.Stdin).Decode(&p))
	c := swarmConfig(&p, p.Trace, p.Dir)
	var last replay.Progress
	co := &Coordinator{Config: c, Workers: p.Workers, Join: 5 * time.Minute, Lease: p.Lease, Server: &Server{URL: p.URL, own: p.Own}, Log: func(format string, args ...any) {
		tell(usage{Phase: "log: " + fmt.Sprintf(format, args...)})
	}}
	shown, views, gap := time.Time{}, int64(0), time.Duration(0)
	c.Progress = func(p replay.Progress) {
		if last = p; views > 0 {
			gap = max(gap, time.Since(shown))
		}
		shown, views = time.Now(), views+1
	}
	c.Observe = func(start time.Time) func(*results.Run) {
		tell(used("joined"))
		time.AfterFunc(time.Until(start), func() { tell(used("started")) })
		return func(*results.Run) {
			tell(used("sent"))
		}
	}
	tell(used("begun"))
	_, err := co.Run(context.Background())
	fatal(err)
	u := used("assembled")
	u.In, u.Out, u.Slow, u.Gap = last.TTFT.N, last.ITL.N, views, gap
	tell(u)
}

// A child is a process of the swarm, and what it has told.
type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner

	mu   sync.Mutex
	said []usage
	over chan struct{}
}

func newChild(t *testing.T, role string, p swarmPlan) *child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.CommandContext(t.Context(), program), over: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), swarmRole+"="+role)
	c.cmd.Stderr = os.Stderr
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdin = strings.NewReader(string(text))
	pipe, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(pipe)
	c.out.Buffer(nil, 4<<20)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// follow keeps what the child tells.
func (c *child) follow() {
	defer close(c.over)
	for c.out.Scan() {
		var u usage
		if json.Unmarshal(c.out.Bytes(), &u) == nil {
			c.mu.Lock()
			c.said = append(c.said, u)
			c.mu.Unlock()
		}
	}
	c.cmd.Wait()
}

// at is what the child had used at a moment.
func (c *child) at(when time.Time) usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.said {
		if u.At.After(when) {
			return u
		}
	}
	return c.said[len(c.said)-1]
}

func (c *child) phase(name string) (usage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.said, func(u usage) bool { return u.Phase == name })
	if i < 0 {
		return usage{}, false
	}
	return c.said[i], true
}

// A crowd is what simulated workers send and say: 50 answers a second of 50 tokens each.
type crowd struct {
	length time.Duration
	filler int                // bytes
	rows   map[uint16][]int64 // ids by slot

	mu     sync.Mutex
	second int
	kinds  []*crowdKind
}

// say returns what workers of a kind say in a second of the run.
func (c *crowd) say(kind, second int) replay.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; c.second < second; c.second++ {
		for i, k := range c.kinds {
			k.grow(rand.New(rand.NewPCG(uint64(i), uint64(c.second))), c.second)
		}
	}
	return c.kinds[kind].said
}

// send stands for replay.Run: it says how far it is each second, and writes the results
// of its shard.
func (c *crowd) send(worker int) func(context.Context, replay.Config) (*results.Run, error) {
	return func(ctx context.Context, config replay.Config) (*results.Run, error) {
		if err := config.Begin(); err != nil {
			return nil, err
		}
		start, err := config.Start(ctx)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Until(start.Add(time.Duration(worker%1000) * time.Millisecond))) // as unlike as processes are
		for second := 1; second <= int(c.length/time.Second) && ctx.Err() == nil; second++ {
			time.Sleep(time.Until(start.Add(time.Duration(second)*time.Second + time.Duration(worker%1000)*time.Millisecond)))
			p := c.say(worker%crowdKinds, second)
			p.Elapsed = time.Since(start)
			config.Progress(p)
		}
		return c.record(&config)
	}
}

func (c *crowd) record(config *replay.Config) (*results.Run, error) {
	out, err := results.NewRecorder(config.Dir)
	if err != nil {
		return nil, err
	}
	run := &results.Run{Started: time.Now().UTC().Format(time.RFC3339Nano), Ended: &results.Ended{}}
	for slot, ids := range c.rows {
		if !config.Shard.Owns(slot) {
			continue
		}
		for _, id := range ids {
			r := result(id, time.Duration(id)*time.Millisecond, 1000*time.Millisecond)
			r.Session = trace.Optional[string]{}
			for i := range crowdTokens {
				r.Ledger = append(r.Ledger, results.Entry{At: int64(300+20*i+int(id%7)) * 1e6, Tokens: trace.Some(int32(1)), Kind: results.KindContent, Source: results.SourceUsage})
			}
			run.Ended.Sent++
			out.Add(&r)
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	filler := filepath.Join(config.Dir, "parts", "99999999.parquet") // it is not read, since the results are whole
	if err := errors.Join(os.MkdirAll(filepath.Dir(filler), 0o755), os.WriteFile(filler, make([]byte, c.filler), 0o644)); err != nil {
		return nil, err
	}
	return run, results.WriteRun(config.Dir, run)
}

func swarmNumber(t *testing.T, name string, usual int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: not a number above 0", name, text)
	}
	return n
}

// TestSwarm has as many workers as REPRISE_SWARM says, in one process, meet a
// coordinator in another over a NATS server in a third: all of the real code, with
// sending alone left out. It prints what that costs.
func TestSwarm(t *testing.T) {
	if os.Getenv(envSwarm) == "" {
		t.Skip("takes a minute and both cores: make swarm")
	}
	n, rows := swarmNumber(t, envSwarm, 1000), swarmNumber(t, envSwarmRows, 200)
	length := time.Duration(swarmNumber(t, envSwarmFor, 30)) * time.Second
	dir := t.TempDir()
	p := swarmPlan{Workers: n, Trace: filepath.Join(dir, "t.parquet"), Dir: filepath.Join(dir, "run"), Lease: DefaultLease}
	crowd := &crowd{length: length, filler: 1000 * swarmNumber(t, envSwarmKB, 600), rows: map[uint16][]int64{}}
	for range crowdKinds {
		crowd.kinds = append(crowd.kinds, newKind())
	}
	crowd.trace(t, p.Trace, n*rows)
	if err := os.Mkdir(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bus := newChild(t, "server", p)
	if !bus.out.Scan() {
		t.Fatal("the server says nothing")
	}
	if err := json.Unmarshal(bus.out.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	p.Workers, p.Lease = n, DefaultLease
	p.Trace, p.Dir = filepath.Join(dir, "t.parquet"), filepath.Join(dir, "run")
	go bus.follow()
	head := newChild(t, "coordinator", p)
	go head.follow()
	var all sync.WaitGroup
	errs := make(chan error, n)
	offsets := make(map[string]time.Duration, n)
	for i := range n {
		name := swarmName(i)
		offsets[name] = time.Duration(rand.Int64N(int64(500*time.Millisecond))) - 250*time.Millisecond
		w := &Worker{Bus: Bus{URL: p.URL}, Name: name, Seed: p.Seeds[name], Dir: filepath.Join(dir, "parts", name), Version: "1", Clock: NewClock(offsets[name]), Log: func(string, ...any) {}, send: crowd.send(i)}
		w.Config = func(_ []string, path string) (*replay.Config, error) { return swarmConfig(&p, path, ""), nil }
		all.Go(func() {
			if err := w.Run(t.Context()); err != nil {
				errs <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	<-head.over
	all.Wait()
	close(errs)
	failed := 0
	for err := range errs {
		if failed++; failed < 5 {
			t.Error(err)
		}
	}
	if failed > 0 {
		t.Errorf("%d workers failed", failed)
	}
	crowd.report(t, head, bus, &p, offsets, n*rows)
	bus.cmd.Process.Kill()
	<-bus.over
}

func (c *crowd) trace(t *testing.T, path string, n int) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, b := trace.NewWriter(f), trace.NewBatch()
	for i := range n {
		b.Append(&trace.Request{ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(i) * c.length / time.Duration(n)), InputTokens: trace.Some(int64(10)), OutputTokens: trace.Some(int64(crowdTokens))})
		slot := replay.Slot(int64(i), "", false)
		c.rows[slot] = append(c.rows[slot], int64(i))
		if b.Len() == trace.BatchRows || i == n-1 {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		t.Fatal(err)
	}
}

// report prints what the coordinator and the server have used, and holds the run against
// what it must be.
func (c *crowd) report(t *testing.T, head, bus *child, p *swarmPlan, offsets map[string]time.Duration, rows int) {
	for _, u := range head.said {
		if u.Error != "" || strings.HasPrefix(u.Phase, "log") {
			t.Errorf("coordinator: %s %s", u.Phase, u.Error)
		}
	}
	names := []string{"begun", "joined", "started", "sent", "assembled"}
	for i := 1; i < len(names); i++ {
		from, ok1 := head.phase(names[i-1])
		to, ok2 := head.phase(names[i])
		if !ok1 || !ok2 {
			t.Fatalf("the coordinator did not get to %s: %+v", names[i], head.said)
		}
		a, b, took := bus.at(from.At), bus.at(to.At), to.At.Sub(from.At).Seconds()
		span := max(b.At.Sub(a.At).Seconds(), 0.5)
		fmt.Printf("%-10s %6.1f s  coordinator %5.1f%% of a core, %4d MB; server %5.1f%%, %4d MB, in %6.0f messages/s %6.2f MB/s, out %6.0f/s %6.2f MB/s, %d slow consumers\n", names[i], took,
			100*(to.CPU-from.CPU).Seconds()/took, to.RSS>>20, 100*(b.CPU-a.CPU).Seconds()/span, b.RSS>>20,
			float64(b.In-a.In)/span, float64(b.InBytes-a.InBytes)/span/1e6, float64(b.Out-a.Out)/span, float64(b.OutByte-a.OutByte)/span/1e6, b.Slow)
	}
	own := used("")
	fmt.Printf("all workers, one process: %.1f s of processor time, %d MB\n", own.CPU.Seconds(), own.RSS>>20)
	end, _ := head.phase("assembled")
	fmt.Printf("live view  %d TTFT and %d ITL merged, %d times, at most %.1f s apart\n", end.In, end.Out, end.Slow, end.Gap.Seconds())
	run, err := results.OpenRun(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var bounds, wrong, silent []time.Duration
	recorded := int64(0)
	for _, w := range run.Run.Workers {
		if w.Clock == nil || w.State != results.WorkerEnded {
			t.Errorf("worker %+v", w)
			continue
		}
		recorded += w.Recorded
		off := (time.Duration(w.Clock.OffsetNS) + offsets[w.Name]).Abs()
		if off > time.Duration(w.Clock.BoundNS) {
			t.Errorf("%s: its offset is wrong by %v, the bound is %v", w.Name, off, time.Duration(w.Clock.BoundNS))
		}
		bounds, wrong, silent = append(bounds, time.Duration(w.Clock.BoundNS)), append(wrong, off), append(silent, time.Duration(w.SilentNS))
	}
	if recorded != int64(rows) {
		t.Errorf("%d of %d results", recorded, rows)
	}
	for _, s := range []struct {
		name string
		list []time.Duration
	}{{"bound", bounds}, {"wrong by", wrong}, {"silence", silent}} {
		slices.Sort(s.list)
		if k := len(s.list); k > 0 {
			fmt.Printf("%-10s median %v, largest %v of %d workers\n", s.name, s.list[k/2].Round(time.Microsecond), s.list[k-1].Round(time.Microsecond), k)
		}
	}
}
