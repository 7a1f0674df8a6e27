package analysis

import (
	"math"
	"time"
)

// Throughput is work per second over stated windows, without the warm-up. The
// rates are over the whole window, which the last response may stretch: the
// steady rate and the drain tell how much. Windows of merged runs are summed.
type Throughput struct {
	WindowMS         *float64 `json:"window_ms"`           // first sent to last end
	RequestsPerS     *float64 `json:"requests_per_s"`      // successful requests / window
	InputTokensPerS  *float64 `json:"input_tokens_per_s"`  // their counted input tokens / window
	OutputTokensPerS *float64 `json:"output_tokens_per_s"` // their output tokens / window

	InputUncounted  int64 `json:"input_uncounted_requests"`  // successful, but without a count: not in the rate
	OutputUncounted int64 `json:"output_uncounted_requests"` // likewise

	ArrivalWindowMS *float64 `json:"arrival_window_ms"`     // first to last due
	DuePerS         *float64 `json:"due_requests_per_s"`    // (due requests - 1) / arrival window
	SteadyWindowMS  *float64 `json:"steady_window_ms"`      // first to last sent
	SteadyPerS      *float64 `json:"steady_requests_per_s"` // successful requests that ended within it / steady window
	DrainMS         *float64 `json:"drain_ms"`              // last sent to last end
}

func (c *collection) throughput() Throughput {
	t := Throughput{InputUncounted: c.uncounts.input, OutputUncounted: c.uncounts.output}
	var due, within int64
	var arrivals, window, steady, drain time.Duration // summed over merged runs
	ended := false
	for _, s := range c.spans {
		if s.due.n > 0 {
			due += s.due.n - 1
			arrivals += s.due.length()
			t.ArrivalWindowMS = milliseconds(arrivals)
		}
		if !s.ended {
			continue
		}
		ended = true
		window += s.lastEnd - s.sent.first
		steady += s.sent.length()
		drain += max(0, s.lastEnd-s.sent.last)
		for _, end := range s.ends {
			if end <= s.sent.last {
				within++
			}
		}
	}
	if t.ArrivalWindowMS != nil {
		t.DuePerS = rate(due, arrivals.Seconds())
	}
	if !ended {
		return t
	}
	t.WindowMS, t.SteadyWindowMS, t.DrainMS = milliseconds(window), milliseconds(steady), milliseconds(drain)
	t.RequestsPerS = rate(c.requests.Successful, window.Seconds())
	if c.input.n > 0 {
		t.InputTokensPerS = rate(c.input.total(), window.Seconds())
	}
	if c.output.n > 0 {
		t.OutputTokensPerS = rate(c.output.total(), window.Seconds())
	}
	t.SteadyPerS = rate(within, steady.Seconds())
	return t
}

// rate returns n per second, to six decimals; nil over an empty window.
func rate(n int64, seconds float64) *float64 {
	if seconds <= 0 {
		return nil
	}
	r := math.Round(float64(n)/seconds*1e6) / 1e6
	return &r
}
