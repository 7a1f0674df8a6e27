package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
	"reprise/replay/sweep"
	"reprise/trace"
)

func sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "measure at several loads, and find the highest that meets an objective",
		ArgsUsage: "[TRACE]",
		Description: `Loads are a grid, such as --rates 1,2,4,8, or a range to search in, such as
--rates 1..64 with --slo: it doubles the load until the objective breaks, closes in
on the edge, repeats the runs there, and then probes past it on purpose, to say
whether the system degrades or collapses. Each run is a run directory of its own,
with prompts of its own, so that no run finds another's in the prefix cache. The
same command goes on with a sweep that was stopped.

--rates are open loops of requests/s, --concurrencies closed loops of requests in
flight, and --scales times the recorded users (reprise synth --scale, with its
fidelity report). Without a trace, --input-tokens and --output-tokens say what is
sent.

` + sloHelp + `

Exit codes: 3 where a run measured the client and not the system, 4 where no load
meets the objective, or where --fail-on holds.

Examples:
   reprise sweep prod.parquet --rates 1..64 --slo 'ttft_p95<800ms; error_rate<1%' --url http://127.0.0.1:8000 -o sweep/
   reprise sweep --concurrencies 1,2,4,8,16 --requests 200 --input-tokens 512 --output-tokens 128 --url http://127.0.0.1:8000 -o sweep/
   reprise sweep prod.parquet --scales 1,1.5,2,3 --slo 'ttft_p95<800ms' --replicas 4 --url http://127.0.0.1:8000 -o sweep/`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "rates", Usage: "open loops, requests/s: a grid such as 1,2,4,8, or a range such as 1..64 to search in"},
			&cli.StringFlag{Name: "law", Value: "poisson", Usage: "of the arrivals of --rates: constant, poisson or gamma,cv=C"},
			&cli.StringFlag{Name: "concurrencies", Usage: "closed loops, requests in flight: likewise, in whole numbers"},
			&cli.StringFlag{Name: "scales", Usage: "times the users of the trace, on its own clock: a grid such as 1,1.5,2,3"},
			&cli.DurationFlag{Name: "duration", Usage: "length of each run, beside its warm-up (default: 60s; of --scales: that of the trace)"},
			&cli.StringFlag{Name: "requests", Usage: "requests of each run, instead of --duration"},
			&cli.StringFlag{Name: "warmup", Usage: "what comes first in each run, such as 10s or 50req: in no number"},
			&cli.IntFlag{Name: "repeats", Usage: "runs at each load of a grid (default: 1), or on both sides of the edge of a search (default: 3)"},
			&cli.StringFlag{Name: "tolerance", Value: "5%", Usage: "how near the edge is to be known (search)"},
			&cli.IntFlag{Name: "most-runs", Value: sweep.DefaultMostRuns, Usage: "runs after which a search gives up closing in"},
			&cli.StringFlag{Name: "beyond", Value: "1.25,2", Usage: "loads past the edge that a search probes, as multiples of it, or none"},
			&cli.StringFlag{Name: "attainment", Value: "95%", Usage: "share of good requests that is enough where --slo has limits for each request and no gate"},
			&cli.IntFlag{Name: "replicas", Usage: "of the system: the edge is then also given for each of them"},
			&cli.StringFlag{Name: "fail-on", Usage: "exit with code 4 where this holds of the highest load that meets the objective, such as 'load<20'"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Usage: "directory of the sweep: sweep.json, and a run directory for each run"},
			&cli.BoolFlag{Name: "force", Usage: "replace another sweep that is in the output directory"},
			&cli.StringFlag{Name: "html", Usage: "also write the curves as one HTML file, which needs no network"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object, as in sweep.json"},
			&cli.BoolFlag{Name: "markdown", Usage: "print the result as Markdown, for a pull request"},
			&cli.StringFlag{Name: "progress", Value: "auto", Usage: "auto (plain on a terminal, else none), plain (a line a second), json (an object a second) or none; on standard error"},
			&cli.StringSliceFlag{Name: "label", Usage: "KEY=VALUE into each run.json (repeatable)"},
		}, sweptFlags(), lawFlags(), targetFlags(), limitFlags(), lateFlags(), sloFlags()),
		Action: runSweep,
	}
}

