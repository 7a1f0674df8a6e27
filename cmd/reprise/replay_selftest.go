package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
)

// selfTestAlone measures this machine, without a trace and a server.
func selfTestAlone(ctx context.Context, c *cli.Command) error {
	if len(c.StringSlice("url")) > 0 || c.String("output") != "" || c.Bool("dry-run") {
		return misuse("leave --url, -o and --dry-run out, or name a trace: a short self-test then comes before the run", "--self-test without a trace measures this machine alone")
	}
	t, err := replay.RunSelfTest(ctx)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return writeJSON(c.Root().Writer, t)
	}
	return table(c.Root().Writer, func(y func(string, string) bool) {
		d := t.Dispatch
		_ = y("dispatch error", fmt.Sprintf("p50 %s, p99 %s, max %s at %s requests/s (n %s): how long after its time a request went out", span(d.P50NS), span(d.P99NS), span(d.MaxNS), analysis.Grouped(int64(d.PerS)), analysis.Grouped(d.N))) &&
			y("requests/s", onTime(t)) &&
			y("chunks/s", keptUp(t)) &&
			y("flood", fmt.Sprintf("%s chunks/s read, counted and recorded of 64 streams that came as fast as they could (n %s, %.1f chunks a read, which cost less than single ones)", analysis.Grouped(int64(t.Flood.ChunksPerS)), analysis.Grouped(t.Flood.N), t.Flood.ChunksPerRead)) &&
			y("measured", fmt.Sprintf("in %v on %d CPUs, over loopback against a server in this process: client and server share this machine, so against another one the client can do more, as far as the network goes", time.Duration(t.TookNS).Round(100*time.Millisecond), t.CPUs))
	})
}

// span writes a time of the dispatcher.
func span(ns int64) string { return analysis.NumberText(float64(ns)/1e6) + " ms" }

func onTime(t *replay.SelfTest) string {
	text := fmt.Sprintf("none of the tried rates was sent on time (p99 lateness up to %v)", replay.SelfTestLate)
	if t.RequestsPerS > 0 {
		text = fmt.Sprintf("%s sent on time (p99 lateness up to %v)", analysis.Grouped(int64(t.RequestsPerS)), replay.SelfTestLate)
	}
	if t.KeptUpPerS > t.RequestsPerS {
		text += fmt.Sprintf(", %s kept up with (median up to that)", analysis.Grouped(int64(t.KeptUpPerS)))
	}
	for _, r := range t.Rates {
		text += fmt.Sprintf("; at %s p50 %s, p99 %s (n %s)", analysis.Grouped(int64(r.PerS)), span(r.P50NS), span(r.P99NS), analysis.Grouped(r.N))
	}
	return text
}

func keptUp(t *replay.SelfTest) string {
	text := "none of the tried rates was kept up with, one chunk a read"
	if t.ChunksPerS > 0 {
		text = analysis.Grouped(int64(t.ChunksPerS)) + " kept up with, one chunk a read"
	}
	for _, r := range t.Reading {
		text += fmt.Sprintf("; at %s %.2f chunks a read", analysis.Grouped(int64(r.ChunksPerS)), r.ChunksPerRead)
		if r.ReceiveP99NS != nil {
			text += ", receive delay p99 " + span(*r.ReceiveP99NS)
		}
		text += fmt.Sprintf(" (n %s)", analysis.Grouped(r.N))
	}
	return text
}

// selfTestBefore measures what the plan of config needs, and warns in the run of
// what this machine cannot do.
func selfTestBefore(ctx context.Context, c *cli.Command, config *replay.Config) error {
	survey, err := replay.Look(ctx, config)
	if err != nil {
		return err
	}
	t, err := replay.SelfTestFor(ctx, survey)
	switch {
	case ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case err != nil:
		config.Warnings = append(config.Warnings, err.Error())
	default:
		config.Warnings = append(config.Warnings, t.Doubts(survey)...)
	}
	for _, doubt := range config.Warnings {
		fmt.Fprintf(c.Root().ErrWriter, "reprise: warning: %s\n", doubt)
	}
	return nil
}
