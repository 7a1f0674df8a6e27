package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/replay/cluster"
	"reprise/replay/mock"
	"reprise/trace/results"
)

// A fleet is a bus, workers on hosts, and a coordinator in the hub.
type fleet struct {
	d           *distributor
	name        string
	bus         *server.Server
	proxy       *proxy // nil = none
	target      *mock.Server
	workers     []*process
	coordinator *process
	stops       []func()
}

// A fleetPlan says what is not as usual; the zero value is a quiet network.
type fleetPlan struct {
	delay   time.Duration   // each way between workers and bus, by a proxy
	offsets []time.Duration // of the workers' clocks
	fetch   bool            // the first worker takes the trace from the object store
	args    []string        // of the coordinator
}

// busToken is what a fleet's bus asks for.
const busToken = "open sesame"

func workerName(i int) string { return fmt.Sprintf("host-%d", i+1) }

// workerDir is where a worker of the fleet keeps its results.
func (f *fleet) workerDir(i int) string {
	return filepath.Join(f.d.dir, f.name+"-"+workerName(i))
}

// fleet starts all of it; stop ends what is left of it.
func (d *distributor) fleet(ctx context.Context, name string, p fleetPlan) (f *fleet, err error) {
	f = &fleet{d: d, name: name}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	f.bus, err = server.NewServer(&server.Options{Host: d.lab.busHost(), Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: filepath.Join(d.dir, name+"-jetstream"), Authorization: busToken})
	if err != nil {
		return f, err
	}
	f.bus.Start()
	f.stops = append(f.stops, f.bus.Shutdown)
	if !f.bus.ReadyForConnections(10 * time.Second) {
		return f, errors.New("the NATS server is not ready")
	}
	url := f.bus.ClientURL()
	if p.delay > 0 {
		l, err := d.lab.listen(hubBus)
		if err != nil {
			return f, err
		}
		f.proxy = newProxy(l, f.bus.Addr().String(), p.delay)
		f.stops = append(f.stops, f.proxy.close)
		url = "nats://" + f.proxy.address()
	}
	var target string
	var stop func()
	if f.target, target, stop, err = d.served(ctx); err != nil {
		return f, err
	}
	f.stops = append(f.stops, stop)
	f.start(ctx, p, url, target)
	return f, nil
}

// start starts the workers and the coordinator.
func (f *fleet) start(ctx context.Context, p fleetPlan, bus, target string) {
	token := cluster.EnvToken + "=" + busToken
	for i, h := range f.d.lab.hosts {
		args, env := []string{"worker", "--nats", bus, "--name", workerName(i), "-o", f.workerDir(i)}, []string{token}
		if p.fetch && i == 0 {
			args = append(args, "--fetch")
		}
		if p.offsets != nil {
			env = append(env, cluster.EnvOffset+"="+p.offsets[i].String())
		}
		f.workers = append(f.workers, start(ctx, h, env, f.d.bin, args...))
	}
	args := append([]string{"replay", f.d.path, "--url", target, "--model", mock.DefaultModel, "--probe=false", "--progress", "none", "-o", filepath.Join(f.d.dir, f.name),
		"--workers", strconv.Itoa(distributedWorkers), "--nats", f.bus.ClientURL()}, p.args...)
	f.coordinator = start(ctx, nil, []string{token}, f.d.bin, args...)
}

// halfWay waits until the target has got half of the trace.
func (f *fleet) halfWay(ctx context.Context) error {
	return f.d.halfWay(ctx, f.target, f.coordinator)
}

// end waits until all have ended, those workers without fault that are not in dead.
func (f *fleet) end(dead ...int) error {
	if err := f.coordinator.wait(); err != nil {
		return err
	}
	for _, i := range dead {
		<-f.workers[i].over
		f.workers[i] = nil
	}
	for i, w := range f.workers {
		if w == nil {
			continue
		}
		if err := w.wait(); err != nil {
			return fmt.Errorf("%s: %w", workerName(i), err)
		}
	}
	return nil
}

// whole reads the run, of which nothing may be missing.
func (f *fleet) whole() (*results.Run, error) {
	rows, run, err := f.d.rowsOf(f.name)
	if err != nil {
		return nil, err
	}
	if _, err := once(f.target); err != nil {
		return nil, err
	}
	if len(rows) != f.d.planned {
		return nil, fmt.Errorf("%d results of %d", len(rows), f.d.planned)
	}
	return run, nil
}

// stop ends what is left, and waits for it.
func (f *fleet) stop() {
	for _, p := range append(f.workers, f.coordinator) {
		if p != nil && p.cmd.Process != nil {
			p.cmd.Process.Kill() // an error says that it has ended
			<-p.over
		}
	}
	for i := len(f.stops) - 1; i >= 0; i-- {
		f.stops[i]()
	}
}