// sweptFlags are those of a replay that make sense at each load.
func sweptFlags() []cli.Flag {
	var out []cli.Flag
	for _, f := range selectionFlags() {
		if slices.Contains([]string{"pace", "history", "gap-cap", "speed", "limit", "seed"}, f.Names()[0]) {
			out = append(out, f)
		}
	}
	return out
}

// An axis is what a sweep varies.
type axis struct {
	flag, name, unit string
	whole            bool
	set              func(s *replay.Selection, load float64)
}

func axes(law replay.Arrivals) []axis {
	return []axis{
		{"rates", "rate", "requests/s", false, func(s *replay.Selection, load float64) {
			s.Arrivals, s.Recycle = law, true
			s.Arrivals.Rate = load
		}},
		{"concurrencies", "concurrency", "requests in flight", true, func(s *replay.Selection, load float64) {
			s.Load, s.Recycle = replay.Load{Kind: replay.LoadConcurrency, N: int(load)}, true
		}},
		{"scales", "scale", "times the users", false, func(s *replay.Selection, load float64) {}},
	}
}

// A sweeper makes the runs of a sweep.
type sweeper struct {
	judging
	c          *cli.Command
	config     *replay.Config
	attainment float64
	axis       axis
	dir        string
	trace      string // of --scales
	result     *sweep.Result
}

func runSweep(ctx context.Context, c *cli.Command) error {
	s, loads, search, err := newSweeper(c)
	if err != nil {
		return err
	}
	conditions, err := sweepFailOn(c, s.slo)
	if err != nil {
		return err
	}
	done, err := s.ready(ctx, loads[0])
	if err != nil {
		return err
	}
	defer done()
	var found *sweep.Found
	if search != nil {
		found, err = search.Run(ctx, &s.result.Curve, s.measure)
	} else {
		err = sweep.Grid(ctx, &s.result.Curve, loads, max(1, c.Int("repeats")), s.measure)
	}
	s.result.Complete = err == nil
	s.result.Conclude(found)
	if len(s.result.Points) == 0 {
		return err
	}
	if werr := s.write(); werr != nil {
		return errors.Join(err, werr)
	}
	switch {
	case errors.Is(err, sweep.ErrInvalid):
		return verdict{analysis.CodeInvalid, err}
	case err != nil:
		return err
	}
	return s.judge(conditions)
}

// newSweeper reads the flags. search is nil for a grid.
func newSweeper(c *cli.Command) (s *sweeper, loads []float64, search *sweep.Search, err error) {
	if c.Args().Len() > 1 {
		return nil, nil, nil, misuse("see: reprise sweep --help", "reprise sweep takes one trace, got %s", trace.Plural(c.Args().Len(), "argument"))
	}
	s = &sweeper{c: c, dir: c.String("output")}
	if s.judging, err = judgingOf(c); err != nil {
		return nil, nil, nil, err
	}
	if s.attainment, err = shareOf(c.String("attainment")); err != nil {
		return nil, nil, nil, misuse("give a share such as 95%", "--attainment %q", c.String("attainment"))
	}
	law, err := replay.ParseArrivals(lawText(c.String("law")))
	if err != nil || law.Kind == "piecewise" {
		return nil, nil, nil, misuse("use constant, poisson or gamma,cv=C", "--law %q", c.String("law"))
	}
	if s.config, err = replayConfig(c); err != nil {
		return nil, nil, nil, err
	}
	var given []string
	for _, a := range axes(law) {
		if text := c.String(a.flag); text != "" {
			given = append(given, "--"+a.flag)
			s.axis = a
			if loads, search, err = parseLoads(text, a); err != nil {
				return nil, nil, nil, misused{fmt.Errorf("--%s: %w", a.flag, err), trace.Fix(err)}
			}
		}
	}
	switch {
	case len(given) != 1:
		return nil, nil, nil, misuse("give one of --rates, --concurrencies and --scales", "a sweep varies one thing, got %d", len(given))
	case search != nil && s.slo == nil:
		return nil, nil, nil, misuse("say what has to hold with --slo, such as --slo 'ttft_p95<800ms'; or measure a grid, such as --"+s.axis.flag+" 1,2,4,8", "a search needs an objective")
	case search != nil && s.axis.name == "scale":
		return nil, nil, nil, misuse("give a grid, such as --scales 1,1.5,2,3", "each scale is a workload of its own, so there is no range of them")
	case s.axis.name == "scale" && c.Args().Len() == 0:
		return nil, nil, nil, misuse("name a trace", "--scales are of the users of a trace")
	case s.axis.name == "scale" && (c.IsSet("requests") || c.IsSet("law")):
		return nil, nil, nil, misuse("use --duration or --limit", "--scales keep the trace's own times: --requests and --law do not go with them")
	case c.Int("replicas") < 0 || c.Int("repeats") < 0 || c.Int("most-runs") < 1:
		return nil, nil, nil, misuse("give numbers above 0", "--replicas, --repeats or --most-runs below 0")
	}
	if s.axis.name != "scale" && !c.IsSet("duration") && !c.IsSet("requests") {
		s.config.Selection.Duration = time.Minute + s.config.WarmUp.For
	}
	if search != nil {
		err = searchFlags(c, search)
		return s, loads, search, err
	}
	for _, flag := range []string{"tolerance", "beyond", "most-runs"} {
		if c.IsSet(flag) {
			return nil, nil, nil, misuse("leave it out, or give a range with --slo, such as --rates 1..64", "--%s is of a search, and a grid was given", flag)
		}
	}
	return s, loads, search, nil
}

