package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
	"reprise/synth"
	"reprise/trace"
)

// loadFlags say how the load is made, and when it ends.
func loadFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "arrivals", Usage: "replace all times: constant:R, poisson:R, gamma:R,cv=C (R in requests/s), piecewise:FILE (CSV: from_s,to_s,rate_hz) or burst, also called at-once"},
		&cli.StringFlag{Name: "ramp", Usage: "'A..B over D', such as '0..50 over 2m': the rate of --arrivals is reached by and by; without --arrivals, evenly spaced"},
		&cli.StringFlag{Name: "session-arrivals", Usage: "place session starts apart from their turns: constant:R, poisson:R, gamma:R,cv=C, piecewise:FILE or at-once (R in sessions/s); concurrency:N keeps N sessions in flight, in an order made by the seed"},
		&cli.IntFlag{Name: "concurrency", Usage: "closed loop: so many requests in flight, each end begins the next"},
		&cli.DurationFlag{Name: "concurrency-ramp", Usage: "reach --concurrency, or the sessions of concurrency:N, evenly in this time"},
		&cli.IntFlag{Name: "users", Usage: "so many users, who take one turn of their sessions each N/rate seconds, with --rate; the first begin inside a session"},
		&cli.FloatFlag{Name: "rate", Usage: "turns/s of all --users together"},
		&cli.StringFlag{Name: "start-inside", Usage: "with --session-arrivals concurrency:N: the first N begin at such a share of their recorded life, such as 10%..90%, after a warm-up with what they have said until then"},
		&cli.StringFlag{Name: "on-error", Value: replay.ErrorWait, Usage: "where requests wait for others (causal, think): wait: an error counts as an answer; skip: what comes after it alone is left out; fail-tree: the rest of its session is"},
		&cli.DurationFlag{Name: "duration", Usage: "nothing begins that late (after the warm-up); with a shape the trace begins again when it ends"},
		&cli.StringFlag{Name: "requests", Usage: "this many requests (beside the warm-up), such as 500 or 2k; with a shape the trace begins again when it ends"},
		&cli.StringFlag{Name: "sessions", Usage: "this many sessions, likewise"},
		&cli.StringFlag{Name: "warmup", Usage: "what comes first, such as 30s or 50req: sent and recorded, but in no number"},
		&cli.DurationFlag{Name: "cooldown", Usage: "what begins in the last part of the run, such as 10s: likewise"},
		&cli.IntFlag{Name: "repeat", Value: 1, Usage: "make the run so often, each in a directory of its own with prompts of its own, and print how far the runs lie apart; a goal of --slo has to hold in each"},
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "scenario: YAML with trace, defaults and phases, whose keys are flags of this command; one run after the other, each in a directory of its own below -o"},
		&cli.BoolFlag{Name: "scenario-schema", Usage: "print the JSON Schema of scenarios and end"},
		&cli.StringFlag{Name: "phase", Usage: "name of a phase for the records, beside warm-up and cool-down; its made prompts are its own"},
	}
}

// loadConfig reads the flags of loadFlags.
func loadConfig(c *cli.Command, config *replay.Config) error {
	bad := func(flag string, err error) error {
		return misused{fmt.Errorf("--%s: %w", flag, err), trace.Fix(err)}
	}
	s := &config.Selection
	var err error
	if text := c.String("arrivals"); text != "" {
		if s.Arrivals, err = replay.ParseArrivals(text); err != nil {
			return bad("arrivals", err)
		}
	}
	if text := c.String("ramp"); text != "" {
		p, err := replay.ParseRamp(text)
		if err == nil {
			s.Arrivals, err = s.Arrivals.Ramp(p)
		}
		if err != nil {
			return bad("ramp", err)
		}
	}
	text := c.String("session-arrivals")
	if n, ok := strings.CutPrefix(text, "concurrency:"); ok {
		s.Load = replay.Load{Kind: replay.LoadTrees, Ramp: c.Duration("concurrency-ramp")}
		if s.Load.N, err = strconv.Atoi(n); err != nil {
			return misuse("write it like concurrency:8", "--session-arrivals %q: %q is no number of sessions", text, n)
		}
	} else if text != "" {
		if s.SessionArrivals, err = replay.ParseArrivals(text); err != nil {
			return bad("session-arrivals", err)
		}
	}
	if err := oneLoad(c, &s.Load); err != nil {
		return err
	}
	config.OnError = c.String("on-error")
	if text := c.String("start-inside"); text != "" {
		if s.Load.Inside, err = parseInside(text); err != nil {
			return bad("start-inside", err)
		}
	}
	return endConfig(c, config)
}

