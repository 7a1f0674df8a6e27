package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/trace/results"
)

// A distributor holds runs of several workers against what life does to them.
type distributor struct {
	bin, dir string
	rate     int
	length   time.Duration
	only     string
	path     string
	planned  int
	lab      *lab
	one      map[int64]results.Result // of the run of one process, by request
}

const distributedWorkers = 4

func (d *distributor) run(ctx context.Context) error {
	if d.lab = hubLab(distributedWorkers); d.lab == nil {
		d.lab = plainLab(distributedWorkers)
	}
	defer d.lab.close()
	if err := empty(d.dir); err != nil {
		return err
	}
	d.path, d.planned = filepath.Join(d.dir, "t.parquet"), int(float64(d.rate)*d.length.Seconds())
	if err := steady(d.path, d.planned, d.length, 20, 4); err != nil {
		return err
	}
	where := "each in a network namespace, with a link to the bus and one to the target"
	if d.lab.plain {
		where = "all on loopback"
	}
	fmt.Printf("trace        %d requests in %v, %d/s; %d workers; hosts: %s\n", d.planned, d.length, d.rate, distributedWorkers, where)
	var faults []error
	for _, s := range d.cases() {
		if matched, err := path.Match(d.only, s.name); err != nil || !matched {
			if err != nil {
				return err
			}
			continue
		}
		begin := time.Now()
		said, err := s.run(ctx)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", s.name, err))
			said += " FAULT: " + err.Error()
		}
		fmt.Printf("%-12s %s (%v)\n", s.name, said, time.Since(begin).Round(time.Second))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(faults...)
}

// A scene is one case and its name.
type scene struct {
	name string
	run  func(context.Context) (string, error)
}

// cases are those of one machine, whose workers are processes of the coordinator, and
// those of hosts.
func (d *distributor) cases() []scene {
	return []scene{
		{"as one", d.asOne}, {"worker dies", d.workerDies}, {"coordinator", d.coordinatorDies},
		{"hosts", d.onHosts}, {"host dies", d.hostDies}, {"hub dies", d.hubDies}, {"network", d.network},
		{"link down", d.linkDown}, {"paused", d.paused}, {"throttled", d.throttled},
	}
}

// served is a mock without noise, and where it is; stop ends it.
func (d *distributor) served(ctx context.Context) (server *mock.Server, url string, stop func(), err error) {
	server = mock.New(mock.Config{Engine: batch.Config{StepBase: 2 * time.Millisecond, StepPerSequence: -1, PrefillRate: 1e7}, AccountRecords: 2 * d.planned})
	l, err := d.lab.listen(hubTarget)
	if err != nil {
		return nil, "", nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- server.Serve(serving, l) }()
	return server, "http://" + l.Addr().String(), func() { cancel(); <-over }, nil
}

func (d *distributor) replay(ctx context.Context, url, out string, more ...string) *process {
	args := append([]string{"replay", d.path, "--url", url, "--model", mock.DefaultModel, "--probe=false", "--progress", "none", "-o", filepath.Join(d.dir, out)}, more...)
	return start(ctx, nil, nil, d.bin, args...)
}

// rowsOf reads a run; a request that is there twice is an error.
func (d *distributor) rowsOf(out string) (map[int64]results.Result, *results.Run, error) {
	run, err := results.OpenRun(filepath.Join(d.dir, out))
	if err != nil {
		return nil, nil, err
	}
	rows := map[int64]results.Result{}
	for r, err := range run.Results() {
		if err != nil {
			return nil, nil, err
		}
		if _, twice := rows[r.ID]; twice {
			return nil, nil, fmt.Errorf("request %d is there twice", r.ID)
		}
		rows[r.ID] = r
	}
	return rows, &run.Run, nil
}

// once holds what the server saw: no request twice.
func once(server *mock.Server) (map[string]bool, error) {
	seen := map[string]bool{}
	list, _ := server.Account()
	for _, r := range list {
		if seen[r.RequestID] {
			return nil, fmt.Errorf("the server got %s twice", r.RequestID)
		}
		seen[r.RequestID] = true
	}
	return seen, nil
}

