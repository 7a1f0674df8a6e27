package sweep

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/trace"
)

// ResultFile is the name of a sweep's result in its directory.
const ResultFile = "sweep.json"

// A Result is what a sweep has shown.
type Result struct {
	Version   string            `json:"version"` // of the program
	Axis      string            `json:"axis"`    // rate, concurrency, users or scale
	Unit      string            `json:"unit"`    // of the loads
	Objective string            `json:"slo"`     // "" for none
	Label     string            `json:"label"`   // open loop, or closed loop
	Trace     string            `json:"trace"`   // base name
	Flags     map[string]string `json:"flags"`   // of the runs, without secrets
	Curve
	Found    *Found   `json:"found"`    // null without an objective
	Knee     *float64 `json:"knee"`     // load of the largest throughput over latency; null if no measured load has it
	Overload string   `json:"overload"` // what happens past the edge; "" if that was not probed
	Replicas int      `json:"replicas"` // of the system; 0 = not said
	Complete bool     `json:"complete"` // else it was stopped, and can go on
}

// Conclude fills in what follows from the points. A grid of loads finds its edge in
// them too.
func (r *Result) Conclude(f *Found) {
	if r.Objective == "" {
		f = nil
	} else if f == nil && len(r.Points) > 0 {
		f = Search{}.withDefaults().found(&r.Curve)
		f.Settled, f.Why = false, ""
	}
	r.Found, r.Knee, r.Overload = f, nil, ""
	if knee, ok := r.Curve.Knee(); ok {
		r.Knee = &knee
	}
	r.Overload = r.Curve.Overload(f)
}

// WriteJSON writes the result.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Head says in sentences what the sweep has found, the most important first.
func (r *Result) Head() []string {
	var out []string
	at := r.At
	for i := range r.Points {
		if r.Points[i].Invalid {
			out = append(out, fmt.Sprintf("at %s a run is no valid measurement, so do not rely on it: %s", at(r.Points[i].Load), r.Points[i].whyInvalid()))
		}
	}
	if f := r.Found; f != nil {
		switch {
		case f.Met != nil && f.Broken != nil:
			text := fmt.Sprintf("the highest load that meets %s is %s; at %s it does not hold", r.Objective, at(*f.Met), at(*f.Broken))
			if f.Estimate != nil {
				text += fmt.Sprintf(", and the runs put the edge at %s", at(*f.Estimate))
				if f.Error != nil {
					text += fmt.Sprintf(" ± %.2g %% (standard error)", 100**f.Error)
				}
			}
			out = append(out, text)
		case f.Met != nil:
			out = append(out, fmt.Sprintf("%s holds at every load that was measured, up to %s", r.Objective, at(*f.Met)))
		case f.Broken != nil:
			out = append(out, fmt.Sprintf("%s holds at no load: it is broken at %s already", r.Objective, at(*f.Broken)))
		}
		if f.Why != "" && f.Met != nil && f.Broken != nil {
			out = append(out, "the edge is not settled: "+f.Why)
		}
		if r.Replicas > 0 && f.Met != nil {
			out = append(out, fmt.Sprintf("with %s that is %s for each", trace.Plural(r.Replicas, "replica"), at(*f.Met/float64(r.Replicas))))
		}
	}
	if r.Knee != nil {
		out = append(out, fmt.Sprintf("the knee, where throughput over latency (requests/s over median E2E) is largest, is at %s", at(*r.Knee)))
	}
	if r.Overload != "" {
		out = append(out, "past the edge the system "+r.Overload)
	}
	if !r.Complete {
		out = append(out, "the sweep was stopped before its end; the same command goes on with it")
	}
	return out
}

// Table returns the points as text: a header and a row per load. Numbers are medians
// over the runs of a load.
func (r *Result) Table() (header []string, rows [][]string) {
	header = []string{r.Axis + ", " + r.Unit, "runs"}
	if r.Objective != "" {
		header = append(header, "slo met")
	}
	header = append(header, "requests/s", "tokens/s", "ttft p50", "p95", "tpot p50", "p95", "e2e p50", "p95, ms", "errors", "client")
	for i := range r.Points {
		p := &r.Points[i]
		load := analysis.NumberText(p.Load)
		if p.Beyond {
			load += " (past the edge)"
		}
		row := []string{load, fmt.Sprint(len(p.Runs))}
		if r.Objective != "" {
			row = append(row, metText(p))
		}
		for _, of := range []func(*Run) *float64{
			func(r *Run) *float64 { return r.RequestsPerS }, func(r *Run) *float64 { return r.OutputTokensPerS },
			func(r *Run) *float64 { return r.TTFTP50 }, func(r *Run) *float64 { return r.TTFTP95 }, func(r *Run) *float64 { return r.TPOTP50 }, func(r *Run) *float64 { return r.TPOTP95 },
			func(r *Run) *float64 { return r.E2EP50 }, func(r *Run) *float64 { return r.E2EP95 },
		} {
			row = append(row, number(p.median(of)))
		}
		errors := "n/a"
		if v, ok := p.median(func(r *Run) *float64 { return r.ErrorRate }); ok {
			errors = fmt.Sprintf("%.3g %%", 100*v)
		}
		rows = append(rows, append(row, errors, worst(p)))
	}
	return header, rows
}

func number(v float64, ok bool) string {
	if !ok {
		return "n/a"
	}
	return analysis.NumberText(v)
}