// oneLoad reads the closed loop and the users.
func oneLoad(c *cli.Command, l *replay.Load) error {
	for _, k := range []struct{ flag, kind string }{{"concurrency", replay.LoadConcurrency}, {"users", replay.LoadUsers}} {
		switch {
		case !c.IsSet(k.flag):
			continue
		case c.Int(k.flag) < 1:
			return misuse("give a number such as 8", "--%s %d: must be above 0", k.flag, c.Int(k.flag))
		case l.Kind != "":
			return misuse("leave one out", "--%s and %s both say how many are at work", k.flag, l)
		}
		*l = replay.Load{Kind: k.kind, N: c.Int(k.flag), Rate: c.Float("rate")}
		if k.kind == replay.LoadConcurrency {
			l.Ramp = c.Duration("concurrency-ramp")
		}
	}
	switch {
	case c.IsSet("rate") && l.Kind != replay.LoadUsers:
		return misuse("for requests at a rate use --arrivals, such as --arrivals poisson:"+strconv.FormatFloat(c.Float("rate"), 'g', -1, 64), "--rate is the rate of --users")
	case c.IsSet("concurrency-ramp") && (l.Kind == "" || l.Kind == replay.LoadUsers):
		return misuse("name the number it reaches, such as --concurrency 8", "--concurrency-ramp without --concurrency or --session-arrivals concurrency:N")
	case c.IsSet("start-inside") && l.Kind != replay.LoadTrees:
		return misuse("use it with --session-arrivals concurrency:N", "--start-inside is for sessions that are kept in flight")
	}
	return nil
}

// parseInside reads a range of shares such as 10%..90%.
func parseInside(text string) (in [2]float64, err error) {
	from, to, ok := strings.Cut(text, "..")
	if ok {
		if in[0], err = shareOf(from); err == nil {
			in[1], err = shareOf(to)
		}
	}
	if !ok || err != nil || in[0] > in[1] || in[1] >= 1 || in[1] == 0 {
		return in, trace.WithFix(fmt.Errorf("%q: not a range of shares below 100%%", text), "write it like 10%..90%")
	}
	return in, nil
}

// endConfig reads when the run ends, and its warm-up.
func endConfig(c *cli.Command, config *replay.Config) (err error) {
	s := &config.Selection
	if text := c.String("warmup"); text != "" {
		if config.WarmUp, err = parseWarmUp(text); err != nil {
			return misused{fmt.Errorf("--warmup: %w", err), trace.Fix(err)}
		}
	}
	for _, l := range []struct {
		flag string
		of   *int64
	}{{"requests", &s.Limit}, {"sessions", &s.Sessions}} {
		text := c.String(l.flag)
		if text == "" {
			continue
		}
		if l.flag == "requests" && c.IsSet("limit") {
			return misuse("leave one out", "--limit and --requests both say how many requests there are")
		}
		if *l.of, err = parseCount(text); err != nil {
			return misused{fmt.Errorf("--%s: %w", l.flag, err), trace.Fix(err)}
		}
	}
	if c.IsSet("requests") {
		if s.Limit += config.WarmUp.Requests; c.Args().Len() > 0 && s.Arrivals.Kind == "" && s.SessionArrivals.Kind == "" && s.Load.Kind == "" {
			return misuse("use --limit for at most so many, or a shape such as --arrivals poisson:4 or --concurrency 8", "--requests %s: a trace at its own times has as many as it has", c.String("requests"))
		}
	}
	if c.IsSet("duration") {
		if s.Duration = c.Duration("duration"); s.Duration <= 0 {
			return misuse("give a time such as 60s", "--duration %v: must be above 0", s.Duration)
		}
		s.Duration += config.WarmUp.For
	}
	config.CoolDown, config.Phase = c.Duration("cooldown"), c.String("phase")
	config.Scope = config.Phase // so that no phase finds another's prompts in a prefix cache
	s.Recycle = (s.Arrivals.Kind != "" || s.Load.Kind != "") && (c.IsSet("requests") || c.IsSet("sessions") || c.IsSet("duration"))
	return nil
}

