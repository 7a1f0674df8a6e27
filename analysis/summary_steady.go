package analysis

import (
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/trace/results"
)

// Steady is the part of a run in which the requests in flight neither rise nor fall
// as they do at its beginning and its end, and the main numbers of the requests that
// were sent in it. It is found by the marginal standard error rule (MSER; White, An
// effective truncation heuristic for bias reduction in simulation output, 1997), from
// both ends, over the time-weighted requests in flight in equal bins.
type Steady struct {
	FromMS     *float64 `json:"from_ms"`
	ToMS       *float64 `json:"to_ms"`
	Share      *float64 `json:"share"`     // of the time from first sent to last end
	Requests   int64    `json:"requests"`  // successful, and sent in it
	InFlight   *float64 `json:"in_flight"` // mean over it, of all requests
	PerS       *float64 `json:"requests_per_s"`
	TTFTP50MS  *float64 `json:"ttft_p50_ms"`
	TTFTP95MS  *float64 `json:"ttft_p95_ms"`
	TPOTP50MS  *float64 `json:"tpot_p50_ms"`
	TPOTP95MS  *float64 `json:"tpot_p95_ms"`
	E2EP50MS   *float64 `json:"e2e_p50_ms"`
	E2EP95MS   *float64 `json:"e2e_p95_ms"`
	NotFound   string   `json:"not_found"` // why there is none; "" if there is
	successful int64
}

// leastSteady is how many successful requests a window is looked for with.
const leastSteady = 50

// A flown is what the search for a steady window keeps of a request: ns from the
// start of the run, and times in ns, below 0 where they are unknown.
type flown struct {
	sent, end       int64
	ttft, tpot, e2e int64
	successful      bool
}

func newFlown(r *results.Result) flown {
	return flown{sent: int64(r.Sent.Value), end: int64(r.End.Value), ttft: -1, tpot: -1, e2e: -1, successful: successful(r)}
}

// take keeps a time of the request by its name.
func (m *flown) take(name string, ns int64) {
	switch name {
	case "ttft":
		m.ttft = ns
	case "tpot":
		m.tpot = ns
	case "e2e":
		m.e2e = ns
	}
}

// steadyOf looks for the window.
func steadyOf(all []flown) *Steady {
	s := &Steady{}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range all {
		first, last = min(first, all[i].sent), max(last, all[i].end)
		if all[i].successful {
			s.successful++
		}
	}
	if s.successful < leastSteady || last <= first {
		s.NotFound = fmt.Sprintf("fewer than %d successful requests", leastSteady)
		return s
	}
	bins := min(200, max(20, len(all)/5))
	width := float64(last-first) / float64(bins)
	flying := inFlightBins(all, first, width, bins)
	from, to := truncation(flying)
	begin, end := first+int64(float64(from)*width), first+int64(float64(bins-to)*width)
	sum := 0.0
	for _, n := range flying[from : bins-to] {
		sum += n
	}
	s.FromMS, s.ToMS = milliseconds(time.Duration(begin)), milliseconds(time.Duration(end))
	s.Share, s.InFlight = new(float64(bins-to-from)/float64(bins)), new(sum/float64(bins-to-from))
	s.numbers(all, begin, end)
	return s
}

// inFlightBins is the mean number of requests in flight in each bin.
func inFlightBins(all []flown, first int64, width float64, bins int) []float64 {
	out := make([]float64, bins)
	for i := range all {
		a, b := float64(all[i].sent-first)/width, float64(all[i].end-first)/width
		for k := int(a); k < bins && float64(k) < b; k++ {
			out[k] += min(b, float64(k+1)) - max(a, float64(k))
		}
	}
	return out
}

// truncation returns how many bins the rule cuts from the beginning and the end; up
// to a half of them in all.
func truncation(x []float64) (from, to int) {
	back := slices.Clone(x)
	slices.Reverse(back)
	to = mser(back, len(x)/4)
	return mser(x[:len(x)-to], len(x)/4), to
}

// mser is the number of first values without which the squared standard error of the
// mean of the rest is least.
func mser(x []float64, most int) int {
	best, at := math.Inf(1), 0
	for d := range min(most, len(x)-2) + 1 {
		rest := x[d:]
		n, mean, sum := float64(len(rest)), 0.0, 0.0
		for _, v := range rest {
			mean += v / n
		}
		for _, v := range rest {
			sum += (v - mean) * (v - mean)
		}
		if se := sum / (n * n); se < best {
			best, at = se, d
		}
	}
	return at
}

// numbers are those of the successful requests that were sent in the window; the rate
// is of those that ended in it.
func (s *Steady) numbers(all []flown, from, to int64) {
	var ttft, tpot, e2e []int64
	ended := int64(0)
	for i := range all {
		m := &all[i]
		if !m.successful {
			continue
		}
		if m.end >= from && m.end < to {
			ended++
		}
		if m.sent < from || m.sent >= to {
			continue
		}
		s.Requests++
		for _, v := range []struct {
			to *[]int64
			of int64
		}{{&ttft, m.ttft}, {&tpot, m.tpot}, {&e2e, m.e2e}} {
			if v.of >= 0 {
				*v.to = append(*v.to, v.of)
			}
		}
	}
	s.PerS = rate(ended, time.Duration(to-from).Seconds())
	for _, q := range []struct {
		of       []int64
		p50, p95 **float64
	}{{ttft, &s.TTFTP50MS, &s.TTFTP95MS}, {tpot, &s.TPOTP50MS, &s.TPOTP95MS}, {e2e, &s.E2EP50MS, &s.E2EP95MS}} {
		if n := len(q.of); n > 0 {
			slices.Sort(q.of)
			*q.p50, *q.p95 = milliseconds(time.Duration(q.of[rankOf(n, 0.5)])), milliseconds(time.Duration(q.of[rankOf(n, 0.95)]))
		}
	}
}

// rankOf is the place of a quantile in n sorted values, as in the other tables: the
// smallest value that at least that share is not above.
func rankOf(n int, share float64) int {
	return max(0, min(n-1, int(math.Ceil(share*float64(n)-1e-9))-1))
}

// steady writes the window, with the numbers of the whole run beside it.
func (s *Summary) steady(p *printer) {
	w := s.Steady
	if w == nil || w.FromMS == nil {
		return
	}
	whole := func(metric, stat string) string {
		m := s.Metrics.Get(metric)
		return m.cell(m.Stat(stat))
	}
	pair := func(name, metric string, p50, p95 *float64) string {
		if p50 == nil {
			return ""
		}
		return fmt.Sprintf("; %s p50 %s ms (whole run %s), p95 %s (%s)", name, decimals(*p50), whole(metric, "p50"), decimals(*p95), whole(metric, "p95"))
	}
	p.pair("window", fmt.Sprintf("steady from %s to %s (%s of the run): %s requests in flight on average, %s requests/s, %s requests sent in it%s%s%s",
		spanText(w.FromMS), spanText(w.ToMS), percent(*w.Share), decimals(*w.InFlight), rateText(w.PerS), Grouped(w.Requests),
		pair("TTFT", "ttft", w.TTFTP50MS, w.TTFTP95MS), pair("TPOT", "tpot", w.TPOTP50MS, w.TPOTP95MS), pair("E2E", "e2e", w.E2EP50MS, w.E2EP95MS)))
}
