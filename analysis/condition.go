package analysis

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
)

// A Condition is one test of a number, in the grammar that every gate has:
// ttft_p95<800ms, error_rate>20%, tpot_p50>+5%. A sign makes it a change
// against the other side of a comparison.
type Condition struct {
	Name   string
	Op     string  // <, <=, > or >=
	Value  float64 // shares as 0 to 1, times in seconds
	Change bool    // relative change, from a sign: B / A - 1
	Time   bool    // the value had a unit of time
	Share  bool    // the value had a %
	Text   string  // as it was written
}

var conditionForm = regexp.MustCompile(`^\s*([A-Za-z0-9_.]+)\s*(<=|>=|<|>)\s*([+-]?)([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(%|ns|us|µs|ms|s|m|h)?\s*$`)

// ParseConditions reads conditions separated by ";" or ",".
func ParseConditions(text string) ([]Condition, error) {
	var list []Condition
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ',' }) {
		c, err := parseCondition(part)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, trace.WithFix(fmt.Errorf("no condition in %q", text), "write it like 'isl_w1>5%' or 'rate>+10%'")
	}
	return list, nil
}

func parseCondition(text string) (Condition, error) {
	m := conditionForm.FindStringSubmatch(text)
	if m == nil {
		return Condition{}, trace.WithFix(fmt.Errorf("condition %q", strings.TrimSpace(text)), "write a name, one of < <= > >=, and a number, such as 'isl_w1>5%' or 'rate>+10%'")
	}
	c := Condition{Name: m[1], Op: m[2], Text: strings.TrimSpace(text)}
	v, err := strconv.ParseFloat(m[4], 64)
	if err != nil {
		return c, fmt.Errorf("condition %q: %w", c.Text, err)
	}
	switch unit := m[5]; unit {
	case "":
	case "%":
		v, c.Share = v/100, true
	default:
		d, err := time.ParseDuration("1" + unit)
		if err != nil {
			return c, fmt.Errorf("condition %q: %w", c.Text, err)
		}
		v, c.Time = v*d.Seconds(), true
	}
	if m[3] != "" {
		c.Change = true
		if !c.Share {
			return c, trace.WithFix(fmt.Errorf("condition %q: a change is relative", c.Text), "write it in percent, such as '"+c.Name+c.Op+m[3]+"5%'")
		}
		if m[3] == "-" {
			v = -v
		}
	}
	c.Value = v
	return c, nil
}

// Holds tells whether v meets the condition.
func (c *Condition) Holds(v float64) bool { return holds(c.Op, v, c.Value) }

func holds(op string, v, limit float64) bool {
	switch op {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	}
	return v >= limit
}