// parseWarmUp reads a time, or a number of requests such as 50req.
func parseWarmUp(text string) (w replay.WarmUp, err error) {
	if n, ok := strings.CutSuffix(text, "req"); ok {
		w.Requests, err = parseCount(n)
		return w, err
	}
	if w.For, err = time.ParseDuration(text); err != nil || w.For <= 0 {
		return w, trace.WithFix(fmt.Errorf("%q is no time and no number of requests", text), "write it like 30s or 50req")
	}
	return w, nil
}

// lawFlags describe requests without a trace.
func lawFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "input-tokens", Usage: "without a trace: law of prompt lengths, such as 512 or lognormal:900,700 (see: reprise synth --help)"},
		&cli.StringFlag{Name: "output-tokens", Usage: "without a trace: law of answer lengths"},
		&cli.StringFlag{Name: "turns", Usage: "without a trace: law of requests per session, such as 3 or geometric:4"},
		&cli.StringFlag{Name: "think", Usage: "without a trace: law of times between turns, such as 5s"},
		&cli.StringFlag{Name: "new-input-tokens", Usage: "without a trace: law of tokens that later turns add to the context"},
		&cli.StringFlag{Name: "shared-prefix", Usage: "without a trace: tokens that prompts begin with in common, such as 1k or 1k,80% (share of the sessions)"},
		&cli.IntFlag{Name: "block-tokens", Value: 16, Usage: "without a trace: tokens per prefix block"},
	}
}

// lawRows is how many different requests a run without a trace has when its end is
// a time; after them they come again, with other text.
const lawRows = 10_000

// workloadFile is where a run without a trace keeps what it sent.
const workloadFile = "workload.parquet"

// madeTrace writes the requests that the flags describe to a file of its own, and
// returns its path.
func madeTrace(ctx context.Context, c *cli.Command, config *replay.Config) (path string, err error) {
	for _, name := range []string{"input-tokens", "output-tokens"} {
		if c.String(name) == "" {
			return "", misuse("name a trace, or describe its requests: reprise replay --requests 20 --concurrency 4 --input-tokens 512 --output-tokens 128 --url URL -o run/", "nothing to send: no trace, and no --%s", name)
		}
	}
	s := &config.Selection
	switch {
	case s.Limit == 0 && s.Duration == 0 && s.Sessions == 0:
		return "", misuse("say how much: --requests 200 or --duration 60s", "requests without a trace have no end")
	case s.Arrivals.Kind == "" && s.SessionArrivals.Kind == "" && s.Load.Kind == "":
		return "", misuse("say when they are sent: --concurrency 4, --arrivals poisson:10 or --users 20 --rate 2", "requests without a trace have no clock")
	}
	if s.Limit > replay.MostRequests {
		return "", misuse("ask for less, or make several runs one after the other", "--requests %d: a run has %s at most", s.Limit, analysis.Grouped(replay.MostRequests))
	}
	w, notes, err := lawWorkload(c, "constant:1")
	if err != nil {
		return "", err
	}
	for _, note := range notes {
		fmt.Fprintf(c.Root().ErrWriter, "reprise: note: %s\n", note)
	}
	dir, err := os.MkdirTemp("", "reprise-workload-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	path = filepath.Join(dir, workloadFile)
	g := synth.Generation{Requests: s.Limit, Seed: s.Seed}
	if g.Requests == 0 {
		g.Requests = lawRows
	}
	seed := s.Seed
	step := trace.Step{Command: "replay", Version: version, Seed: &seed, Flags: setFlags(c, []string{"input-tokens", "output-tokens", "turns", "think", "new-input-tokens", "shared-prefix", "requests"})}
	f, err := trace.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Abort()
	out := trace.NewWriter(f)
	meta, err := g.Run(ctx, w, out.Write)
	if err != nil {
		return "", err
	}
	meta.History = append(meta.History, step)
	if err := out.Close(meta); err != nil {
		return "", err
	}
	return path, f.Commit()
}

// keepWorkload copies the made trace into the run directory.
func keepWorkload(from, dir string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, workloadFile), text, 0o644)
}
