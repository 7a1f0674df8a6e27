package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/synth"
	"reprise/synth/model"
	"reprise/trace"
)

func fitCommand() *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "describe traffic by a workload model, and say how good each law is",
		ArgsUsage: "TRACE",
		Description: `Fits arrivals (a rate over time, and how gaps vary around it), lengths of prompts
and answers, sessions (turns, think times, growth of the context) and shared
prefixes. Sessions are those the trace names, or else those that shared prefixes
tell. The model is JSON, and enough for reprise synth to make more of such
traffic without the trace. Lengths and times are drawn from the values themselves;
the families (exponential, gamma, Weibull, lognormal, hyperexponential, mixture,
spliced) come with likelihood, distances and a grade. Timestamps in whole ticks
are fitted as such; a shape that they do not show is refused, with the reason.

Example:
   reprise fit prod.parquet -o prod.model.json
   reprise fit prod.parquet --by client --bootstrap 200 --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "model to write; - for standard output (default: none, only the report)"},
			&cli.StringFlag{Name: "by", Value: synth.FitAll, Usage: "all, or a stream of its own for each client or model"},
			&cli.IntFlag{Name: "clients", Value: synth.DefaultFitStreams, Usage: "clients or models with a stream of their own; the rest is pooled"},
			&cli.StringFlag{Name: "profile", Value: "auto", Usage: "rate over time: auto (constant between changes), or a width of its pieces such as 60s or 300s"},
			&cli.IntFlag{Name: "bootstrap", Usage: "draws for 95% intervals of parameters; also tests each family (default: none)"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of samples, checks and bootstraps (default: 0)"},
			&cli.StringFlag{Name: "html", Usage: "also write one HTML file with the laws drawn over the data, which needs no network"},
			&cli.BoolFlag{Name: "json", Usage: "print the model instead of the report"},
			&cli.BoolFlag{Name: "schema", Usage: "print the JSON Schema of model files and end"},
		},
		Action: runFit,
	}
}

func runFit(ctx context.Context, c *cli.Command) error {
	if c.Bool("schema") {
		_, err := c.Root().Writer.Write(model.SchemaJSON)
		return err
	}
	o, err := fitOptions(c)
	if err != nil {
		return err
	}
	path, err := oneArg(c, "trace")
	if err != nil {
		return err
	}
	if err := ownFiles(path, c.String("output"), c.String("html")); err != nil {
		return err
	}
	w, err := fitTrace(ctx, c, path, o)
	if err != nil {
		return err
	}
	return writeFit(c, w)
}

// drawFit writes the page of the trace with the model's laws.
func drawFit(ctx context.Context, name, file string, w *model.Workload) error {
	r, err := trace.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := analysis.AnalyzeTraffic(ctx, r, analysis.TrafficOptions{})
	if err != nil {
		return err
	}
	return writeWhole(name, chart.TrafficPage(t, w).Write)
}

func fitOptions(c *cli.Command) (o synth.FitOptions, err error) {
	o = synth.FitOptions{By: c.String("by"), Streams: c.Int("clients"), Bootstrap: c.Int("bootstrap"), Seed: c.Uint64("seed")}
	if text := c.String("profile"); text != "auto" {
		if o.Profile, err = time.ParseDuration(text); err != nil || o.Profile <= 0 {
			return o, misuse("use auto, or a width such as 60s or 300s", "--profile %q: neither auto nor a time", text)
		}
	}
	if err := o.Check(); err != nil {
		return o, misused{err, trace.Fix(err)}
	}
	return o, nil
}

// fitTrace reads the trace at path, as often as a fit does.
func fitTrace(ctx context.Context, c *cli.Command, path string, o synth.FitOptions) (*model.Workload, error) {
	file, err := onDisk(c, path)
	if err != nil {
		return nil, err
	}
	if file != path {
		defer os.Remove(file)
	}
	in, err := trace.Identify(file)
	if err != nil {
		return nil, err
	}
	if file != path {
		in.Name = "standard input"
	}
	// What a fit keeps is large and holds no pointers: collecting it often is cheap.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	w, err := synth.Fit(ctx, func() (*trace.Reader, error) { return trace.Open(file) }, o)
	if err != nil {
		return nil, trace.WithFix(fmt.Errorf("%s: %w", path, err), trace.Fix(err))
	}
	w.Provenance.Version, w.Provenance.Trace = version, &in
	if name := c.String("html"); name != "" {
		return w, drawFit(ctx, name, file, w)
	}
	return w, nil
}

// writeFit writes the model, and the report or the model to standard output.
func writeFit(c *cli.Command, w *model.Workload) error {
	out, printed := c.String("output"), c.Bool("json") || c.String("output") == "-"
	if out != "" && out != "-" {
		if err := writeModel(out, w); err != nil {
			return err
		}
	}
	if printed {
		return w.Write(c.Root().Writer)
	}
	if err := analysis.WriteWorkloadText(c.Root().Writer, w); err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	_, err := io.WriteString(c.Root().ErrWriter, "reprise: the model is in "+out+"\n")
	return err
}

func writeModel(path string, w *model.Workload) error {
	f, err := trace.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := w.Write(f); err != nil {
		return err
	}
	return f.Commit()
}