// lawText is a law of --law with a rate, which the loads replace.
func lawText(law string) string {
	name, options, more := strings.Cut(law, ",")
	if more {
		return name + ":1," + options
	}
	return name + ":1"
}

// parseLoads reads a grid or a range.
func parseLoads(text string, a axis) ([]float64, *sweep.Search, error) {
	usage := "write a grid such as 1,2,4,8 or a range such as 1..64"
	read := func(text string) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(v > 0) || v > 1e6 || a.whole && v != math.Trunc(v) {
			return 0, trace.WithFix(fmt.Errorf("%q is no load", text), usage)
		}
		return v, nil
	}
	if from, to, ok := strings.Cut(text, ".."); ok {
		low, err := read(from)
		high, err2 := read(to)
		if err := errors.Join(err, err2); err != nil {
			return nil, nil, trace.WithFix(err, usage)
		}
		if low >= high {
			return nil, nil, trace.WithFix(fmt.Errorf("%q goes down", text), usage)
		}
		return []float64{low}, &sweep.Search{Low: low, High: high, Whole: a.whole}, nil
	}
	var loads []float64
	for part := range strings.SplitSeq(text, ",") {
		v, err := read(part)
		if err != nil {
			return nil, nil, err
		}
		loads = append(loads, v)
	}
	slices.Sort(loads)
	return slices.Compact(loads), nil, nil
}

func searchFlags(c *cli.Command, s *sweep.Search) (err error) {
	if s.Tolerance, err = shareOf(c.String("tolerance")); err != nil || s.Tolerance < 0.001 || s.Tolerance > 0.5 {
		return misuse("give a share such as 5%", "--tolerance %q: not between 0.1%% and 50%%", c.String("tolerance"))
	}
	s.Repeats, s.MostRuns = c.Int("repeats"), c.Int("most-runs")
	s.Beyond = []float64{}
	if text := c.String("beyond"); text != "none" {
		for part := range strings.SplitSeq(text, ",") {
			v, err := strconv.ParseFloat(part, 64)
			if err != nil || !(v > 1) || v > 100 {
				return misuse("give multiples above 1, such as 1.25,2, or none", "--beyond %q", text)
			}
			s.Beyond = append(s.Beyond, v)
		}
	}
	return nil
}

// sweepFailOn reads --fail-on, whose only name is the load.
func sweepFailOn(c *cli.Command, slo *analysis.SLO) ([]analysis.Condition, error) {
	text := c.String("fail-on")
	if text == "" {
		return nil, nil
	}
	list, err := analysis.ParseConditions(text)
	for i := range list {
		if list[i].Name != "load" || list[i].Change || list[i].Time {
			err = errors.New("the one number is load")
		}
	}
	switch {
	case err != nil:
		return nil, misuse("write it like 'load<20', of the highest load that meets the objective", "--fail-on %q", text)
	case slo == nil:
		return nil, misuse("give --slo too", "--fail-on is about the highest load that meets an objective")
	}
	return list, nil
}

