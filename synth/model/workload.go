package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"reprise/analysis/stats"
	"reprise/trace"
)

// Schema is the version of workload models that this package writes.
const Schema = 1

// Kind is how a model file says what it is.
const Kind = "reprise workload model"

// A Workload is what traffic looks like, as data: enough to generate more of it
// without the trace it was fitted to. Times are seconds, rates per second,
// lengths tokens. A part that was not recorded is absent.
type Workload struct {
	Kind       string     `json:"kind"`
	Schema     int        `json:"schema"`
	Provenance Provenance `json:"provenance"`
	Requests   int64      `json:"requests"` // rows that were fitted
	SpanS      *float64   `json:"span_s"`   // first to last arrival; null without a clock
	Streams    []Stream   `json:"streams"`  // superposed parts: one for all, or one per client or model
	Measures   []Measure  `json:"measures,omitempty"`
}

// A Measure is a number of the trace that a model was fitted to, for what is
// generated to be held against.
type Measure struct {
	Name  string      `json:"name"`
	Unit  string      `json:"unit,omitempty"`
	Value float64     `json:"value"`
	Band  *[2]float64 `json:"band,omitempty"` // where such traffic has it 95 % of the time
}

// Provenance says where a model came from.
type Provenance struct {
	Version string            `json:"version"` // of the program
	Trace   *trace.Input      `json:"trace,omitempty"`
	History []trace.Step      `json:"history,omitempty"` // of the trace
	Flags   map[string]string `json:"flags,omitempty"`
	Seed    uint64            `json:"seed"`
	Notes   []string          `json:"notes,omitempty"` // decisions, doubts and refusals, in words
}

// A Stream is traffic of one kind: of a client, of a model, or all of it.
type Stream struct {
	Name     string    `json:"name"`                // "all", or the client or model
	Client   string    `json:"client_id,omitempty"` // of all its rows
	Model    string    `json:"model,omitempty"`     // of all its rows
	Models   []Share   `json:"models,omitempty"`    // where rows have several
	Requests int64     `json:"requests"`
	Arrivals *Arrivals `json:"arrivals"` // of sessions where Sessions is there, else of requests; null without a clock
	Lengths  Lengths   `json:"lengths"`
	Sessions *Sessions `json:"sessions"` // null where rows stand alone
	Prefix   *Prefix   `json:"prefix"`   // null where no block ids were recorded
}

// A Share is a named part of a whole.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Arrivals are the starts of sessions or requests: a rate over time, and how
// gaps vary around it. To generate: draw gaps of mean 1 from Gaps, cumulate, and
// invert the cumulated rate.
type Arrivals struct {
	Of      string         `json:"of"`      // session or request
	N       int64          `json:"n"`       // arrivals fitted
	RateHz  float64        `json:"rate_hz"` // mean
	Profile []Rate         `json:"profile"` // piecewise-constant rate from 0 on, with pieces in order; at least one
	Gaps    *stats.LawSpec `json:"gaps"`    // of gaps in units of the mean gap at their time: mean 1; null where the shape is not identifiable, taken as exponential
	GapsWhy string         `json:"gaps_why,omitempty"`
	TickS   *float64       `json:"tick_s"`                 // effective resolution of the stamps
	Gap     *Fitted        `json:"gap_fits,omitempty"`     // of the gaps as they are, the rate not taken out
	Rest    *Fitted        `json:"residual,omitempty"`     // of the gaps in units of the mean gap at their time: the evidence for Gaps
	Turns   *Fitted        `json:"all_gap_fits,omitempty"` // of all requests, where Of is session
}

// A Rate holds from one time to another.
type Rate struct {
	FromS  float64 `json:"from_s"`
	ToS    float64 `json:"to_s"`
	RateHz float64 `json:"rate_hz"`
}

