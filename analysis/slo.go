package analysis

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
)

// What the quantiles of gates are taken over.
const (
	OverAll = "all" // failures as worst values
	OverOK  = "ok"  // the successful requests only
)

// DefaultOver is the default of SLO.Over: a server must not meet a goal by
// failing its slow requests.
const DefaultOver = OverAll

// An SLO is what a run has to meet: one or several tiers of terms.
type SLO struct {
	Text  string // on one line
	Tiers []Tier
	Over  string // OverAll or OverOK; "" is DefaultOver

	// LengthIsBad makes an answer that ended at its token limit no good one. By
	// default it is good: a replay with exact output lengths ends all of them there.
	LengthIsBad bool
}

// A Tier is a named set of terms; the only one of an SLO without names is
// called DefaultTier.
type Tier struct {
	Name  string
	texts []string // of all terms, in order
	gates []sloGate
	terms []sloTerm
}

// DefaultTier is the name of a tier without one.
const DefaultTier = "slo"

// A sloGate is a condition on one number of the run.
type sloGate struct {
	Condition
	metric    string // of a quantile or mean; "" for a number of the whole run
	stat      string // mean, max or a quantile
	millionth int64  // of a quantile, 1,000,000 = max
}

// A sloTerm is a condition on one number of each request.
type sloTerm struct {
	Condition
	of perRequest
}

// Numbers of the whole run that a gate may name.
const (
	gateErrorRate   = "error_rate"
	gateGoodShare   = "good_share"
	gateGoodput     = "goodput"
	gateRequestsPer = "requests_per_s"
	gateInputPer    = "input_tokens_per_s"
	gateOutputPer   = "output_tokens_per_s"
)

var gateScalars = []struct {
	name, text string
	share      bool
}{
	{gateErrorRate, "failed / ended requests; what was cut or cancelled on purpose has not failed", true},
	{gateGoodShare, "good / all requests of the tier", true},
	{gateGoodput, "good requests per second of the tier", false},
	{gateRequestsPer, "successful requests per second", false},
	{gateInputPer, "their input tokens per second", false},
	{gateOutputPer, "their output tokens per second", false},
}

var (
	tierForm     = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9_-]*)\s*:(.*)$`)
	statForm     = regexp.MustCompile(`^(.+)_(mean|max|p[0-9]{1,2}(?:[._][0-9]{1,4})?)$`)
	commentForm  = regexp.MustCompile(`#[^\n]*`)
	sloSeparator = func(r rune) bool { return r == ';' || r == ',' || r == '\n' }
)

// ParseSLO reads terms separated by semicolons, commas or ends of lines. NAME:
// before a term begins a tier, to which all terms up to the next name belong;
// what follows a # up to the end of the line is a comment. A term is a gate on
// a number of the run (ttft_p95<800ms, error_rate<1%, good_share>99%) or a
// limit for each request (ttft<800ms), which says what a good request is.
func ParseSLO(text string) (*SLO, error) {
	s := &SLO{}
	var tier *Tier
	for _, part := range strings.FieldsFunc(commentForm.ReplaceAllString(text, ""), sloSeparator) {
		if m := tierForm.FindStringSubmatch(part); m != nil {
			if slices.ContainsFunc(s.Tiers, func(t Tier) bool { return t.Name == m[1] }) {
				return nil, fmt.Errorf("two tiers are called %s", m[1])
			}
			s.Tiers = append(s.Tiers, Tier{Name: m[1]})
			tier, part = &s.Tiers[len(s.Tiers)-1], m[2]
		}
		if strings.TrimSpace(part) == "" {
			continue
		}
		if tier == nil {
			s.Tiers = append(s.Tiers, Tier{Name: DefaultTier})
			tier = &s.Tiers[0]
		}
		if err := tier.parse(part); err != nil {
			return nil, err
		}
	}
	for i := range s.Tiers {
		if err := s.Tiers[i].check(); err != nil {
			return nil, err
		}
	}
	s.Text = s.text()
	if len(s.Tiers) == 0 {
		return nil, trace.WithFix(fmt.Errorf("no term in %q", text), "write it like 'ttft_p95<800ms; tpot<50ms'")
	}
	return s, nil
}

// text writes the SLO on one line: a; b or gold: a, b; silver: c.
func (s *SLO) text() string {
	var tiers []string
	for i, t := range s.Tiers {
		if i == 0 && t.Name == DefaultTier {
			tiers = append(tiers, strings.Join(t.texts, "; "))
			continue
		}
		tiers = append(tiers, t.Name+": "+strings.Join(t.texts, ", "))
	}
	return strings.Join(tiers, "; ")
}

