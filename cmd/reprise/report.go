package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/analysis/runpage"
	"reprise/replay/cluster"
	"reprise/trace"
	"reprise/trace/results"
)

const reportHelp = `Prints the verdict on the client (valid, degraded or invalid), lateness,
outcomes, the latency table, throughput, token accounts and warnings.
Latencies hold the successful requests; failures are counted by cause. E2E and
TTFT run from sent, response time from due. A run that was killed is read from
its parts, and the report says so. Exit code 3: the verdict is invalid.

` + sloHelp + `

--html draws all of it: percentiles with intervals, load and latency over time,
by input length, turn, session and model, chunks and stalls, errors, a timeline of
requests, token and cache accounts, and the command that runs it again. The file
needs no network, and its size does not grow with the run.

--export aiperf writes profile_export_aiperf.json, .csv and profile_export.jsonl in
AIPerf's names, units and formulas; benchstat writes benchmark.txt, Go benchmark
lines for benchstat; requests-csv and requests-parquet write one row per request
with every metric of it (request_metrics.csv, .parquet).

Several runs, or parts of one, make one report: quantiles are those of all their
requests, or of their merged histograms, and never averages of quantiles. Windows
of throughputs add up. Runs of other pacing, speed, shape, protocol or output
lengths are refused (--force).

Example:
   reprise report run/ --html run/report.html
   reprise report --csv run/ > run.csv
   reprise report run/ --export aiperf --export-to aiperf/
   reprise report monday/ tuesday/ --histograms both.hlog
   reprise report --recover run/
   reprise report run/ --slo 'ttft_p95<800ms; tpot_p95<50ms; error_rate<1%'`

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "say what a run measured, and whether it measured the server",
		ArgsUsage:   "RUN/...",
		Description: reportHelp,
		Flags: append(append(lateFlags(), append(sloFlags(), ciFlags()...)...),
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object, as in " + results.SummaryFile},
			&cli.BoolFlag{Name: "csv", Usage: "print one header and one row per metric"},
			&cli.StringSliceFlag{Name: "export", Usage: "also write what other programs read: " + exportNames() + " (repeatable)"},
			&cli.StringFlag{Name: "otlp", Usage: "base URL of an OpenTelemetry collector, such as http://collector:4318: also send each request as a span, and the numbers as metrics (OTLP over HTTP, JSON); keys in OTEL_EXPORTER_OTLP_HEADERS"},
			&cli.StringFlag{Name: "export-to", Usage: "directory for the files of --export (default: the run directory); - for standard output, instead of the text, where it is one file"},
			&cli.StringFlag{Name: "histograms", Usage: "also write the latencies as an HdrHistogram log, as in " + results.HistogramsFile},
			&cli.BoolFlag{Name: "force", Usage: "merge also runs that do not measure the same thing"},
			&cli.BoolFlag{Name: "recover", Usage: "first assemble the results that workers kept when their coordinator was killed, from the run directory or those of the workers, into the first of them"},
			&cli.StringFlag{Name: "html", Usage: "also write one HTML file with tables and charts, which needs no network; - for standard output, instead of the text"},
		),
		Action: runReport,
	}
}

func runReport(ctx context.Context, c *cli.Command) error {
	var dir string
	var err error
	switch {
	case c.Bool("recover"):
		dir, err = recovered(ctx, c)
	case c.Args().Len() > 1:
		return reportMerged(ctx, c, c.Args().Slice())
	default:
		dir, err = oneArg(c, "run directory")
	}
	if err != nil {
		return err
	}
	if c.Bool("json") && c.Bool("csv") {
		return misuse("choose one", "--json and --csv exclude each other")
	}
	html := c.String("html")
	if html == "-" && (c.Bool("json") || c.Bool("csv")) {
		return misuse("name a file for the page", "--html - writes to standard output, as --json and --csv do")
	}
	exports, err := exportsOf(c, dir)
	if err != nil {
		return err
	}
	limits, err := lateLimits(c)
	if err != nil {
		return err
	}
	slo, err := sloFlag(c)
	if err != nil {
		return err
	}
	for _, name := range []string{results.RunFile, results.RequestsFile} {
		if err := ownFiles(filepath.Join(dir, name), html); err != nil {
			return err
		}
	}
	run, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	if run.Run.Ended == nil && len(cluster.Kept(dir)) > 0 {
		return trace.WithFix(fmt.Errorf("%s: the results of its workers were not assembled: the coordinator was killed, or the run goes on", dir), "once the workers have ended: reprise report --recover "+dir+"; with the directories of those on other hosts behind it, as each of them has said")
	}
	var watchers []func(*results.Result)
	drawn := runpage.NewCollector(&run.Run)
	if html != "" {
		watchers = append(watchers, drawn.Add)
	}
	if err := exports.open(ctx, &run.Run); err != nil {
		return err
	}
	defer exports.abort()
	s, err := analysis.SummarizeSLO(ctx, run, slo, append(watchers, exports.add)...)
	if err != nil {
		return err
	}
	s.Judge(limits)
	if c.Bool("recover") {
		if err := analysis.WriteSummary(dir, s); err != nil {
			return err
		}
	}
	if err := exports.write(ctx, s, &run.Run); err != nil {
		return err
	}
	if html != "" && html != "-" {
		if err := writeWhole(html, drawn.Page(s, run).Write); err != nil {
			return err
		}
	}
	switch {
	case exports.printed:
	case html == "-":
		err = drawn.Page(s, run).Write(c.Root().Writer)
	default:
		err = writeReport(c, s)
	}
	if err != nil {
		return err
	}
	return judged(s)
}

// lateFlags are the limits of the verdict.
func lateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "late-limit", Value: analysis.DefaultLateLimit, Usage: "p99 lateness above the larger of this and --late-share is degraded, above ten times as much invalid"},
		&cli.StringFlag{Name: "late-share", Value: strconv.FormatFloat(100*analysis.DefaultLateShare, 'f', -1, 64) + "%", Usage: "share of the median TTFT that p99 lateness may reach"},
		&cli.StringFlag{Name: "receive-share", Value: strconv.FormatFloat(100*analysis.DefaultReceiveShare, 'f', -1, 64) + "%", Usage: "share of the median ITL that the p99 receive delay may reach; above is degraded, above ten times as much invalid"},
	}
}

// judged turns an invalid verdict into exit code 3, and gates that failed into 4.
func judged(s *analysis.Summary) error {
	if s.Verdict.Code == 0 {
		return missed(s)
	}
	return verdict{s.Verdict.Code, errors.New("not a valid measurement: " + s.Verdict.Headline())}
}

// lateLimits reads --late-limit and --late-share.
func lateLimits(c *cli.Command) (analysis.Limits, error) {
	l := analysis.Limits{Lateness: c.Duration("late-limit")}
	if l.Lateness <= 0 {
		return l, misuse("give a time such as 1ms", "--late-limit %v: must be above 0", l.Lateness)
	}
	for name, to := range map[string]*float64{"late-share": &l.Share, "receive-share": &l.ReceiveShare} {
		share, err := parseShare(c.String(name))
		if err != nil || !(share > 0) || math.IsInf(share, 0) {
			return l, misuse("give a share such as 1% or 0.01", "--%s %q: not a share above 0", name, c.String(name))
		}
		*to = share
	}
	return l, nil
}

// parseShare reads a share: 10% or 0.1.
func parseShare(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a share", text)
	}
	if isPercent {
		v /= 100
	}
	return v, nil
}
