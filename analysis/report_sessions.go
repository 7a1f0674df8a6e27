package analysis

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// text writes the roll-up of sessions, if there is one.
func (s *Sessions) text(p *printer) {
	if s == nil {
		return
	}
	p.section("sessions")
	line := fmt.Sprintf("%s, all requests successful in %s", Grouped(s.Sessions), Grouped(s.Complete))
	if s.Agents > 0 {
		line += fmt.Sprintf("; %s", Counted(s.Agents, "sub-agent"))
	}
	p.pair("sessions", line)
	s.Metrics.table(p, "sessions", unitTurns)
	s.Metrics.table(p, "sessions, ms", unitMS)
	if len(s.TTFTByTurn) > 1 {
		s.turns(p)
	}
	s.Metrics.absences(p)
}

// turns writes the TTFT by place in the session.
func (s *Sessions) turns(p *printer) {
	t := table.NewWriter()
	t.SetStyle(plain)
	t.AppendHeader(table.Row{"ttft by turn, ms", "n", "mean", "p50", "p90", "p99", "max"})
	var configs []table.ColumnConfig
	for i := 2; i <= 7; i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	for _, turn := range s.TTFTByTurn {
		m := turn.TTFT
		row := table.Row{turn.Turns, Grouped(m.N)}
		for _, name := range []string{"mean", "p50", "p90", "p99", "max"} {
			row = append(row, m.cell(m.Stat(name)))
		}
		t.AppendRow(row)
	}
	t.SuppressTrailingSpaces()
	p.line("")
	p.line(t.Render())
}

// plannedReuse says what of the planned input a prefix cache could have served,
// to stand beside what the server says it did.
func (s *Summary) plannedReuse() string {
	reuse, input := s.Planned.ReuseTokens, s.Planned.InputTokens
	if reuse == nil || input == nil || *input == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s planned input tokens (%s) repeat an earlier prefix: what a cache without limit would serve",
		Grouped(*reuse), Grouped(*input), percent(float64(*reuse)/float64(*input)))
	if s.Tokens.Cached.Requests == 0 {
		text += "; the server says nothing of its cache"
	}
	return text
}
