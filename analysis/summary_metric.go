package analysis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace"
)

// Stats are the names of the numbers of a [Metric], in the order of every table.
// std is the sample standard deviation (over n - 1), absent for one sample; the
// quantiles are nearest-rank.
var Stats = [...]string{"mean", "std", "min", "p50", "p90", "p95", "p99", "p99_9", "max"}

// quantiles are the stats that are quantiles, in thousandths.
var quantiles = [...]struct {
	stat int // index in Stats
	q    int64
	name string
}{{3, 500, "p50"}, {4, 900, "p90"}, {5, 950, "p95"}, {6, 990, "p99"}, {7, 999, "p99.9"}}

// A Metric is the distribution of one quantity over the requests, tokens or
// chunks of a run.
type Metric struct {
	Name       string
	Unit       string // ms or tokens
	Of         string // what one sample is: request, token or chunk
	Definition string // formula
	N          int64  // samples
	Requests   int64  // that gave samples
	Absent     []Count
	// QuantileError is the relative error bound of the quantiles: 0 where they
	// are samples, HistogramError where they come from a histogram.
	QuantileError float64

	stats [len(Stats)]trace.Optional[float64]
}

// Stat returns one of Stats in the metric's unit; unknown where there are no
// samples.
func (m *Metric) Stat(name string) trace.Optional[float64] {
	if i := slices.Index(Stats[:], name); i >= 0 {
		return m.stats[i]
	}
	return trace.Optional[float64]{}
}

// MarshalJSON writes an object whose keys carry the unit: mean_ms, p99_9_tokens.
func (m *Metric) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"definition":%s,"of":%q,"n":%d,"requests":%d`, quoted(m.Definition), m.Of, m.N, m.Requests)
	for i, name := range Stats {
		fmt.Fprintf(&b, `,"%s_%s":%s`, name, m.Unit, jsonNumber(m.stats[i]))
	}
	absent, err := json.Marshal(m.Absent)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, `,"quantile_error":%v,"absent":%s}`, m.QuantileError, absent)
	return b.Bytes(), nil
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

func jsonNumber(v trace.Optional[float64]) string {
	if !v.Known {
		return "null"
	}
	return plainNumber(v.Value)
}

// Metrics are all metrics of a run, in the order of every table.
type Metrics []*Metric

// Get returns the metric called name, or nil.
func (m Metrics) Get(name string) *Metric {
	for _, metric := range m {
		if metric.Name == name {
			return metric
		}
	}
	return nil
}

// MarshalJSON writes one object with a key per metric, in order.
func (m Metrics) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, metric := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := metric.MarshalJSON()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", metric.Name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// A collector takes the samples of one metric: in nanoseconds if its unit is
// ms, else as they are.
type collector struct {
	definition
	moments
	requests int64
	absent   counter
	values   []int64                 // one per request, for exact quantiles; nil if hist is used
	hist     *hdrhistogram.Histogram // for metrics with a sample per token or chunk
}

func newCollector(d definition) *collector {
	c := &collector{definition: d, absent: counter{}}
	if d.of == ofToken || d.of == ofChunk {
		c.hist = newHistogram()
	}
	return c
}

// one takes the sample of a request.
func (c *collector) one(v int64) {
	c.add(v, 1)
	c.requests++
	c.values = append(c.values, v)
}

// many takes v as the sample of n tokens or chunks; the caller counts requests.
func (c *collector) many(v, n int64) {
	c.add(v, n)
	record(c.hist, v, n)
}

// metric computes the numbers. It sorts the values.
func (c *collector) metric() *Metric {
	m := &Metric{
		Name: c.name, Unit: c.unit, Of: c.of, Definition: c.text, N: c.n, Requests: c.requests, Absent: c.absent.list(),
	}
	if c.hist != nil {
		m.QuantileError = HistogramError
	}
	if c.n == 0 {
		return m
	}
	set := func(i int, v float64) { m.stats[i] = trace.Some(c.scale(v)) }
	set(0, c.mean())
	if c.n > 1 {
		set(1, c.std())
	}
	set(2, float64(c.min))
	set(len(Stats)-1, float64(c.max))
	slices.Sort(c.values)
	var bars []hdrhistogram.Bar
	if c.hist != nil {
		bars = c.hist.Distribution()
	}
	for _, q := range quantiles {
		if c.hist == nil {
			set(q.stat, float64(sortedQuantile(c.values, q.q)))
			continue
		}
		v := histogramQuantile(bars, q.q, c.n)
		set(q.stat, float64(min(max(v, c.min), c.max)))
	}
	return m
}

// scale turns a sample into the metric's unit, to six decimals: 1 ns of a time.
func (c *collector) scale(v float64) float64 {
	if c.unit == unitMS {
		v /= 1e6
	}
	return math.Round(v*1e6) / 1e6
}

// histogram returns the samples as a histogram; what is below 0 counts as 0.
func (c *collector) histogram() *hdrhistogram.Histogram {
	if c.hist != nil {
		return c.hist
	}
	h := newHistogram()
	for _, v := range c.values {
		record(h, v, 1)
	}
	return h
}
