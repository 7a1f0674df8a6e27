package runpage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/trace/results"
)

// provenance is what it takes to run the same again.
func (w *writer) provenance(opened *results.Opened) chart.Section {
	r := w.run
	s := chart.Section{Heading: "Provenance, and how to run it again"}
	t := chart.Table{Words: true}
	row := func(name, text string) { t.Rows = append(t.Rows, []string{name, text}) }
	row("started", orNone(r.Started))
	if r.Ended != nil {
		row("lasted", duration(r.Ended.DurationNS))
	}
	row("program", "reprise "+orNone(r.Version))
	if r.Trace != nil {
		row("trace", fmt.Sprintf("%s, %s bytes, SHA-256 %s", shown(r.Trace.Name), analysis.Grouped(r.Trace.Bytes), r.Trace.SHA256))
	}
	for i, step := range r.History {
		var from []string
		for _, in := range step.Inputs {
			from = append(from, shown(in.Name))
		}
		row(fmt.Sprintf("made by, %d", i+1), fmt.Sprintf("%s of %s (reprise %s)", step.Command, orNone(strings.Join(from, ", ")), step.Version))
	}
	row("pacing", fmt.Sprintf("%s, speed %s, seed %d", orNone(r.Pace), analysis.NumberText(r.Speed), r.Seed))
	for _, recorded := range slices.Sorted(maps.Keys(r.Models)) {
		name := shown(recorded)
		if recorded == "" {
			name = "requests that record no model"
		}
		row("model", name+" sent as "+shown(r.Models[recorded]))
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		row("label "+shown(key), r.Labels[key])
	}
	row("client", fmt.Sprintf("%s/%s, %d CPUs, %s", orNone(r.Host.OS), orNone(r.Host.Arch), r.Host.CPUs, orNone(r.Host.Go)))
	s.Tables = append(s.Tables, t)
	command, left := command(r)
	s.Code = append(s.Code, chart.Listing{Title: "The command", Text: command, Open: true})
	if left != "" {
		s.Notes = append(s.Notes, left)
	}
	if text, err := json.MarshalIndent(withoutHistograms(*r), "", "  "); err == nil {
		s.Code = append(s.Code, chart.Listing{Title: results.RunFile + ", without its histograms", Text: string(text)})
	}
	if opened.Recovered {
		s.Notes = append(s.Notes, "The results are read from the parts that the run wrote as it went.")
	}
	return s
}

// withoutHistograms leaves out what no person reads.
func withoutHistograms(r results.Run) results.Run {
	if r.Ended == nil {
		return r
	}
	end := *r.Ended
	for _, d := range []**results.Delay{&end.Client.ReceiveDelay, &end.Client.RunQueue} {
		if *d != nil {
			short := **d
			short.Histogram = ""
			*d = &short
		}
	}
	r.Ended = &end
	return r
}

// command writes what runs the same again, and says what it cannot hold: values of
// headers and bodies are not kept, since they may be secrets.
func command(r *results.Run) (text, left string) {
	words := []string{"reprise replay"}
	if r.Trace != nil {
		words = append(words, quoted(r.Trace.Name))
	}
	for _, u := range r.URLs {
		words = append(words, "--url "+quoted(u))
	}
	var secret []string
	for _, name := range slices.Sorted(maps.Keys(r.Flags)) {
		value := r.Flags[name]
		switch {
		case len(name) == 1: // an alias of another
		case name == "header" || name == "extra-body" || name == "proxy":
			secret = append(secret, fmt.Sprintf("--%s (%s)", name, value))
		case value == "true":
			words = append(words, "--"+name)
		case strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]"):
			for v := range strings.FieldsSeq(value[1 : len(value)-1]) {
				words = append(words, "--"+name+" "+quoted(v))
			}
		default:
			words = append(words, "--"+name+"="+quoted(value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		words = append(words, "--label "+quoted(key+"="+r.Labels[key]))
	}
	words = append(words, "-o run-again/")
	if secret != nil {
		left = "Also given, with values that are not kept since they may be secrets: " + strings.Join(secret, "; ") + "."
	}
	return strings.Join(words, " \\\n  "), left
}

// quoted is a word of a POSIX shell.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
