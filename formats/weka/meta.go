package weka

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/trace"
)

// meta says what was found.
func (s *state) meta() trace.Meta {
	m := trace.Meta{Clock: trace.ClockSession, Format: "weka", Dialect: s.dialect(), TickNS: s.tick.NS()}
	guess := func(what, value, flag, evidence string, args ...any) {
		m.Guesses = append(m.Guesses, trace.Guess{What: what, Value: value, Evidence: fmt.Sprintf(evidence, args...), Flag: flag})
	}
	s.guessNested(&m)
	if s.sizes > 0 {
		size, why := s.im.BlockTokens, "given"
		if size == 0 {
			size, why = DefaultBlockTokens, "the size in all published files"
		}
		guess("block size", fmt.Sprint(size), "--block-tokens", "%s; %d sessions have no block_size", why, s.sizes)
	}
	if n := s.scopes["absent"]; n > 0 {
		guess("scope of hash_ids", "local", "", "%s without it; ids of the generation without the field begin at 1 in each file", trace.Plural(n, "session"))
	}
	if s.pairs > 0 {
		guess("s and n rows of one call", "merged", "--keep-pairs", "%s with equal model, in and hash_ids", trace.Plural(s.pairs, "neighbour"))
	}
	if s.clamped.rows > 0 {
		guess("times before their session's start", "clamped to it", "", "%d rows of sub-agents, up to %v before; the recorded time is in %s", s.clamped.rows, s.clamped.earliest.Round(time.Millisecond), attrEarly)
	}
	if s.gaps.n > 0 {
		guess("idle gaps", fmt.Sprintf("cut to %v", s.im.GapCap), "--gap-cap", "given; %d gaps, %v in all", s.gaps.n, s.gaps.sum)
		s.note("idle gaps cut", s.gaps.n)
		s.note("idle seconds cut in all", int64(s.gaps.sum.Round(time.Second)/time.Second))
	}
	s.note("block ids that stand for two sessions' blocks", s.spaces.collisions())
	m.Counts = s.counts
	return m
}

func (s *state) dialect() string {
	var parts []string
	for _, scope := range slices.Sorted(maps.Keys(s.scopes)) {
		parts = append(parts, fmt.Sprintf("%s scope", scope))
	}
	add := func(has bool, name string) {
		if has {
			parts = append(parts, name)
		}
	}
	add(s.pairs > 0, "s/n pairs")
	add(s.e2e == 0, "no latencies")
	add(s.think == 0, "no think times")
	add(s.parquet, "Parquet rows")
	return strings.Join(parts, ", ")
}
