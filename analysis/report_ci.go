package analysis

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes what a pull request shows of a run: the verdict, the goals and
// the main numbers.
func WriteMarkdown(w io.Writer, s *Summary) error {
	fmt.Fprintf(w, "**%s** %s\n\n", s.Verdict.Result, strings.TrimSuffix(s.Label+". "+strings.Join(s.Verdict.Reasons, "; "), " "))
	if s.SLO != nil {
		fmt.Fprint(w, "| goal | value | result |\n| --- | --: | --- |\n")
		for _, g := range s.SLO.gates() {
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", g.Gate, g.valueText(), g.word())
		}
		for _, t := range s.SLO.Tiers {
			if p := t.Goodput; p != nil && p.Share != nil {
				fmt.Fprintf(w, "| good requests of %s | %s of %s (%s) | |\n", t.Name, Grouped(p.Good), Grouped(s.SLO.Requests), percent(*p.Share))
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| metric | n | mean | p50 | p95 | p99 | max | unit |\n| --- | --: | --: | --: | --: | --: | --: | --- |\n")
	for _, name := range []string{"ttft", "itl", "tpot", "e2e", "response_time", "lateness"} {
		m := s.Metrics.Get(name)
		if m.N == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s | %s |", name, Grouped(m.N))
		for _, stat := range []string{"mean", "p50", "p95", "p99", "max"} {
			fmt.Fprintf(w, " %s |", m.cell(m.Stat(stat)))
		}
		fmt.Fprintf(w, " %s |\n", m.Unit)
	}
	q, t := &s.Requests, &s.Throughput
	errors := "n/a"
	if s.ErrorRate != nil {
		errors = percent(*s.ErrorRate)
	}
	_, err := fmt.Fprintf(w, "\n%s sent, %s successful, error rate %s; %s requests/s, %s output tokens/s.\n", Counted(q.Sent, "request"), Grouped(q.Successful), errors, rateText(t.RequestsPerS), rateText(t.OutputTokensPerS))
	return err
}

// gates are those of all tiers, in order.
func (r *SLOResult) gates() (all []GateResult) {
	for _, t := range r.Tiers {
		all = append(all, t.Gates...)
	}
	return all
}

func (g *GateResult) valueText() string {
	switch {
	case g.NotReached && g.Value == nil:
		return "not reached"
	case g.Value == nil:
		return "n/a"
	case g.Unit == "share":
		return percent(*g.Value)
	}
	return NumberText(*g.Value) + " " + g.Unit
}

func (g *GateResult) word() string {
	if g.Passed {
		return "met"
	}
	return "**not met**"
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes a run as a suite of tests, for tools of continuous integration:
// the client's verdict, that requests were successful, and each gate.
func WriteJUnit(w io.Writer, s *Summary) error {
	suite := junitSuite{Name: "reprise: " + s.Label}
	add := func(class, name, failure, out string) {
		c := junitCase{Class: class, Name: name, Out: out}
		if suite.Tests++; failure != "" {
			suite.Failures++
			c.Failure = &junitFailure{failure}
		}
		suite.Cases = append(suite.Cases, c)
	}
	invalid := ""
	if s.Verdict.Code != 0 {
		invalid = strings.Join(s.Verdict.Reasons, "; ")
	}
	add("client", "the client was good enough to measure the server", invalid, s.Verdict.Result)
	none := ""
	if s.Requests.Successful == 0 {
		none = "no request was successful"
	}
	add("run", "requests were successful", none, fmt.Sprintf("%d of %d", s.Requests.Successful, s.Requests.Ended()))
	if s.SLO != nil {
		for _, g := range s.SLO.gates() {
			failure := ""
			if !g.Passed {
				failure = g.Gate + " does not hold: " + g.valueText()
			}
			add("slo", g.Gate, failure, g.valueText())
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
