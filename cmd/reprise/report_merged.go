package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/trace"
	"reprise/trace/results"
)

// reportMerged prints one report of several runs.
func reportMerged(ctx context.Context, c *cli.Command, dirs []string) error {
	if c.String("html") != "" {
		return misuse("draw each run by itself, or compare them: reprise compare A/ B/ --html F", "--html draws one run, got %d", len(dirs))
	}
	if len(c.StringSlice("export")) > 0 || c.String("otlp") != "" {
		return misuse("export each run by itself", "--export and --otlp take one run, got %d", len(dirs))
	}
	if c.Bool("json") && c.Bool("csv") {
		return misuse("choose one", "--json and --csv exclude each other")
	}
	limits, err := lateLimits(c)
	if err != nil {
		return err
	}
	slo, err := sloFlag(c)
	if err != nil {
		return err
	}
	var runs []*results.Opened
	seen := map[string]bool{}
	for _, dir := range dirs {
		if seen[filepath.Clean(dir)] {
			return misuse("name each run once", "%s is named twice: its requests would count twice", dir)
		}
		seen[filepath.Clean(dir)] = true
		run, err := results.OpenRun(dir)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	s, err := analysis.SummarizeRuns(ctx, runs, dirs, slo, limits, c.Bool("force"))
	if _, ok := errors.AsType[*analysis.BasisError](err); ok {
		return misused{err, trace.Fix(err)}
	}
	if err != nil {
		return err
	}
	if err := writeReport(c, s); err != nil {
		return err
	}
	return judged(s)
}

// writeReport prints a summary as asked, and its histograms.
func writeReport(c *cli.Command, s *analysis.Summary) error {
	if name := c.String("histograms"); name != "" {
		if err := writeWhole(name, func(w io.Writer) error { return analysis.WriteHistograms(w, s) }); err != nil {
			return err
		}
	}
	if err := writeJUnit(c, s); err != nil {
		return err
	}
	switch w := c.Root().Writer; {
	case c.Bool("markdown"):
		return analysis.WriteMarkdown(w, s)
	case c.Bool("json"):
		return writeJSON(w, s)
	case c.Bool("csv"):
		return analysis.WriteCSV(w, s)
	default:
		return analysis.WriteText(w, s)
	}
}

// ciFlags are reports for continuous integration.
func ciFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "markdown", Usage: "print verdict, goals and main numbers as Markdown, for a pull request"},
		&cli.StringFlag{Name: "junit", Usage: "also write the verdict and the goals as JUnit XML"},
	}
}

// checkJUnit refuses, before a run, a file that cannot be written after it.
func checkJUnit(c *cli.Command) error {
	name := c.String("junit")
	if name == "" {
		return nil
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		return misuse("make it first, or write elsewhere", "--junit %s: there is no directory %s", name, dir)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func writeJUnit(c *cli.Command, s *analysis.Summary) error {
	name := c.String("junit")
	if name == "" {
		return nil
	}
	return writeWhole(name, func(w io.Writer) error { return analysis.WriteJUnit(w, s) })
}
