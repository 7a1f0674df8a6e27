package main

import (
	"context"
	"runtime/debug"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/trace"
)

func analyzeCommand() *cli.Command {
	return &cli.Command{
		Name:      "analyze",
		Usage:     "say what traffic looks like: arrivals, lengths, sessions, reuse",
		ArgsUsage: "TRACE",
		Description: `Prints rate and burstiness (gap CV, and the index of dispersion in windows of
0.1, 1, 10, 60 and 300 s beside the Poisson line), lengths with quantiles and
tails, how output goes with input length, sessions as recorded or as shared
prefixes tell, and prefix reuse: a cache without limit, a block LRU of any
capacity, reuse time and distance, blocks shared by sessions. Times are seconds,
lengths tokens. What the trace cannot tell is said in words. JSON has more:
every group, and the points of rate, distributions and LRU curve.

Example:
   reprise analyze prod.parquet
   reprise analyze prod.parquet --by model --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "by", Usage: "also describe groups of rows: model, client or hour"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			switch by := c.String("by"); by {
			case "", analysis.ByModel, analysis.ByClient, analysis.ByHour:
			default:
				return misuse("use model, client or hour", "--by %q: no such grouping", by)
			}
			return onTrace(runAnalyze)(ctx, c)
		},
	}
}

func runAnalyze(ctx context.Context, c *cli.Command, r *trace.Reader, _ string) error {
	// What it keeps is large and holds no pointers: collecting it often is cheap,
	// and letting the heap double is not.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	t, err := analysis.AnalyzeTraffic(ctx, r, analysis.TrafficOptions{By: c.String("by")})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return writeJSON(c.Root().Writer, t)
	}
	return analysis.WriteTrafficText(c.Root().Writer, t)
}
