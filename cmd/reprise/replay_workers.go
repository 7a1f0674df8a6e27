package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/replay"
	"reprise/replay/cluster"
	"reprise/trace"
	"reprise/trace/results"
)

// workersFlags spread a run over several load hosts.
func workersFlags() []cli.Flag {
	return append(busFlags(),
		&cli.IntFlag{Name: "workers", Usage: "share the run among so many workers: processes on this machine, or with --nats those that join there (reprise worker)"},
		&cli.StringFlag{Name: "on-worker-loss", Value: cluster.LossTakeOver, Usage: "take-over: the other workers send what a lost one has not; fail: the run ends. What nobody sent is counted as lost"},
		&cli.DurationFlag{Name: "worker-lease", Value: cluster.DefaultLease, Usage: "a worker that is silent for so long is lost; one that hears nothing for three quarters of it stops sending, so that no request is sent twice"},
		&cli.DurationFlag{Name: "join-timeout", Value: cluster.DefaultJoin, Usage: "how long to wait until all workers have joined and are ready"},
	)
}

// busFlags say how to reach a NATS server.
func busFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "nats", Usage: "NATS server that coordinator and workers talk over, such as nats://host:4222 or tls://host:4222, without user and password"},
		&cli.StringFlag{Name: "nats-creds", Usage: "file with NATS credentials (JWT and seed)"},
		&cli.StringFlag{Name: "nats-nkey", Usage: "file with the seed of an nkey"},
		&cli.StringFlag{Name: "nats-ca", Usage: "PEM file with the authorities to trust with a NATS server"},
		&cli.StringFlag{Name: "nats-cert", Usage: "PEM file with the certificate to show it, with --nats-key"},
		&cli.StringFlag{Name: "nats-key", Usage: "PEM file with the private key of --nats-cert"},
		&cli.StringFlag{Name: "cluster", Value: cluster.DefaultCluster, Usage: "name that coordinator and workers have in common, where several share a NATS server"},
	}
}

func busOf(c *cli.Command) cluster.Bus {
	return cluster.Bus{
		URL: c.String("nats"), Creds: c.String("nats-creds"), NKey: c.String("nats-nkey"),
		CA: c.String("nats-ca"), Cert: c.String("nats-cert"), Key: c.String("nats-key"), Cluster: c.String("cluster"),
	}
}

// shared tells whether the run is for several workers, and refuses what makes no
// sense then, and the flags about them where it is not.
func shared(c *cli.Command, config *replay.Config) (bool, error) {
	n := c.Int("workers")
	if !c.IsSet("workers") {
		for _, f := range workersFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return false, misuse("give the number of workers, such as --workers 4", "--%s without --workers", name)
			}
		}
		return false, nil
	}
	switch loss := c.String("on-worker-loss"); {
	case n < 1 || n > replay.Slots:
		return false, misuse("give a number such as 4", "--workers %d: not between 1 and %d", n, replay.Slots)
	case loss != cluster.LossTakeOver && loss != cluster.LossFail:
		return false, misuse("use take-over or fail", "--on-worker-loss %q", loss)
	case c.Duration("worker-lease") < cluster.LeastLease:
		return false, misuse("give a time such as 15s", "--worker-lease %v: must not be below %v", c.Duration("worker-lease"), cluster.LeastLease)
	case c.Duration("join-timeout") <= 0:
		return false, misuse("give a time such as 2m", "--join-timeout %v: must be above 0", c.Duration("join-timeout"))
	case c.Int("repeat") > 1:
		return false, misuse("make the runs one by one", "--repeat and --workers exclude each other")
	case c.Bool("self-test"):
		return false, misuse("test each host by itself: reprise replay --self-test", "--self-test and --workers exclude each other")
	}
	if err := noPasswords(c); err != nil {
		return false, err
	}
	if err := config.CheckShared(n); err != nil {
		return false, misused{err, trace.Fix(err)}
	}
	bus := busOf(c)
	for _, f := range busFlags() {
		if name := f.Names()[0]; bus.URL == "" && c.IsSet(name) && name != "cluster" {
			return false, misuse("name the server with --nats, such as nats://host:4222; without it, workers are processes of this machine and need none", "--%s without --nats", name)
		}
	}
	if bus.URL == "" {
		bus.URL = "nats://127.0.0.1:4222"
	}
	if err := cmp.Or(bus.Check(), bus.CheckFiles()); err != nil {
		return false, misused{err, trace.Fix(err)}
	}
	return true, nil
}

// noPasswords refuses URLs that are no secret on one host and would be one in the
// plan, which goes to each worker by messages.
func noPasswords(c *cli.Command) error {
	none := func(fix, name string, urls ...string) error {
		for _, text := range urls {
			if u, err := url.Parse(text); err == nil && u.User != nil {
				return misuse(fix, "--%s: a user or password in a URL, which --workers would send to each worker", name)
			}
		}
		return nil
	}
	const header = "send it as --header 'Authorization: ...', whose value is in no message"
	return cmp.Or(
		none(header, "url", c.StringSlice("url")...), none(header, "flush", c.String("flush")),
		none("leave it out, and set HTTP_PROXY and HTTPS_PROXY where each worker starts", "proxy", c.String("proxy")),
	)
}

// replayShared is a run of several workers.
func replayShared(ctx context.Context, c *cli.Command, config *replay.Config, b *beside) error {
	if err := prepareDir(c); err != nil {
		return err
	}
	config.Dir = c.String("output")
	old, err := setAside(config.Dir)
	if err != nil {
		return err
	}
	run, err := coordinate(ctx, c, config, b)
	if run == nil && !holdsRun(config.Dir) {
		return errors.Join(err, old.putBack())
	}
	if err = errors.Join(err, old.drop()); run == nil || run.Ended == nil {
		return err
	}
	return errors.Join(err, conclude(ctx, c, config.Dir, run))
}

