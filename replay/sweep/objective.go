package sweep

import (
	"math"
	"strings"

	"reprise/analysis"
)

// DefaultAttainment is the share of requests that have to be good where an
// objective has limits for each request and no gate.
const DefaultAttainment = 0.95

// RunOf takes from a run's summary what a sweep needs of it. attainment is used where
// the objective has no gate.
func RunOf(s *analysis.Summary, attainment float64) *Run {
	r := &Run{
		Verdict: s.Verdict.Result, Why: strings.Join(s.Verdict.Reasons, "; "), Met: true, Margin: -MarginLimit, Gates: []Gate{}, Requests: s.Requests.Sent,
		RequestsPerS: s.Throughput.RequestsPerS, OutputTokensPerS: s.Throughput.OutputTokensPerS, ErrorRate: s.ErrorRate,
		TTFTP50: stat(s, "ttft", "p50"), TTFTP95: stat(s, "ttft", "p95"), TPOTP50: stat(s, "tpot", "p50"), TPOTP95: stat(s, "tpot", "p95"),
		E2EP50: stat(s, "e2e", "p50"), E2EP95: stat(s, "e2e", "p95"), LatenessP99: stat(s, "lateness", "p99"),
	}
	q := &s.Requests
	r.Silent = q.Successful == 0 && q.Recorded > q.WarmUp && len(s.Verdict.Reasons) == 1
	if s.SLO == nil {
		r.Margin = 0
		return r
	}
	for _, t := range s.SLO.Tiers {
		if t.Goodput != nil {
			r.GoodPerS = t.Goodput.PerS
			if s.SLO.Gates == 0 {
				r.add(Gate{Text: "good_share>=" + analysis.NumberText(attainment), Unit: "share", Value: t.Goodput.Share, Passed: t.Goodput.Share != nil && *t.Goodput.Share >= attainment}, ">=", attainment)
			}
		}
		for _, g := range t.Gates {
			op, limit := "", 0.0
			if list, err := analysis.ParseConditions(g.Gate); err == nil {
				op, limit = list[0].Op, list[0].Value
			}
			if g.Unit == "ms" {
				limit *= 1e3
			}
			r.add(Gate{Text: g.Gate, Unit: g.Unit, Value: g.Value, Passed: g.Passed}, op, limit)
		}
	}
	return r
}

// add takes a gate; the worst one gives the margin.
func (r *Run) add(g Gate, op string, limit float64) {
	r.Gates = append(r.Gates, g)
	m := margin(g.Value, op, limit)
	if g.Passed {
		m = min(m, -smallest)
	} else {
		m, r.Met = max(m, smallest), false
	}
	r.Margin = max(r.Margin, m)
}

// smallest is how far a number counts to be from its limit at least, so that the side
// on which it is never is in doubt.
const smallest = 1e-6

// margin is the log of a number over its limit, or where it has to be large, of the
// limit over it, within ±MarginLimit.
func margin(value *float64, op string, limit float64) float64 {
	if value == nil {
		return MarginLimit
	}
	v := *value
	if op == ">" || op == ">=" {
		v, limit = limit, v
	}
	switch {
	case v <= 0:
		return -MarginLimit
	case limit <= 0:
		return MarginLimit
	}
	return min(MarginLimit, max(-MarginLimit, math.Log(v/limit)))
}

func stat(s *analysis.Summary, metric, name string) *float64 {
	m := s.Metrics.Get(metric)
	if m == nil {
		return nil
	}
	if v, ok := m.Stat(name).Get(); ok {
		return &v
	}
	return nil
}
