package analysis

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes one header and one row per metric: name, unit, n and [Stats].
// Throughputs are rows too, with n the successful requests and the rate as
// mean. What is not known is an empty field.
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
	t := &s.Throughput
	for _, r := range []struct {
		name, unit string
		n          int64
		rate       *float64
	}{
		{"requests_throughput", "requests/s", s.Requests.Successful, t.RequestsPerS},
		{"input_throughput", "tokens/s", s.Requests.Successful - t.InputUncounted, t.InputTokensPerS},
		{"output_throughput", "tokens/s", s.Requests.Successful - t.OutputUncounted, t.OutputTokensPerS},
	} {
		row := make([]string, len(rows[0]))
		row[0], row[1], row[2] = r.name, r.unit, strconv.FormatInt(r.n, 10)
		if r.rate != nil {
			row[3] = plainNumber(*r.rate)
		}
		rows = append(rows, row)
	}
	return out.WriteAll(rows)
}
