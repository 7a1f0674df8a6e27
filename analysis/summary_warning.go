package analysis

import (
	"errors"
	"fmt"
	"strings"
)

// Shares above which a summary warns.
const (
	ShortShare   = 0.01 // of responses shorter than planned
	SharedShare  = 0.5  // of chunks read together with an earlier event
	FailureShare = 0.5  // of requests that were not successful
)

func (s *Summary) warnings() Warnings {
	w := Warnings{}
	warn := func(format string, args ...any) { w = append(w, fmt.Errorf(format, args...)) }
	for _, text := range s.run.Warnings {
		w = append(w, errors.New(text))
	}
	q := &s.Requests
	measured := q.Recorded - q.WarmUp
	if failed := measured - q.Successful; q.Successful > 0 && float64(failed) > FailureShare*float64(measured) {
		warn("the latency table rests on %s of %s requests: the others were not successful", Grouped(q.Successful), Grouped(measured))
	}
	s.tokenWarnings(warn)
	if q.Overlaps > 0 {
		warn("%s requests were sent while an earlier one of their session was in flight: no user would have", Grouped(q.Overlaps))
	}
	s.quantileWarnings(warn)
	return w
}

// quantileWarnings names the metrics whose upper quantiles rest on one sample,
// each at the lowest such quantile.
func (s *Summary) quantileWarnings(warn func(string, ...any)) {
	for i := 1; i < len(quantiles); i++ {
		q := quantiles[i].q
		var thin []string
		for _, m := range s.Metrics {
			if restsOnOne(q, m.N) && (i == 1 || !restsOnOne(quantiles[i-1].q, m.N)) {
				thin = append(thin, fmt.Sprintf("%s (%s)", m.Name, Grouped(m.N)))
			}
		}
		if thin == nil {
			continue
		}
		above, rest := " and above are", "rest"
		if i == len(quantiles)-1 {
			above, rest = " is", "rests"
		}
		warn("%s%s the largest sample where there are fewer than %d, and %s on that one: %s", quantiles[i].name, above, 1000/(1000-q), rest, strings.Join(thin, ", "))
	}
}

func (s *Summary) tokenWarnings(warn func(string, ...any)) {
	t := &s.Tokens
	if out := &t.Output; out.ShortShare != nil && *out.ShortShare > ShortShare {
		warn("%s of %s responses (%s) were shorter than planned; %s of %s tokens came: with --output-length exact a server is asked for min_tokens and ignore_eos",
			Grouped(out.Short), Grouped(out.Requests), percent(*out.ShortShare), Grouped(out.Counted), Grouped(out.Planned))
	}
	for _, absent := range s.Metrics.Get("itl").Absent {
		if absent.Name == whyUnknown {
			warn("the tokens per chunk of %s of %s successful responses are not known, so they have chunk gaps but no ITL: a chunk is not taken for a token", Grouped(absent.N), Grouped(s.Requests.Successful))
		}
	}
	if t.SharedShare != nil && *t.SharedShare > SharedShare {
		warn("%s of the chunks were read together with an earlier one: something between server and client holds events back, so TTFT is too long and gaps are too short", percent(*t.SharedShare))
	}
	if d := &t.LedgerDifference; d.NotZero > 0 {
		warn("the chunks of %s of %s responses do not add up to the final usage, by up to %+d tokens", Grouped(d.NotZero), Grouped(d.Requests), *d.Largest)
	}
	if in := &t.Input; in.Exact < in.Requests {
		warn("the server counted other input tokens than planned for %s of %s requests, by up to %+d", Grouped(in.Requests-in.Exact), Grouped(in.Requests), *in.Largest)
	}
}
