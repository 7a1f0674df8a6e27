package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/synth"
	"reprise/trace"
)

func dequantizeCommand() *cli.Command {
	return &cli.Command{
		Name:      "dequantize",
		Usage:     "spread the arrivals of coarse timestamps over their tick",
		ArgsUsage: "TRACE",
		Description: `Where a source kept times to a tick of a second or more, all requests of a tick
seem to come at once. This spreads them over their tick by chance, in their order
and by the seed, and says so in the history. Fits take the ticks into account by
themselves: fit the trace as it is, and spread it to replay or to scale it.

Example:
   reprise trace dequantize conversation.parquet --tick 3s -o spread.parquet`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "canonical trace to write; - for standard output"},
			&cli.DurationFlag{Name: "tick", Usage: "resolution of the timestamps (default: as the trace says)"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of the spreading (default: 0)"},
			&cli.BoolFlag{Name: "json", Usage: "print what was done as one JSON object"},
		},
		Action: runDequantize,
	}
}

func runDequantize(ctx context.Context, c *cli.Command) error {
	if tick := c.Duration("tick"); tick < 0 {
		return misuse("give a time such as 1s", "--tick %v: must be above 0", tick)
	}
	s := synth.Spreading{Tick: c.Duration("tick"), Seed: c.Uint64("seed")}
	var done synth.Spread
	step := trace.Step{Command: "trace dequantize", Version: version, Seed: &s.Seed, Flags: setFlags(c, []string{"tick"})}
	_, err := rewrite(c, step, func(open synth.Open, emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, done, err = s.Run(ctx, open, emit)
		return meta, err
	})
	if err != nil {
		return err
	}
	if c.Bool("json") && c.String("output") != "-" {
		return writeJSON(c.Root().Writer, done)
	}
	return table(account(c), func(y func(string, string) bool) {
		_ = y("tick", fmt.Sprintf("%g s", float64(done.TickNS)/1e9)) &&
			y("spread", fmt.Sprintf("%s of %s, at most %s in one", analysis.Counted(done.Rows, "arrival"), analysis.Counted(done.Ticks, "tick"), analysis.Grouped(done.Most))) &&
			y("wrote", c.String("output"))
	})
}

// rewrite makes one trace of another: the first argument is read by make, the
// rows that it emits go to --output, and step into the history.
func rewrite(c *cli.Command, step trace.Step, make func(open synth.Open, emit func(*trace.Batch) error) (trace.Meta, error)) (trace.Meta, error) {
	path, err := oneArg(c, "trace")
	if err != nil {
		return trace.Meta{}, err
	}
	out := c.String("output")
	if err := notInput(out, path); err != nil {
		return trace.Meta{}, err
	}
	file, err := onDisk(c, path)
	if err != nil {
		return trace.Meta{}, err
	}
	if file != path {
		defer os.Remove(file)
	}
	in, err := trace.Identify(file)
	if err != nil {
		return trace.Meta{}, err
	}
	if file != path {
		in.Name = "standard input"
	}
	step.Inputs = []trace.Input{in}
	sound := newSoundness(path, step.Command)
	return writeTrace(c, step, func(emit func(*trace.Batch) error) (trace.Meta, error) {
		return make(func() (*trace.Reader, error) { return trace.Open(file) }, func(b *trace.Batch) error {
			if err := sound.check(b); err != nil {
				return err
			}
			return emit(b)
		})
	})
}

// writeTrace writes the rows that make emits to --output, with step at the end
// of the history.
func writeTrace(c *cli.Command, step trace.Step, make func(emit func(*trace.Batch) error) (trace.Meta, error)) (trace.Meta, error) {
	write := func(w *trace.Writer) (trace.Meta, error) {
		meta, err := make(w.Write)
		if err != nil {
			return meta, err
		}
		if step.Command == "trace anonymize" {
			step.Inputs = nil // their names and sums would say whose the trace is
		}
		meta.History = append(meta.History[:len(meta.History):len(meta.History)], step)
		return meta, w.Close(meta)
	}
	out := c.String("output")
	if out == "-" {
		return write(trace.NewWriter(c.Root().Writer))
	}
	f, err := trace.Create(out)
	if err != nil {
		return trace.Meta{}, err
	}
	defer f.Abort()
	meta, err := write(trace.NewWriter(f))
	if err != nil {
		return meta, err
	}
	return meta, f.Commit()
}

// account is where a command says what it did: not where its data go.
func account(c *cli.Command) io.Writer {
	if c.String("output") == "-" {
		return c.Root().ErrWriter
	}
	return c.Root().Writer
}
