package runpage

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/trace/results"
)

// mostLanes is how many requests the timeline shows at most: of more, a sample by
// a hash of their id, which is the same for every reader.
const mostLanes = 2000

// A flight is one request of the timeline.
type flight struct {
	hash        uint64
	id          int64
	pass        int32
	begin, sent time.Duration
	token, end  time.Duration
	mark        int
}

// Marks of the timeline, from 1.
var laneMarks = []string{"failed", "cut, cancelled or timed out"}

// A sample keeps the flights with the smallest hashes, the largest first.
type sample struct {
	heap []flight
	seen int64
}

func (s *sample) Len() int           { return len(s.heap) }
func (s *sample) Less(i, j int) bool { return s.heap[i].hash > s.heap[j].hash }
func (s *sample) Swap(i, j int)      { s.heap[i], s.heap[j] = s.heap[j], s.heap[i] }
func (s *sample) Push(x any)         { s.heap = append(s.heap, x.(flight)) }
func (s *sample) Pop() any {
	last := s.heap[len(s.heap)-1]
	s.heap = s.heap[:len(s.heap)-1]
	return last
}

func (s *sample) add(r *request) {
	if !r.Sent.Known || !r.End.Known {
		return
	}
	s.seen++
	f := flight{hash: mix(uint64(r.ID)<<20 ^ uint64(r.Pass)), id: r.ID, pass: r.Pass}
	if len(s.heap) == mostLanes && f.hash >= s.heap[0].hash {
		return
	}
	f.sent, f.end = r.Sent.Value, max(r.End.Value, r.Sent.Value)
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
	if heap.Push(s, f); len(s.heap) > mostLanes {
		heap.Pop(s)
	}
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// chart puts each request into the lowest lane that is free.
func (s *sample) chart() (chart.Chart, bool) {
	if len(s.heap) == 0 {
		return chart.Chart{}, false
	}
	slices.SortFunc(s.heap, func(a, b flight) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.id, b.id), cmp.Compare(a.pass, b.pass))
	})
	l := &chart.Lanes{Of: "requests", Phases: []string{"before it was sent: held or late", "sent to first token: queue and prefill of the server", "first token to end: decode"}, Marks: laneMarks}
	var free []time.Duration
	for _, f := range s.heap {
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
		ID: "timeline", Title: "Timeline of requests", Subtitle: "n " + analysis.Grouped(int64(len(s.heap))) + " requests", Wide: true,
		X: chart.Axis{Title: "since the run began", Unit: "s"}, Y: chart.Axis{Title: "lane", Zero: true}, Lanes: l,
		Note: "Each bar is a request; point at one to read its id. A lane is reused when it is free and means nothing else. From outside, the wait in a server's queue cannot be told from its prefill.",
	}
	if s.seen > int64(len(s.heap)) {
		c.Subtitle += fmt.Sprintf(" of %s that were sent, drawn by a hash of their ids", analysis.Grouped(s.seen))
		c.Note += " Since this is a sample, fewer are in flight here than there were."
	}
	c.Numbers = s.slowest()
	return c, true
}

// mostSlowest is how many requests the table beside the timeline names.
const mostSlowest = 20

// slowest names the requests of the timeline that took longest.
func (s *sample) slowest() *chart.Table {
	list := slices.Clone(s.heap)
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
