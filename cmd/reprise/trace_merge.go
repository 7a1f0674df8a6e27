package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/synth"
	"reprise/trace"
)

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "put several traces on one clock",
		ArgsUsage: "TRACE TRACE...",
		Description: `By date where all traces know theirs, else all begin together. Requests get ids of
their own; sessions, clients and block ids of later traces get names of their own
too, unless --common says that they mean the same in all.

Example:
   reprise trace merge monday.parquet tuesday.parquet --common clients,blocks -o both.parquet`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "canonical trace to write; - for standard output"},
			&cli.StringFlag{Name: "align", Usage: "epoch (by date) or start (all begin together) (default: epoch where all know their date)"},
			&cli.StringFlag{Name: "common", Usage: "what means the same in all traces: sessions, clients, blocks, or several with commas"},
			&cli.BoolFlag{Name: "json", Usage: "print what was done as one JSON object"},
		},
		Action: runMerge,
	}
}

func runMerge(ctx context.Context, c *cli.Command) error {
	paths := c.Args().Slice()
	if len(paths) < 2 {
		return misuse("see: reprise trace merge --help", "reprise trace merge takes two or more traces, got %s", trace.Plural(len(paths), "argument"))
	}
	m := synth.Merging{Align: c.String("align")}
	if err := m.ParseCommon(c.String("common")); err != nil {
		return misused{fmt.Errorf("--common: %w", err), trace.Fix(err)}
	}
	step := trace.Step{Command: "trace merge", Version: version, Flags: setFlags(c, []string{"align", "common"})}
	var inputs []synth.MergeInput
	for _, path := range paths {
		if path == "-" {
			return misuse("write it to a file first: cat > one.parquet", "reprise trace merge reads each trace from its end, and cannot read standard input")
		}
		if err := notInput(c.String("output"), path); err != nil {
			return err
		}
		in, err := trace.Identify(path)
		if err != nil {
			return err
		}
		step.Inputs = append(step.Inputs, in)
		inputs = append(inputs, synth.MergeInput{Name: path, Open: func() (*trace.Reader, error) { return trace.Open(path) }})
	}
	var done synth.Merge
	_, err := writeTrace(c, step, func(emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		sound := newSoundness(strings.Join(paths, ", "), step.Command)
		meta, done, err = m.Run(ctx, inputs, func(b *trace.Batch) error {
			if err := sound.check(b); err != nil {
				return err
			}
			return emit(b)
		})
		return meta, err
	})
	if err != nil {
		return err
	}
	if c.Bool("json") && c.String("output") != "-" {
		return writeJSON(c.Root().Writer, done)
	}
	return table(account(c), func(y func(string, string) bool) {
		for i, path := range paths {
			if !y("merged", fmt.Sprintf("%s: %s, moved by %v", path, analysis.Counted(done.Rows[i], "request"), time.Duration(done.Shift[i]))) {
				return
			}
		}
		names := ""
		if done.First > 0 {
			names = fmt.Sprintf("names or blocks of %d of them are their own: ~1, ~2 and so on", done.First)
		}
		_ = y("aligned", strings.ReplaceAll(done.Align, "start", "at the start: all begin together")) && y("names", names) && y("wrote", c.String("output"))
	})
}
