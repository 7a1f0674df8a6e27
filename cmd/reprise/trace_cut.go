package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/synth"
	"reprise/trace"
)

func cutCommand() *cli.Command {
	return &cli.Command{
		Name:      "cut",
		Usage:     "take a part of a trace: a time window, whole sessions, lengths, models",
		ArgsUsage: "TRACE",
		Description: `What is left begins at 0 again, and keeps its date where the trace knows it.
Dependencies on requests that are left out are cut, and counted.

Example:
   reprise trace cut prod.parquet --from 10m --to 70m --share 20% -o part.parquet`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "canonical trace to write; - for standard output"},
			&cli.DurationFlag{Name: "from", Usage: "leave out requests before this time"},
			&cli.DurationFlag{Name: "to", Usage: "leave out requests at or after this time (end out)"},
			&cli.StringFlag{Name: "share", Usage: "share of the sessions, whole, by hash, such as 10%; a larger share has all that a smaller one has"},
			&cli.StringFlag{Name: "limit", Usage: "at most this many requests, such as 500 or 2k"},
			&cli.StringSliceFlag{Name: "model", Usage: "only requests of this model (repeatable)"},
			&cli.StringFlag{Name: "input-tokens", Usage: "only prompts of LEAST:MOST tokens, such as :32k or 100:2k"},
			&cli.StringFlag{Name: "output-tokens", Usage: "only answers of LEAST:MOST tokens"},
			&cli.BoolFlag{Name: "whole-sessions", Usage: "leave out the whole session where a request does not fit --model or the lengths"},
			&cli.DurationFlag{Name: "gap-cap", Usage: "longest time between arrivals of a session; the rest is cut out and counted"},
			&cli.Uint64Flag{Name: "seed", Usage: "seed of --share (default: 0)"},
			&cli.StringFlag{Name: "memory", Value: "512MB", Usage: "bytes that sorting may hold before it goes to disk"},
			&cli.BoolFlag{Name: "json", Usage: "print what was done as one JSON object"},
		},
		Action: runCut,
	}
}

var cutFlags = []string{"from", "to", "share", "limit", "model", "input-tokens", "output-tokens", "whole-sessions", "gap-cap"}

func runCut(ctx context.Context, c *cli.Command) error {
	cut := synth.Cutting{From: c.Duration("from"), To: c.Duration("to"), Models: c.StringSlice("model"), Whole: c.Bool("whole-sessions"), GapCap: c.Duration("gap-cap"), Seed: c.Uint64("seed")}
	bad := func(name string, err error) error { return misused{fmt.Errorf("--%s: %w", name, err), trace.Fix(err)} }
	var err error
	if cut.Memory, err = parseBytes(c.String("memory")); err != nil {
		return bad("memory", err)
	}
	if text := c.String("share"); text != "" {
		if cut.Share, err = shareOf(text); err != nil {
			return bad("share", err)
		}
	}
	if text := c.String("limit"); text != "" {
		if cut.Limit, err = parseCount(text); err != nil {
			return bad("limit", err)
		}
	}
	for name, r := range map[string]*synth.Range{"input-tokens": &cut.Input, "output-tokens": &cut.Output} {
		if text := c.String(name); text != "" {
			if *r, err = parseRange(text); err != nil {
				return bad(name, err)
			}
		}
	}
	seed := cut.Seed
	step := trace.Step{Command: "trace cut", Version: version, Seed: &seed, Flags: setFlags(c, cutFlags)}
	var done synth.Cut
	_, err = rewrite(c, step, func(open synth.Open, emit func(*trace.Batch) error) (meta trace.Meta, err error) {
		meta, done, err = cut.Run(ctx, open, emit)
		return meta, err
	})
	if err != nil {
		return err
	}
	if c.Bool("json") && c.String("output") != "-" {
		return writeJSON(c.Root().Writer, done)
	}
	return table(account(c), func(y func(string, string) bool) {
		var left []string
		for _, why := range slices.Sorted(maps.Keys(done.Left)) {
			left = append(left, analysis.Grouped(done.Left[why])+" "+why)
		}
		gaps := ""
		if done.GapsCut > 0 {
			gaps = fmt.Sprintf("%s shortened by %.4g s in all", analysis.Counted(done.GapsCut, "gap"), done.GapsCutS)
		}
		after := ""
		if done.CutAfter > 0 {
			after = fmt.Sprintf("%s on requests that are left out cut", analysis.Counted(done.CutAfter, "dependency"))
		}
		_ = y("kept", fmt.Sprintf("%s of %s", analysis.Grouped(done.Kept), analysis.Counted(done.Read, "request"))) &&
			y("left out", strings.Join(left, ", ")) &&
			y("gaps", gaps) &&
			y("noted", after) &&
			y("wrote", c.String("output"))
	})
}

// parseRange reads LEAST:MOST, where either may be missing.
func parseRange(text string) (r synth.Range, err error) {
	least, most, ok := strings.Cut(text, ":")
	fix := "write it like :32k, 100: or 100:2k"
	if !ok || least == "" && most == "" {
		return r, trace.WithFix(fmt.Errorf("%q is no range", text), fix)
	}
	if least != "" && least != "0" {
		if r.Least, err = parseCount(least); err != nil {
			return r, trace.WithFix(err, fix)
		}
	}
	if most != "" {
		if r.Most, err = parseCount(most); err != nil {
			return r, trace.WithFix(err, fix)
		}
	}
	if r.Most != 0 && r.Most < r.Least {
		return r, trace.WithFix(fmt.Errorf("%q: nothing lies between", text), fix)
	}
	return r, nil
}
