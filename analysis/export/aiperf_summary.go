package export

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/analysis"
)

// A stat is a JsonMetricResult: one metric of profile_export_aiperf.json.
type stat struct {
	Unit  string   `json:"unit"`
	Avg   *float64 `json:"avg,omitempty"`
	P1    *float64 `json:"p1,omitempty"`
	P5    *float64 `json:"p5,omitempty"`
	P10   *float64 `json:"p10,omitempty"`
	P25   *float64 `json:"p25,omitempty"`
	P50   *float64 `json:"p50,omitempty"`
	P75   *float64 `json:"p75,omitempty"`
	P90   *float64 `json:"p90,omitempty"`
	P95   *float64 `json:"p95,omitempty"`
	P99   *float64 `json:"p99,omitempty"`
	Min   *float64 `json:"min,omitempty"`
	Max   *float64 `json:"max,omitempty"`
	Std   *float64 `json:"std,omitempty"`
	Count *int64   `json:"count,omitempty"`
	Sum   *float64 `json:"sum,omitempty"`

	header string
}

// aiperfQuantiles in percent, as stat and the CSV have them.
var aiperfQuantiles = [...]float64{1, 5, 10, 25, 50, 75, 90, 95, 99}

func (s *stat) quantiles() [len(aiperfQuantiles)]**float64 {
	return [...]**float64{&s.P1, &s.P5, &s.P10, &s.P25, &s.P50, &s.P75, &s.P90, &s.P95, &s.P99}
}

// distribution computes the statistics as aiperf/metrics/metric_dicts.py does. It
// sorts the values, of which there is one at least.
func distribution(header, unit string, values []float64) *stat {
	slices.Sort(values)
	n := len(values)
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(n)
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	s := &stat{Unit: unit, header: header, Avg: &mean, Sum: &sum, Count: new(int64(n)), Min: &values[0], Max: &values[n-1], Std: new(math.Sqrt(squares / float64(n)))}
	for i, to := range s.quantiles() {
		at := aiperfQuantiles[i] / 100 * float64(n-1)
		low := int(at)
		high := min(low+1, n-1)
		*to = new(values[low] + (at-float64(low))*(values[high]-values[low]))
	}
	return s
}

// fromHistogram takes the statistics of a metric whose samples are not kept: its
// quantiles are samples, at most 0.1 % too high, and not between two.
func fromHistogram(header string, m *analysis.Metric, h *hdrhistogram.Histogram) *stat {
	n := float64(m.N)
	s := &stat{Unit: unitMS, header: header, Count: new(m.N), Avg: new(m.Stat("mean").Value), Sum: new(m.Stat("mean").Value * n),
		Min: new(m.Stat("min").Value), Max: new(m.Stat("max").Value), Std: new(m.Stat("std").Value * math.Sqrt((n-1)/n))}
	for i, to := range s.quantiles() {
		v := float64(h.ValueAtQuantile(aiperfQuantiles[i])) / 1e6
		*to = new(min(max(v, *s.Min), *s.Max))
	}
	return s
}

func scalar(header, unit string, v float64) *stat { return &stat{Unit: unit, header: header, Avg: &v} }

// stats are all metrics by tag.
func (a *AIPerf) stats(s *analysis.Summary) map[string]*stat {
	all := map[string]*stat{}
	for _, m := range perRecord {
		if values := a.values[m.tag]; len(values) > 0 {
			all[m.tag] = distribution(m.header, m.unit, values)
		}
	}
	if m := s.Metrics.Get("chunk_gap"); m != nil && m.N > 0 {
		all[tagChunkGap] = fromHistogram("Inter Chunk Latency", m, s.Histogram("chunk_gap"))
	}
	a.totals(all)
	a.rates(all)
	if s.SLO != nil && len(s.SLO.Tiers) > 0 {
		goodput(all, s.SLO.Tiers[0].Goodput)
	}
	return all
}

// totals are counts of requests and tokens.
func (a *AIPerf) totals(all map[string]*stat) {
	good, bad := float64(a.counts.good), float64(a.counts.bad)
	all["request_count"] = scalar("Request Count", unitRequests, good)
	if bad > 0 {
		all["error_request_count"] = scalar("Error Request Count", unitRequests, bad)
	}
	if good+bad > 0 {
		all["completed_request_count"] = scalar("Completed Requests (Success + Error)", unitRequests, good+bad)
		all["request_error_rate"] = scalar("Request Error Rate", unitPercent, 100*bad/(good+bad))
	}
	for _, t := range []struct{ of, tag, header string }{
		{tagInput, "total_isl", "Total Input Sequence Length"},
		{tagOutput, "total_osl", "Total Output Sequence Length"},
		{tagVisible, "total_output_tokens", "Total Output Tokens"},
		{tagReasons, "total_reasoning_tokens", "Total Reasoning Tokens"},
	} {
		if of := all[t.of]; of != nil {
			all[t.tag] = scalar(t.header, unitTokens, *of.Sum)
		}
	}
}

