package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// mostSlices is how many slices of time a run has at most.
const mostSlices = 60

// sliceWidths are what a slice may last: the first that gives no more than
// mostSlices. Beyond the last, days are doubled.
var sliceWidths = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// Slices is the lateness of a run by time: of the requests that were eligible in
// each slice. Slices without a request are left out.
type Slices struct {
	WidthMS float64 `json:"width_ms"`
	List    []Slice `json:"slices"`
}

// A Slice is the lateness of the requests that were eligible in it; quantiles are
// nearest-rank.
type Slice struct {
	FromMS float64 `json:"from_ms"` // since the run began
	N      int64   `json:"n"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	P999   float64 `json:"p99_9_ms"`
	Max    float64 `json:"max_ms"`

	index  int64   // of all slices
	sorted []int64 // ns
}

// A lateSample is one request.
type lateSample struct{ eligible, late int64 } // ns

// sliced cuts the samples; nil without any.
func sliced(samples []lateSample) *Slices {
	if len(samples) == 0 {
		return nil
	}
	last := time.Duration(slices.MaxFunc(samples, func(a, b lateSample) int { return cmp.Compare(a.eligible, b.eligible) }).eligible)
	width := sliceWidths[len(sliceWidths)-1]
	for _, w := range sliceWidths {
		if last < w*mostSlices {
			width = w
			break
		}
	}
	for last >= width*mostSlices {
		width *= 2
	}
	in := map[int64][]int64{}
	for _, s := range samples {
		i := max(0, s.eligible) / int64(width)
		in[i] = append(in[i], s.late)
	}
	out := &Slices{WidthMS: *milliseconds(width)}
	for i, values := range in {
		out.List = append(out.List, sliceOf(i, width, values))
	}
	slices.SortFunc(out.List, func(a, b Slice) int { return cmp.Compare(a.index, b.index) })
	return out
}

// sliceOf sorts values.
func sliceOf(i int64, width time.Duration, values []int64) Slice {
	slices.Sort(values)
	at := func(q int64) float64 { return *milliseconds(time.Duration(sortedQuantile(values, q))) }
	return Slice{
		FromMS: *milliseconds(time.Duration(i) * width), N: int64(len(values)), P50: at(500), P99: at(990), P999: at(999),
		Max: *milliseconds(time.Duration(values[len(values)-1])), index: i, sorted: values,
	}
}

// A lateTime is neighbouring slices that are late.
type lateTime struct {
	from, to time.Duration
	p99      float64 // ms, of all its requests
	n        int64
}

// late returns the times of slices whose p99 is above limit, in ms, the worst
// first, and how many slices they have.
func (s *Slices) late(limit float64) (list []lateTime, count int) {
	width := time.Duration(s.WidthMS * 1e6)
	var values []int64
	last := int64(-2)
	flush := func() {
		if len(values) == 0 {
			return
		}
		slices.Sort(values)
		l := &list[len(list)-1]
		l.n, l.p99 = int64(len(values)), *milliseconds(time.Duration(sortedQuantile(values, 990)))
		values = nil
	}
	for i := range s.List {
		c := &s.List[i]
		if c.P99 <= limit {
			continue
		}
		count++
		if c.index != last+1 {
			flush()
			list = append(list, lateTime{from: time.Duration(c.index) * width})
		}
		last = c.index
		list[len(list)-1].to = time.Duration(c.index+1) * width
		values = append(values, c.sorted...)
	}
	flush()
	slices.SortStableFunc(list, func(a, b lateTime) int { return cmp.Compare(b.p99, a.p99) })
	return list, count
}

// concentrated says when the client was late, if that was in no more than half of
// the slices; "" otherwise.
func (s *Slices) concentrated(limit float64) string {
	if s == nil {
		return ""
	}
	list, count := s.late(limit)
	if count == 0 || 2*count > len(s.List) {
		return ""
	}
	text := list[0].String()
	switch more := len(list) - 1; more {
	case 0:
	case 1:
		text += ", and at another time"
	default:
		text += fmt.Sprintf(", and at %d other times", more)
	}
	return text
}

func (s lateTime) String() string {
	return fmt.Sprintf("from %s to %s: p99 %s of %s", clockText(s.from), clockText(s.to), shortTime(s.p99), Counted(s.n, "request"))
}

// worst writes the slices with the largest p99.
func (s *Slices) worst() string {
	if s == nil || len(s.List) < 2 {
		return ""
	}
	list := slices.Clone(s.List)
	slices.SortStableFunc(list, func(a, b Slice) int { return cmp.Compare(b.P99, a.P99) })
	var parts []string
	for _, c := range list[:min(3, len(list))] {
		parts = append(parts, fmt.Sprintf("from %s p99 %s, max %s (n %s)", clockText(time.Duration(c.FromMS*1e6)), shortTime(c.P99), shortTime(c.Max), Grouped(c.N)))
	}
	return fmt.Sprintf("worst of %s of %s: %s", Counted(int64(len(s.List)), "slice"), widthText(time.Duration(s.WidthMS*1e6)), strings.Join(parts, "; "))
}

// clockText writes a time of a run as 00:42 or 1:02:00.
func clockText(d time.Duration) string {
	s := int64(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// shortTime writes ms, and seconds from one on.
func shortTime(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.2f s", ms/1000)
	}
	return decimals(ms) + " ms"
}

// widthText writes a whole number of one unit.
func widthText(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
