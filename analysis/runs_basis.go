package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/trace"
)

// A BasisNote is where runs differ in how they were made.
type BasisNote struct {
	What   string   `json:"what"`
	Values []string `json:"values"` // of the runs that have others than the first, and the first
	Refuse bool     `json:"refuse"` // what is measured is another thing: numbers cannot be held against each other
}

func (n *BasisNote) String() string {
	if n.What == basisVerdict {
		return "not a valid measurement: " + strings.Join(n.Values, ", ")
	}
	return n.What + ": " + strings.Join(n.Values, ", ")
}

const basisVerdict = "verdict"

// basisFields are what runs may differ in. The first ones say what was measured;
// the others may explain a difference, or be the very thing that is compared.
var basisFields = []struct {
	what   string
	refuse bool
	of     func(*RunData) string
}{
	{"pacing", true, func(d *RunData) string { return d.Run.Pace }},
	{"label", true, func(d *RunData) string { return d.Run.Label }},
	{"speed", true, func(d *RunData) string { return plainNumber(d.Run.Speed) }},
	{"protocol", true, func(d *RunData) string { return d.Run.Protocol }},
	{"arrivals", true, flagOf("arrivals", "as in the trace")},
	{"session arrivals", true, flagOf("session-arrivals", "as in the trace")},
	{"cap", true, flagOf("max-in-flight", "none")},
	{"output length", true, flagOf("output-length", "exact")},
	{"streaming", true, flagOf("stream", "on")},
	{"history", true, flagOf("history", "recorded")},
	{"trace", false, traceOf},
	{"from", false, flagOf("from", "the start")},
	{"to", false, flagOf("to", "the end")},
	{"limit", false, flagOf("limit", "none")},
	{"seed", false, func(d *RunData) string { return fmt.Sprint(d.Run.Seed) }},
	{"planned requests", false, func(d *RunData) string { return fmt.Sprint(d.Run.Planned.Requests) }},
	{"HTTP", false, func(d *RunData) string { return cmp.Or(d.Run.HTTP, "1.1") }},
	{"urls", false, func(d *RunData) string { return fmt.Sprint(len(d.Run.URLs)) }},
	{"cache salt", false, flagOf("cache-salt", "none")},
	{"timeout", false, flagOf("timeout", "the default")},
	{"cancellation", false, flagOf("cancel", "none")},
	{"version of reprise", false, func(d *RunData) string { return d.Run.Version }},
	{"client", false, func(d *RunData) string {
		h := d.Run.Host
		return fmt.Sprintf("%s/%s with %d CPUs", h.OS, h.Arch, h.CPUs)
	}},
}

func flagOf(name, unset string) func(*RunData) string {
	return func(d *RunData) string { return cmp.Or(d.Run.Flags[name], unset) }
}

func traceOf(d *RunData) string {
	if d.Run.Trace == nil {
		return "none"
	}
	return fmt.Sprintf("%s (sha256 %.12s)", d.Run.Trace.Name, d.Run.Trace.SHA256)
}

// Basis says where the runs differ. Names of traces are no difference where
// the bytes are equal.
func Basis(a, b []*RunData) []BasisNote {
	all := slices.Concat(a, b)
	notes := []BasisNote{}
	var invalid []string
	for _, d := range all {
		if d.Summary.Verdict.Result == Invalid {
			invalid = append(invalid, fmt.Sprintf("%s is %s", d.Name, Invalid))
		}
	}
	if invalid != nil {
		notes = append(notes, BasisNote{basisVerdict, invalid, true})
	}
	for _, f := range basisFields {
		first := f.of(all[0])
		values := []string{fmt.Sprintf("%s in %s", first, all[0].Name)}
		for _, d := range all[1:] {
			if v := f.of(d); v != first && !(f.what == "trace" && traceKey(d) == traceKey(all[0])) {
				values = append(values, fmt.Sprintf("%s in %s", v, d.Name))
			}
		}
		if len(values) > 1 {
			notes = append(notes, BasisNote{f.what, values, f.refuse})
		}
	}
	for _, d := range all {
		if q := &d.Summary.Requests; q.Interrupted || q.Killed || q.Unconcluded {
			notes = append(notes, BasisNote{"end", []string{d.Name + " did not run to its end"}, false})
		}
	}
	return notes
}

func traceKey(d *RunData) string {
	if d.Run.Trace == nil {
		return ""
	}
	return d.Run.Trace.SHA256
}

// sameTrace says whether the requests of all runs are the same ones by id: of one
// trace, at the same times.
func sameTrace(a, b []*RunData) bool {
	all := slices.Concat(a, b)
	first := traceKey(all[0])
	if first == "" {
		return false
	}
	for _, d := range all[1:] {
		for _, f := range basisFields {
			switch f.what {
			case "pacing", "speed", "arrivals", "session arrivals", "from":
				if f.of(d) != f.of(all[0]) {
					return false
				}
			}
		}
		if traceKey(d) != first || d.Run.Seed != all[0].Run.Seed && (d.Run.Flags["arrivals"] != "" || d.Run.Flags["session-arrivals"] != "") {
			return false
		}
	}
	return true
}

// A BasisError says that runs do not measure the same thing.
type BasisError struct{ Reasons []string }

func (e *BasisError) Error() string {
	return "the runs do not measure the same thing: " + strings.Join(e.Reasons, "; ")
}

// Refusal is why the runs cannot be held against each other, a *[BasisError]; nil
// if they can.
func Refusal(basis []BasisNote) error {
	var reasons []string
	for i := range basis {
		if basis[i].Refuse {
			reasons = append(reasons, basis[i].String())
		}
	}
	if reasons == nil {
		return nil
	}
	return trace.WithFix(&BasisError{reasons}, "repeat one of them as the other was made, or take them as they are with --force")
}
