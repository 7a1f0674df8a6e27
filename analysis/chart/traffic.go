package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/analysis"
	"reprise/analysis/stats"
	"reprise/synth/model"
)

// TrafficCharts returns what can be drawn of a trace, in the order of a page.
// With a model of one stream (w may be nil), its fitted rate and laws stand
// beside the data that they are of.
func TrafficCharts(t *analysis.Traffic, w *model.Workload) []Chart {
	var out []Chart
	for _, topic := range trafficTopics(t, w) {
		out = append(out, topic.charts...)
	}
	return out
}

// A topic is a part of the text report and what is drawn of it.
type topic struct {
	heading string // as in analysis.TrafficParts
	charts  []Chart
	notes   []string
}

func trafficTopics(t *analysis.Traffic, w *model.Workload) []topic {
	f := fitsOf(w)
	return []topic{arrivalsTopic(t, w, f), lengthsTopic(t, f), densityTopic(t), sessionsTopic(t, f), prefixTopic(t)}
}

func (t *topic) add(c Chart, ok bool) {
	if ok {
		t.charts = append(t.charts, c)
	}
}

// distribution adds the distribution of a quantity, with the laws fitted to it.
func (t *topic) distribution(q Quantity, d *analysis.Dist, f *model.Fitted) {
	if d == nil {
		return
	}
	laws := LawsOf(f)
	c, ok := CDF(q, []Sample{{Dist: d}}, laws...)
	if !ok {
		t.notes = append(t.notes, strings.ToLower(q.Title[:1])+q.Title[1:]+": no chart, since no value is above 0")
		return
	}
	refused := f != nil && f.Best == "" && f.Refuse != ""
	if refused {
		c.Note = "No family is named best: " + f.Refuse + "."
	}
	t.add(c, true)
	if !refused {
		t.add(QQ(q, d, laws...))
	}
}

func arrivalsTopic(t *analysis.Traffic, w *model.Workload, f fits) topic {
	p := topic{heading: "arrivals"}
	p.add(rateChart(&t.Arrivals, w))
	p.charts = append(p.charts, burstCharts(&t.Arrivals)...)
	gaps := Quantity{ID: "gaps", Title: "Gaps between arrivals", Axis: "gap", Unit: "s"}
	if t.Arrivals.Within != "" {
		gaps.Title += " within " + t.Arrivals.Within
	}
	p.distribution(gaps, t.Arrivals.Gaps, f.gaps)
	return p
}

func lengthsTopic(t *analysis.Traffic, f fits) topic {
	p := topic{heading: "lengths"}
	for i := range t.Lengths {
		l := &t.Lengths[i]
		var fitted *model.Fitted
		switch l.Name {
		case "input_tokens":
			fitted = f.input
		case "output_tokens":
			fitted = f.output
		}
		name := strings.ReplaceAll(strings.TrimSuffix(l.Name, "_tokens"), "_", " ")
		p.distribution(Quantity{
			ID: strings.ReplaceAll(name, " ", "-"), Title: strings.ToUpper(name[:1]) + name[1:] + " length", Axis: name + " length", Unit: "tokens",
		}, l.Dist, fitted)
	}
	return p
}

// densityTopic draws output by input length.
func densityTopic(t *analysis.Traffic) topic {
	p := topic{heading: "output by input length"}
	d := t.Density
	if d == nil {
		return p
	}
	c := Chart{
		ID: "density", Title: "Output by input length",
		Subtitle: fmt.Sprintf("n %s requests in cells of about equal width by the logarithm", grouped(d.N)),
		X:        Axis{Title: "input length", Unit: "tokens", Log: true}, Y: Axis{Title: "output length", Unit: "tokens", Log: true},
		Grid: &Grid{Of: "requests in a cell", X: edges(d.Input), Y: edges(d.Output)},
	}
	if d.Zero > 0 {
		c.Subtitle += fmt.Sprintf("; %s with a length of 0 have no place", grouped(d.Zero))
	}
	for _, cell := range d.Cells {
		c.Grid.Cells = append(c.Grid.Cells, Cell{int(cell[0]), int(cell[1]), cell[2]})
	}
	median := Series{Name: "median output of each tenth of the inputs", Kind: Lines, Marks: true}
	p90 := Series{Name: "p90", Kind: Lines, Marks: true}
	if len(t.Dependence.ByInput) > 0 {
		c.Numbers = &Table{Header: []string{"input tokens", "n", "output median", "p90"}}
	}
	for _, b := range t.Dependence.ByInput {
		c.Numbers.Rows = append(c.Numbers.Rows, []string{grouped(b.FromInput) + " to " + grouped(b.ToInput), grouped(b.N), analysis.NumberText(b.Median), analysis.NumberText(b.P90)})
		if b.FromInput > 0 && b.Median > 0 && b.P90 > 0 {
			x := math.Sqrt(float64(b.FromInput)) * math.Sqrt(float64(b.ToInput))
			median.X, median.Y = append(median.X, x), append(median.Y, b.Median)
			p90.X, p90.Y = append(p90.X, x), append(p90.Y, b.P90)
		}
	}
	if len(median.X) > 1 {
		c.Series = []Series{median, p90}
	}
	p.add(c, true)
	return p
}