// Fitted is the evidence for a law: how each family fits the values.
type Fitted struct {
	Unit   string      `json:"unit"` // seconds, tokens, mean gaps
	N      int64       `json:"n"`
	Mean   *float64    `json:"mean"`
	CV     *float64    `json:"cv"`
	Lag1   *float64    `json:"lag1_autocorrelation,omitempty"` // of gaps: a fit takes them for independent
	Fits   []stats.Fit `json:"fits"`
	Best   string      `json:"best,omitempty"`     // family of lowest BIC among the identified ones
	Refuse string      `json:"refused,omitempty"`  // why no family is named best
	Ticks  *TickCounts `json:"per_tick,omitempty"` // what can be said of gaps that ticks are too coarse for
	Notes  []string    `json:"notes,omitempty"`    // spikes, caps, values left out

	BootstrapP   map[string]float64    `json:"bootstrap_p,omitempty"`   // by family: parametric bootstrap of KS
	Intervals    map[string][2]float64 `json:"intervals,omitempty"`     // 95 %, of "family.param", by block bootstrap
	IntervalsHow string                `json:"intervals_how,omitempty"` // what the blocks were, and how many draws
}

// TickCounts are arrivals per tick, from the first to the last.
type TickCounts struct {
	TickS   float64  `json:"tick_s"`
	N       int64    `json:"n"` // ticks
	Mean    float64  `json:"mean"`
	IDC     *float64 `json:"idc"`      // variance / mean, 1 for Poisson arrivals at a constant rate
	Log10P  *float64 `json:"log10_p"`  // of the Poisson dispersion test, upper tail
	NegBinR *float64 `json:"negbin_r"` // shape of the negative binomial fit; null where Poisson fits better
}

// Lengths are prompt and answer lengths. Pairs, drawn with replacement, are the
// default: they keep every dependence.
type Lengths struct {
	Pairs     []Pair         `json:"pairs"`             // joint empirical; all rows, or a seeded sample of them
	Sampled   bool           `json:"sampled,omitempty"` // Pairs are a sample
	Of        string         `json:"of"`                // request, or first turn of a session
	Input     *Fitted        `json:"input_fits,omitempty"`
	Output    *Fitted        `json:"output_fits,omitempty"`
	Copula    *Copula        `json:"copula,omitempty"` // parametric form, for export and what-if
	InputLaw  *stats.LawSpec `json:"input,omitempty"`  // instead of Pairs: marginals joined by Copula, or independent
	OutputLaw *stats.LawSpec `json:"output,omitempty"`
}

// A Pair is an input and an output length and how often they came together. A
// length below 0 is not known.
type Pair struct {
	Input, Output, N int64
}

// MarshalJSON writes [input, output, n].
func (p Pair) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]int64{p.Input, p.Output, p.N})
}

// UnmarshalJSON reads [input, output, n].
func (p *Pair) UnmarshalJSON(text []byte) error {
	var v []int64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if len(v) != 3 {
		return fmt.Errorf("a pair of lengths is [input, output, n], not %s", text)
	}
	*p = Pair{v[0], v[1], v[2]}
	return nil
}

// A Copula joins two marginals by the correlation of normal scores.
type Copula struct {
	Rho      float64 `json:"rho"`
	Monotone bool    `json:"monotone"` // medians of output rise or fall with input; where not, the copula hides what Bins show
	Bins     []Bin   `json:"bins,omitempty"`
}

// A Bin is what outputs are among the requests of one range of input lengths.
type Bin struct {
	InputFrom float64       `json:"input_from"`
	InputTo   float64       `json:"input_to"` // included
	N         int64         `json:"n"`
	Output    stats.LawSpec `json:"output"` // empirical
}

// Sessions are conversations of several turns.
type Sessions struct {
	How      string         `json:"how"` // explicit, or inferred from prefixes
	N        int64          `json:"n"`
	Open     int64          `json:"open"`  // alive at an end of the trace: their turns are censored
	Turns    stats.LawSpec  `json:"turns"` // requests of a session, empirical
	TurnFits *Fitted        `json:"turn_fits,omitempty"`
	Think    *stats.LawSpec `json:"think_s"`  // end of a turn to the start of the next; null where ends are not known
	ThinkOf  string         `json:"think_of"` // what Think was measured from
	Gap      *stats.LawSpec `json:"gap_s"`    // start to start; null without a clock
	ThinkFit *Fitted        `json:"think_fits,omitempty"`
	Growth   *stats.LawSpec `json:"growth_tokens"`                // input of a turn less input of the turn before; may be below 0
	Answers  bool           `json:"growth_adds_answer,omitempty"` // the output of the turn before comes on top of Growth
	Outputs  stats.LawSpec  `json:"outputs"`                      // output lengths of later turns; one below 0 is not known
	Paths    []Path         `json:"paths,omitempty"`              // whole sessions, drawn instead of the laws above and the pairs: they keep every dependence
	Sampled  bool           `json:"paths_sampled,omitempty"`      // Paths are a sample of the sessions
}

