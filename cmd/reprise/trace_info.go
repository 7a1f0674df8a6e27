package main

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/analysis"
	"reprise/trace"
)

func printInfo(w io.Writer, info *analysis.Info) error { return table(w, infoPairs(info)) }

// infoPairs are the lines of trace info; an empty value means that the trace
// does not know.
func infoPairs(info *analysis.Info) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		y := func(name, value string) bool { return yield(name, value) }
		_ = y("rows", analysis.Grouped(info.Rows)) &&
			y("source", strings.Trim(info.Format+", "+info.Dialect, ", ")) &&
			y("clock", clockText(info)) &&
			y("rate", rateText(info)) &&
			y("tick", durationText(info.TickNS)) &&
			y("sessions", sessionText(info)) &&
			y("dependencies", countText(info.After)) &&
			y("models", countText(info.Models)) &&
			y("status", countText(info.Status)) &&
			y("literal content", rowsText(info.Literal, info.Rows)) &&
			y("input tokens", sumText(info.InputTokens, info.Rows)) &&
			y("new input tokens", sumText(info.NewInputTokens, info.Rows)) &&
			y("output tokens", sumText(info.OutputTokens, info.Rows)) &&
			y("reasoning tokens", sumText(info.ReasoningTokens, info.Rows)) &&
			y("cached tokens", sumText(info.CachedTokens, info.Rows)) &&
			y("prefix blocks", blockText(info)) &&
			y("prefix reuse", reuseText(info)) &&
			y("read", countsText(info.Counts)) &&
			guesses(info.Guesses, y) && history(info.History, y)
	}
}

func guesses(list []trace.Guess, y func(string, string) bool) bool {
	for _, g := range list {
		if !y("decided", guessText(g)) {
			return false
		}
	}
	return true
}

func guessText(g trace.Guess) string {
	text := fmt.Sprintf("%s: %s (%s)", g.What, g.Value, g.Evidence)
	if g.Flag != "" {
		text += ", change with " + g.Flag
	}
	return text
}

func history(steps []trace.Step, y func(string, string) bool) bool {
	for i, s := range steps {
		var inputs []string
		for _, in := range s.Inputs {
			inputs = append(inputs, fmt.Sprintf("%s (sha256 %.12s)", in.Name, in.SHA256))
		}
		if len(inputs) > 3 {
			inputs = append(inputs[:3], fmt.Sprintf("and %d more", len(s.Inputs)-3))
		}
		text := s.Command + " " + s.Version
		if len(inputs) > 0 {
			text += " of " + strings.Join(inputs, ", ")
		}
		for _, k := range slices.Sorted(maps.Keys(s.Flags)) {
			text += fmt.Sprintf(" %s=%s", k, s.Flags[k])
		}
		if !y("step "+strconv.Itoa(i+1), text) {
			return false
		}
	}
	return true
}

func clockText(info *analysis.Info) string {
	switch info.Clock {
	case trace.ClockTrace:
		text := "one for all rows"
		if info.SpanNS != nil {
			text += ", span " + time.Duration(*info.SpanNS).String()
		}
		if info.EpochNS != nil {
			text += ", from " + time.Unix(0, *info.EpochNS).UTC().Format(time.RFC3339Nano)
		}
		return text
	case trace.ClockSession:
		text := "each session its own"
		if info.SpanNS != nil {
			text += ", the longest " + time.Duration(*info.SpanNS).String()
		}
		return text
	}
	return "none: the source has no times"
}

func rateText(info *analysis.Info) string {
	if info.RateHz == nil {
		return ""
	}
	return fmt.Sprintf("%.4g requests/s on average", *info.RateHz)
}

func durationText(ns *int64) string {
	if ns == nil {
		return ""
	}
	return time.Duration(*ns).String()
}

func sessionText(info *analysis.Info) string {
	if info.Sessions == nil {
		return "not recorded"
	}
	text := fmt.Sprintf("%s, the longest of %s", analysis.Grouped(*info.Sessions), analysis.Counted(*info.MaxTurns, "turn"))
	if info.Agents > 0 {
		text += fmt.Sprintf(", %s sub-agents", analysis.Grouped(info.Agents))
	}
	return text
}

func sumText(s analysis.Sum, rows int64) string {
	if s.Rows == 0 {
		return ""
	}
	text := fmt.Sprintf("%s in all, mean %.1f, max %s", analysis.Grouped(s.Sum), float64(s.Sum)/float64(s.Rows), analysis.Grouped(s.Max))
	if s.Rows < rows {
		text += fmt.Sprintf(" (known for %s)", analysis.Counted(s.Rows, "row"))
	}
	return text
}

func rowsText(n, rows int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s", analysis.Grouped(n), analysis.Counted(rows, "row"))
}

func blockText(info *analysis.Info) string {
	if info.Reuse == nil {
		return "not recorded"
	}
	var sizes []string
	for _, size := range slices.Sorted(maps.Keys(info.BlockTokens)) {
		sizes = append(sizes, fmt.Sprintf("%s in %s", trace.Plural(int64(size), "token"), analysis.Counted(info.BlockTokens[size], "row")))
	}
	return fmt.Sprintf("%s, %s distinct; %s; last block %s", analysis.Grouped(info.Reuse.Blocks), analysis.Grouped(info.Reuse.DistinctBlocks), strings.Join(sizes, ", "), countText(info.BlockTail))
}

func reuseText(info *analysis.Info) string {
	r := info.Reuse
	if r == nil || r.Tokens == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f %% of block tokens (%s of %s) with a cache without limit", 100*r.HitShare, analysis.Grouped(r.HitTokens), analysis.Grouped(r.Tokens))
}

// countText lists counts by name, the largest first.
func countText(counts map[string]int64) string {
	names := slices.Collect(maps.Keys(counts))
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return int(counts[b] - counts[a])
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for i, name := range names {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-8))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", name, analysis.Grouped(counts[name])))
	}
	return strings.Join(parts, ", ")
}

func countsText(c trace.Counts) string {
	if c.Read == 0 {
		return ""
	}
	text := fmt.Sprintf("%s, kept %s", analysis.Counted(c.Read, "row"), analysis.Grouped(c.Kept))
	for _, part := range []struct {
		name   string
		counts map[string]int64
	}{{"rejected", c.Rejected}, {"merged", c.Merged}, {"noted", c.Notes}} {
		if len(part.counts) > 0 {
			text += fmt.Sprintf("; %s: %s", part.name, countText(part.counts))
		}
	}
	return text
}
