package otlp

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"reprise/analysis"
	"reprise/trace/results"
)

// quantiles of a summary point; 0 and 1 are the least and the largest.
var quantiles = []struct {
	q    float64
	stat string
}{{0, "min"}, {0.5, "p50"}, {0.9, "p90"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p99_9"}, {1, "max"}}

type point struct {
	Attributes []attribute `json:"attributes,omitempty"`
	Start      string      `json:"startTimeUnixNano"`
	Time       string      `json:"timeUnixNano"`
	Double     *float64    `json:"asDouble,omitempty"`
	Int        string      `json:"asInt,omitempty"`
	Count      string      `json:"count,omitempty"`
	Sum        *float64    `json:"sum,omitempty"`
	Quantiles  []quantile  `json:"quantileValues,omitempty"`
}

type quantile struct {
	Q float64 `json:"quantile"`
	V float64 `json:"value"`
}

type points struct {
	DataPoints  []point `json:"dataPoints"`
	Temporality int     `json:"aggregationTemporality,omitempty"`
	Monotonic   bool    `json:"isMonotonic,omitempty"`
}

type metric struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Unit        string  `json:"unit"`
	Gauge       *points `json:"gauge,omitempty"`
	Sum         *points `json:"sum,omitempty"`
	Summary     *points `json:"summary,omitempty"`
}

// cumulative is a value of the protocol.
const cumulative = 2

// SendSummary sends the numbers of a run as one point each, from its start to the end
// of the last answer: distributions as summaries, times in seconds, counts as sums.
// What has no sample is not sent. It returns how many metrics were.
func (c *Client) SendSummary(ctx context.Context, s *analysis.Summary, run *results.Run) (int, error) {
	at, err := time.Parse(time.RFC3339Nano, run.Started)
	if err != nil {
		return 0, fmt.Errorf("run.json does not say when the run started, and metrics need a time: %w", err)
	}
	end := at
	if run.Ended != nil {
		end = at.Add(time.Duration(run.Ended.DurationNS))
	}
	list := metricsOf(s, point{Start: nano(at.UnixNano()), Time: nano(end.UnixNano())})
	return len(list), c.post(ctx, "/v1/metrics", map[string]any{"resourceMetrics": []any{map[string]any{
		"resource": resourceOf(run), "scopeMetrics": []any{map[string]any{"scope": scope{"reprise", run.Version}, "metrics": list}},
	}}})
}

func metricsOf(s *analysis.Summary, at point) (list []metric) {
	for _, m := range s.Metrics {
		if m.N == 0 {
			continue
		}
		unit, scale := "{token}", 1.0
		if m.Unit == "ms" {
			unit, scale = "s", 1e-3
		}
		p := at
		p.Count = strconv.FormatInt(m.N, 10)
		p.Sum = new(m.Stat("mean").Value * float64(m.N) * scale)
		for _, q := range quantiles {
			p.Quantiles = append(p.Quantiles, quantile{q.q, m.Stat(q.stat).Value * scale})
		}
		list = append(list, metric{Name: "reprise." + m.Name, Description: m.Definition, Unit: unit, Summary: &points{DataPoints: []point{p}}})
	}
	gauge := func(name, description, unit string, v *float64) {
		if v != nil {
			p := at
			p.Double = v
			list = append(list, metric{Name: "reprise." + name, Description: description, Unit: unit, Gauge: &points{DataPoints: []point{p}}})
		}
	}
	t := &s.Throughput
	gauge("requests_per_s", "successful requests / window", "{request}/s", t.RequestsPerS)
	gauge("input_tokens_per_s", "their counted input tokens / window", "{token}/s", t.InputTokensPerS)
	gauge("output_tokens_per_s", "their output tokens / window", "{token}/s", t.OutputTokensPerS)
	gauge("error_rate", "failed / (successful + censored) requests", "1", s.ErrorRate)
	requests := metric{Name: "reprise.requests", Description: "requests that have ended, by outcome, without the warm-up", Unit: "{request}", Sum: &points{Temporality: cumulative, Monotonic: true}}
	for _, o := range s.Outcomes {
		p := at
		p.Int, p.Attributes = strconv.FormatInt(o.Requests, 10), []attribute{text("reprise.outcome", o.Outcome)}
		requests.Sum.DataPoints = append(requests.Sum.DataPoints, p)
	}
	if len(requests.Sum.DataPoints) > 0 {
		list = append(list, requests)
	}
	valid := 0.0
	if s.Verdict.Code == 0 {
		valid = 1
	}
	gauge("valid", "1 if the client was good enough to measure the server", "1", &valid)
	return list
}
