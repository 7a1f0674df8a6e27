package analysis

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/analysis/prefix"
)

func (s *TrafficSessions) text(p *printer) {
	p.section("sessions")
	if s.N > 0 {
		text := fmt.Sprintf("%s (%s), %s, %s of one turn", Grouped(s.N), s.Basis, Counted(s.Rows, "row"), Grouped(s.Single))
		if s.Without > 0 {
			text += fmt.Sprintf("; in none: %s", Counted(s.Without, "row"))
		}
		if s.MeanOpen != nil {
			text += fmt.Sprintf("; %s open on average", numberText(*s.MeanOpen))
		}
		p.pair("  sessions", text)
		if s.EndKnown > 0 {
			p.pair("  overlap", fmt.Sprintf("%s of %s turns (%s) began before the one before had ended", Grouped(s.Overlaps), Grouped(s.EndKnown), percent(float64(s.Overlaps)/float64(s.EndKnown))))
		}
		if s.Growth != nil {
			p.pair("  growth", fmt.Sprintf("%s of %s turns have a shorter input than the one before", Grouped(s.Shrinks), Grouped(s.Growth.N)))
		}
	}
	p.notes(s.NotMeasurable...)
	p.dists("per session", namedDist{"turns", s.Turns}, namedDist{"start gap, s", s.Starts},
		namedDist{"turn gap, s", s.Gaps}, namedDist{"think, recorded, s", s.ThinkRecorded},
		namedDist{"think, measured, s", s.ThinkMeasured}, namedDist{"growth, tokens", s.Growth})
}

func (x *TrafficPrefix) text(p *printer) {
	p.section("prefix reuse")
	if x.HitShareBlocks != nil {
		if e := x.Estimate; e != nil {
			p.notes(fmt.Sprintf("estimates from %s of the distinct blocks; standard error of a hit share by blocks at most %s", percent(e.Rate), percent(e.StandardError)))
		}
		p.pair("  blocks", fmt.Sprintf("%s in %s; %s distinct, %s of them used once", Grouped(x.Blocks), Counted(x.Rows, "row"), Grouped(x.Distinct), Grouped(x.Once)))
		text := fmt.Sprintf("%s of blocks", percent(*x.HitShareBlocks))
		if x.HitShareTokens != nil {
			text += fmt.Sprintf(", %s of tokens (%s of %s)", percent(*x.HitShareTokens), Grouped(x.HitTokens), Grouped(x.Tokens))
		}
		p.pair("  no limit", text+" are served by a cache without limit")
		if x.AnyHit != nil {
			p.pair("  rows", fmt.Sprintf("%s hit it, %s with all their blocks", Grouped(*x.AnyHit), Grouped(*x.FullHit)))
		}
	}
	var distances []string
	for _, d := range x.Distance {
		distances = append(distances, fmt.Sprintf("p%s %s", numberText(100*d.P), Grouped(d.Blocks)))
	}
	if distances != nil {
		p.pair("  distance", fmt.Sprintf("%s other blocks used since the last use (type 1, n %s)", strings.Join(distances, ", "), Grouped(x.Reuses)))
	}
	var sharing []string
	for _, s := range x.Sharing {
		sessions := Grouped(int64(s.Sessions))
		if s.Sessions == prefix.SharedByMany {
			sessions += " or more"
		}
		sharing = append(sharing, fmt.Sprintf("%s by %s", Grouped(s.Blocks), sessions))
	}
	if sharing != nil {
		p.pair("  sharing", "blocks by sessions that use them: "+strings.Join(sharing, ", "))
	}
	p.notes(x.NotMeasurable...)
	p.dists("reuse", namedDist{"time, s", x.ReuseTime})
	x.lruTable(p)
}

// lruTable writes the capacities 1, 2 and 5 of each decade, and the last.
func (x *TrafficPrefix) lruTable(p *printer) {
	var rows []table.Row
	for i, c := range x.LRU {
		lead := c.Capacity
		for lead >= 10 && lead%10 == 0 {
			lead /= 10
		}
		if lead == 1 || lead == 2 || lead == 5 || i == len(x.LRU)-1 {
			rows = append(rows, table.Row{Grouped(c.Capacity), percent(c.Blocks), percent(c.Tokens)})
		}
	}
	if rows != nil {
		p.table(table.Row{"LRU capacity, blocks", "blocks hit", "tokens hit"}, rows)
	}
}

// textGroups is how many groups the text names; JSON has all.
const textGroups = 30

func (t *Traffic) groupText(p *printer) {
	if t.By == "" {
		return
	}
	p.topic("groups")
	var rows []table.Row
	for i := range t.Groups {
		g := &t.Groups[i]
		if i == textGroups {
			break
		}
		name := g.Name
		if name == "" {
			name = "(not recorded)"
		}
		row := table.Row{strings.Map(printable, name), Grouped(g.Rows), optionalText(g.Arrivals.RateHz), "n/a", "n/a"}
		if g.Arrivals.Gaps != nil {
			row[3] = optionalText(g.Arrivals.Gaps.CV)
		}
		for _, b := range g.Arrivals.Burstiness {
			if b.WindowS == 60 {
				row[4] = optionalText(b.IDC)
			}
		}
		for _, l := range g.Lengths[:2] {
			if l.Dist == nil {
				row = append(row, "n/a", "n/a")
				continue
			}
			median, _ := l.Quantile(0.5)
			row = append(row, numberText(l.Mean), numberText(median))
		}
		hit := "n/a"
		if g.HitShare != nil {
			hit = percent(*g.HitShare)
		}
		rows = append(rows, append(row, optionalText(g.Dependence.Spearman), hit))
	}
	p.table(table.Row{"by " + t.By, "rows", "rate/s", "gap CV", "IDC 60 s", "input mean", "p50", "output mean", "p50", "Spearman", "tokens hit"}, rows)
	if len(t.Groups) > textGroups {
		p.notes(fmt.Sprintf("%s more groups, see --json", Grouped(int64(len(t.Groups)-textGroups))))
	}
	if t.Pooled > 0 {
		p.notes(fmt.Sprintf("%s groups beyond the first %s are pooled as %q", Grouped(t.Pooled), Grouped(MaxGroups), othersGroup))
	}
}
