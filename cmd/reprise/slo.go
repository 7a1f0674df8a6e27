package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/trace"
)

const sloHelp = `--slo holds the run against goals, separated by semicolons or commas. A goal
with a stat (ttft_p95<800ms, itl_p99<40ms, error_rate<1%, output_tokens_per_s>900)
is a gate: exit code 4 if it does not hold. One without (ttft<800ms, tpot<50ms)
is a limit for each request, and says which requests are good: requests, tokens
and sessions per second of these are the goodput, and good_share>99% or
goodput>5 gates on it. NAME: begins a tier: 'gold: ttft<500ms, tpot<30ms; silver:
ttft<2s'. @FILE reads goals from a file, with # for comments.
Failed, timed-out, cut and cancelled requests count as worst values and are never
good; a request that lacks a number, as TPOT of one token, meets its limit.`

// sloFlags are the goals of a run.
func sloFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "slo", Usage: "goals, such as 'ttft_p95<800ms; error_rate<1%' or 'gold: ttft<500ms, tpot<30ms', or @FILE; exit code 4 where a gate fails"},
		&cli.StringFlag{Name: "slo-over", Value: analysis.DefaultOver, Usage: "what quantiles of gates are over: all (failures as worst values) or ok (successful requests)"},
		&cli.BoolFlag{Name: "length-is-good", Value: true, Usage: "an answer that ended at its token limit can be good, as all are with --output-length exact; --length-is-good=false: it cannot"},
	}
}

// sloFlag reads the goals; nil if there are none.
func sloFlag(c *cli.Command) (*analysis.SLO, error) {
	over, text := c.String("slo-over"), c.String("slo")
	if over != analysis.OverAll && over != analysis.OverOK {
		return nil, misuse("use all or ok", "--slo-over %q", over)
	}
	if text == "" {
		for _, name := range []string{"slo-over", "length-is-good"} {
			if c.IsSet(name) {
				return nil, misuse("say what has to hold with --slo, such as --slo 'ttft_p95<800ms'", "--%s without --slo", name)
			}
		}
		return nil, nil
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		file, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = string(file)
	}
	slo, err := analysis.ParseSLO(text)
	if err != nil {
		return nil, misused{fmt.Errorf("--slo: %w", err), trace.Fix(err)}
	}
	slo.Over, slo.LengthIsBad = over, !c.Bool("length-is-good")
	return slo, nil
}

// missed turns gates that failed into exit code 4.
func missed(s *analysis.Summary) error {
	if s.SLO == nil || s.SLO.Failed == 0 {
		return nil
	}
	var names []string
	for _, t := range s.SLO.Tiers {
		for _, g := range t.Gates {
			if !g.Passed {
				names = append(names, g.Gate)
			}
		}
	}
	return verdict{analysis.CodeGate, fmt.Errorf("%d of %d gates of --slo failed: %s", s.SLO.Failed, s.SLO.Gates, strings.Join(names, "; "))}
}
