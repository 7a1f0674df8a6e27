package synth

import (
	"maps"
	"slices"

	"reprise/analysis/prefix"
	"reprise/analysis/stats"
	"reprise/synth/model"
)

// maxPathTurns is how many turns the sessions hold that a stream of a model has
// whole, and maxPath how many one of them may have.
const (
	maxPathTurns = 60_000
	maxPath      = maxPathTurns / 4
)

// fitPaths keep whole sessions, drawn by a hash of each: of more than there is
// room for, half as many, and again.
type fitPaths struct {
	seed, ordinal uint64
	limit         uint64 // hashes up to it are kept
	turns         int
	paths         map[int64]model.Path // by session
	closed        bool                 // a session is too long to be kept
}

func (p *fitPaths) begin(seed, ordinal uint64) {
	*p = fitPaths{seed: seed, ordinal: ordinal, limit: ^uint64(0), paths: map[int64]model.Path{}}
}

func (p *fitPaths) kept(session int64) bool {
	return stats.Hash(p.seed, fitPath, p.ordinal, uint64(session)) <= p.limit
}

// add takes the next turn of a session, of which c is what came before.
func (p *fitPaths) add(session int64, r fitRow, hits prefix.Hits, c *fitSession) {
	if p.closed || !p.kept(session) {
		return
	}
	step := model.Step{Input: r.input, Output: r.known(), GapNS: -1, DelayNS: r.delay, Kept: min(hits.HitBlocks, int64(c.blocks))}
	if r.at >= 0 && c.last >= 0 {
		step.GapNS = max(0, r.at-c.last)
		if step.DelayNS < 0 && c.end >= 0 && r.at >= c.end {
			step.DelayNS = r.at - c.end
		}
	}
	if c.turns == 0 {
		step.GapNS, step.DelayNS = -1, -1
	}
	path := append(p.paths[session], step)
	p.paths[session] = path
	p.turns++
	if len(path) > maxPath {
		p.closed, p.paths = true, nil
		return
	}
	for p.turns > maxPathTurns {
		p.limit /= 2
		maps.DeleteFunc(p.paths, func(session int64, path model.Path) bool {
			if p.kept(session) {
				return false
			}
			p.turns -= len(path)
			return true
		})
	}
}

// result returns the paths in order of their sessions; sampled says that they are
// a sample.
func (p *fitPaths) result() (paths []model.Path, sampled bool) {
	for _, session := range slices.Sorted(maps.Keys(p.paths)) {
		paths = append(paths, p.paths[session])
	}
	return paths, p.limit != ^uint64(0)
}
