package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/trace/results"
)

// conclude writes the summary and prints the report; also of a run that was
// interrupted.
func conclude(ctx context.Context, c *cli.Command, dir string, run *results.Run) error {
	opened, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	slo, err := sloFlag(c)
	if err != nil {
		return err
	}
	summary, err := analysis.SummarizeSLO(context.WithoutCancel(ctx), opened, slo)
	if err != nil {
		return err
	}
	limits, err := lateLimits(c)
	if err != nil {
		return err
	}
	summary.Judge(limits)
	if err := analysis.WriteSummary(dir, summary); err != nil {
		return err
	}
	if err := writeJUnit(c, summary); err != nil {
		return err
	}
	switch w := c.Root().Writer; {
	case c.Bool("markdown"):
		err = analysis.WriteMarkdown(w, summary)
	case c.Bool("json"):
		err = writeJSON(w, summary)
	default:
		err = analysis.WriteText(w, summary)
	}
	fmt.Fprintf(c.Root().ErrWriter, "reprise: the run is in %s\n", dir)
	switch {
	case err != nil:
		return err
	case run.Ended.Interrupted:
		return errInterrupted
	}
	return judged(summary)
}
