package analysis

import (
	"fmt"
	"strconv"
	"strings"

	"reprise/synth/model"
)

// Generated says what was made of a model.
type Generated struct {
	Model    string            `json:"model"` // name of its file
	Fitted   int64             `json:"fitted_requests"`
	Requests int64             `json:"requests"`
	Seed     uint64            `json:"seed"`
	Flags    map[string]string `json:"flags,omitempty"`
	TickS    *float64          `json:"tick_s,omitempty"` // of the times of the trace that was fitted; those that are generated have none
	FlatRate bool              `json:"flat_rate"`        // the model's rate does not change over time
	Drawn    bool              `json:"turns_drawn,omitempty"`
}

// NewGenerated describes w, of which requests were generated.
func NewGenerated(w *model.Workload, requests int64, seed uint64, flags map[string]string) *Generated {
	g := &Generated{Fitted: w.Requests, Requests: requests, Seed: seed, Flags: flags, FlatRate: true}
	for i := range w.Streams {
		s := &w.Streams[i]
		if a := s.Arrivals; a != nil {
			g.TickS = a.TickS
			g.FlatRate = g.FlatRate && len(a.Profile) == 1
		}
		g.Drawn = g.Drawn || s.Sessions != nil && len(s.Sessions.Paths) == 0
	}
	return g
}

// ModelFidelity holds what was generated against the numbers of the trace that
// its model was fitted to, and says of what is lost why the model cannot keep it.
func ModelFidelity(source, made []model.Measure, g *Generated) *Fidelity {
	f := &Fidelity{Generated: g}
	if len(source) == 0 {
		f.Properties = append(f.Properties, Property{Name: "all", Verdict: NotMeasurable, Method: "the model was not fitted to a trace by a version that keeps its numbers"})
	}
	have := map[string]model.Measure{}
	for _, m := range made {
		have[m.Name] = m
	}
	var rate float64
	for _, s := range source {
		if s.Name == "rate" {
			rate = s.Value
		}
	}
	for _, s := range source {
		p := Property{Name: s.Name, Unit: s.Unit, Source: &s.Value, Target: &s.Value, Band: s.Band}
		if m, ok := have[s.Name]; ok {
			p.Achieved = &m.Value
			g.judge(&p, s, m, rate)
		} else {
			p.Verdict, p.Method = NotMeasurable, "too few requests were generated, or they do not have it"
		}
		f.Properties = append(f.Properties, p)
		if p.Verdict == Lost {
			f.Lost++
		}
	}
	return f
}

// judge compares bands: what overlaps does not differ.
func (g *Generated) judge(p *Property, source, made model.Measure, rate float64) {
	a, b := bandOf(source), bandOf(made)
	p.Method = "intervals of 95 % of source and result that overlap"
	switch {
	case same(source.Value, made.Value):
		p.Verdict, p.Method = Exact, "the same number"
		return
	case a[0] <= b[1] && b[0] <= a[1]:
		p.Verdict = WithinNoise
		return
	}
	p.Verdict, p.Method = Lost, g.why(p.Name)
	if source.Band == nil || made.Band == nil {
		p.Verdict, p.Method = NotMeasurable, "too few sessions or minutes to say how much such a number varies"
	}
	if ticks := g.byTicks(p.Name, rate); ticks != "" {
		p.Verdict, p.Method = ByDesign, ticks
	} else if flags := g.byFlags(p.Name); flags != "" {
		p.Verdict, p.Method = ByDesign, flags
	}
}

func bandOf(m model.Measure) [2]float64 {
	if m.Band == nil {
		return [2]float64{m.Value, m.Value}
	}
	return *m.Band
}

// ofTime tells whether a number depends on when requests come.
func ofTime(name string) bool {
	return name == "rate" || name == "gap CV" || strings.HasPrefix(name, "IDC ")
}

// byTicks excuses what only the coarse times of the source made.
func (g *Generated) byTicks(name string, rate float64) string {
	if g.TickS == nil || *g.TickS*rate < 0.1 {
		return ""
	}
	text, idc := strings.CutPrefix(strings.TrimSuffix(name, " s"), "IDC at ")
	window, _ := strconv.ParseFloat(text, 64)
	if name == "gap CV" || idc && window < tickReach**g.TickS {
		return fmt.Sprintf("the times of the source are whole ticks of %s s, which are not generated", numberText(*g.TickS))
	}
	return ""
}

func (g *Generated) byFlags(name string) string {
	if !ofTime(name) {
		return ""
	}
	for _, flag := range []string{"rate", "cv", "burstiness", "smoothness", "pin-duration"} {
		if v, ok := g.Flags[flag]; ok {
			return "asked for: --" + flag + " " + v
		}
	}
	return ""
}

// why says what the model does not hold.
func (g *Generated) why(name string) string {
	switch {
	case strings.HasPrefix(name, "IDC ") && g.FlatRate:
		return "the model's rate is constant: a trend, and bursts beyond those of single gaps, are not in it; fit with --profile 60s or 300s to keep them"
	case strings.HasPrefix(name, "IDC "):
		return "the model's rate is constant between its changes, and gaps vary independently of one another: bursts of this length are not all in it"
	case name == "gap CV":
		return "gaps are of one law around the rate: the longest and shortest of the source are not all in it"
	case name == "hit share" && g.Drawn:
		return "turns are drawn one by one, and sessions share only the beginnings of the model"
	case name == "hit share":
		return "sessions that go on across the beginning have lost what came before, and branches share only what one turn has of the one before"
	case g.Drawn:
		return "turns are drawn one by one: what goes together within a session is not in the model"
	}
	return "more than samples of as many sessions differ by"
}
