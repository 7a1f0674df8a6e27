package analysis

import (
	"fmt"

	"reprise/analysis/stats"
	"reprise/trace"
)

// The lengths of a request, in the order they are reported.
const (
	inputTokens = iota
	outputTokens
	newInputTokens
	reasoningTokens
	cachedTokens
	lengthKinds
)

var lengthNames = [lengthKinds]string{"input_tokens", "output_tokens", "new_input_tokens", "reasoning_tokens", "cached_tokens"}

// Lengths describe one token count of requests, over the rows that know it.
// Input and output are always reported, the others where a row has them.
type Lengths struct {
	Name string `json:"name"`
	*Dist
	Tail          *Tail  `json:"tail,omitempty"`
	NotMeasurable string `json:"not_measurable,omitempty"`
}

// spikeShare is the share of rows at the maximum from which on it is taken for
// a limit that cuts the tail.
const spikeShare = 0.002

// A Tail describes the largest lengths.
type Tail struct {
	AtMax      *int64   `json:"at_max,omitempty"` // rows of the largest length; absent where quantiles are not exact
	AtMaxShare *float64 `json:"at_max_share,omitempty"`
	// Spike says that more than 0.2 % of the rows have the largest length:
	// probably a limit, so the tail index means nothing.
	Spike bool `json:"spike"`
	// Hill is the tail index of the largest 1 %, HillN of them, above HillFrom;
	// absent below 10 of them, and where Spike is.
	Hill     *float64 `json:"hill,omitempty"`
	HillN    int64    `json:"hill_n,omitempty"`
	HillFrom float64  `json:"hill_from,omitempty"`
}

// TrafficDependence says how output goes with input length.
type TrafficDependence struct {
	N             int64    `json:"n"` // rows with both
	Pearson       *float64 `json:"pearson,omitempty"`
	Spearman      *float64 `json:"spearman,omitempty"`
	KendallTauB   *float64 `json:"kendall_tau_b,omitempty"`
	NormalScores  *float64 `json:"normal_scores,omitempty"`
	CopulaRho     *float64 `json:"copula_rho,omitempty"` // 2 sin(pi Spearman / 6)
	PearsonLog    *float64 `json:"pearson_log,omitempty"`
	PearsonLogN   int64    `json:"pearson_log_n,omitempty"` // rows with both above 0
	ByInput       []Decile `json:"output_by_input_decile,omitempty"`
	TooLong       int64    `json:"too_long,omitempty"` // rows left out: a length above 4,294,967,295
	NotMeasurable string   `json:"not_measurable,omitempty"`
}

// A Decile describes the output of the rows in one tenth of the input lengths;
// equal lengths are never split, so there may be fewer.
type Decile struct {
	FromInput int64   `json:"from_input"`
	ToInput   int64   `json:"to_input"`
	N         int64   `json:"n"`
	Mean      float64 `json:"output_mean"`
	Median    float64 `json:"output_median"`
	P90       float64 `json:"output_p90"`
}

// A flowRow is what a flow takes of a row.
type flowRow struct {
	at       int64 // ns
	atKnown  bool
	gap      int64 // since the previous arrival of the same session, ns
	gapKnown bool
	lengths  [lengthKinds]known
}

type known struct {
	v     int64
	known bool
}

func (r *flowRow) readLengths(b *trace.Batch, i int) {
	for k, c := range [lengthKinds]interface{ Get(int) (int64, bool) }{&b.InputTokens, &b.OutputTokens, &b.NewInputTokens, &b.ReasoningTokens, &b.CachedTokens} {
		r.lengths[k].v, r.lengths[k].known = c.Get(i)
	}
}

// A flow collects what a Flow says.
type flow struct {
	rows     int64
	arrivals arrivals
	lengths  [lengthKinds]stats.Tally
	pairs    *stats.Pairs
	tooLong  int64
}

// newFlow makes room for rows; 0 where they are not known.
func newFlow(clock string, rows int64) *flow {
	return &flow{arrivals: arrivals{clock: clock}, pairs: stats.NewPairs(rows)}
}

func (f *flow) add(row flowRow) {
	f.rows++
	f.arrivals.add(row)
	for k := range row.lengths {
		if l := &row.lengths[k]; l.known {
			f.lengths[k].Add(l.v)
		}
	}
	if in, out := row.lengths[inputTokens], row.lengths[outputTokens]; in.known && out.known {
		if f.pairs.Add(in.v, out.v) != nil {
			f.tooLong++
		}
	}
}

func (f *flow) result() Flow {
	r := Flow{Rows: f.rows, Arrivals: f.arrivals.result(), Dependence: f.dependence()}
	for k := range f.lengths {
		t := &f.lengths[k]
		switch {
		case t.N() > 0:
			r.Lengths = append(r.Lengths, Lengths{Name: lengthNames[k], Dist: distOf(t, 1), Tail: tailOf(t)})
		case k <= outputTokens:
			r.Lengths = append(r.Lengths, Lengths{Name: lengthNames[k], NotMeasurable: notMeasurable + "no row has " + lengthNames[k]})
		}
	}
	return r
}

func tailOf(t *stats.Tally) *Tail {
	s := t.Sample(1)
	tail := &Tail{}
	if t.Exact() {
		_, n := s.At(s.Distinct() - 1)
		share := float64(n) / float64(s.N())
		tail.AtMax, tail.AtMaxShare = &n, &share
		tail.Spike = share > spikeShare && n > 2 && s.Distinct() > 1
	}
	if k := s.N() / 100; k >= 10 && !tail.Spike {
		if alpha, ok := s.Hill(k); ok {
			tail.Hill, tail.HillN = finite(alpha), k
			tail.HillFrom = s.Quantiles1(float64(s.N()-k) / float64(s.N()))[0]
		}
	}
	return tail
}

func (f *flow) dependence() TrafficDependence {
	r := TrafficDependence{N: f.pairs.N(), TooLong: f.tooLong}
	if r.N < 2 {
		r.NotMeasurable = notMeasurable + fmt.Sprintf("rows with both lengths: %d, at least 2 are needed", r.N)
		return r
	}
	for _, b := range f.pairs.Bins(10) {
		r.ByInput = append(r.ByInput, Decile{b.FromX, b.ToX, b.N, b.MeanY, b.MedianY, b.P90Y})
	}
	d, ok := f.pairs.Dependence()
	if !ok {
		r.NotMeasurable = notMeasurable + "all inputs or all outputs are equally long"
		return r
	}
	r.Pearson, r.Spearman, r.KendallTauB = finite(d.Pearson), finite(d.Spearman), finite(d.KendallTauB)
	r.NormalScores, r.CopulaRho = finite(d.NormalScores), finite(d.CopulaRho)
	r.PearsonLog, r.PearsonLogN = maybe(d.PearsonLog, d.LogOK), d.LogN
	return r
}
