package runpage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/trace/results"
)

// mostLanes is how many requests the timeline shows at most: of more, those that
// ended around the longest wait for a first token, which is where to look first.
const mostLanes = 2000

// A flight is one request of the timeline.
type flight struct {
	id          int64
	pass        int32
	begin, sent time.Duration
	token, end  time.Duration
	mark        int
}

// Marks of the timeline, from 1.
var laneMarks = []string{"failed", "cut, cancelled or timed out"}

// A window keeps the requests around the longest wait. They come in the order in
// which they ended.
type window struct {
	ring   []flight // the last mostLanes
	seen   int64
	worst  time.Duration // the longest wait so far
	around []flight      // what the ring held when that was in its middle
	at     int64         // how many are seen by then
}

func (w *window) add(r *request) {
	if !r.Sent.Known || !r.End.Known {
		return
	}
	f := flightOf(r)
	if len(w.ring) < mostLanes {
		w.ring = append(w.ring, f)
	} else {
		w.ring[w.seen%mostLanes] = f
	}
	w.seen++
	if wait := f.token - f.sent; wait > w.worst {
		w.worst, w.at = wait, w.seen+mostLanes/2
	}
	if w.seen == w.at {
		w.around = append(w.around[:0], w.ring...)
	}
}

// shown returns the requests of the timeline in the order in which they began.
func (w *window) shown() []flight {
	list := slices.Clone(w.around)
	if w.seen <= mostLanes || w.seen < w.at {
		list = slices.Clone(w.ring) // the run ended before the window was full
	}
	slices.SortFunc(list, func(a, b flight) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.id, b.id), cmp.Compare(a.pass, b.pass))
	})
	return list
}

func flightOf(r *request) flight {
	f := flight{id: r.ID, pass: r.Pass, sent: r.Sent.Value, end: max(r.End.Value, r.Sent.Value)}
	f.begin = min(r.Due.Or(r.Eligible.Or(f.sent)), f.sent)
	f.token = f.end
	if ttft, ok := r.ttft.Get(); ok {
		f.token = min(f.sent+ttft, f.end)
	}
	switch r.Outcome {
	case results.OutcomeCut, results.OutcomeCancelled, results.OutcomeTimeout:
		f.mark = 2
	default:
		if !r.successful {
			f.mark = 1
		}
	}
	return f
}

// chart puts each request into the lowest lane that is free.
func (w *window) chart() (chart.Chart, bool) {
	list := w.shown()
	if len(list) == 0 {
		return chart.Chart{}, false
	}
	l := &chart.Lanes{Of: "requests", Phases: []string{"before it was sent: held or late", "sent to first token: queue and prefill of the server", "first token to end: decode"}, Marks: laneMarks}
	var free []time.Duration
	for _, f := range list {
		lane := slices.IndexFunc(free, func(t time.Duration) bool { return t <= f.begin })
		if lane < 0 {
			lane, free = len(free), append(free, 0)
		}
		free[lane] = f.end
		name := fmt.Sprintf("request %d", f.id)
		if f.pass > 0 {
			name += fmt.Sprintf(", pass %d", f.pass)
		}
		l.Spans = append(l.Spans, chart.Span{Name: name, Lane: lane, Mark: f.mark, At: []float64{f.begin.Seconds(), f.sent.Seconds(), f.token.Seconds(), f.end.Seconds()}})
	}
	c := chart.Chart{
		ID: "timeline", Title: "Timeline of requests", Subtitle: "n " + analysis.Grouped(int64(len(list))) + " requests", Wide: true,
		X: chart.Axis{Title: "since the run began", Unit: "s"}, Y: chart.Axis{Title: "lane", Zero: true}, Lanes: l,
		Note: "Each bar is a request; point at one to read its id. A lane is reused when it is free and means nothing else. From outside, the wait in a server's queue cannot be told from its prefill.",
	}
	if w.seen > int64(len(list)) {
		c.Subtitle += fmt.Sprintf(" of %s that were sent: those that ended around the longest wait for a first token, %s ms", analysis.Grouped(w.seen), msText(w.worst))
		c.Note += " At both ends, requests that ended before or after those shown are left out."
	}
	c.Numbers = slowest(list)
	return c, true
}

// mostSlowest is how many requests the table beside the timeline names.
const mostSlowest = 20

// slowest names the requests of the timeline that took longest.
func slowest(list []flight) *chart.Table {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b flight) int { return cmp.Compare(b.end-b.begin, a.end-a.begin) })
	t := &chart.Table{
		Title:  fmt.Sprintf("The slowest %d of them, ms", min(mostSlowest, len(list))),
		Header: []string{"request", "pass", "begins at", "before sent", "to first token", "to the end", "outcome"},
	}
	for _, f := range list[:min(mostSlowest, len(list))] {
		outcome := "successful"
		if f.mark > 0 {
			outcome = laneMarks[f.mark-1]
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(f.id), fmt.Sprint(f.pass), msText(f.begin), msText(f.sent - f.begin), msText(f.token - f.sent), msText(f.end - f.token), outcome})
	}
	return t
}

func msText(d time.Duration) string { return analysis.TimeText(float64(d) / 1e6) }
