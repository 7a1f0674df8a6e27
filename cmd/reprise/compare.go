package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/synth"
	"reprise/synth/model"
	"reprise/trace"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "say how two traces, or workload models, differ",
		ArgsUsage: "A B",
		Description: `A and B are canonical traces or models made by reprise fit, also one of each. A
model is compared by what it generates: all turns of its sessions, as long as the
trace that it was fitted to.
Prints rate, burstiness, lengths, gaps, turns, think times and prefix reuse of
both, the distances of their distributions, and ratios with intervals by a
bootstrap over sessions (minutes where there are none), never over requests.

--fail-on names what must not be: isl_w1>5% (area between the distributions over
the mean of A), osl_ks>10%, rate>+10% or isl_p99<-20% (change from A to B),
idc_60s>300 (value of B). Several are separated by semicolons.

Example:
   reprise compare lastweek.parquet today.parquet --fail-on 'isl_w1>5%; rate>+20%'`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-on", Usage: "conditions that end with exit code 4 where one holds"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of the bootstrap (default: 0)"},
			&cli.StringFlag{Name: "html", Usage: "also write one HTML file with tables and charts, which needs no network"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: runCompare,
	}
}

func runCompare(ctx context.Context, c *cli.Command) error {
	if n := c.Args().Len(); n != 2 {
		return misuse("see: reprise compare --help", "reprise compare takes two traces or models, got %d arguments", n)
	}
	if c.Args().Get(0) == "-" && c.Args().Get(1) == "-" {
		return misuse("write one of them to a file", "both sides are standard input, which can be read once")
	}
	var conditions []analysis.Condition
	if text := c.String("fail-on"); text != "" {
		var err error
		if conditions, err = analysis.ParseConditions(text); err != nil {
			return misused{fmt.Errorf("--fail-on: %w", err), trace.Fix(err)}
		}
	}
	var sides [2]*analysis.Profile
	for i := range sides {
		var err error
		if sides[i], err = profile(ctx, c, c.Args().Get(i)); err != nil {
			return err
		}
	}
	result := analysis.CompareProfiles(sides[0], sides[1], c.Uint64("seed"))
	failed, err := result.Gate(conditions)
	if err != nil {
		return misused{fmt.Errorf("--fail-on: %w", err), trace.Fix(err)}
	}
	if name := c.String("html"); name != "" {
		for i := range sides {
			if err := notInput(name, c.Args().Get(i)); err != nil {
				return err
			}
		}
		if err := writeWhole(name, chart.ComparisonPage(result, sides[0], sides[1]).Write); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = writeJSON(c.Root().Writer, result)
	} else {
		err = analysis.WriteComparisonText(c.Root().Writer, result)
	}
	if err != nil {
		return err
	}
	if failed > 0 {
		return verdict{4, fmt.Errorf("%d of %d conditions of --fail-on hold", failed, len(conditions))}
	}
	return nil
}

// profile reads a trace or a model.
func profile(ctx context.Context, c *cli.Command, path string) (*analysis.Profile, error) {
	w, _, err := readModel(c, path)
	if err != nil {
		return nil, err
	}
	if w != nil {
		return profileOfModel(ctx, w, path)
	}
	r, err := openTrace(c, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return analysis.ProfileOfTrace(ctx, r, path)
}

// profileOfModel describes what a model stands for by what it generates.
func profileOfModel(ctx context.Context, w *model.Workload, path string) (*analysis.Profile, error) {
	c, err := analysis.NewProfileCollector(synth.SpecimenMeta(w), w.Requests, path)
	if err != nil {
		return nil, err
	}
	if err := synth.Specimen(ctx, w, c.Add); err != nil {
		return nil, trace.WithFix(fmt.Errorf("%s: %w", path, err), trace.Fix(err))
	}
	return c.ProfileOfModel(w), nil
}