func metText(p *Point) string {
	met := 0
	for _, r := range p.Runs {
		if r.Met {
			met++
		}
	}
	return fmt.Sprintf("%d of %d", met, len(p.Runs))
}

// worst is the worst verdict on the client.
func worst(p *Point) string {
	order := map[string]int{"valid": 0, "degraded": 1, "invalid": 2}
	text := ""
	for _, r := range p.Runs {
		if text == "" || order[r.Verdict] > order[text] {
			text = r.Verdict
		}
	}
	return text
}

// WriteText writes what a person reads.
func (r *Result) WriteText(w io.Writer) error {
	for _, line := range append(r.Head(), "") {
		fmt.Fprintln(w, line)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	header, rows := r.Table()
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(tw, strings.Join(row, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nmedians over the runs of a load; %s; %s in all\n", r.Label, trace.Plural(r.N, "run"))
	return err
}

// WriteMarkdown writes a table for a pull request.
func (r *Result) WriteMarkdown(w io.Writer) error {
	for _, line := range r.Head() {
		fmt.Fprintf(w, "- %s\n", line)
	}
	header, rows := r.Table()
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat(" --: |", len(header)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	_, err := fmt.Fprintf(w, "\nMedians over the runs of a load; %s; %s in all.\n", r.Label, trace.Plural(r.N, "run"))
	return err
}

// Page is the result as one HTML file: the curves over the load, with the edge and
// the knee in them.
func (r *Result) Page() *chart.Page {
	header, rows := r.Table()
	page := &chart.Page{
		Title: "Sweep of the " + r.Axis, Intro: r.Head(),
		Sections: []chart.Section{
			{Heading: "Curve", Charts: r.charts(), Text: []string{"Each mark is a run; the line goes through the medians of each load."}},
			{Heading: "Loads", Tables: []chart.Table{{Header: header, Rows: rows}}, Text: []string{fmt.Sprintf("Medians over the runs of a load; %s; %s in all.", r.Label, trace.Plural(r.N, "run"))}},
		},
	}
	return page
}

func (r *Result) charts() []chart.Chart {
	var out []chart.Chart
	for _, q := range []struct {
		id, title, axis, unit string
		of                    func(*Run) *float64
	}{
		{"throughput", "Throughput of successful requests", "throughput", "requests/s", func(r *Run) *float64 { return r.RequestsPerS }},
		{"ttft", "TTFT, 95th percentile", "TTFT p95", "ms", func(r *Run) *float64 { return r.TTFTP95 }},
		{"tpot", "TPOT, 95th percentile", "TPOT p95", "ms", func(r *Run) *float64 { return r.TPOTP95 }},
		{"e2e", "E2E, median", "E2E p50", "ms", func(r *Run) *float64 { return r.E2EP50 }},
		{"tokens", "Output tokens", "output", "tokens/s", func(r *Run) *float64 { return r.OutputTokensPerS }},
	} {
		var xs, ys, mx, my []float64
		for i := range r.Points {
			p := &r.Points[i]
			for k := range p.Runs {
				if v := q.of(&p.Runs[k]); v != nil {
					xs, ys = append(xs, p.Load), append(ys, *v)
				}
			}
			if v, ok := p.median(q.of); ok {
				mx, my = append(mx, p.Load), append(my, v)
			}
		}
		if len(xs) == 0 {
			continue
		}
		c := chart.Chart{
			ID: q.id, Title: q.title, Subtitle: fmt.Sprintf("n = %s at %s", trace.Plural(len(xs), "run"), trace.Plural(len(mx), "load")), X: chart.Axis{Title: r.Axis, Unit: r.Unit, Zero: true}, Y: chart.Axis{Title: q.axis, Unit: q.unit, Zero: true},
			Series: []chart.Series{{Name: "median", Kind: chart.Lines, X: mx, Y: my}, {Name: "runs", Kind: chart.Points, X: xs, Y: ys}},
		}
		if f := r.Found; f != nil && f.Met != nil {
			c.Lines = append(c.Lines, chart.Line{Label: "highest that meets the slo", At: *f.Met, Vertical: true})
		}
		if r.Knee != nil {
			c.Lines = append(c.Lines, chart.Line{Label: "knee", At: *r.Knee, Vertical: true})
		}
		out = append(out, c)
	}
	return out
}

// ReadResult reads the result of a sweep, such as one that was stopped.
func ReadResult(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, trace.WithFix(fmt.Errorf("%s: %w", path, err), "name another directory, or replace the sweep with --force")
	}
	return r, nil
}

// Differs names what makes the runs of another sweep others than those of r; "" if
// nothing does. The objective does not: runs are held against a new one.
func (r *Result) Differs(o *Result) string {
	switch {
	case r.Axis != o.Axis:
		return "axis"
	case r.Trace != o.Trace:
		return "trace"
	}
	for _, flags := range []map[string]string{r.Flags, o.Flags} {
		for _, name := range slices.Sorted(maps.Keys(flags)) {
			a, inA := r.Flags[name]
			b, inB := o.Flags[name]
			if inA != inB || a != b {
				return "--" + name
			}
		}
	}
	return ""
}

// At is a load with its unit.
func (r *Result) At(load float64) string {
	unit := r.Unit
	if rest, ok := strings.CutPrefix(unit, "requests "); ok && load == 1 {
		unit = "request " + rest
	}
	return analysis.NumberText(load) + " " + unit
}
