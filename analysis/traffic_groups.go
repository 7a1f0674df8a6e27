package analysis

import (
	"cmp"
	"slices"
	"time"

	"reprise/analysis/prefix"
	"reprise/trace"
)

// A TrafficGroup is the part of a trace that one model, client or hour has. Its
// arrivals count from its own first. Hits are its share of those of one cache
// for the whole trace.
type TrafficGroup struct {
	Name string `json:"name"` // "" where the trace does not say
	Flow
	Blocks    int64    `json:"blocks,omitempty"`
	HitBlocks int64    `json:"hit_blocks,omitempty"`
	Tokens    int64    `json:"block_tokens,omitempty"`
	HitTokens int64    `json:"hit_tokens,omitempty"`
	HitShare  *float64 `json:"hit_share_tokens,omitempty"`
}

// othersGroup pools the groups beyond MaxGroups.
const othersGroup = "others"

type trafficGroup struct {
	name string
	hour int64
	flow *flow
	hits prefix.Hits
}

func (g *trafficGroup) add(row flowRow, hits prefix.Hits, known bool) {
	g.flow.add(row)
	if known {
		g.hits.Add(hits)
	}
}

// group returns the group of a row. An hour is one of UTC where the trace knows
// when it was, else one since the trace began.
func (a *trafficAnalysis) group(b *trace.Batch, i int, at int64) *trafficGroup {
	var name string
	var hour int64
	switch a.by {
	case ByModel:
		name, _ = b.Model.Get(i)
	case ByClient:
		name, _ = b.ClientID.Get(i)
	case ByHour:
		if b.ArrivalNS.Null[i] {
			break
		}
		name, hour = a.hour(at)
	}
	g := a.groups[name]
	if g == nil && len(a.groupOrder) >= MaxGroups {
		if a.pooled == nil {
			a.pooled = map[string]struct{}{}
		}
		a.pooled[name] = struct{}{}
		name = othersGroup
		g = a.groups[name]
	}
	if g == nil {
		g = &trafficGroup{name: name, hour: hour, flow: newFlow(a.meta.Clock, 0)}
		a.groups[name] = g
		a.groupOrder = append(a.groupOrder, g)
	}
	return g
}

func (a *trafficAnalysis) hour(at int64) (string, int64) {
	epoch, absolute := a.meta.EpochNS.Get()
	hour := (epoch + at) / int64(time.Hour)
	if absolute {
		return time.Unix(hour*3600, 0).UTC().Format("2006-01-02 15:04Z"), hour
	}
	return "hour " + Grouped(hour), hour
}

// groupsResult orders hours by time, and others by rows, then name.
func (a *trafficAnalysis) groupsResult() []TrafficGroup {
	slices.SortStableFunc(a.groupOrder, func(x, y *trafficGroup) int {
		if a.by == ByHour {
			return cmp.Compare(x.hour, y.hour)
		}
		return cmp.Or(cmp.Compare(y.flow.rows, x.flow.rows), cmp.Compare(x.name, y.name))
	})
	var out []TrafficGroup
	for _, g := range a.groupOrder {
		r := TrafficGroup{Name: g.name, Flow: g.flow.result(), Blocks: g.hits.Blocks, HitBlocks: g.hits.HitBlocks, Tokens: g.hits.Tokens, HitTokens: g.hits.HitTokens}
		r.HitShare = shareOf(g.hits.HitTokens, g.hits.Tokens)
		out = append(out, r)
	}
	return out
}
