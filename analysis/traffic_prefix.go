package analysis

import (
	"reprise/analysis/prefix"
	"reprise/trace"
)

// TrafficPrefix says how prompts share blocks, by model, id and length. Hits of
// a cache without limit are leading runs of blocks that came before.
type TrafficPrefix struct {
	Rows      int64 `json:"rows"` // with block ids
	Blocks    int64 `json:"blocks"`
	Distinct  int64 `json:"distinct_blocks"`
	Once      int64 `json:"blocks_used_once"`
	Tokens    int64 `json:"tokens"` // in blocks
	HitBlocks int64 `json:"hit_blocks"`
	HitTokens int64 `json:"hit_tokens"`

	HitShareBlocks *float64 `json:"hit_share_blocks,omitempty"`
	HitShareTokens *float64 `json:"hit_share_tokens,omitempty"`
	AnyHit         *int64   `json:"rows_with_hit,omitempty"`
	FullHit        *int64   `json:"rows_all_hit,omitempty"`

	LRU       []LRUPoint      `json:"lru,omitempty"` // by capacity
	Reuses    int64           `json:"reuses"`        // uses of a block used before
	Distance  []ReuseDistance `json:"reuse_distance,omitempty"`
	ReuseTime *Dist           `json:"reuse_time_s,omitempty"` // between uses of a block; one clock only
	Sharing   []BlockSharing  `json:"sharing,omitempty"`

	// Estimate says that there were too many distinct blocks to keep: all numbers
	// but rows, blocks and tokens are estimates. Nil where they are exact.
	Estimate *BlockEstimate `json:"estimate,omitempty"`

	NotMeasurable []string `json:"not_measurable,omitempty"`
}

// An LRUPoint is what a block LRU of one capacity serves.
type LRUPoint struct {
	Capacity  int64   `json:"capacity_blocks"`
	HitBlocks int64   `json:"hit_blocks"`
	HitTokens int64   `json:"hit_tokens"`
	Blocks    float64 `json:"hit_share_blocks"`
	Tokens    float64 `json:"hit_share_tokens"`
}

// A ReuseDistance is a type 1 quantile of the number of distinct other blocks
// used since a block's last use.
type ReuseDistance struct {
	P      float64 `json:"p"`
	Blocks int64   `json:"blocks"`
}

// BlockSharing counts the blocks that a number of sessions use;
// prefix.SharedByMany means that or more.
type BlockSharing struct {
	Sessions int   `json:"sessions"`
	Blocks   int64 `json:"blocks"`
	Uses     int64 `json:"uses"`
}

// A BlockEstimate says what numbers about blocks rest on.
type BlockEstimate struct {
	Rate          float64 `json:"rate"`           // share of the blocks that was kept
	StandardError float64 `json:"standard_error"` // of hit shares by blocks, at most
}

func (a *trafficAnalysis) prefixResult() TrafficPrefix {
	r := TrafficPrefix{Rows: a.blockRows}
	no := func(text string) { r.NotMeasurable = append(r.NotMeasurable, notMeasurable+text) }
	if a.blockRows == 0 {
		if a.noTokens > 0 {
			no("prefix reuse: no row with block ids says how long a block is")
		} else {
			no("prefix reuse: no row has block ids")
		}
		return r
	}
	c := &a.reuse
	h := c.Hits()
	r.Blocks, r.Tokens, r.HitBlocks, r.HitTokens = h.Blocks, h.Tokens, h.HitBlocks, h.HitTokens
	r.Distinct, r.Once = c.Distinct()
	r.Reuses = c.Reaccesses()
	if c.Rate() < 1 {
		r.Estimate = &BlockEstimate{c.Rate(), c.StandardError()}
	}
	if h.Blocks == 0 {
		no("prefix reuse: all prompts are empty")
		return r
	}
	r.HitShareBlocks, r.HitShareTokens = shareOf(h.HitBlocks, h.Blocks), shareOf(h.HitTokens, h.Tokens)
	if _, anyHit, fullHit, ok := c.Requests(); ok {
		r.AnyHit, r.FullHit = &anyHit, &fullHit
	}
	if a.meta.Clock != trace.ClockTrace {
		no("order of uses between sessions: " + clockless(a.meta.Clock) + "; LRU and distances hold for the order of the file")
	}
	r.lru(c)
	r.reuse(c, no, a.meta.Clock)
	return r
}

func (r *TrafficPrefix) lru(c *prefix.Reuse) {
	for _, p := range c.LRU(lruCapacities(r.Distinct)...) {
		point := LRUPoint{Capacity: p.Capacity, HitBlocks: p.HitBlocks, HitTokens: p.HitTokens, Blocks: float64(p.HitBlocks) / float64(r.Blocks)}
		if r.Tokens > 0 {
			point.Tokens = float64(p.HitTokens) / float64(r.Tokens)
		}
		r.LRU = append(r.LRU, point)
	}
}

func (r *TrafficPrefix) reuse(c *prefix.Reuse, no func(string), clock string) {
	if r.Reuses == 0 {
		no("reuse time and distance: no block is used twice")
	} else {
		ps := []float64{0.1, 0.25, 0.5, 0.75, 0.9, 0.99}
		for i, d := range c.Distances(ps...) {
			r.Distance = append(r.Distance, ReuseDistance{ps[i], d})
		}
		if r.ReuseTime = distOf(c.Times(), 1e9); r.ReuseTime == nil {
			no("reuse time: " + clockless(clock))
		}
	}
	shares, ok := c.Sharing()
	if !ok {
		no("sessions per block: too many distinct blocks")
	}
	for _, s := range shares {
		r.Sharing = append(r.Sharing, BlockSharing(s))
	}
}

// lruCapacities are ten capacities a decade, rounded, up to the first that
// holds all blocks.
func lruCapacities(distinct int64) []int64 {
	var out []int64
	for scale := int64(10); ; scale *= 10 {
		for _, step := range []int64{100, 125, 160, 200, 250, 320, 400, 500, 630, 800} {
			c := step * scale / 100
			out = append(out, c)
			if c >= distinct {
				return out
			}
		}
	}
}

func shareOf(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return finite(float64(part) / float64(whole))
}
