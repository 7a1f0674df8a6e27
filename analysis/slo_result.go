package analysis

import (
	"math"
	"slices"
)

// CodeGate is the exit code of a command whose gate failed.
const CodeGate = 4

// An SLOResult says what became of an SLO.
type SLOResult struct {
	Text         string       `json:"slo"`
	Over         string       `json:"over"` // all or ok: what the quantiles of gates are taken over
	LengthIsGood bool         `json:"length_is_good"`
	Requests     int64        `json:"requests"` // successful and censored; the warm-up and what was never sent are out
	Censored     int64        `json:"censored"` // failed, timed out, cut or cancelled
	Gates        int64        `json:"gates"`
	Failed       int64        `json:"failed_gates"`
	Tiers        []TierResult `json:"tiers"`
}

// A TierResult is what became of one tier.
type TierResult struct {
	Name    string       `json:"name"`
	Gates   []GateResult `json:"gates"`
	Goodput *Goodput     `json:"goodput"` // null without a limit for each request
}

// A GateResult is a gate with the number it was held against. A null is a
// number that the run does not have, or that is not reached: the rank of the
// quantile falls among the censored requests.
type GateResult struct {
	Gate       string   `json:"gate"`
	Unit       string   `json:"unit"`
	Value      *float64 `json:"value"` // that decides
	Over       string   `json:"over"`  // all or ok; run for a number of the whole run
	All        *float64 `json:"all"`   // quantile with censored requests as worst values; null where that is not defined
	OK         *float64 `json:"ok"`    // of the samples, without them
	N          int64    `json:"n"`     // samples
	Censored   int64    `json:"censored"`
	NotReached bool     `json:"not_reached"` // of All
	Passed     bool     `json:"passed"`
}

// A TermResult counts requests by what became of one limit.
type TermResult struct {
	Term     string `json:"term"`
	Met      int64  `json:"met"`
	Missed   int64  `json:"missed"`
	Lacks    int64  `json:"lacks"`    // successful without such a number, as TPOT of one token: counts as met
	Censored int64  `json:"censored"` // not successful: never good
}

// Goodput counts good requests: successful, and within every limit that they
// have a number for. Rates are over the window of the throughput, first sent to
// last end.
type Goodput struct {
	Terms     []TermResult `json:"terms"`
	Good      int64        `json:"good_requests"`
	Share     *float64     `json:"good_share"` // of all requests, censored ones included
	AtLimit   int64        `json:"at_limit_requests"`
	PerS      *float64     `json:"good_requests_per_s"`
	Arriving  *float64     `json:"good_due_requests_per_s"` // good requests per second of the arrival window
	TokensPer *float64     `json:"good_output_tokens_per_s"`
	Unknown   int64        `json:"good_output_uncounted"` // good requests without a count: not in the rate

	Sessions     int64    `json:"sessions"`
	GoodSessions int64    `json:"good_sessions"` // all their requests are good
	SessionShare *float64 `json:"good_session_share"`
	SessionsPerS *float64 `json:"good_sessions_per_s"`
}

// sloResult holds the run against the SLO; the collectors are sorted.
func (c *collection) sloResult(s *Summary, all map[string]*collector) *SLOResult {
	if c.slo == nil {
		return nil
	}
	r := &SLOResult{
		Text: c.slo.Text, Over: c.slo.Over, LengthIsGood: !c.slo.LengthIsBad,
		Requests: c.requests.Successful + c.requests.Censored, Censored: c.requests.Censored,
	}
	if r.Over == "" {
		r.Over = DefaultOver
	}
	for i := range c.slo.Tiers {
		t := &c.slo.Tiers[i]
		out := TierResult{Name: t.Name, Gates: []GateResult{}}
		if len(t.terms) > 0 {
			out.Goodput = c.goodputs[i].result(s, r.Requests)
		}
		for k := range t.gates {
			g := t.gates[k].result(s, out.Goodput, all, r)
			out.Gates = append(out.Gates, g)
			r.Gates++
			if !g.Passed {
				r.Failed++
			}
		}
		r.Tiers = append(r.Tiers, out)
	}
	return r
}

func (g *goodput) result(s *Summary, requests int64) *Goodput {
	out := &Goodput{Terms: slices.Clone(g.terms), Good: g.good, Share: share(g.good, requests), AtLimit: g.limited, Unknown: g.unknown, Sessions: int64(len(g.sessions))}
	for _, good := range g.sessions {
		if good {
			out.GoodSessions++
		}
	}
	out.SessionShare = share(out.GoodSessions, out.Sessions)
	if w := s.Throughput.WindowMS; w != nil {
		out.PerS, out.TokensPer = rate(g.good, *w/1e3), rate(g.tokens, *w/1e3)
		if out.Sessions > 0 {
			out.SessionsPerS = rate(out.GoodSessions, *w/1e3)
		}
	}
	if w := s.Throughput.ArrivalWindowMS; w != nil {
		out.Arriving = rate(g.good, *w/1e3)
	}
	return out
}

