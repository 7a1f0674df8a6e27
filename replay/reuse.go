package replay

import (
	"reprise/analysis/prefix"
	"reprise/trace"
)

// maxReuseBlocks bounds the distinct blocks that planned reuse keeps in mind;
// past it the reuse is unknown, rather than the plan large.
const maxReuseBlocks = 8 << 20

// plannedReuse adds up what a prefix cache without limit would find of the
// prompts that a run makes: the leading blocks that earlier prompts to the same
// model have brought, and without block ids what a conversation's prompts have
// in common, since they grow from one text. Prompts with literal content are
// not counted: what they share is not planned.
type plannedReuse struct {
	c       *Config
	cache   prefix.Infinite
	longest map[uint64]int64 // tokens of the longest prompt so far, by its text
	tokens  int64
	over    bool
}

// row adds a prompt.
func (p *plannedReuse) row(row *trace.Request) {
	if p.over || row.Body.Known || row.Messages.Known || row.Prompt.Known || !row.InputTokens.Known {
		return
	}
	if len(row.Blocks) == 0 {
		p.conversation(row)
		return
	}
	model, ok := p.c.model(row.Model.Or(""))
	if !ok {
		model = row.Model.Or("")
	}
	if p.c.Salt == SaltSession {
		model += "\x00" + row.Session.Or("") // what goes before the blocks differs
	}
	hits := p.cache.Observe(model, row.Blocks, row.BlockTokens.Or(0), row.InputTokens.Value)
	p.tokens += hits.HitTokens
	p.over = p.cache.Distinct() > maxReuseBlocks
}

func (p *plannedReuse) conversation(row *trace.Request) {
	if !row.Session.Known {
		return
	}
	if p.longest == nil {
		p.longest = map[uint64]int64{}
	}
	text, n := fillOf(row), row.InputTokens.Value
	p.tokens += min(n, p.longest[text])
	p.longest[text] = max(n, p.longest[text])
}

// planned returns the sum; nil if it is not known.
func (p *plannedReuse) planned(s *Survey) *int64 {
	if p.over || s.Planned.InputTokens == nil || s.Literal == s.Planned.Requests {
		return nil
	}
	return &p.tokens
}
