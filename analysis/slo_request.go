package analysis

import (
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// A perRequest is a number that each request has one of, or none.
type perRequest struct {
	name, unit string
	of         func(*results.Result) (float64, bool) // ns, or tokens
}

// perRequestOf finds one by its name.
func perRequestOf(name string) (perRequest, bool) {
	for i := range timings {
		if t := &timings[i]; t.name == name {
			return perRequest{name, t.unit, func(r *results.Result) (float64, bool) {
				v, ok := t.of(r)
				return float64(v), ok
			}}, true
		}
	}
	count := func(of func(*results.Result) trace.Optional[int64]) func(*results.Result) (float64, bool) {
		return func(r *results.Result) (float64, bool) {
			v, ok := of(r).Get()
			return float64(v), ok
		}
	}
	switch name {
	case defInput.name:
		return perRequest{name, unitTokens, count(func(r *results.Result) trace.Optional[int64] { return r.CountedInputTokens })}, true
	case defOutput.name:
		return perRequest{name, unitTokens, count(func(r *results.Result) trace.Optional[int64] { return r.OutputTokens })}, true
	}
	return perRequest{}, false
}

func perRequestNames() []string {
	var names []string
	for i := range timings {
		names = append(names, timings[i].name)
	}
	return append(names, defInput.name, defOutput.name)
}

// definitionOf finds a metric of a run by its name.
func definitionOf(name string) definition {
	for i := range timings {
		if timings[i].name == name {
			return timings[i].definition
		}
	}
	for _, d := range []definition{defLateness, defHold, defConnect, defITL, defChunkGap, defPerChunk, defInput, defOutput} {
		if d.name == name {
			return d
		}
	}
	return definition{}
}

// limit is the value of a condition in the unit that per-request numbers have:
// whole ns, or as it is.
func (c *Condition) limit() float64 {
	if c.Time {
		return float64(time.Duration(c.Value*1e9 + 0.5))
	}
	return c.Value
}

// censored says whether a request has no end of its own: it failed, timed out,
// was cut at the end of the run or cancelled. Its latencies are at least what
// they were when it ended, so it counts as worse than any that succeeded. What
// was never sent says nothing about the server, and is not.
func censored(r *results.Result) bool {
	return !successful(r) && r.Outcome != results.OutcomeUnsent
}

// erroneous says whether a request counts in the error rate. What was cut or
// cancelled on purpose has not failed.
func erroneous(r *results.Result) bool {
	return censored(r) && r.Outcome != results.OutcomeCut && r.Outcome != results.OutcomeCancelled
}

// atLimit says whether the answer ended at its token limit, in the words of any
// of the protocols.
func atLimit(r *results.Result) bool {
	switch r.FinishReason.Or("") {
	case "length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "model_length":
		return true
	}
	return false
}

// A goodput counts the good requests of one tier.
type goodput struct {
	tier    *Tier
	terms   []TermResult
	good    int64
	limited int64 // successful, met all terms, and ended at their token limit
	tokens  int64 // output of the good ones
	unknown int64 // good, but without a count

	sessions map[string]bool // whether all of it is good
}

func newGoodput(t *Tier) *goodput {
	g := &goodput{tier: t, sessions: map[string]bool{}}
	for _, term := range t.terms {
		g.terms = append(g.terms, TermResult{Term: term.Text})
	}
	return g
}

// add takes a request that is successful or censored.
func (g *goodput) add(r *results.Result, lengthIsBad bool) {
	good := successful(r)
	for i := range g.tier.terms {
		term, count := &g.tier.terms[i], &g.terms[i]
		v, ok := term.of.of(r)
		switch {
		case !successful(r):
			count.Censored++
		case !ok:
			count.Lacks++
		case holds(term.Op, v, term.limit()):
			count.Met++
		default:
			count.Missed++
			good = false
		}
	}
	if good && atLimit(r) {
		g.limited++
		good = !lengthIsBad
	}
	if id, ok := r.Session.Get(); ok {
		before, seen := g.sessions[id]
		g.sessions[id] = good && (before || !seen)
	}
	if !good {
		return
	}
	g.good++
	if n, ok := r.OutputTokens.Get(); ok {
		g.tokens += n
	} else {
		g.unknown++
	}
}
