package analysis

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/analysis/telemetry"
)

// telemetryText writes what servers said of themselves, if they were asked.
func (s *Summary) telemetryText(p *printer) {
	t := s.Telemetry
	if t == nil {
		return
	}
	p.section("servers")
	for i := range t.Sources {
		p.pair(fmt.Sprintf("page %d", i+1), sourceText(&t.Sources[i]))
	}
	if len(t.Series) > 0 {
		header := table.Row{"series", "unit", "page", "n", "mean", "min", "max", "last"}
		var rows []table.Row
		for i := range t.Series {
			v := &t.Series[i]
			rows = append(rows, table.Row{v.Name, v.Unit, t.Page(v.Source), Grouped(v.N), numberText(v.Mean), numberText(v.Min), numberText(v.Max), numberText(v.Last)})
		}
		p.table(header, rows)
	}
	for i := range t.Energy {
		p.pair("energy", energyText(&t.Energy[i]))
	}
	if t.Other > 0 {
		p.pair("others", fmt.Sprintf("%s more names are in telemetry.parquet", Grouped(t.Other)))
	}
}

func sourceText(s *telemetry.Source) string {
	text := s.URL
	if s.Exporters != "" {
		text += " (" + s.Exporters + ")"
	}
	text += fmt.Sprintf(": %s, %s failed", Counted(s.Scrapes, "scrape"), Grouped(s.Failed))
	if s.FirstError != nil {
		text += ", first: " + *s.FirstError
	}
	if s.Skipped != nil && *s.Skipped > 0 {
		text += fmt.Sprintf("; %s left out, since the one before was not over", Grouped(*s.Skipped))
	}
	if s.Unusable > 0 {
		text += fmt.Sprintf("; %s of known series left out: NaN, infinite or negative", Counted(s.Unusable, "sample"))
	}
	if s.Scrapes > 0 {
		text += fmt.Sprintf("; the longest took %s ms", decimals(s.SlowestMS))
	}
	return text
}

func energyText(e *telemetry.Energy) string {
	name := map[string]string{"gpu_power": "GPUs", "host_power": "processors (RAPL)"}[e.Power]
	text := fmt.Sprintf("%s J of %s (n %s of power, %s of the run)", numberText(e.Joules), name, Counted(e.N, "sample"), percent(e.Covered))
	switch {
	case e.PerToken != nil:
		text += fmt.Sprintf(", %s J for each of %s output tokens", numberText(*e.PerToken), Grouped(e.Tokens))
	case e.Tokens > 0:
		text += ", no energy per token: too little of the run is covered"
	}
	return text
}
