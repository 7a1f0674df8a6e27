package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"reprise/replay/cluster"
	"reprise/trace"
	"reprise/trace/results"
)

// hostsLease is the lease where hosts are lost on purpose; streamed is how often a host
// hands over its results.
const (
	hostsLease = 3 * time.Second
	streamed   = 5 * time.Second
)

// onHosts holds a run of hosts against that of one process.
func (d *distributor) onHosts(ctx context.Context) (string, error) {
	if err := d.alone(ctx); err != nil {
		return "", err
	}
	f, err := d.fleet(ctx, "hosts", fleetPlan{})
	if err != nil {
		return "", err
	}
	defer f.stop()
	if err := f.end(); err != nil {
		return "", err
	}
	return d.equal("hosts", f.target)
}

// hostDies kills a worker whose end nobody sees: its lease has to run out.
func (d *distributor) hostDies(ctx context.Context) (string, error) {
	f, err := d.fleet(ctx, "host-dies", fleetPlan{args: []string{"--worker-lease", hostsLease.String()}})
	if err != nil {
		return "", err
	}
	defer f.stop()
	if err := f.halfWay(ctx); err != nil {
		return "", err
	}
	if err := f.workers[1].cmd.Process.Kill(); err != nil {
		return "", err
	}
	if err := f.end(1); err != nil {
		return "", err
	}
	rows, run, err := d.rowsOf("host-dies")
	if err != nil {
		return "", err
	}
	if _, err := once(f.target); err != nil {
		return "", err
	}
	most := d.rate / distributedWorkers * int((streamed+hostsLease)/time.Second+4)
	if lost := int(run.Ended.Lost); len(rows)+lost != d.planned || lost == 0 || lost > most {
		return "", fmt.Errorf("%d results and %d lost are not %d, with up to %d lost", len(rows), lost, d.planned, most)
	}
	if err := f.says("worker " + workerName(1) + " was lost"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d results + %d lost = %d, none sent twice; %s", len(rows), run.Ended.Lost, d.planned, workersText(run)), nil
}

// hubDies kills the coordinator; the workers, which cannot see it, stop when others
// might take over, keep what they have, and it is assembled.
func (d *distributor) hubDies(ctx context.Context) (string, error) {
	f, err := d.fleet(ctx, "hub-dies", fleetPlan{args: []string{"--worker-lease", hostsLease.String(), "--grace", "2s"}})
	if err != nil {
		return "", err
	}
	defer f.stop()
	if err := f.halfWay(ctx); err != nil {
		return "", err
	}
	if err := f.coordinator.cmd.Process.Kill(); err != nil {
		return "", err
	}
	dirs := []string{"report", "--recover"}
	for i, w := range f.workers {
		if <-w.over; w.err == nil || !strings.Contains(w.out.String(), "the results of this worker are kept in") {
			return "", fmt.Errorf("%s without its coordinator: %w, %s", workerName(i), w.err, w.out.Bytes())
		}
		dirs = append(dirs, f.workerDir(i))
	}
	if err := start(ctx, nil, nil, d.bin, dirs...).wait(); err != nil {
		return "", err
	}
	rows, run, err := d.rowsOf(filepath.Base(f.workerDir(0)))
	if err != nil {
		return "", err
	}
	seen, err := once(f.target)
	if err != nil {
		return "", err
	}
	if len(rows) < d.planned/2 || len(rows) != len(seen) {
		return "", fmt.Errorf("%d results of %d requests that the server got", len(rows), len(seen))
	}
	return fmt.Sprintf("workers stopped and kept all %d results of what the server got; %s", len(rows), workersText(run)), nil
}

// network puts delays and a cut between workers and the bus, and sets their clocks
// wrong; one fetches the trace from the object store.
func (d *distributor) network(ctx context.Context) (string, error) {
	offsets := []time.Duration{250 * time.Millisecond, -250 * time.Millisecond, 0, 250 * time.Millisecond}
	f, err := d.fleet(ctx, "network", fleetPlan{delay: 20 * time.Millisecond, offsets: offsets, fetch: true})
	if err != nil {
		return "", err
	}
	defer f.stop()
	stranger := start(ctx, nil, []string{cluster.EnvToken + "=guessed"}, d.bin, "worker", "--nats", f.bus.ClientURL())
	if <-stranger.over; stranger.err == nil || !strings.Contains(stranger.out.String(), "Authorization") {
		return "", fmt.Errorf("a worker without the token: %v, %s", stranger.err, stranger.out.Bytes())
	}
	if err := f.halfWay(ctx); err != nil {
		return "", err
	}
	f.proxy.cut(3 * time.Second)
	if err := f.end(); err != nil {
		return "", err
	}
	run, err := f.whole()
	if err != nil {
		return "", err
	}
	for i := range f.workers {
		w := workerOf(run, i)
		if w == nil || w.Clock == nil {
			return "", fmt.Errorf("worker %+v", w)
		}
		if wrong := time.Duration(w.Clock.OffsetNS) + offsets[i]; wrong.Abs() > time.Duration(w.Clock.BoundNS) {
			return "", fmt.Errorf("%s: offset %v is wrong by %v, the bound is %v", w.Name, time.Duration(w.Clock.OffsetNS), wrong, time.Duration(w.Clock.BoundNS))
		}
		if err := f.says("worker " + w.Name + ": its clock is known to"); err != nil { // 20 ms is no bound for a limit of 1 ms
			return "", err
		}
	}
	if _, err := trace.Identify(filepath.Join(f.workerDir(0), "trace.parquet")); err != nil {
		return "", fmt.Errorf("the worker that fetches has no trace: %w", err)
	}
	return fmt.Sprintf("%d results of %d over a bus with 40 ms more round trip and a cut of 3 s, clocks within their bounds, and the verdict names those; %s", d.planned, d.planned, workersText(run)), nil
}

// linkDown takes the link between a host and the bus down for 3 s, while its link to
// the target stays.
func (d *distributor) linkDown(ctx context.Context) (string, error) {
	if d.lab.plain {
		return "left out: it needs network namespaces", nil
	}
	f, err := d.fleet(ctx, "link-down", fleetPlan{})
	if err != nil {
		return "", err
	}
	defer f.stop()
	if err := f.halfWay(ctx); err != nil {
		return "", err
	}
	if err := d.lab.setBus(1, "down"); err != nil {
		return "", err
	}
	time.Sleep(3 * time.Second)
	if err := d.lab.setBus(1, "up"); err != nil {
		return "", err
	}
	if err := f.end(); err != nil {
		return "", err
	}
	run, err := f.whole()
	if err != nil {
		return "", err
	}
	w := workerOf(run, 1)
	if w == nil || w.LateP99NS == nil || time.Duration(w.SilentNS) < 3*time.Second {
		return "", fmt.Errorf("the worker without a link: %+v", w)
	}
	if late := time.Duration(*w.LateP99NS); late > time.Second/4 {
		return "", fmt.Errorf("the worker without a link was late by %v at p99", late)
	}
	return fmt.Sprintf("%d results of %d; %s was silent for %.1f s and sent on; %s", d.planned, d.planned, w.Name, float64(w.SilentNS)/1e9, workersText(run)), nil
}

// paused stops a worker for 2 s: what it had to send comes late, and the verdict says so.
func (d *distributor) paused(ctx context.Context) (string, error) {
	return d.slow(ctx, "paused", func(f *fleet) error { return pause(f.workers[1], 2*time.Second) })
}

// throttled lets a worker have 30 ms of each 100, as a host has whose quota of
// processor time is used up, for a third of the trace.
func (d *distributor) throttled(ctx context.Context) (string, error) {
	return d.slow(ctx, "throttled", func(f *fleet) error {
		for begin := time.Now(); time.Since(begin) < d.length/3; time.Sleep(30 * time.Millisecond) {
			if err := pause(f.workers[1], 70*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

// slow hinders a worker half way; all is sent, and the verdict names the worker.
func (d *distributor) slow(ctx context.Context, name string, hinder func(*fleet) error) (string, error) {
	f, err := d.fleet(ctx, name, fleetPlan{})
	if err != nil {
		return "", err
	}
	defer f.stop()
	if err := f.halfWay(ctx); err != nil {
		return "", err
	}
	if err := hinder(f); err != nil {
		return "", err
	}
	if err := f.end(); err != nil {
		return "", err
	}
	run, err := f.whole()
	if err != nil {
		return "", err
	}
	if err := f.says("worker " + workerName(1) + ": its p99 lateness"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d results of %d, and the verdict names %s; %s", d.planned, d.planned, workerName(1), workersText(run)), nil
}

// says looks for words in what the coordinator printed, which has the report, whose lines
// break anywhere.
func (f *fleet) says(words string) error {
	if !strings.Contains(strings.Join(strings.Fields(f.coordinator.out.String()), " "), words) {
		return fmt.Errorf("the verdict does not say %q:\n%s", words, f.coordinator.out.Bytes())
	}
	return nil
}

func workerOf(run *results.Run, i int) *results.Worker {
	for k := range run.Workers {
		if run.Workers[k].Name == workerName(i) {
			return &run.Workers[k]
		}
	}
	return nil
}