// result of a gate. What the run does not have fails: nobody knows that it
// holds.
func (g *sloGate) result(s *Summary, p *Goodput, all map[string]*collector, r *SLOResult) GateResult {
	out := GateResult{Gate: g.Text, Over: "run"}
	if g.metric == "" {
		out.Value, out.Unit, out.N = g.scalar(s, p, r)
		out.Passed = out.Value != nil && g.Holds(*out.Value)
		return out
	}
	c := all[g.metric]
	out.Unit, out.N, out.Over = c.unit, c.n, OverOK
	out.OK, _ = c.number(g, 0)
	out.Value = out.OK
	if c.censors() && g.stat != "mean" {
		out.Censored = r.Censored
		out.All, out.NotReached = c.number(g, r.Censored)
		if out.Over = r.Over; out.Over == OverAll {
			out.Value = out.All
		}
	}
	out.Passed = out.Value != nil && holds(g.Op, math.Round(*out.Value*c.perUnit()), g.limit())
	return out
}

// scalar returns a number of the whole run, its unit, and what it counts.
func (g *sloGate) scalar(s *Summary, p *Goodput, r *SLOResult) (*float64, string, int64) {
	switch g.Name {
	case gateErrorRate:
		return s.ErrorRate, "share", r.Requests
	case gateGoodShare:
		return p.Share, "share", r.Requests
	case gateGoodput:
		return p.PerS, "requests/s", p.Good
	case gateRequestsPer:
		return s.Throughput.RequestsPerS, "requests/s", s.Requests.Successful
	case gateInputPer:
		return s.Throughput.InputTokensPerS, "tokens/s", s.Requests.Successful - s.Throughput.InputUncounted
	}
	return s.Throughput.OutputTokensPerS, "tokens/s", s.Requests.Successful - s.Throughput.OutputUncounted
}

// censors says whether a metric has a worst value for a request that was not
// successful: a time, one per request, of successful requests. Nobody knows how
// many tokens a failed request would have had.
func (c *collector) censors() bool {
	for i := range timings {
		if timings[i].name == c.name {
			return true
		}
	}
	return false
}

// perUnit turns the metric's unit into that of a condition's limit: ns, tokens.
func (c *collector) perUnit() float64 {
	if c.unit == unitMS {
		return 1e6
	}
	return 1
}

// number returns the number of a gate with so many worst values beside the
// samples; nil and true if its rank falls among them.
func (c *collector) number(g *sloGate, worst int64) (v *float64, notReached bool) {
	if g.stat == "mean" {
		if c.n == 0 {
			return nil, false
		}
		mean := c.scale(c.mean())
		return &mean, false
	}
	if c.n+worst == 0 {
		return nil, false
	}
	return c.ranked(max(1, ceilShare(g.millionth, c.n+worst)))
}

// ceilShare returns ceil(n × millionth / 1,000,000).
func ceilShare(millionth, n int64) int64 {
	whole, rest := n/1e6, n%1e6
	return whole*millionth + (rest*millionth+1e6-1)/1e6
}

// ranked returns the sample of a rank from 1, in the metric's unit; nil and true
// if there are fewer samples. The values must be sorted.
func (c *collector) ranked(rank int64) (*float64, bool) {
	if rank > c.n {
		return nil, true
	}
	var v int64
	switch {
	case c.hist == nil:
		v = c.values[rank-1]
	default:
		v = histogramRank(c.hist.Distribution(), rank)
		v = min(max(v, c.min), c.max)
	}
	scaled := c.scale(float64(v))
	return &scaled, false
}

// Failing holds the quantiles of all requests of a run, those that were not
// successful as worst values, beside the tables of the successful ones.
type Failing struct {
	Requests int64         `json:"requests"` // successful and censored
	Censored int64         `json:"censored"` // failed, timed out, cut or cancelled
	Share    *float64      `json:"censored_share"`
	Metrics  []WithFailing `json:"metrics"` // times of one per request; none without censored requests
}

// A WithFailing is one metric; a null is not reached.
type WithFailing struct {
	Name string   `json:"name"`
	N    int64    `json:"n"` // samples and censored requests
	P50  *float64 `json:"p50_ms"`
	P90  *float64 `json:"p90_ms"`
	P95  *float64 `json:"p95_ms"`
	P99  *float64 `json:"p99_ms"`
	P999 *float64 `json:"p99_9_ms"`
}

// failing is computed from sorted collectors.
func (c *collection) failing() Failing {
	k := c.requests.Censored
	f := Failing{Requests: c.requests.Successful + k, Censored: k, Metrics: []WithFailing{}}
	f.Share = share(k, f.Requests)
	for _, m := range c.timings {
		if k == 0 || m.n == 0 {
			continue
		}
		at := func(q int64) *float64 {
			v, _ := m.ranked(quantileRank(q, m.n+k))
			return v
		}
		f.Metrics = append(f.Metrics, WithFailing{m.name, m.n + k, at(500), at(900), at(950), at(990), at(999)})
	}
	return f
}

// errorRate is the share of the requests that ended which failed.
func (c *collection) errorRate() *float64 {
	v := share(c.erroneous, c.requests.Successful+c.requests.Censored)
	if v != nil {
		*v = math.Round(*v*1e9) / 1e9
	}
	return v
}
