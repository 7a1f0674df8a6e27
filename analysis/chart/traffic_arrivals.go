package chart

import (
	"fmt"
	"slices"

	"reprise/analysis"
	"reprise/synth/model"
)

// rateBins is how many bins a picture of the rate has at most: more are joined.
const rateBins = 400

// rateChart draws the rate over time, and the fitted one of a model.
func rateChart(a *analysis.Arrivals, w *model.Workload) (Chart, bool) {
	r := a.Rate
	if r == nil || len(r.Counts) < 2 || a.RateHz == nil || a.SpanS == nil {
		return Chart{}, false
	}
	per, unit := timeUnit(*a.SpanS)
	c := Chart{
		ID: "rate", Title: "Arrival rate over time",
		Subtitle: fmt.Sprintf("n %s arrivals, bins of %s s", grouped(a.N), analysis.NumberText(r.BinS)),
		X:        Axis{Title: "time since the first arrival", Unit: unit},
		Y:        Axis{Title: "rate", Unit: "requests/s", Zero: true},
		Lines:    []Line{{Label: "mean " + analysis.NumberText(*a.RateHz), At: *a.RateHz}},
	}
	counts := r.Counts
	if rest := *a.SpanS - float64(len(counts)-1)*r.BinS; rest < 0.999*r.BinS {
		counts = counts[:len(counts)-1]
		c.Note = "The last bin, which the end of the trace cuts, is left out."
	}
	join := (len(counts) + rateBins - 1) / rateBins
	mean, low, high := joinBins(counts, join, r.BinS)
	width := float64(join) * r.BinS / per
	end := float64(len(counts)) * r.BinS / per
	fitted, hasFit := fittedRate(w, per, end)
	if join > 1 {
		c.Subtitle += fmt.Sprintf(", joined by %d to a mean", join)
	}
	switch {
	case hasFit: // an area, on which a line can be seen
		c.Series = []Series{bandOf("requests/s", make([]float64, len(mean)), mean, width, end), fitted}
	case join > 1:
		c.Series = []Series{stepped("requests/s", mean, width, end), bandOf("least and most of the bins", low, high, width, end)}
	default:
		c.Series = []Series{stepped("requests/s", mean, width, end)}
	}
	c.Numbers = rateTable(mean, width, end, c.X.label())
	return c, true
}

// timeUnit chooses a unit in which a span is a small number.
func timeUnit(span float64) (per float64, unit string) {
	switch {
	case span < 600:
		return 1, "s"
	case span < 3*3600:
		return 60, "min"
	case span < 4*86400:
		return 3600, "h"
	}
	return 86400, "d"
}

// joinBins returns the mean, the least and the highest rate of every few bins, of
// which the last may be fewer.
func joinBins(counts []int64, few int, bin float64) (mean, low, high []float64) {
	for part := range slices.Chunk(counts, few) {
		var sum int64
		for _, n := range part {
			sum += n
		}
		mean = append(mean, float64(sum)/(float64(len(part))*bin))
		low, high = append(low, float64(slices.Min(part))/bin), append(high, float64(slices.Max(part))/bin)
	}
	return mean, low, high
}

// stepped is a value per bin, the last of which holds to the end.
func stepped(name string, y []float64, width, end float64) Series {
	s := Series{Name: name, Kind: Step}
	for i, v := range y {
		s.X, s.Y = append(s.X, float64(i)*width), append(s.Y, v)
	}
	s.X, s.Y = append(s.X, end), append(s.Y, y[len(y)-1])
	return s
}

// bandOf is a range per bin.
func bandOf(name string, low, high []float64, width, end float64) Series {
	s := Series{Name: name, Kind: Band}
	for i := range low {
		to := min(float64(i+1)*width, end)
		s.X = append(s.X, float64(i)*width, to)
		s.Low, s.Y = append(s.Low, low[i], low[i]), append(s.Y, high[i], high[i])
	}
	return s
}

// fittedRate is the piecewise-constant rate of a model of one stream.
func fittedRate(w *model.Workload, per, end float64) (Series, bool) {
	if w == nil || len(w.Streams) != 1 || w.Streams[0].Arrivals == nil {
		return Series{}, false
	}
	a := w.Streams[0].Arrivals
	s := Series{Name: "fitted rate of " + a.Of + "s", Kind: Step}
	for _, p := range a.Profile {
		if p.FromS/per >= end {
			break
		}
		s.X, s.Y = append(s.X, p.FromS/per, min(p.ToS/per, end)), append(s.Y, p.RateHz, p.RateHz)
	}
	return s, len(s.X) > 0
}