// edges lie between whole numbers of tokens.
func edges(from []int64) []float64 {
	out := make([]float64, len(from))
	for i, v := range from {
		out[i] = float64(v) - 0.5
	}
	return out
}

func sessionsTopic(t *analysis.Traffic, f fits) topic {
	p := topic{heading: "sessions"}
	s := &t.Sessions
	p.distribution(Quantity{ID: "turns", Title: "Turns of a session", Axis: "turns"}, s.Turns, f.turns)
	p.distribution(Quantity{ID: "starts", Title: "Gaps between starts of sessions", Axis: "gap", Unit: "s"}, s.Starts, f.starts)
	p.add(CDF(Quantity{ID: "think", Title: "Time between turns of a session", Axis: "time", Unit: "s"}, []Sample{
		{"arrival to arrival", s.Gaps}, {"think, recorded", s.ThinkRecorded}, {"think, measured", s.ThinkMeasured},
	}))
	return p
}

// prefixTopic draws the hit share over the capacity of an LRU cache.
func prefixTopic(t *analysis.Traffic) topic {
	p := topic{heading: "prefix reuse"}
	x := &t.Prefix
	if len(x.LRU) == 0 || x.HitShareBlocks == nil {
		return p
	}
	c := Chart{
		ID: "lru", Title: "Prefix reuse: hit share of an LRU cache",
		Subtitle: fmt.Sprintf("n %s blocks in %s requests, %s of them distinct", grouped(x.Blocks), grouped(x.Rows), grouped(x.Distinct)),
		X:        Axis{Title: "capacity", Unit: "blocks", Log: true}, Y: Axis{Title: "hit share", Unit: "%", Zero: true},
		Note: "One cache for all requests, block by block. Lines across: a cache without limit.",
	}
	if x.Estimate != nil {
		c.Subtitle += fmt.Sprintf("; estimates, standard error at most %s", analysis.PercentText(x.Estimate.StandardError))
	}
	tokens, blocks := Series{Name: "of tokens", Kind: Lines}, Series{Name: "of blocks", Kind: Lines}
	c.Numbers = &Table{Header: []string{"capacity, blocks", "tokens hit", "blocks hit"}}
	for i, l := range x.LRU {
		tokens.X, tokens.Y = append(tokens.X, float64(l.Capacity)), append(tokens.Y, 100*l.Tokens)
		blocks.X, blocks.Y = append(blocks.X, float64(l.Capacity)), append(blocks.Y, 100*l.Blocks)
		if i%5 == 0 || i == len(x.LRU)-1 {
			c.Numbers.Rows = append(c.Numbers.Rows, []string{grouped(l.Capacity), analysis.PercentText(l.Tokens), analysis.PercentText(l.Blocks)})
		}
	}
	if x.HitShareTokens != nil {
		c.Series = append(c.Series, tokens)
		c.Lines = append(c.Lines, Line{Label: "no limit, tokens: " + analysis.PercentText(*x.HitShareTokens), At: 100 * *x.HitShareTokens})
	}
	c.Series = append(c.Series, blocks)
	c.Lines = append(c.Lines, Line{Label: "no limit, blocks: " + analysis.PercentText(*x.HitShareBlocks), At: 100 * *x.HitShareBlocks})
	p.add(c, true)
	return p
}

// fits are the laws of a model by what they are of; nil where it has none.
type fits struct {
	gaps, input, output, turns, starts *model.Fitted
}

// fitsOf takes the laws that are of the same values as the charts show: of all
// requests, not of first turns.
func fitsOf(w *model.Workload) fits {
	var f fits
	if w == nil || len(w.Streams) != 1 {
		return f
	}
	s := &w.Streams[0]
	if a := s.Arrivals; a != nil {
		if a.Of == "session" {
			f.gaps, f.starts = a.Turns, a.Gap
		} else {
			f.gaps = a.Gap
		}
	}
	if s.Lengths.Of == "request" {
		f.input, f.output = s.Lengths.Input, s.Lengths.Output
	}
	if s.Sessions != nil {
		f.turns = s.Sessions.TurnFits
	}
	return f
}

// drawnLaws is how many laws a chart can bear.
const drawnLaws = 3

// LawsOf returns the laws of a fit to draw: those whose parameters the values
// determine, best first by BIC, at most three. The one that the fit names best
// says so in its name. A nil fit has none.
func LawsOf(f *model.Fitted) []Law {
	if f == nil {
		return nil
	}
	sorted := slices.Clone(f.Fits)
	slices.SortStableFunc(sorted, func(a, b stats.Fit) int {
		switch {
		case a.BIC < b.BIC:
			return -1
		case a.BIC > b.BIC:
			return 1
		}
		return 0
	})
	var out []Law
	for _, fit := range sorted {
		if !fit.Identified || fit.Law == nil || len(out) == drawnLaws {
			continue
		}
		name, capped := fit.Law.Name(), ""
		if c, ok := fit.Law.(stats.Capped); ok {
			name, capped = c.Of.Name(), ", capped"
		}
		if f.Best != "" && name == f.Best {
			capped += " (best)"
		}
		out = append(out, Law{name + capped, fit.Law})
	}
	return out
}