// rates are over the benchmark's duration: first sent to last content.
func (a *AIPerf) rates(all map[string]*stat) {
	seconds := (a.ends.last - a.sent.first).Seconds()
	if !a.sent.known || seconds <= 0 {
		return
	}
	all["benchmark_duration"] = scalar("Benchmark Duration", unitSec, seconds)
	all["request_throughput"] = scalar("Request Throughput", unitPerSec, float64(a.counts.good)/seconds)
	in, out := all["total_isl"], all["total_osl"]
	if in != nil {
		all["input_token_throughput"] = scalar("Input Token Throughput", unitTokenSec, *in.Avg/seconds)
	}
	if out != nil {
		all["output_token_throughput"] = scalar("Output Token Throughput", unitTokenSec, *out.Avg/seconds)
	}
	if in != nil && out != nil {
		all["total_token_throughput"] = scalar("Total Token Throughput", unitTokenSec, (*in.Avg+*out.Avg)/seconds)
	}
}

// goodput is that of the first tier: AIPerf knows one.
func goodput(all map[string]*stat, g *analysis.Goodput) {
	if g == nil {
		return
	}
	all["good_request_count"] = scalar("Good Request Count", unitRequests, float64(g.Good))
	if d := all["benchmark_duration"]; d != nil {
		all["goodput"] = scalar("Goodput", unitPerSec, float64(g.Good) / *d.Avg)
	}
	if g.Share != nil {
		all["good_request_fraction"] = scalar("GoodRequestFraction", unitRatio, *g.Share)
	}
}

type errorCount struct {
	Error recordError `json:"error_details"`
	Count int64       `json:"count"`
}

// WriteJSON writes profile_export_aiperf.json: metrics stand beside the fields of
// the run, as AIPerf has them.
func (a *AIPerf) WriteJSON(w io.Writer, s *analysis.Summary) error {
	out := map[string]any{
		"schema_version": aiperfSchema, "generator": "reprise " + s.Version,
		"run_info":      map[string]any{"random_seed": s.Seed, "run_label": s.Label},
		"was_cancelled": s.Requests.Interrupted, "is_complete": !s.Requests.Killed && s.Requests.RecordsLost == 0,
		"error_summary": a.errorList(),
	}
	if a.start != 0 && a.sent.known {
		out["start_time"], out["end_time"] = a.clock(a.sent.first), a.clock(a.ends.last)
	}
	for tag, m := range a.stats(s) {
		out[tag] = m
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

func (a *AIPerf) errorList() []errorCount {
	list := make([]errorCount, 0, len(a.errors))
	for e, n := range a.errors {
		list = append(list, errorCount{e, n})
	}
	slices.SortFunc(list, func(x, y errorCount) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Error.Type, y.Error.Type), cmp.Compare(x.Error.Message, y.Error.Message), cmp.Compare(x.Error.Code, y.Error.Code))
	})
	return list
}

func (a *AIPerf) clock(at time.Duration) string {
	return time.Unix(0, a.wall(at)).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// WriteCSV writes profile_export_aiperf.csv: two tables, metrics with quantiles and
// single numbers, with a blank line between.
func (a *AIPerf) WriteCSV(w io.Writer, s *analysis.Summary) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true // as Python's csv
	all := a.stats(s)
	tags := slices.Sorted(maps.Keys(all))
	out.Write([]string{"Metric", "avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std"})
	for _, tag := range tags {
		if m := all[tag]; m.P50 != nil {
			row := []string{m.title(), fixed(m.Avg), fixed(m.Min), fixed(m.Max), fixed(m.Sum)}
			for _, q := range m.quantiles() {
				row = append(row, fixed(*q))
			}
			out.Write(append(row, fixed(m.Std)))
		}
	}
	out.Flush()
	if _, err := io.WriteString(w, "\r\n"); err != nil {
		return err
	}
	out.Write([]string{"Metric", "Value"})
	for _, tag := range tags {
		if m := all[tag]; m.P50 == nil {
			out.Write([]string{m.title(), m.value()})
		}
	}
	out.Flush()
	return out.Error()
}

func (s *stat) title() string {
	if s.Unit == unitRequests {
		return s.header
	}
	return s.header + " (" + s.Unit + ")"
}

// value writes counts whole, and all else with two decimals.
func (s *stat) value() string {
	if s.Unit == unitRequests || s.Unit == unitTokens {
		return strconv.FormatFloat(*s.Avg, 'f', 0, 64)
	}
	return fixed(s.Avg)
}

func fixed(v *float64) string { return strconv.FormatFloat(*v, 'f', 2, 64) }
