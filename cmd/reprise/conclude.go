package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/trace/results"
)

// A judging is what runs are held against.
type judging struct {
	slo    *analysis.SLO // nil for none
	limits analysis.Limits
}

// judgingOf reads it from the flags.
func judgingOf(c *cli.Command) (j judging, err error) {
	if j.slo, err = sloFlag(c); err != nil {
		return j, err
	}
	j.limits, err = lateLimits(c)
	return j, err
}

// summarize computes the numbers of the run in dir, and keeps them there; also when
// ctx has ended, since the run is made.
func (j judging) summarize(ctx context.Context, dir string) (*analysis.Summary, error) {
	opened, err := results.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	s, err := analysis.SummarizeSLO(context.WithoutCancel(ctx), opened, j.slo)
	if err != nil {
		return nil, err
	}
	s.Judge(j.limits)
	return s, analysis.WriteSummary(dir, s)
}

// conclude writes the summary and prints the report; also of a run that was
// interrupted.
func conclude(ctx context.Context, c *cli.Command, dir string, run *results.Run) error {
	j, err := judgingOf(c)
	if err != nil {
		return err
	}
	summary, err := j.summarize(ctx, dir)
	if err != nil {
		return err
	}
	err = writeReport(c, summary)
	fmt.Fprintf(c.Root().ErrWriter, "reprise: the run is in %s\n", dir)
	switch {
	case err != nil:
		return err
	case run.Ended.Interrupted:
		return errInterrupted
	}
	return judged(summary)
}