// ready makes the directory, or opens that of a sweep that was stopped, and the
// requests that are sent.
func (s *sweeper) ready(ctx context.Context, first float64) (done func(), err error) {
	s.axis.set(&s.config.Selection, first)
	if err := s.config.Check(); err != nil {
		return nil, misused{err, trace.Fix(err)}
	}
	if len(s.config.URLs) == 0 {
		return nil, misuse("name one with --url, such as --url http://localhost:8000; try it on the built-in server: reprise mock", "no target to measure")
	}
	label := s.config.Label()
	if s.axis.name == "rate" {
		label = "open loop, arrivals " + s.c.String("law")
	} else if s.axis.name == "concurrency" {
		label = "closed loop"
	}
	s.result = &sweep.Result{Version: version, Axis: s.axis.name, Unit: s.axis.unit, Label: label, Flags: publicFlags(s.c), Replicas: s.c.Int("replicas")}
	if s.slo != nil {
		s.result.Objective = s.slo.Text
	}
	for _, name := range notMeasured {
		delete(s.result.Flags, name)
	}
	if s.c.Args().Len() == 1 {
		s.result.Trace = filepath.Base(s.c.Args().First())
	}
	if err := s.directory(); err != nil {
		return nil, err
	}
	if done, err = traceOf(ctx, s.c, s.config); err != nil {
		return nil, err
	}
	if s.trace = s.config.Trace; s.c.Args().Len() == 0 {
		err = keepWorkload(s.trace, s.dir)
	}
	return done, err
}

// notMeasured are flags that change nothing of what a run measures.
var notMeasured = []string{"html", "markdown", "replicas", "fail-on", "most-runs", "repeats", "tolerance", "beyond", "rates", "concurrencies", "scales", "slo", "slo-over", "length-is-good", "attainment"}

// directory refuses one that holds something else, or a sweep with other flags.
func (s *sweeper) directory() error {
	path := filepath.Join(s.dir, sweep.ResultFile)
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		return s.save()
	}
	if err != nil {
		return err
	}
	before, err := sweep.ReadResult(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return trace.WithFix(fmt.Errorf("%s: not empty, and no sweep is in it", s.dir), "name another directory")
	case s.c.Bool("force"):
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		return s.save()
	case err != nil:
		return err
	}
	if name := before.Differs(s.result); name != "" {
		return trace.WithFix(fmt.Errorf("%s: holds a sweep whose %s was another: its runs do not go with these", s.dir, name), "name another directory, or replace it with --force")
	}
	return s.save()
}

// save writes sweep.json.
func (s *sweeper) save() error {
	return writeWhole(filepath.Join(s.dir, sweep.ResultFile), s.result.WriteJSON)
}

// write saves the result, and prints it.
func (s *sweeper) write() error {
	if err := s.save(); err != nil {
		return err
	}
	if name := s.c.String("html"); name != "" {
		if err := writeWhole(name, s.result.Page().Write); err != nil {
			return err
		}
	}
	w := s.c.Root().Writer
	switch {
	case s.c.Bool("json"):
		return s.result.WriteJSON(w)
	case s.c.Bool("markdown"):
		return s.result.WriteMarkdown(w)
	}
	return s.result.WriteText(w)
}

// judge returns what becomes of the exit code.
func (s *sweeper) judge(conditions []analysis.Condition) error {
	for i := range s.result.Points {
		if s.result.Points[i].Invalid {
			return verdict{analysis.CodeInvalid, fmt.Errorf("at %s a run is no valid measurement", s.result.At(s.result.Points[i].Load))}
		}
	}
	f := s.result.Found
	switch {
	case f == nil:
		return nil
	case f.Met == nil:
		return verdict{analysis.CodeGate, fmt.Errorf("%s holds at no load", s.slo.Text)}
	}
	for i := range conditions {
		if conditions[i].Holds(*f.Met) {
			return verdict{analysis.CodeGate, fmt.Errorf("--fail-on %s: the highest load that meets the objective is %s", conditions[i].Text, analysis.NumberText(*f.Met))}
		}
	}
	return nil
}
