package synth

import (
	"context"
	"fmt"
	"math"
	"slices"

	"reprise/analysis/prefix"
	"reprise/synth/model"
	"reprise/trace"
)

// hitRateSteps halve the range in which the share of sessions is looked for.
const hitRateSteps = 10

// solveHitRate finds the share of requests or sessions to change so that a prefix cache
// without limit serves what is asked for: requests whose blocks become their own
// lower it, sessions of copies that keep the ids of their source raise it.
func (p *plan) solveHitRate(ctx context.Context, open Open) error {
	target, ok := p.s.HitRate.Get()
	if !ok {
		return nil
	}
	if p.v.maxBlock == 0 && len(p.v.roots.count) == 0 {
		return trace.WithFix(fmt.Errorf("--target-hit-rate: no row has block ids"), "give a trace whose source recorded them, such as mooncake")
	}
	rate := func(private, shared float64) (float64, error) {
		p.private, p.shared = private, shared
		return p.hitRate(ctx, open)
	}
	plain, err := rate(0, 0)
	if err != nil {
		return err
	}
	least, err := rate(1, 0)
	if err != nil {
		return err
	}
	most := plain
	if p.most > 1 || p.passes > 1 {
		if most, err = rate(0, 1); err != nil {
			return err
		}
	}
	of := func(x float64) (float64, error) { return rate(0, x) }
	if target < plain {
		of = func(x float64) (float64, error) { return rate(1-x, 0) }
	}
	low, high := 0.0, 1.0
	for range hitRateSteps {
		mid := (low + high) / 2
		h, err := of(mid)
		if err != nil {
			return err
		}
		if h < target {
			low = mid
		} else {
			high = mid
		}
	}
	reached := math.Inf(1)
	for _, x := range []float64{low, high, 0, 1} {
		h, err := of(x)
		if err != nil {
			return err
		}
		if math.Abs(h-target) < math.Abs(reached-target) {
			reached, low = h, x
		}
	}
	if _, err := of(low); err != nil {
		return err
	}
	p.design.HitRate = &model.HitRate{Target: target, Reached: reached, Least: min(least, plain), Most: max(most, plain), Private: p.private, Shared: p.shared}
	return nil
}

// hitRate is the share of prompt tokens that a cache without limit serves of
// the rows as the plan would make them, copies of a row one after the other.
func (p *plan) hitRate(ctx context.Context, open Open) (float64, error) {
	var cache prefix.Infinite
	var hits, tokens int64
	sel := newSelector(p.s)
	err := sel.each(ctx, open, func(b *trace.Batch, rows []picked) error {
		for i := range rows {
			r := &rows[i]
			row := int(r.row)
			input, known := b.InputTokens.Get(row)
			if _, dropped := p.v.dropped[b.ID.Values[row]]; dropped || !known {
				continue
			}
			ids, _ := b.Blocks(row)
			name, _ := b.Model.Get(row)
			size, _ := b.BlockTokens.Get(row)
			factor := p.factor(b, row)
			for play := range p.passes * p.most {
				if !p.keeps(factor, play%p.most, b, r) {
					continue
				}
				renamed := slices.Clone(ids)
				p.renameIDs(renamed, b.ID.Values[row], r, link{play: play, factor: factor})
				hits += cache.Observe(name, renamed, size, input).HitTokens
				tokens += input
			}
		}
		return nil
	})
	if err != nil || tokens == 0 {
		return 0, err
	}
	return float64(hits) / float64(tokens), nil
}
