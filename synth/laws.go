package synth

import (
	"errors"
	"fmt"
	"strings"

	"reprise/analysis/stats"
	"reprise/synth/model"
	"reprise/trace"
)

// Laws describe a workload without a trace.
type Laws struct {
	Arrivals *model.Arrivals // of sessions where Turns is set
	Input    stats.Law       // prompt lengths, of first turns
	Output   stats.Law       // answer lengths
	Turns    stats.Law       // requests of a session; nil = no sessions
	Think    stats.Law       // s from the start of a turn to the next, and the delay that is kept for causal pacing; nil = 0
	NewInput stats.Law       // tokens that a later turn adds beside the answer before; nil = none

	Shared      int64   // tokens that prompts begin with in common, in whole blocks; 0 = none
	SharedShare float64 // share of the sessions that begin with them
	BlockTokens int32
	Model       string
}

// A LawField is one law of Laws by the name of its flag.
type LawField struct {
	Flag  string
	Unit  string
	Law   *stats.Law
	Parse func(string) (stats.Law, error)
	Whole bool // what is drawn is a whole number, 1 at least
}

// Fields lists the laws that are read from text.
func (l *Laws) Fields() []LawField {
	return []LawField{
		{"input-tokens", " tokens", &l.Input, ParseLengths, true},
		{"output-tokens", " tokens", &l.Output, ParseLengths, true},
		{"turns", " turns", &l.Turns, ParseLengths, true},
		{"think", " s", &l.Think, ParseTimes, false},
		{"new-input-tokens", " tokens", &l.NewInput, ParseLengths, false},
	}
}

// MeanLength returns the mean of the lengths that are drawn from law: whole
// numbers of tokens, and 1 where the law says less. It is above the law's own
// mean by the integral of 1 - Quantile(u) over the u at which that is above 0.
func MeanLength(law stats.Law) (mean float64, ok bool) {
	if mean, ok = law.Mean(); !ok {
		return 0, false
	}
	const points = 1 << 12
	below := law.CDF(1)
	for i := range points {
		mean += max(0, 1-law.Quantile((float64(i)+0.5)/points*below)) * below / points
	}
	return mean, true
}

// Workload returns the model that the laws are.
func (l *Laws) Workload() (*model.Workload, error) {
	switch {
	case l.Arrivals == nil || l.Input == nil || l.Output == nil:
		return nil, errors.New("arrivals, input and output lengths are needed")
	case l.Turns == nil && (l.Think != nil || l.NewInput != nil):
		return nil, trace.WithFix(errors.New("think times and new input are between the turns of sessions"), "give --turns too")
	case l.Shared > 0 && l.BlockTokens <= 0:
		return nil, fmt.Errorf("--block-tokens %d: must be above 0", l.BlockTokens)
	}
	spec := func(law stats.Law) *stats.LawSpec { s := stats.SpecOf(law); return &s }
	s := model.Stream{Name: "all", Model: l.Model, Arrivals: l.Arrivals, Lengths: model.Lengths{Of: "request", InputLaw: spec(l.Input), OutputLaw: spec(l.Output)}}
	if l.Turns != nil {
		s.Arrivals.Of = "session"
		s.Lengths.Of = "first turn of a session"
		grow := l.NewInput
		if grow == nil {
			grow = stats.Constant{}
		}
		s.Sessions = &model.Sessions{How: "from laws", Turns: *spec(l.Turns), ThinkOf: "given", Growth: spec(grow), Answers: true, Outputs: *spec(l.Output)}
		if l.Think != nil {
			s.Sessions.Think = spec(l.Think)
		}
	}
	if l.Shared > 0 || l.Turns != nil && l.BlockTokens > 0 {
		s.Prefix = &model.Prefix{BlockTokens: l.BlockTokens, Tail: trace.TailPartial}
		if blocks := min(l.Shared/int64(l.BlockTokens), maxPromptBlocks); blocks > 0 {
			s.Prefix.Roots = []model.Root{{Blocks: int32(blocks), Share: l.SharedShare}}
		} else if l.Shared > 0 {
			return nil, trace.WithFix(fmt.Errorf("a shared prefix of %d tokens is shorter than a block of %d", l.Shared, l.BlockTokens), "give a smaller --block-tokens")
		}
	}
	if err := s.Check(); err != nil {
		return nil, byFlag(err)
	}
	return &model.Workload{Streams: []model.Stream{s}}, nil
}

// byFlag names what is wrong by the flag that gave it.
func byFlag(err error) error {
	for _, part := range [...][2]string{
		{"arrivals: gaps: ", "--arrivals: "}, {"arrivals: ", "--arrivals: "}, {"lengths: input: ", "--input-tokens: "}, {"lengths: output: ", "--output-tokens: "},
		{"sessions: turns: ", "--turns: "}, {"sessions: think_s: ", "--think: "}, {"sessions: growth_tokens: ", "--new-input-tokens: "}, {"sessions: outputs: ", "--output-tokens: "}, {"prefix: roots: ", "--shared-prefix: "}, {"prefix: ", "--block-tokens: "},
	} {
		if rest, ok := strings.CutPrefix(err.Error(), part[0]); ok {
			return trace.WithFix(errors.New(part[1]+rest), trace.Fix(err))
		}
	}
	return err
}
