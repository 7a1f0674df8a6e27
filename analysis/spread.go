package analysis

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Spread says how far the numbers of repeated runs lie apart.
type Spread struct {
	Runs    int         `json:"runs"`
	Level   float64     `json:"level"` // of the intervals
	Numbers []SpreadRow `json:"numbers"`
}

// A SpreadRow is one number over the runs that have it. Its interval is Student's, for
// the mean of runs that are independent and about normally distributed; it needs two.
type SpreadRow struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"` // of each run, in order
	Mean   float64   `json:"mean"`
	SD     *float64  `json:"sd"` // n-1 in the denominator
	Low    *float64  `json:"low"`
	High   *float64  `json:"high"`
}

// spreadMetrics are the numbers of a spread, beside throughput and errors.
var spreadMetrics = []struct {
	name  string
	stats []string
}{
	{"ttft", []string{"p50", "p95", "p99"}}, {"itl", []string{"p50", "p95", "p99"}}, {"tpot", []string{"p50", "p95"}}, {"e2e", []string{"p50", "p95", "p99"}},
	{"response_time", []string{"p50", "p95"}}, {"lateness", []string{"p99"}},
}

// SpreadOf holds the runs against one another.
func SpreadOf(runs []*Summary) *Spread {
	s := &Spread{Runs: len(runs), Level: 0.95}
	row := func(name, unit string, of func(*Summary) *float64) {
		r := SpreadRow{Name: name, Unit: unit}
		for _, run := range runs {
			if v := of(run); v != nil {
				r.Values = append(r.Values, *v)
			}
		}
		if len(r.Values) > 0 {
			r.close(s.Level)
			s.Numbers = append(s.Numbers, r)
		}
	}
	for _, m := range spreadMetrics {
		for _, stat := range m.stats {
			row(m.name+"_"+stat, unitMS, func(s *Summary) *float64 {
				if v, ok := s.Metrics.Get(m.name).Stat(stat).Get(); ok {
					return &v
				}
				return nil
			})
		}
	}
	row("requests_per_s", "requests/s", func(s *Summary) *float64 { return s.Throughput.RequestsPerS })
	row("output_tokens_per_s", "tokens/s", func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS })
	row("error_rate", "share", func(s *Summary) *float64 { return s.ErrorRate })
	return s
}

func (r *SpreadRow) close(level float64) {
	n := float64(len(r.Values))
	for _, v := range r.Values {
		r.Mean += v / n
	}
	if n < 2 {
		return
	}
	sum := 0.0
	for _, v := range r.Values {
		sum += (v - r.Mean) * (v - r.Mean)
	}
	sd := math.Sqrt(sum / (n - 1))
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+level)/2) * sd / math.Sqrt(n)
	r.SD, r.Low, r.High = &sd, new(r.Mean-half), new(r.Mean+half)
}

// WriteText writes a table: mean, standard deviation and interval over the runs, and
// the runs.
func (s *Spread) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s; mean over runs, standard deviation between them, and %.0f %% interval of the mean (Student's t)\n\n", Counted(int64(s.Runs), "run"), 100*s.Level)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "number\tunit\truns\tmean\tsd\tlow\thigh\tsd/mean\teach run\t")
	for _, r := range s.Numbers {
		var each []string
		for _, v := range r.Values {
			each = append(each, NumberText(v))
		}
		sd, low, high, cv := "n/a", "n/a", "n/a", "n/a"
		if r.SD != nil {
			sd, low, high = NumberText(*r.SD), NumberText(*r.Low), NumberText(*r.High)
			if r.Mean != 0 {
				cv = percent(*r.SD / math.Abs(r.Mean))
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Unit, len(r.Values), NumberText(r.Mean), sd, low, high, cv, strings.Join(each, " "))
	}
	return tw.Flush()
}