// coordinate makes the run in its directory, which is empty. Workers of this machine have
// ended when it returns.
func coordinate(ctx context.Context, c *cli.Command, config *replay.Config, b *beside) (*results.Run, error) {
	if err := beginRun(c, config.Trace, config.Dir); err != nil {
		return nil, err
	}
	b.attach(c, config)
	path, err := filepath.Abs(config.Trace)
	if err != nil {
		return nil, err
	}
	config.Trace = path
	co := &cluster.Coordinator{
		Config: config, Args: workerArgs(c), Workers: c.Int("workers"), OnLoss: c.String("on-worker-loss"), Lease: c.Duration("worker-lease"), Join: c.Duration("join-timeout"), Bus: busOf(c),
		Log: func(format string, args ...any) {
			fmt.Fprintf(c.Root().ErrWriter, "reprise: "+format+"\n", args...)
		},
	}
	if co.Bus.URL == "" {
		if co.Workers >= runtime.NumCPU() && !c.IsSet("realtime") {
			co.Args = append([]string{"--realtime=false"}, co.Args...) // they would keep one another, and their readers, from the processors
		}
		var names []string
		for i := range co.Workers {
			names = append(names, fmt.Sprintf("w%d", i+1))
		}
		if co.Server, err = cluster.StartServer(co.Bus.Cluster, names); err != nil {
			return nil, err
		}
		defer co.Server.Close()
		l := &launcher{c: c, server: co.Server, names: names, dir: config.Dir}
		defer l.end()
		co.Start = l.start
	}
	return co.Run(ctx)
}

// holdsRun tells whether a run has begun in dir.
func holdsRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, results.RunFile))
	return err == nil
}

// An earlier is what was in the place of a run directory, until the run that is to replace
// it has begun.
type earlier struct {
	dir   string
	aside string // "" = there was nothing
}

// setAside moves an earlier run out of the way. Workers need their directories before
// anything is sent, so that it cannot stay where it is until then.
func setAside(dir string) (*earlier, error) {
	dir = filepath.Clean(dir)
	e := &earlier{dir: dir}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		return e, err
	}
	e.aside = fmt.Sprintf("%s.replaced-%d", dir, os.Getpid())
	if err := os.Rename(dir, e.aside); err != nil {
		return nil, trace.WithFix(fmt.Errorf("replace the run: %w", err), "name another directory")
	}
	return e, nil
}

// putBack is for a run that did not begin: what its start has made goes, and the earlier
// run is there again.
func (e *earlier) putBack() error {
	err := os.RemoveAll(e.dir)
	if err == nil && e.aside != "" {
		err = os.Rename(e.aside, e.dir)
	}
	return err
}

// drop is for a run that has begun.
func (e *earlier) drop() error {
	if e.aside == "" {
		return nil
	}
	return os.RemoveAll(e.aside)
}

// workerArgs are the flags of this command that workers need, as they are given;
// the names of headers come last, whose values they have in their environment.
func workerArgs(c *cli.Command) []string {
	var args []string
	for _, f := range plannedFlags() {
		name := f.Names()[0]
		if !c.IsSet(name) || name == "header" {
			continue
		}
		switch v := c.Value(name).(type) {
		case []string:
			for _, s := range v {
				args = append(args, "--"+name+"="+s)
			}
		default:
			args = append(args, fmt.Sprintf("--%s=%v", name, v))
		}
	}
	if args = append(args, "--"); c.IsSet("header") {
		for _, h := range c.StringSlice("header") {
			name, _, _ := strings.Cut(h, ":")
			args = append(args, strings.TrimSpace(name))
		}
	}
	return args
}

// A launcher starts workers on this machine.
type launcher struct {
	c      *cli.Command
	server *cluster.Server
	names  []string
	dir    string
	cmds   []*exec.Cmd
	pipes  []*os.File // each worker reads one, which ends with this process
	over   []chan struct{}
}

func (l *launcher) start(context.Context) ([]cluster.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out []cluster.Process
	for _, name := range l.names {
		r, w, err := os.Pipe()
		if err != nil {
			return out, err
		}
		l.pipes = append(l.pipes, w)
		cmd := exec.Command(program, "worker", "--nats", l.server.URL, "--cluster", l.c.String("cluster"), "--name", name, "-o", cluster.WorkerDir(l.dir, name), "--child")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = r, l.c.Root().ErrWriter, l.c.Root().ErrWriter
		cmd.Env = append(os.Environ(), cluster.EnvSeed+"="+l.server.Seeds[name], cluster.EnvHeaders+"="+strings.Join(l.c.StringSlice("header"), "\n"))
		cmd.SysProcAttr = ownGroup() // an interrupt from the keyboard is for the coordinator, which tells them
		err = cmd.Start()
		r.Close()
		if err != nil {
			return out, err
		}
		done, ended := make(chan error, 1), make(chan struct{})
		go func() {
			done <- cmd.Wait()
			close(ended)
		}()
		l.cmds, l.over = append(l.cmds, cmd), append(l.over, ended)
		out = append(out, cluster.Process{Name: name, Over: done})
	}
	return out, nil
}

// end ends what still runs: a worker whose pipe is closed stops by itself.
func (l *launcher) end() {
	for _, p := range l.pipes {
		p.Close()
	}
	for _, ended := range l.over {
		<-ended
	}
}
