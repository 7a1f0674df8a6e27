// Chaos holds whole replays against what life does to them.
//
//	go run ./cmd/chaos kill -n 200   # kill replays at random moments, and open each run
//	go run ./cmd/chaos soak -for 30m # 2,000 streams at once for half an hour
//
//	go run ./cmd/chaos distributed   # several workers: deaths, cuts, clocks, slow hosts
//
// kill starts replays as processes of their own and ends each by SIGKILL; what the
// server had finished more than a second before must be in the results, and
// nothing may be broken. soak replays within this process, against a mock in
// another, and holds memory, goroutines, descriptors and the account against what
// they must be. distributed shares a run among workers, kills one of them, and their
// coordinator, delays and cuts their network, sets their clocks wrong and slows one
// down; workers on hosts are in network namespaces, where root and ip(8) are there.
// All use loopback alone, or links between namespaces of their own. Exit code 1:
// something is not as it must be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"reprise/trace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want kill, soak or distributed")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	bin := flags.String("bin", "bin/reprise", "the program")
	dir := flags.String("dir", "out/"+args[0], "where runs are written; emptied first")
	switch args[0] {
	case "kill":
		k := killer{}
		flags.IntVar(&k.kills, "n", 200, "replays to kill")
		flags.IntVar(&k.parallel, "parallel", 2, "replays at once")
		flags.Uint64Var(&k.seed, "seed", 1, "of the moments")
		flags.Parse(args[1:])
		k.bin, k.dir = *bin, *dir
		return k.run(ctx)
	case "distributed":
		d := distributor{}
		flags.IntVar(&d.rate, "rate", 500, "requests per second of all workers")
		flags.DurationVar(&d.length, "for", 10*time.Second, "length of the trace")
		flags.StringVar(&d.only, "only", "*", "cases to run, as a pattern")
		plain := flags.Bool("plain", false, "no network namespaces: all on loopback")
		flags.Parse(args[1:])
		if d.bin, d.dir = *bin, *dir; !*plain {
			ran, err := inHub(ctx)
			if ran {
				return err
			}
			if err != nil {
				fmt.Println("hosts        no network namespaces, so plain processes:", err)
			}
		}
		return d.run(ctx)
	case "soak":
		s := soak{}
		flags.DurationVar(&s.length, "for", 30*time.Minute, "how long requests are sent")
		flags.IntVar(&s.streams, "streams", 2000, "answers that come at once")
		flags.Parse(args[1:])
		s.bin, s.dir = *bin, *dir
		return s.run(ctx)
	}
	return fmt.Errorf("%q: want kill, soak or distributed", args[0])
}

// empty makes dir anew.
func empty(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// steady writes a trace of n requests, evenly over length.
func steady(path string, n int, length time.Duration, input, output int64) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	w, b := trace.NewWriter(f), trace.NewBatch()
	for i := range n {
		b.Append(&trace.Request{
			ID: int64(i), Operation: trace.OpChat, Arrival: trace.Some(time.Duration(int64(length) * int64(i) / int64(n))),
			InputTokens: trace.Some(input), OutputTokens: trace.Some(output),
		})
		if b.Len() == trace.BatchRows || i == n-1 {
			if err := w.Write(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := w.Close(trace.Meta{Clock: trace.ClockTrace}); err != nil {
		return err
	}
	return f.Commit()
}
