package runpage

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reprise/analysis"
	"reprise/analysis/chart"
	"reprise/analysis/stats"
	"reprise/trace"
)

// Bounds of what is kept by name: servers and traces can have as many names as
// requests. What comes later counts as nameOthers.
const (
	mostGroups   = 64
	mostSessions = 1 << 18
	nameOthers   = "(others)"
	nameUnknown  = "(not recorded)"
)

// A group is the requests of one model, say.
type group struct {
	requests, successful int64
	ttft, tpot, e2e      stats.Tally // ns
}

// groups are by name.
type groups map[string]*group

func (g groups) add(name string, r *request) {
	u := g[name]
	if u == nil {
		if len(g) >= mostGroups {
			name = nameOthers
		}
		if u = g[name]; u == nil {
			u = &group{}
			for _, t := range []*stats.Tally{&u.ttft, &u.tpot, &u.e2e} {
				t.Limit = 1 << 14
			}
			g[name] = u
		}
	}
	u.requests++
	if !r.successful {
		return
	}
	u.successful++
	for _, m := range []struct {
		to *stats.Tally
		v  trace.Optional[time.Duration]
	}{{&u.ttft, r.ttft}, {&u.tpot, r.tpot}, {&u.e2e, r.e2e}} {
		if v, ok := m.v.Get(); ok {
			m.to.Add(int64(v))
		}
	}
}

// names returns them, the one with the most requests first.
func (g groups) names() []string {
	names := slices.Sorted(maps.Keys(g))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(g[b].requests, g[a].requests) })
	return names
}

// table sets the groups beside one another.
func (g groups) table(title, what string) chart.Table {
	t := chart.Table{Title: title, Header: []string{what, "requests", "successful", "ttft p50", "ttft p95", "ttft p99", "tpot p50", "tpot p95", "e2e p50", "e2e p95", "e2e p99"}}
	for _, name := range g.names() {
		u := g[name]
		cells := []string{shown(name), analysis.Grouped(u.requests), analysis.Grouped(u.successful)}
		cells = append(cells, tallyCells(&u.ttft, 0.5, 0.95, 0.99)...)
		cells = append(cells, tallyCells(&u.tpot, 0.5, 0.95)...)
		cells = append(cells, tallyCells(&u.e2e, 0.5, 0.95, 0.99)...)
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// tallyCells writes quantiles of times in ms.
func tallyCells(t *stats.Tally, q ...float64) []string {
	out := make([]string, len(q))
	values := t.Sample(1e-6).Quantiles1(q...)
	for i := range q {
		out[i] = "n/a"
		if values != nil {
			out[i] = analysis.TimeText(values[i])
		}
	}
	return out
}

// longestName is how much of a name is shown, in characters.
const longestName = 72

// shown keeps a name that a trace or a server made up from spoiling a table.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
	if name == "" {
		return `""`
	}
	if utf8.RuneCountInString(name) > longestName {
		name = string([]rune(name)[:longestName-1]) + "…"
	}
	return name
}

// A conversation is one session.
type conversation struct {
	requests, failed int64
	tokens           int64 // requests with a TTFT
	ttft, worst, e2e time.Duration
	ended            int64
}

// A sessionBook follows the first mostSessions sessions.
type sessionBook struct {
	open map[string]*conversation
	more int64 // requests of sessions that came later
}

func (b *sessionBook) add(r *request) {
	name, ok := r.Session.Get()
	if !ok {
		return
	}
	c := b.open[name]
	if c == nil {
		if len(b.open) >= mostSessions {
			b.more++
			return
		}
		c = &conversation{}
		b.open[strings.Clone(name)] = c
	}
	c.requests++
	if !r.successful {
		c.failed++
		return
	}
	if v, ok := r.ttft.Get(); ok {
		c.tokens++
		c.ttft += v
		c.worst = max(c.worst, v)
	}
	if v, ok := r.e2e.Get(); ok {
		c.ended++
		c.e2e += v
	}
}

// mostSlowSessions is how many sessions the table names.
const mostSlowSessions = 15

// table names the sessions whose requests waited longest for their first token, and
// means returns that mean of every session, sorted, in ns.
func (b *sessionBook) table() (t chart.Table, means []int64) {
	t = chart.Table{Title: "The sessions with the longest mean TTFT, ms", Header: []string{"session", "requests", "not successful", "mean ttft", "longest ttft", "mean e2e"}}
	names := make([]string, 0, len(b.open))
	for _, name := range slices.Sorted(maps.Keys(b.open)) {
		if c := b.open[name]; c.tokens > 0 {
			names = append(names, name)
			means = append(means, int64(c.mean()))
		}
	}
	slices.Sort(means)
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(b.open[y].mean(), b.open[x].mean()) })
	for _, name := range names[:min(mostSlowSessions, len(names))] {
		c := b.open[name]
		e2e := "n/a"
		if c.ended > 0 {
			e2e = msText(c.e2e / time.Duration(c.ended))
		}
		t.Rows = append(t.Rows, []string{shown(name), analysis.Grouped(c.requests), analysis.Grouped(c.failed), msText(c.mean()), msText(c.worst), e2e})
	}
	return t, means
}

func (c *conversation) mean() time.Duration { return c.ttft / time.Duration(c.tokens) }
