package analysis

import (
	"fmt"
	"strings"

	"reprise/trace"
)

// fits refuses a value in a unit that its property does not have.
func (c *TrafficComparison) fits(cond *Condition) error {
	unit, share, changes := c.unitOf(cond.Name)
	var how string
	example := cond.Name + cond.Op
	switch {
	case cond.Change && !changes:
		how = "it is a distance of both sides already: write it as a share, such as '" + example + "5%'"
	case cond.Change:
		return nil
	case cond.Time && unit != "s":
		how = fmt.Sprintf("it is a %s: write a plain number, such as '%s10', or a change from A to B, such as '%s+10%%'", kindOf(unit), example, example)
		if share {
			how = "it is a share: write '" + example + "5%' or '" + example + "0.05'"
		}
	case cond.Share && !share:
		how = fmt.Sprintf("it is a %s of B: write '%s+10%%' for a change from A to B, or a plain number", kindOf(unit), example)
		if unit == "s" {
			how = "it is a time of B: write '" + example + "250ms', or '" + example + "+10%' for a change from A to B"
		}
	default:
		return nil
	}
	wrong := "a time"
	if cond.Share {
		wrong = "a percentage"
	}
	if cond.Change {
		wrong = "a change"
	}
	return trace.WithFix(fmt.Errorf("condition %q: %s cannot be held against %s", cond.Text, cond.Name, wrong), how)
}

func kindOf(unit string) string {
	if unit == "" {
		return "number without a unit"
	}
	return "number of " + unit
}

// unitOf returns the unit of a property, whether it is a share, and whether
// changes of it are known.
func (c *TrafficComparison) unitOf(name string) (unit string, share, changes bool) {
	for _, s := range c.Scalars {
		if s.Name == name {
			return s.Unit, strings.HasPrefix(s.Unit, "of "), true
		}
	}
	for _, q := range c.Quantities {
		stat, ok := strings.CutPrefix(name, q.Name+"_")
		switch {
		case !ok:
		case stat == "w1" || stat == "ks":
			return "", true, false
		default:
			for _, known := range comparedStats {
				if strings.ReplaceAll(known.name, ".", "_") == stat {
					return q.Unit, false, true
				}
			}
		}
	}
	return "", true, true
}
