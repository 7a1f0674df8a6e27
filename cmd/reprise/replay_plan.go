package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
)

// plan is what --dry-run prints.
type plan struct {
	Load         string           `json:"load"` // open loop, closed loop, ...
	Requests     int64            `json:"requests"`
	InputTokens  *int64           `json:"input_tokens"`  // sum over those that know; null if none does
	OutputTokens *int64           `json:"output_tokens"` // likewise
	ReuseTokens  *int64           `json:"reuse_tokens"`  // of the input, what a prefix cache without limit would find; null if not known
	DurationNS   int64            `json:"duration_ns"`   // first to last due
	MeanRate     *float64         `json:"mean_rate_hz"`  // null for one instant
	PeakRate     float64          `json:"peak_rate_hz"`  // most due within one second
	InFlight     *float64         `json:"in_flight"`     // mean, from recorded latencies; null if they are not recorded
	Sessions     int64            `json:"sessions"`      //
	Literal      int64            `json:"literal"`       // requests with literal content
	Models       map[string]int64 `json:"models"`        // requests by recorded model
	Warnings     []string         `json:"warnings"`      //
	Clock        string           `json:"clock"`         //
}

func printPlan(c *cli.Command, config *replay.Config, s *replay.Survey) error {
	p := plan{Load: config.Label(),
		Requests: s.Planned.Requests, InputTokens: s.Planned.InputTokens, OutputTokens: s.Planned.OutputTokens, ReuseTokens: s.Planned.ReuseTokens, DurationNS: s.Planned.DurationNS,
		PeakRate: s.PeakRate, Sessions: s.Sessions, Literal: s.Literal, Models: s.Models, Warnings: s.Warnings(config), Clock: s.Clock,
	}
	if s.Planned.DurationNS > 0 {
		rate := float64(p.Requests-1) / (float64(p.DurationNS) / 1e9)
		p.MeanRate = &rate
	}
	if v, ok := s.InFlight.Get(); ok {
		p.InFlight = &v
	}
	if c.Bool("json") {
		return writeJSON(c.Root().Writer, p)
	}
	return table(c.Root().Writer, func(y func(string, string) bool) {
		rate := "all at one instant"
		if s.PeakRate == 0 {
			rate = "as the endpoint answers"
		} else if p.MeanRate != nil {
			rate = fmt.Sprintf("%.4g requests/s on average, %.4g in the busiest second", *p.MeanRate, p.PeakRate)
		}
		inFlight := "not known: the trace has no recorded latencies"
		if p.InFlight != nil {
			inFlight = fmt.Sprintf("%.3g on average, if the endpoint is as fast as the recorded one", *p.InFlight)
		}
		_ = y("load", p.Load) &&
			y("requests", requestsText(s, config)) &&
			y("duration", lengthText(s, config)) &&
			y("rate", rate) &&
			y("input tokens", plannedText(p.InputTokens, s.InputRows)) &&
			y("output tokens", plannedText(p.OutputTokens, s.OutputRows)) &&
			y("prefix reuse", plannedReuseText(p.ReuseTokens)) &&
			y("in flight", inFlight) &&
			y("models", modelText(s.Models, config)) &&
			y("literal content", rowsText(p.Literal, p.Requests))
		for _, warning := range p.Warnings {
			if !y("warning", warning) {
				return
			}
		}
	})
}

// requestsText says how many requests there are, or that nobody knows yet.
func requestsText(s *replay.Survey, config *replay.Config) string {
	text := analysis.Grouped(s.Planned.Requests)
	switch {
	case s.Endless:
		text = fmt.Sprintf("as many as there is time for; the trace, of %s, begins again when it ends", text)
	case s.Passes > 1:
		text += fmt.Sprintf(", the trace %s", analysis.Counted(int64(s.Passes), "time"))
	}
	if w := config.WarmUp; w.Requests > 0 {
		text += fmt.Sprintf(", %s of the warm-up among them", analysis.Grouped(w.Requests))
	} else if s.WarmUp > 0 {
		text += fmt.Sprintf(", %s that stand for what sessions have lived through", analysis.Grouped(s.WarmUp))
	}
	return text
}

// lengthText says how long the run is planned to be.
func lengthText(s *replay.Survey, config *replay.Config) string {
	text := time.Duration(s.Planned.DurationNS).String() + " from first to last due"
	d := config.Selection.Duration
	switch {
	case s.PeakRate == 0 && d > 0:
		text = fmt.Sprintf("nothing begins after %v", d)
	case s.PeakRate == 0:
		text = "as long as the endpoint takes"
	}
	if w := config.WarmUp.For; w > 0 {
		text += fmt.Sprintf(", with the warm-up of %v", w)
	}
	return text
}

func plannedReuseText(tokens *int64) string {
	if tokens == nil {
		return "not known: the prompts are literal, or too many to follow"
	}
	return fmt.Sprintf("%s of the input tokens, with a prefix cache without limit", analysis.Grouped(*tokens))
}

func plannedText(sum *int64, rows int64) string {
	if sum == nil {
		return "not known: the trace does not say"
	}
	return fmt.Sprintf("%s in %s that %s them", analysis.Grouped(*sum), analysis.Counted(rows, "request"), map[bool]string{true: "knows", false: "know"}[rows == 1])
}

func modelText(models map[string]int64, config *replay.Config) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(models)) {
		shown := name
		if name == "" {
			shown = "(none recorded)"
		}
		to := "the one model served"
		if config.Model != "" {
			to = config.Model
		}
		if m, ok := config.Models[name]; ok {
			to = m
		}
		parts = append(parts, fmt.Sprintf("%s -> %s: %s", shown, to, analysis.Grouped(models[name])))
	}
	return strings.Join(parts, "; ")
}
