package analysis

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes one header and one row per metric: name, unit, n and [Stats].
// A number that is no distribution, such as a throughput or a goodput, is a row
// too and stands as mean; METRIC:with_failures are quantiles with failures as
// worst values. What is not known, or not reached, is an empty field. The last column
// says how the load was made: a latency of a closed loop is another thing than one of
// an open loop.
func WriteCSV(w io.Writer, s *Summary) error {
	out := csv.NewWriter(w)
	rows := [][]string{append([]string{"name", "unit", "n"}, Stats[:]...)}
	for _, m := range s.Metrics {
		row := []string{m.Name, m.Unit, strconv.FormatInt(m.N, 10)}
		for _, v := range m.stats {
			field := ""
			if v.Known {
				field = plainNumber(v.Value)
			}
			row = append(row, field)
		}
		rows = append(rows, row)
	}
	for _, f := range s.Failing.Metrics {
		rows = append(rows, []string{f.Name + ":with_failures", unitMS, strconv.FormatInt(f.N, 10),
			"", "", "", field(f.P50), field(f.P90), field(f.P95), field(f.P99), field(f.P999), ""})
	}
	for _, r := range append(s.Throughput.csv(s), s.SLO.csv()...) {
		row := make([]string, len(rows[0]))
		row[0], row[1], row[2], row[3] = r.name, r.unit, strconv.FormatInt(r.n, 10), field(r.value)
		rows = append(rows, row)
	}
	rows[0] = append(rows[0], "load")
	for i := range rows[1:] {
		rows[i+1] = append(rows[i+1], s.Label)
	}
	return out.WriteAll(rows)
}

// A csvNumber is a row with one number.
type csvNumber struct {
	name, unit string
	n          int64
	value      *float64
}

func field(v *float64) string {
	if v == nil {
		return ""
	}
	return plainNumber(*v)
}

func (t *Throughput) csv(s *Summary) []csvNumber {
	return []csvNumber{
		{"requests_throughput", "requests/s", s.Requests.Successful, t.RequestsPerS},
		{"input_throughput", "tokens/s", s.Requests.Successful - t.InputUncounted, t.InputTokensPerS},
		{"output_throughput", "tokens/s", s.Requests.Successful - t.OutputUncounted, t.OutputTokensPerS},
	}
}

func (r *SLOResult) csv() (rows []csvNumber) {
	if r == nil {
		return nil
	}
	for _, t := range r.Tiers {
		for _, g := range t.Gates {
			rows = append(rows, csvNumber{"gate:" + t.Name + ":" + g.Gate, g.Unit, g.N, g.Value})
		}
		if g := t.Goodput; g != nil {
			rows = append(rows,
				csvNumber{"good_share:" + t.Name, "share", r.Requests, g.Share},
				csvNumber{"goodput:" + t.Name, "requests/s", g.Good, g.PerS},
				csvNumber{"good_output_throughput:" + t.Name, "tokens/s", g.Good - g.Unknown, g.TokensPer},
				csvNumber{"good_session_share:" + t.Name, "share", g.Sessions, g.SessionShare})
		}
	}
	return rows
}
