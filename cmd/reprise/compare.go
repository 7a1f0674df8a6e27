package main

import (
	"context"
	"fmt"
	"strings"

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
		Usage:     "say how two traces, workload models or runs differ",
		ArgsUsage: "A B",
		Description: `A and B are canonical traces or models made by reprise fit, also one of each, or
run directories. A
model is compared by what it generates: all turns of its sessions, as long as the
trace that it was fitted to.
Prints rate, burstiness, lengths, gaps, turns, think times and prefix reuse of
both, the distances of their distributions, and ratios with intervals by a
bootstrap over sessions (minutes where there are none), never over requests.

--fail-on names what must not be: isl_w1>5% (area between the distributions over
the mean of A), osl_ks>10%, rate>+10% or isl_p99<-20% (change from A to B),
idc_60s>300 (value of B). Several are separated by semicolons.

Runs are paired by request where they replayed one trace at the same times.
Mean, p50, p90, p95 and p99 of ttft, ttfo, itl, tpot, e2e, response_time and
lateness, the error rate and the throughputs stand side by side, each with its
change, a 95 % interval (bootstrap of blocks of time and of sessions, the wider)
and a verdict: differs, which at most 5 % of comparisons of equal runs have at
any number, perhaps, or within noise. Several runs of a side: --baseline A1/
--baseline A2/ B1/ B2/; what varies from run to run then widens the intervals.
Runs that do not measure the same thing (other pacing, speed, shape, protocol or
output lengths, an invalid verdict) are refused; --force takes them as they are.
--fail-on ttft_p95>+5% fails where the change is beyond the limit and its interval
excludes no change, at 95 % for all conditions together; --fail-rule proven asks
for all of the interval beyond the limit, estimate for the bare number.

Example:
   reprise compare lastweek.parquet today.parquet --fail-on 'isl_w1>5%; rate>+20%'
   reprise compare before/ after/ --fail-on 'ttft_p95>+5%; error_rate>1%'`,
		Flags: append(lateFlags(),
			&cli.StringFlag{Name: "fail-on", Usage: "conditions that end with exit code 4 where one holds"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of the bootstrap (default: 0)"},
			&cli.StringFlag{Name: "html", Usage: "also write one HTML file with tables and charts, which needs no network"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "markdown", Usage: "print Markdown for a pull request (runs)"},
			&cli.StringSliceFlag{Name: "baseline", Usage: "run directory of side A (repeatable); all others are side B"},
			&cli.StringFlag{Name: "fail-rule", Value: analysis.DefaultRule, Usage: "when a change of runs fails: " + strings.Join(analysis.Rules, ", ")},
			&cli.BoolFlag{Name: "force", Usage: "compare also runs that do not measure the same thing, or whose verdict is invalid"},
		),
		Action: runCompare,
	}
}

func runCompare(ctx context.Context, c *cli.Command) error {
	if sides, runs, err := runSides(c); err != nil {
		return err
	} else if runs {
		return compareRuns(ctx, c, sides)
	}
	if n := c.Args().Len(); n != 2 {
		return misuse("see: reprise compare --help", "reprise compare takes two traces or models, got %s", trace.Plural(n, "argument"))
	}
	if c.Args().Get(0) == "-" && c.Args().Get(1) == "-" {
		return misuse("write one of them to a file", "both sides are standard input, which can be read once")
	}
	for _, name := range []string{"markdown", "force", "fail-rule", "late-limit", "late-share", "receive-share"} {
		if c.IsSet(name) {
			return misuse("leave it out, or name two run directories", "--%s is for runs", name)
		}
	}
	conditions, err := failOn(c)
	if err != nil {
		return err
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
