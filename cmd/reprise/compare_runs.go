package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/trace"
	"reprise/trace/results"
)

// isRun says whether a path is a directory: a run, or one that OpenRun refuses.
func isRun(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// runSides are the run directories of both sides: the baseline of --baseline, or
// the first of two; false if no argument is a directory.
func runSides(c *cli.Command) (sides [2][]string, runs bool, err error) {
	args, base := c.Args().Slice(), c.StringSlice("baseline")
	if !slices.ContainsFunc(append(slices.Clone(args), base...), isRun) {
		if len(base) > 0 {
			return sides, false, misuse("name directories written by reprise replay -o", "--baseline %s: not a run directory", base[0])
		}
		return sides, false, nil
	}
	for _, path := range append(slices.Clone(args), base...) {
		if _, err := os.Stat(path); err == nil && !isRun(path) {
			return sides, true, misuse("compare runs with runs, and traces with traces", "%s is no run directory, but others are", path)
		}
	}
	switch {
	case len(base) > 0 && len(args) > 0:
		return [2][]string{base, args}, true, nil
	case len(base) == 0 && len(args) == 2:
		return [2][]string{args[:1], args[1:]}, true, nil
	case len(base) > 0:
		return sides, true, misuse("name the runs to hold against it: reprise compare --baseline A/ B/", "no run beside the baseline")
	case len(args) > 2:
		return sides, true, misuse("say which runs are the baseline: reprise compare --baseline A1/ --baseline A2/ B1/ B2/", "%d runs, and nothing says which side each is on", len(args))
	}
	return sides, true, misuse("see: reprise compare --help", "reprise compare takes two runs, got %d", len(args))
}

func compareRuns(ctx context.Context, c *cli.Command, names [2][]string) error {
	conditions, err := failOn(c)
	if err != nil {
		return err
	}
	rule := c.String("fail-rule")
	if !slices.Contains(analysis.Rules, rule) {
		return misuse("use "+strings.Join(analysis.Rules, ", "), "--fail-rule %q", rule)
	}
	if c.Bool("json") && c.Bool("markdown") {
		return misuse("choose one", "--json and --markdown exclude each other")
	}
	limits, err := lateLimits(c)
	if err != nil {
		return err
	}
	var sides [2][]*analysis.RunData
	for i := range names {
		for _, name := range names[i] {
			run, err := results.OpenRun(name)
			if err != nil {
				return err
			}
			d, err := analysis.LoadRun(ctx, run, name, limits)
			if err != nil {
				return err
			}
			sides[i] = append(sides[i], d)
		}
	}
	if err := analysis.Refusal(analysis.Basis(sides[0], sides[1])); err != nil && !c.Bool("force") {
		return misused{err, trace.Fix(err)}
	}
	result, err := analysis.CompareRuns(ctx, sides[0], sides[1], c.Uint64("seed"))
	if err != nil {
		return err
	}
	failed, err := result.Gate(conditions, rule)
	if err != nil {
		return misused{fmt.Errorf("--fail-on: %w", err), trace.Fix(err)}
	}
	if err := writeRunComparison(c, result); err != nil {
		return err
	}
	if failed > 0 {
		return verdict{analysis.CodeGate, fmt.Errorf("%d of %d conditions of --fail-on hold", failed, len(conditions))}
	}
	return nil
}

func writeRunComparison(c *cli.Command, result *analysis.RunComparison) error {
	if name := c.String("html"); name != "" {
		if err := writeWhole(name, chart.RunsPage(result).Write); err != nil {
			return err
		}
	}
	switch w := c.Root().Writer; {
	case c.Bool("json"):
		return writeJSON(w, result)
	case c.Bool("markdown"):
		return analysis.WriteRunsMarkdown(w, result)
	default:
		return analysis.WriteRunsText(w, result)
	}
}

// failOn reads the conditions of --fail-on.
func failOn(c *cli.Command) ([]analysis.Condition, error) {
	text := c.String("fail-on")
	if text == "" {
		return nil, nil
	}
	conditions, err := analysis.ParseConditions(text)
	if err != nil {
		return nil, misused{fmt.Errorf("--fail-on: %w", err), trace.Fix(err)}
	}
	return conditions, nil
}
