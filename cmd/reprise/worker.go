package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/replay"
	"reprise/replay/cluster"
	"reprise/replay/protocol"
	"reprise/trace"
)

func workerCommand() *cli.Command {
	return &cli.Command{
		Name:  "worker",
		Usage: "be a load host of a replay that another host coordinates",
		Description: `Waits for a run (reprise replay ... --nats URL --workers N), sends its share of it, hands
the results over and ends. The clock of this host need not be right: it is compared
with the coordinator's before, during and after the run.

Secrets come from the environment: the variable that --api-key-env of the run
names; ` + cluster.EnvHeaders + `, lines 'Name: value', for the headers of the run;
` + cluster.EnvToken + ` or ` + cluster.EnvSeed + ` for the NATS server. Files that flags of the run name
(--ca-file, --template, --tokenizer) must be here at the same paths; if the trace is not,
the rows that this worker sends are fetched from the server's object store.

If the coordinator is killed, requests in flight end, and the results stay in -o for
reprise report --recover.

Example:
   reprise worker --nats nats://coordinator:4222 --nats-creds load.creds -o parts/`,
		Flags: append(busFlags(),
			&cli.StringFlag{Name: "name", Usage: "of this worker in the run: letters, digits, - and _ (default: host name and process id)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "directory for the results until they are handed over; they stay there after that (default: a temporary one, which goes)"},
			&cli.BoolFlag{Name: "fetch", Usage: "fetch the rows of this worker from the object store even if the trace is here too"},
			&cli.BoolFlag{Name: "child", Hidden: true, Usage: "end when standard input ends"},
		),
		Action: runWorker,
	}
}

func runWorker(ctx context.Context, c *cli.Command) error {
	bus := busOf(c)
	if bus.URL == "" {
		return misuse("name the server with --nats, such as nats://host:4222", "no NATS server to wait at")
	}
	if err := cmp.Or(bus.Check(), bus.CheckFiles()); err != nil {
		return misused{err, trace.Fix(err)}
	}
	offset, err := clockOffset()
	if err != nil {
		return err
	}
	name, err := workerName(c)
	if err != nil {
		return err
	}
	dir, done, err := workerDir(c)
	if err != nil {
		return err
	}
	w := cluster.Worker{
		Bus: bus, Name: name, Seed: os.Getenv(cluster.EnvSeed), Dir: dir, Version: version, Fetch: c.Bool("fetch"), Clock: cluster.NewClock(offset), Config: workerConfig,
		Log: func(format string, args ...any) {
			fmt.Fprintf(c.Root().ErrWriter, "reprise: worker "+name+": "+format+"\n", args...)
		},
	}
	if c.Bool("child") {
		w.Parent = ends(c.Root().Reader)
		w.Log = quietly(w.Log)
	}
	err = w.Run(ctx)
	if _, kerr := os.Stat(filepath.Join(dir, "0")); err == nil || kerr != nil { // nothing in it that is to be kept
		done()
	}
	if err != nil && c.Bool("child") && w.Told() {
		return said{err}
	}
	if _, kerr := os.Stat(filepath.Join(dir, "0")); err != nil && c.Bool("child") && kerr == nil {
		err = trace.WithFix(err, "once all workers have ended: reprise report --recover "+filepath.Dir(filepath.Dir(dir)))
	}
	if err != nil && ctx.Err() != nil {
		return errors.Join(errInterrupted, err)
	}
	return err
}

// workerName is the name that is given, or one of this process.
func workerName(c *cli.Command) (string, error) {
	if c.IsSet("name") {
		if err := cluster.CheckName(c.String("name")); err != nil {
			return "", misused{err, trace.Fix(err)}
		}
		return c.String("name"), nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	return strings.Map(func(r rune) rune {
		if cluster.CheckName(string(r)) != nil {
			return '-'
		}
		return r
	}, fmt.Sprintf("%s-%d", host, os.Getpid())), nil
}

// quietly leaves out what the coordinator says too.
func quietly(log func(string, ...any)) func(string, ...any) {
	return func(format string, args ...any) {
		if !strings.HasPrefix(format, "joined") {
			log(format, args...)
		}
	}
}

// ends is closed when r ends.
func ends(r io.Reader) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		io.Copy(io.Discard, r)
		close(over)
	}()
	return over
}

// workerDir is where results are kept; done takes a temporary one away.
func workerDir(c *cli.Command) (dir string, done func(), err error) {
	if dir = c.String("output"); dir == "" {
		dir, err = os.MkdirTemp("", "reprise-worker-*")
		return dir, func() { os.RemoveAll(dir) }, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", nil, trace.WithFix(fmt.Errorf("%s: not empty", dir), "name another directory")
	}
	return dir, func() {}, os.MkdirAll(dir, 0o755)
}

// clockOffset is how wrong a test has set the clock.
func clockOffset() (time.Duration, error) {
	text := os.Getenv(cluster.EnvOffset)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, misuse("give a time such as 250ms, or leave the variable out", "%s: %q is no time", cluster.EnvOffset, text)
	}
	return d, nil
}

// plannedFlags are the flags of reprise replay that say what is sent.
func plannedFlags() []cli.Flag {
	all := slices.Concat(selectionFlags(), loadFlags(), targetFlags(), limitFlags())
	return slices.DeleteFunc(all, func(f cli.Flag) bool {
		switch f.Names()[0] {
		case "repeat", "file", "scenario-schema":
			return true
		}
		return false
	})
}

// workerConfig reads the flags of a plan.
func workerConfig(args []string, path string) (*replay.Config, error) {
	var config *replay.Config
	c := replayCommand()
	c.Action = func(_ context.Context, c *cli.Command) (err error) {
		if config, err = replayConfig(c); err != nil {
			return err
		}
		config.Headers, err = headersOf(c.Args().Slice())
		return err
	}
	prepare(c, nil, io.Discard, io.Discard)
	if err := c.Run(context.Background(), append([]string{"replay"}, args...)); err != nil {
		return nil, err
	}
	config.Trace = path
	return config, nil
}

// headersOf finds the values of headers in the environment.
func headersOf(names []string) ([]protocol.Header, error) {
	values := map[string][]string{}
	for line := range strings.Lines(os.Getenv(cluster.EnvHeaders)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			name = strings.TrimSpace(name)
			values[name] = append(values[name], strings.TrimSpace(value))
		}
	}
	var out []protocol.Header
	for _, name := range names {
		list := values[name]
		if len(list) == 0 {
			return nil, trace.WithFix(fmt.Errorf("the run sends a header %s, whose value is not here", name), "put a line 'Name: value' into the variable "+cluster.EnvHeaders)
		}
		out = append(out, protocol.Header{Name: name, Value: list[0]})
		values[name] = list[1:]
	}
	return out, nil
}
