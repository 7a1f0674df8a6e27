package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/synth"
	"reprise/synth/model"
	"reprise/trace"
)

// printDesign says what a scaling did.
func printDesign(c *cli.Command, d *model.Design, f *analysis.Fidelity) error {
	if c.Bool("json") && c.String("output") != "-" {
		if f != nil {
			return writeJSON(c.Root().Writer, f)
		}
		return writeJSON(c.Root().Writer, d)
	}
	err := table(account(c), func(y func(string, string) bool) {
		_ = y("scaled", scaledText(d)) &&
			y("copies", copiesText(d)) &&
			y("lengths", lengthsText(d)) &&
			y("hit rate", hitRateText(d)) &&
			y("noted", strings.Join(designNotes(d), "; ")) &&
			y("ticks", tickText(d, c.String("output"))) &&
			y("wrote", c.String("output"))
	})
	if err != nil || f == nil {
		return err
	}
	fmt.Fprintln(account(c))
	return analysis.WriteFidelityText(account(c), f)
}

// tickText says what to do about times that hold several requests each.
func tickText(d *model.Design, out string) string {
	if d.SpanNS == 0 || float64(d.TickNS)*float64(d.Rows) < float64(d.SpanNS) {
		return ""
	}
	return fmt.Sprintf("times are whole ticks of %v, in which several requests come at once: spread them before a replay: reprise trace dequantize %s -o spread.parquet", time.Duration(d.TickNS), out)
}

func scaledText(d *model.Design) string {
	text := fmt.Sprintf("%s from %s: x%.4g by whole %ss", analysis.Counted(d.Rows, "request"), analysis.Grouped(d.SourceRows), d.Factor, d.Unit)
	if d.Speed != 1 {
		text += fmt.Sprintf("; time compressed x%g (not more users)", d.Speed)
	}
	if d.Extend != 0 {
		text += fmt.Sprintf("; extended to %v", d.Extend)
	}
	return text
}

func copiesText(d *model.Design) string {
	if d.Factor <= 1 && d.Extend == 0 {
		return ""
	}
	move := map[string]string{
		"none": "copies stay in place", "session": "session starts move by up to %v", "client": "the sessions of a client move together by up to %v",
		"copy": "each copy moves as a whole by up to %v", "rate": "copies fill the gaps between the sessions of a client",
	}[d.Shift]
	if strings.Contains(move, "%v") {
		move = fmt.Sprintf(move, time.Duration(d.JitterNS))
	}
	return fmt.Sprintf("%s: %s", move, d.ShiftWhy)
}

func lengthsText(d *model.Design) string {
	var parts []string
	if d.InputScale != 0 {
		parts = append(parts, fmt.Sprintf("input x%.4g", d.InputScale))
	}
	if d.OutputScale != 0 {
		parts = append(parts, fmt.Sprintf("output x%.4g", d.OutputScale))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " as reached: tokens and blocks are whole"
}

func hitRateText(d *model.Design) string {
	h := d.HitRate
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %% of the prompt tokens asked for, %.1f %% reached (between %.1f %% and %.1f %% can be)", 100*h.Target, 100*h.Reached, 100*h.Least, 100*h.Most)
}

func designNotes(d *model.Design) []string {
	var notes []string
	add := func(n int64, noun, format string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, analysis.Counted(n, noun)))
		}
	}
	add(d.SharedRoots, "block", "%s that many sessions begin with, and that all copies share")
	add(d.Wrapped, "request", "%s crossed an end of the trace and came in at the other, as sessions of their own")
	add(d.CutAfter, "dependency", "%s cut there")
	add(d.CutAtEnd, "request", "%s cut at the end")
	add(d.Dropped, "request", "%s dropped for their length")
	if d.Copies > 1 || d.Fraction > 0 && d.Copies > 0 || d.Extend != 0 {
		add(d.Literal, "request", "the literal text of %s repeats in their copies: a prefix cache will find it")
	}
	return notes
}

// printGenerated says what was generated.
func printGenerated(c *cli.Command, meta trace.Meta, w *model.Workload, f *analysis.Fidelity) error {
	if c.Bool("json") && c.String("output") != "-" {
		if f != nil {
			return writeJSON(c.Root().Writer, f)
		}
		return writeJSON(c.Root().Writer, struct {
			Requests int64  `json:"requests"`
			Streams  int    `json:"streams"`
			Pinned   bool   `json:"pinned_duration,omitempty"`
			Out      string `json:"out"`
		}{meta.Counts.Read, len(w.Streams), c.Bool("pin-duration"), c.String("output")})
	}
	streams := "1 stream"
	if n := len(w.Streams); n > 1 {
		streams = trace.Plural(n, "stream")
	}
	if c.Bool("pin-duration") {
		streams += "; duration pinned: gaps are stretched so that the last request comes at requests / rate"
	}
	err := table(account(c), func(y func(string, string) bool) {
		_ = y("generated", fmt.Sprintf("%s of %s", analysis.Counted(meta.Counts.Read, "request"), streams)) &&
			y("wrote", c.String("output"))
	})
	if err != nil || f == nil {
		return err
	}
	fmt.Fprintln(account(c))
	return analysis.WriteFidelityText(account(c), f)
}

// printPlaced says where sessions were put.
func printPlaced(c *cli.Command, meta trace.Meta, p synth.Placed, note string) error {
	if c.Bool("json") && c.String("output") != "-" {
		return writeJSON(c.Root().Writer, p)
	}
	unplaced := ""
	if p.Unplaced > 0 {
		unplaced = fmt.Sprintf("%s later turns have no arrival: replay them with --pace causal or think, or give --think", analysis.Grouped(p.Unplaced))
	}
	return table(account(c), func(y func(string, string) bool) {
		_ = y("placed", fmt.Sprintf("%s of %s", analysis.Counted(p.Sessions, "session"), analysis.Counted(meta.Counts.Kept, "request"))) &&
			y("noted", strings.Join(slices.DeleteFunc([]string{note, unplaced}, func(s string) bool { return s == "" }), "; ")) &&
			y("wrote", c.String("output"))
	})
}
