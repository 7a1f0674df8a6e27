package analysis

import (
	"reprise/trace"
	"reprise/trace/results"
)

// Tokens holds the token accounts of the successful requests.
type Tokens struct {
	Input     Comparison `json:"input"`     // ISL as planned and as the server counted it
	Output    Comparison `json:"output"`    // OSL as planned and as it came back
	Cached    Portion    `json:"cached"`    // from the server's prefix cache, of the counted input of the requests that say so
	Reasoning Portion    `json:"reasoning"` // of the output of the requests that say so

	Unsuccessful Partial `json:"unsuccessful"` // what came back in requests that are in none of the above

	OutputSources []Count `json:"output_sources"` // requests by where their OSL came from
	LedgerSources []Count `json:"ledger_sources"` // streamed requests by the least trusted source of their chunks

	Chunks      int64    `json:"chunks"`            // with tokens
	SharedReads int64    `json:"shared_reads"`      // of these, read together with an earlier event: their gap says nothing of the server
	SharedShare *float64 `json:"shared_read_share"` // null without chunks

	LedgerDifference Difference `json:"ledger_difference"` // final usage less the ledger's sum
}

// A Comparison sets planned against counted tokens, over the requests that know
// both.
type Comparison struct {
	Requests   int64    `json:"requests"`
	Planned    int64    `json:"planned_tokens"` // sum
	Counted    int64    `json:"counted_tokens"` // sum
	Exact      int64    `json:"exact_requests"` // counted = planned
	ExactShare *float64 `json:"exact_share"`
	Short      int64    `json:"short_requests"` // counted < planned
	ShortShare *float64 `json:"short_share"`
	Long       int64    `json:"long_requests"`             // counted > planned
	Unplanned  int64    `json:"unplanned_requests"`        // counted, but no count was planned: they are in none of the above
	Beside     int64    `json:"unplanned_counted_tokens"`  // sum over Unplanned
	Largest    *int64   `json:"largest_difference_tokens"` // counted - planned, of the request where it is largest in size; the first of equals
}

func (c *Comparison) add(planned, counted trace.Optional[int64]) {
	if !planned.Known || !counted.Known {
		if counted.Known {
			c.Unplanned++
			c.Beside += counted.Value
		}
		return
	}
	c.Requests++
	c.Planned += planned.Value
	c.Counted += counted.Value
	difference := counted.Value - planned.Value
	switch {
	case difference == 0:
		c.Exact++
	case difference < 0:
		c.Short++
	default:
		c.Long++
	}
	c.Largest = larger(c.Largest, difference)
}

// larger returns the one that is larger in size, *a if they are equal.
func larger(a *int64, b int64) *int64 {
	if a != nil && max(*a, -*a) >= max(b, -b) {
		return a
	}
	return &b
}

func (c *Comparison) close() {
	c.ExactShare, c.ShortShare = share(c.Exact, c.Requests), share(c.Short, c.Requests)
}

// A Partial counts output that came back in requests that did not succeed.
type Partial struct {
	Requests int64 `json:"requests"` // with at least one token
	Tokens   int64 `json:"tokens"`   // sum, where known
}

func (p *Partial) add(r *results.Result) {
	n, known := r.OutputTokens.Get()
	if !known {
		n, known = results.LedgerTokens(r.Ledger)
	}
	if known && n > 0 {
		p.Requests++
		p.Tokens += n
	}
}

// A Portion is a part of a whole, over the requests that know both.
type Portion struct {
	Requests int64    `json:"requests"`
	Tokens   int64    `json:"tokens"`
	Of       int64    `json:"of_tokens"`
	Share    *float64 `json:"share"`
}

func (p *Portion) add(part, whole int64) {
	p.Requests++
	p.Tokens += part
	p.Of += whole
}

// A Difference counts ledgers that do not add up.
type Difference struct {
	Requests int64  `json:"requests"` // that know it
	NotZero  int64  `json:"not_zero"`
	Largest  *int64 `json:"largest_tokens"` // in size, with its sign
}

func (d *Difference) add(v int64) {
	d.Requests++
	if v != 0 {
		d.NotZero++
	}
	d.Largest = larger(d.Largest, v)
}

func (t *Tokens) close(c *collection) {
	t.Input.close()
	t.Output.close()
	t.Cached.Share, t.Reasoning.Share = share(t.Cached.Tokens, t.Cached.Of), share(t.Reasoning.Tokens, t.Reasoning.Of)
	t.SharedShare = share(t.SharedReads, t.Chunks)
	t.OutputSources, t.LedgerSources = c.outputSources.list(), c.ledgerSources.list()
}
