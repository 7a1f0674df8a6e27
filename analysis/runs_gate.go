package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/trace"
)

// Rules by which a condition on a change fails a comparison of runs.
const (
	RuleSignificant = "significant" // the change meets the condition, and its interval excludes no change
	RuleProven      = "proven"      // all of its interval meets the condition
	RuleEstimate    = "estimate"    // the change meets the condition, whatever chance does
)

// DefaultRule does not fire on noise: of comparisons of equal runs, it fails at
// most 5 %, whatever the number of conditions.
const DefaultRule = RuleSignificant

// Rules are all of them.
var Rules = []string{RuleSignificant, RuleProven, RuleEstimate}

// A RunGate is a condition of --fail-on and what became of it.
type RunGate struct {
	Condition string   `json:"condition"`
	Rule      string   `json:"rule"`  // "value" for a condition on a value of B
	Value     *float64 `json:"value"` // the change, or the value of B
	Lo        *float64 `json:"lo"`    // of the change, at the level of all conditions together; null beyond mostFold
	Hi        *float64 `json:"hi"`
	Failed    bool     `json:"failed"`
	Why       string   `json:"why"`
}

// Gate tests conditions, which say what must not be, and returns how many
// failed. The intervals of changes are as wide as so many conditions need. A
// name that no number has is an error; a number that is not known fails.
func (c *RunComparison) Gate(conditions []Condition, rule string) (failed int, err error) {
	names, list := c.numbers()
	changes := 0
	for i := range conditions {
		if conditions[i].Change {
			changes++
		}
	}
	level := 1 - (1-c.Level)/float64(max(1, changes))
	for i := range conditions {
		cond := &conditions[i]
		at := slices.Index(names, cond.Name)
		if at < 0 {
			return failed, trace.WithFix(fmt.Errorf("condition %q: no number of a run is called %s", cond.Text, cond.Name), "use one of: "+strings.Join(names, ", "))
		}
		n := list[at]
		if err := n.fits(cond); err != nil {
			return failed, err
		}
		g := n.gate(cond, rule, level)
		if g.Failed {
			failed++
		}
		c.Gates = append(c.Gates, g)
	}
	return failed, nil
}

// fits refuses a value in a unit that the number does not have.
func (n *RunNumber) fits(cond *Condition) error {
	switch {
	case cond.Change:
		return nil
	case n.Unit == unitMS && !cond.Time:
		return trace.WithFix(fmt.Errorf("condition %q: %s is a time of B", cond.Text, cond.Name), "write '"+cond.Name+cond.Op+"250ms', or '"+cond.Name+cond.Op+"+5%' for a change from A to B")
	case n.Unit != unitMS && cond.Time, cond.Share && n.Unit != "share":
		return trace.WithFix(fmt.Errorf("condition %q: %s is a number of %s", cond.Text, cond.Name, n.Unit), "write a plain number, or '"+cond.Name+cond.Op+"+5%' for a change from A to B")
	}
	return nil
}

func (n *RunNumber) gate(cond *Condition, rule string, level float64) RunGate {
	g := RunGate{Condition: cond.Text, Rule: rule}
	if !cond.Change {
		g.Rule, g.Value = "value", n.B
		if n.B == nil {
			g.Failed, g.Why = true, "not known"
			return g
		}
		v, limit := *n.B, cond.Value
		if n.Unit == unitMS {
			v, limit = math.Round(v*1e6), cond.limit()
		}
		g.Failed = holds(cond.Op, v, limit)
		return g
	}
	if g.Value = n.Change; n.Change == nil {
		g.unknown(n, rule, level)
		return g
	}
	_, _, g.Lo, g.Hi = n.interval(level)
	met := cond.Holds(*n.Change)
	switch {
	case !met:
	case rule == RuleEstimate:
		g.Failed = true
	case *n.Change == 0:
		g.Failed, g.Why = true, "no change meets the condition"
	case g.Lo == nil || g.Hi == nil:
		g.Failed, g.Why = true, "nothing says how much it varies"
	case rule == RuleProven:
		if g.Failed = cond.Holds(*g.Lo) && cond.Holds(*g.Hi); !g.Failed {
			g.Why = "chance may explain what is beyond the limit"
		}
	default:
		if g.Failed = *g.Lo > 0 || *g.Hi < 0; !g.Failed {
			g.Why = "within noise: the interval holds no change"
		}
	}
	g.Lo, g.Hi = bounded(g.Lo, g.Hi)
	return g
}

// unknown is a change without a size: from 0. What is beyond noise then is the
// difference.
func (g *RunGate) unknown(n *RunNumber, rule string, level float64) {
	switch {
	case n.A == nil || n.B == nil:
		g.Failed, g.Why = true, "not known"
		return
	case *n.A == *n.B:
		g.Why = "0 on both sides"
		return
	}
	lo, hi, _, _ := n.interval(level)
	g.Failed = rule == RuleEstimate || lo == nil || *lo > 0 || *hi < 0
	g.Why = "a change from 0 has no size, and the difference is beyond noise"
	if !g.Failed {
		g.Why = "within noise: the interval of the difference holds 0"
	}
}