func (t *Tier) parse(text string) error {
	c, err := parseCondition(text)
	t.texts = append(t.texts, c.Text)
	if err != nil {
		return trace.WithFix(fmt.Errorf("term %q", strings.TrimSpace(text)), "write it like 'ttft_p95<800ms', 'ttft<800ms' or 'error_rate<1%'")
	}
	if c.Change {
		return trace.WithFix(fmt.Errorf("term %q: a change needs another run", c.Text), "leave the sign out here; reprise compare A B --fail-on takes it")
	}
	for _, s := range gateScalars {
		if s.name == c.Name {
			return t.addScalar(c, s.share)
		}
	}
	if of, ok := perRequestOf(c.Name); ok {
		if err := fitsUnit(&c, of.unit); err != nil {
			return err
		}
		t.terms = append(t.terms, sloTerm{c, of})
		return nil
	}
	return t.addStat(c)
}

func (t *Tier) addScalar(c Condition, share bool) error {
	if c.Time || c.Share && !share {
		return trace.WithFix(fmt.Errorf("term %q: %s is a number per second", c.Text, c.Name), "write a plain number, such as '"+c.Name+c.Op+"10'")
	}
	if share && !c.Share && c.Value > 1 {
		return trace.WithFix(fmt.Errorf("term %q: %s is a share", c.Text, c.Name), "write it in percent, such as '"+c.Name+c.Op+plainNumber(c.Value)+"%'")
	}
	t.gates = append(t.gates, sloGate{Condition: c})
	return nil
}

func (t *Tier) addStat(c Condition) error {
	metric, g := c.Name, sloGate{Condition: c}
	if m := statForm.FindStringSubmatch(c.Name); m != nil {
		metric, g.stat = m[1], strings.ReplaceAll(m[2], "_", ".")
	}
	if !slices.Contains(tableOrder, metric) {
		return trace.WithFix(fmt.Errorf("term %q: nothing is called %s", c.Text, c.Name), "use a metric with a stat, such as ttft_p95, of: "+strings.Join(tableOrder, ", ")+
			"; a metric of each request: "+strings.Join(perRequestNames(), ", ")+"; or one of: "+strings.Join(scalarGateNames(), ", "))
	}
	d := definitionOf(metric)
	if g.stat == "" {
		fix := "name the stat, such as '" + metric + "_p95" + c.Op + "...'"
		if metric == "itl" {
			fix += "; tpot is the mean of a request, longest_stall its longest gap"
		}
		return trace.WithFix(fmt.Errorf("term %q: a request has no one %s", c.Text, metric), fix)
	}
	if err := fitsUnit(&c, d.unit); err != nil {
		return err
	}
	g.metric = metric
	switch g.stat {
	case "mean":
	case "max":
		g.millionth = 1e6
	default:
		p, err := strconv.ParseFloat(g.stat[1:], 64)
		if err != nil || p <= 0 {
			return trace.WithFix(fmt.Errorf("term %q: %s is no quantile", c.Text, g.stat), "use p1 to p99.9999, mean or max")
		}
		g.millionth = int64(math.Round(p * 1e4))
	}
	t.gates = append(t.gates, g)
	return nil
}

// fitsUnit refuses a value in another unit than the metric's. A time has an
// upper limit: a goal that failures would meet is none.
func fitsUnit(c *Condition, unit string) error {
	switch {
	case unit == unitMS && !c.Time:
		return trace.WithFix(fmt.Errorf("term %q: %s is a time", c.Text, c.Name), "write its unit, such as '"+c.Name+c.Op+"800ms'")
	case unit == unitMS && strings.HasPrefix(c.Op, ">"):
		return trace.WithFix(fmt.Errorf("term %q: a goal for a time is an upper limit", c.Text), "use < or <=")
	case unit != unitMS && (c.Time || c.Share):
		return trace.WithFix(fmt.Errorf("term %q: %s is a number of %s", c.Text, c.Name, unit), "write a plain number")
	}
	return nil
}

// check refuses a tier without a term, and a gate on goodput where nothing says
// what a good request is.
func (t *Tier) check() error {
	if len(t.gates)+len(t.terms) == 0 {
		return trace.WithFix(fmt.Errorf("tier %s has no term", t.Name), "write terms after its name, such as '"+t.Name+": ttft<500ms, tpot<30ms'")
	}
	for _, g := range t.gates {
		if (g.Name == gateGoodShare || g.Name == gateGoodput) && len(t.terms) == 0 {
			return trace.WithFix(fmt.Errorf("term %q: no limit says what a good request is", g.Text), "add one to its tier, such as 'ttft<500ms'")
		}
	}
	return nil
}

func scalarGateNames() []string {
	var names []string
	for _, s := range gateScalars {
		names = append(names, s.name)
	}
	return names
}