// asOne holds a run of several workers against that of one process.
func (d *distributor) asOne(ctx context.Context) (string, error) {
	if err := d.alone(ctx); err != nil {
		return "", err
	}
	server, url, stop, err := d.served(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	if err := d.replay(ctx, url, "four", "--workers", strconv.Itoa(distributedWorkers)).wait(); err != nil {
		return "", err
	}
	return d.equal("four", server)
}

// alone makes the run of one process, once.
func (d *distributor) alone(ctx context.Context) error {
	if d.one != nil {
		return nil
	}
	server, url, stop, err := d.served(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := d.replay(ctx, url, "one").wait(); err != nil {
		return err
	}
	d.one, _, err = d.rowsOf("one")
	if seen, twice := once(server); err != nil || twice != nil || len(seen) != d.planned {
		return fmt.Errorf("one process: the server got %d of %d requests: %w", len(seen), d.planned, errors.Join(err, twice))
	}
	return nil
}

// equal holds a run and what its server got against the trace, and the run of one process.
func (d *distributor) equal(out string, server *mock.Server) (string, error) {
	rows, run, err := d.rowsOf(out)
	if err != nil {
		return "", err
	}
	seen, err := once(server)
	if err != nil {
		return "", err
	}
	if len(seen) != d.planned || len(rows) != d.planned || len(d.one) != d.planned {
		return "", fmt.Errorf("the server got %d, %d and %d results, of %d requests", len(seen), len(d.one), len(rows), d.planned)
	}
	for id, a := range d.one {
		b := rows[id]
		same := a.Due == b.Due && a.Outcome == b.Outcome && a.PlannedInputTokens == b.PlannedInputTokens && a.CountedInputTokens == b.CountedInputTokens &&
			a.OutputTokens == b.OutputTokens && a.FinishReason == b.FinishReason && a.Session == b.Session && a.BytesOut == b.BytesOut
		if !same || !b.Worker.Known {
			return "", fmt.Errorf("request %d differs:\n%+v\n%+v", id, a, b)
		}
	}
	return fmt.Sprintf("%d results of %d, equal due times, outcomes, bytes sent and tokens; %s", len(rows), d.planned, workersText(run)), nil
}

func workersText(run *results.Run) string {
	var parts []string
	for _, w := range run.Workers {
		text := fmt.Sprintf("%s %s %d/%d", w.Name, w.State, w.Recorded, w.Planned)
		if c := w.Clock; c != nil {
			text += fmt.Sprintf(" clock %+.3f±%.3f ms", float64(c.OffsetNS)/1e6, float64(c.BoundNS)/1e6)
		}
		if w.LateP99NS != nil {
			text += fmt.Sprintf(" late p99 %.2f ms", float64(*w.LateP99NS)/1e6)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// childOf finds the process id of a worker by what it was started with.
func childOf(p *process, name string) (int, error) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "\x00worker\x00") || !strings.Contains(string(text), "\x00"+name+"\x00") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // "S PPID ..."
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(p.cmd.Process.Pid) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("no process of worker %s; it is looked for in /proc, as Linux has it", name)
}

// halfWay waits until the server has got half of the trace.
func (d *distributor) halfWay(ctx context.Context, server *mock.Server, p *process) error {
	for {
		if list, _ := server.Account(); len(list) > d.planned/2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.over:
			return fmt.Errorf("it ended before half of the trace: %w\n%s", p.err, p.out.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// workerDies kills a worker half way.
func (d *distributor) workerDies(ctx context.Context) (string, error) {
	server, url, stop, err := d.served(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	p := d.replay(ctx, url, "worker-dies", "--workers", strconv.Itoa(distributedWorkers))
	if err := d.halfWay(ctx, server, p); err != nil {
		return "", err
	}
	pid, err := childOf(p, "w2")
	if err != nil {
		return "", err
	}
	worker, err := os.FindProcess(pid)
	if err != nil {
		return "", err
	}
	if err := worker.Kill(); err != nil {
		return "", err
	}
	if err := p.wait(); err != nil {
		return "", err
	}
	rows, run, err := d.rowsOf("worker-dies")
	if err != nil {
		return "", err
	}
	if _, err := once(server); err != nil {
		return "", err
	}
	lost := int(run.Ended.Lost)
	switch most := d.rate / distributedWorkers * 4; {
	case len(rows)+lost != d.planned:
		return "", fmt.Errorf("%d results and %d lost are not %d", len(rows), lost, d.planned)
	case lost == 0 || lost > most:
		return "", fmt.Errorf("%d lost; the worker had %d/s", lost, d.rate/distributedWorkers)
	}
	return fmt.Sprintf("%d results + %d lost = %d, none sent twice; %s", len(rows), lost, d.planned, workersText(run)), nil
}

// coordinatorDies kills the coordinator half way.
func (d *distributor) coordinatorDies(ctx context.Context) (string, error) {
	server, url, stop, err := d.served(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	p := d.replay(ctx, url, "coordinator-dies", "--workers", strconv.Itoa(distributedWorkers), "--grace", "5s")
	if err := d.halfWay(ctx, server, p); err != nil {
		return "", err
	}
	var pids []int
	for i := range distributedWorkers {
		pid, err := childOf(p, fmt.Sprintf("w%d", i+1))
		if err != nil {
			return "", err
		}
		pids = append(pids, pid)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return "", err
	}
	for _, pid := range pids {
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
				break
			}
			if time.Now().After(deadline) {
				return "", fmt.Errorf("worker process %d goes on without a coordinator", pid)
			}
		}
	}
	dir := filepath.Join(d.dir, "coordinator-dies")
	if err := start(ctx, nil, nil, d.bin, "report", "--recover", dir).wait(); err != nil {
		return "", err
	}
	rows, run, err := d.rowsOf("coordinator-dies")
	if err != nil {
		return "", err
	}
	seen, err := once(server)
	if err != nil {
		return "", err
	}
	if len(rows) < d.planned/2 || len(rows) != len(seen) {
		return "", fmt.Errorf("%d results of %d requests that the server got", len(rows), len(seen))
	}
	return fmt.Sprintf("workers stopped and kept all %d results of what the server got; %s", len(rows), workersText(run)), nil
}