// rateTable has the rate in tenths of the time.
func rateTable(mean []float64, width, end float64, of string) *Table {
	t := &Table{Header: []string{of, "requests/s"}}
	each := max(1, (len(mean)+9)/10)
	for i := 0; i < len(mean); i += each {
		part := mean[i:min(i+each, len(mean))]
		var sum float64
		for _, v := range part {
			sum += v
		}
		from, to := float64(i)*width, min(float64(i+len(part))*width, end)
		t.Rows = append(t.Rows, []string{tickText(from) + " to " + tickText(to), analysis.NumberText(sum / float64(len(part)))})
	}
	return t
}

// burstCharts draw the index of dispersion and the variation of the rate over
// the length of the window.
func burstCharts(a *analysis.Arrivals) []Chart {
	x := Axis{Title: "window", Unit: "s", Log: true}
	idc := Series{Name: "IDC of the trace", Kind: Lines, Marks: true}
	poisson := Series{Name: "95 % of Poisson traces", Kind: Band}
	cv := Series{Name: "count CV of the trace", Kind: Lines, Marks: true}
	floor := idcFloor(a.Burstiness)
	idcTable := &Table{Header: []string{"window, s", "windows", "IDC", "95 % of Poisson traces"}}
	cvTable := &Table{Header: []string{"window, s", "windows", "count CV"}}
	for _, b := range a.Burstiness {
		row := []string{analysis.NumberText(b.WindowS), grouped(b.Windows)}
		if b.IDC != nil && b.PoissonLo != nil && b.PoissonHi != nil {
			if *b.IDC > 0 {
				idc.X, idc.Y = append(idc.X, b.WindowS), append(idc.Y, *b.IDC)
			}
			poisson.X = append(poisson.X, b.WindowS)
			poisson.Low, poisson.Y = append(poisson.Low, max(floor, *b.PoissonLo)), append(poisson.Y, *b.PoissonHi)
			idcTable.Rows = append(idcTable.Rows, append(row[:2:2], analysis.NumberText(*b.IDC), analysis.NumberText(*b.PoissonLo)+" to "+analysis.NumberText(*b.PoissonHi)))
		}
		if b.CountCV != nil {
			cv.X, cv.Y = append(cv.X, b.WindowS), append(cv.Y, *b.CountCV)
			cvTable.Rows = append(cvTable.Rows, append(row[:2:2], analysis.NumberText(*b.CountCV)))
		}
	}
	n := fmt.Sprintf("n %s arrivals, counted in windows of each length", grouped(a.N))
	var out []Chart
	if len(idc.X) > 0 {
		out = append(out, Chart{
			ID: "idc", Title: "Burstiness: index of dispersion for counts", Subtitle: n, X: x,
			Y:      Axis{Title: "IDC", Unit: "variance / mean", Log: true},
			Series: []Series{idc, poisson}, Lines: []Line{{Label: "Poisson, 1", At: 1}}, Numbers: idcTable,
			Note: "Above the band, arrivals are burstier than Poisson arrivals at a constant rate.",
		})
	}
	if len(cv.X) > 0 {
		out = append(out, Chart{
			ID: "count-cv", Title: "Burstiness: how much the rate itself varies", Subtitle: n, X: x,
			Y:      Axis{Title: "count CV", Zero: true},
			Series: []Series{cv}, Lines: []Line{{Label: "Poisson, 0", At: 0}}, Numbers: cvTable,
			Note: "sqrt(max(0, variance - mean)) / mean of the counts: the noise of Poisson arrivals is taken out.",
		})
	}
	return out
}

// idcFloor is where the band ends below if its lower side is 0, which has no
// place on the axis.
func idcFloor(list []analysis.Burst) float64 {
	floor := 1.0
	for _, b := range list {
		for _, v := range []*float64{b.IDC, b.PoissonLo} {
			if v != nil && *v > 0 {
				floor = min(floor, *v)
			}
		}
	}
	return floor / 1.5
}
