package analysis

import (
	"fmt"
	"strings"
	"time"
)

// coarse is the effective tick of a profile where it is longer than a tenth of
// the mean gap, so that it shapes the gaps; 0 elsewhere.
func (p *Profile) coarse() time.Duration {
	rate := p.scalar("rate")
	if rate == nil || p.tick.Seconds()*rate.value < 0.1 {
		return 0
	}
	return p.tick
}

// tickReach is how many ticks long a window must be for its counts to show the
// traffic: shorter ones hold one tick more or less.
const tickReach = 4

// ticks takes back verdicts on what only the ticks of one side make, and says
// which numbers show ticks where they are those of both.
func (c *TrafficComparison) ticks(a, b *Profile) {
	long := max(a.coarse(), b.coarse())
	if long == 0 {
		return
	}
	reach := tickReach * long
	of, name := a, "a"
	if b.coarse() > a.coarse() {
		of, name = b, "b"
	}
	text := fmt.Sprintf("the times of %s are whole ticks of %s s, so its gaps, and its idc in windows below %s s, show bursts of a tick that the traffic need not have had", name, shortText(long.Seconds()), shortText(reach.Seconds()))
	if a.coarse() == b.coarse() {
		c.Notes = append(c.Notes, strings.NewReplacer("of "+name+" are", "of both are", "its gaps", "gaps", "its idc", "idc").Replace(text))
		return
	}
	fix := ""
	if of.Kind == "trace" {
		fix = "; spread them to compare: reprise trace dequantize " + of.Name
	}
	c.Notes = append(c.Notes, text+fix)
	why := "ticks of " + shortText(long.Seconds()) + " s on one side"
	if q := &c.Quantities[quantityGap]; q.Verdict != NotMeasurable {
		q.Verdict, q.Why = NotMeasurable, why
	}
	for i := range c.Scalars {
		s := &c.Scalars[i]
		var window float64
		if _, err := fmt.Sscanf(s.Name, "idc_%gs", &window); err == nil && window < reach.Seconds() || s.Name == "gap_cv" {
			s.Verdict, s.Why = NotMeasurable, why
		}
	}
}

// basis says where sessions are recorded on one side and inferred on the other.
func (c *TrafficComparison) basis(a, b *Profile) {
	for _, s := range []struct {
		name string
		*Profile
	}{{"a", a}, {"b", b}} {
		if s.sessions == SessionsInferred {
			c.Notes = append(c.Notes, fmt.Sprintf("the sessions of %s are inferred from prefixes: turns and turn_gap are those of prompts that share their first blocks", s.name))
		}
	}
}
