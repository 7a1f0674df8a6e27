package analysis_test

import (
	"slices"
	"testing"

	"reprise/analysis"
	"reprise/analysis/stats"
	"reprise/trace"
)

// TestLengthDensity: every row with two lengths is in the cell that its lengths
// say, or counted as one of length 0, and there are at most 64 bins a side.
func TestLengthDensity(t *testing.T) {
	for _, most := range []int64{1, 2, 100, 1e6, 4e9} {
		var rows []trace.Request
		r := stats.Stream(3)
		for range 3000 {
			rows = append(rows, trace.Request{InputTokens: trace.Some(r.Int64N(most + 1)), OutputTokens: trace.Some(1 + r.Int64N(r.Int64N(most)+1))})
		}
		rows = append(rows, trace.Request{InputTokens: trace.Some[int64](5)})
		a, err := traffic(t, trace.ClockNone, analysis.TrafficOptions{}, rows...)
		if err != nil {
			t.Fatal(err)
		}
		d := a.Density
		if d == nil {
			t.Fatalf("up to %d: no density", most)
		}
		if len(d.Input) > 65 || len(d.Output) > 65 || !slices.IsSorted(d.Input) || !slices.IsSorted(d.Output) {
			t.Errorf("up to %d: edges %v and %v", most, d.Input, d.Output)
		}
		if d.N+d.Zero != 3000 {
			t.Errorf("up to %d: %d rows and %d with a 0", most, d.N, d.Zero)
		}
		for _, c := range d.Cells {
			var n int64
			for _, row := range rows[:3000] {
				in, out := row.InputTokens.Value, row.OutputTokens.Value
				if d.Input[c[0]] <= in && in < d.Input[c[0]+1] && d.Output[c[1]] <= out && out < d.Output[c[1]+1] {
					n++
				}
			}
			if n != c[2] {
				t.Fatalf("up to %d: cell %v holds %d rows", most, c, n)
			}
		}
	}
	a, err := traffic(t, trace.ClockNone, analysis.TrafficOptions{}, trace.Request{InputTokens: trace.Some[int64](5)})
	if err != nil {
		t.Fatal(err)
	}
	if a.Density != nil {
		t.Errorf("density %+v of rows without an output length", a.Density)
	}
}

// TestTrafficParts: parts have what the text has.
func TestTrafficParts(t *testing.T) {
	a, err := traffic(t, trace.ClockTrace, analysis.TrafficOptions{},
		trace.Request{Arrival: at(0), InputTokens: trace.Some[int64](5)},
		trace.Request{Arrival: at(2), InputTokens: trace.Some[int64](7)})
	if err != nil {
		t.Fatal(err)
	}
	parts := analysis.TrafficParts(a)
	for _, want := range []analysis.Part{
		{Name: "rows", Text: "2"}, {Heading: "arrivals"},
		{Text: "not measurable: no row has output_tokens"},
		{Heading: "definitions"}, {Name: "tau-b", Text: "Kendall's rank correlation, corrected for ties"},
	} {
		if !slices.ContainsFunc(parts, func(p analysis.Part) bool {
			return p.Heading == want.Heading && p.Name == want.Name && p.Text == want.Text && p.Rows == nil
		}) {
			t.Errorf("no part %+v", want)
		}
	}
	i := slices.IndexFunc(parts, func(p analysis.Part) bool { return p.Header != nil && p.Header[0] == "tokens" })
	if i < 0 || len(parts[i].Rows) != 1 || len(parts[i].Rows[0]) != len(parts[i].Header) || parts[i].Rows[0][0] != "input" {
		t.Errorf("table of lengths at %d of %+v", i, parts)
	}
}