// A Path is a session as it was, turn by turn.
type Path []Step

// A Step is a turn of a session. What is below 0 is not known.
type Step struct {
	Input, Output int64 // tokens
	GapNS         int64 // since the turn before began
	DelayNS       int64 // since the turn before ended, as recorded
	Kept          int64 // blocks that the turn before and this one begin with
}

// stepNumbers is how many numbers a step is in JSON.
const stepNumbers = 5

// MarshalJSON writes input, output, gap_ns, delay_ns and kept of one turn after
// another.
func (p Path) MarshalJSON() ([]byte, error) {
	numbers := make([]int64, 0, stepNumbers*len(p))
	for _, s := range p {
		numbers = append(numbers, s.Input, s.Output, s.GapNS, s.DelayNS, s.Kept)
	}
	return json.Marshal(numbers)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Path) UnmarshalJSON(text []byte) error {
	var v []int64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if len(v) == 0 || len(v)%stepNumbers != 0 {
		return fmt.Errorf("a path has %d numbers for each turn, not %d in all", stepNumbers, len(v))
	}
	*p = make(Path, 0, len(v)/stepNumbers)
	for ; len(v) > 0; v = v[stepNumbers:] {
		*p = append(*p, Step{v[0], v[1], v[2], v[3], v[4]})
	}
	return nil
}

// Prefix is how prompts share their beginnings, in blocks.
type Prefix struct {
	BlockTokens int32          `json:"block_tokens"`
	Tail        string         `json:"tail"`           // rule for the last block
	Roots       []Root         `json:"roots"`          // beginnings that many sessions share, the most frequent first
	Kept        *stats.LawSpec `json:"kept,omitempty"` // share of the blocks of a turn that a cache serves the next one, by blocks, empirical
	HitShare    float64        `json:"hit_share"`      // tokens that a cache without limit served, for comparison
}

// A Root is a run of blocks with which a share of the sessions begins.
type Root struct {
	Blocks int32   `json:"blocks"`
	Share  float64 `json:"share"`
}

// Write writes the model as indented JSON, with arrays of numbers on one line.
func (w *Workload) Write(out io.Writer) error {
	w.Kind, w.Schema = Kind, Schema
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	if err := e.Encode(w); err != nil {
		return err
	}
	_, err := out.Write(joinNumbers(text.Bytes()))
	return err
}

// joinNumbers puts each array of nothing but numbers on one line.
func joinNumbers(text []byte) []byte {
	out := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			out = append(out, c, text[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case c == '[' && !quoted:
			if end := bytes.IndexByte(text[i:], ']'); end > 0 && !bytes.ContainsAny(text[i+1:i+end], "[{\"tfn") {
				out = append(out, '[')
				for k, number := range bytes.Fields(text[i+1 : i+end]) {
					if k > 0 {
						out = append(out, ' ')
					}
					out = append(out, number...)
				}
				out = append(out, ']')
				i += end
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// Read reads a model and checks it. Fields that this version does not know are
// refused: they would be left out in silence.
func Read(in io.Reader) (*Workload, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var head struct {
		Kind   string
		Schema int
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("not a workload model: %w", err)
	}
	switch {
	case head.Kind != Kind:
		return nil, trace.WithFix(fmt.Errorf("not a workload model: kind is %q", head.Kind), "make one with: reprise fit TRACE -o model.json")
	case head.Schema < 1 || head.Schema > Schema:
		return nil, trace.WithFix(fmt.Errorf("workload model of schema %d, this program reads 1 to %d", head.Schema, Schema), "use a newer reprise")
	}
	var w Workload
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("workload model: %w", err)
	}
	return &w, w.Check()
}
