package export

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"reprise/analysis"
	"reprise/trace/results"
)

// benchStats are the numbers of a line.
var benchStats = [...]string{"mean", "p50", "p90", "p95", "p99"}

// WriteBenchstat writes the Go benchmark format (golang.org/design/14313-benchmark-format),
// for golang.org/x/perf/cmd/benchstat: a line per metric, its samples in the place of
// iterations, with mean and quantiles in units of their own, so that benchstat makes a
// table of each. A run is one measurement of a number: several runs of each side, one
// file after the other, give benchstat its intervals. Pace and trace are
// configuration, so that runs that differ in them are not set side by side.
func WriteBenchstat(w io.Writer, s *analysis.Summary, host results.Host) error {
	b := bufio.NewWriter(w)
	if host.OS != "" {
		fmt.Fprintf(b, "goos: %s\ngoarch: %s\n", host.OS, host.Arch)
	}
	fmt.Fprintln(b, "pkg: reprise/replay")
	if s.Trace != nil {
		fmt.Fprintf(b, "trace: %.12s\n", s.Trace.SHA256)
	}
	fmt.Fprintf(b, "load: %s\n", s.Label)
	for _, unit := range []string{"requests/s", "tokens/s", "good-share"} {
		fmt.Fprintf(b, "Unit %s better=higher\n", unit)
	}
	fmt.Fprintln(b, "Unit error-share better=lower")
	for _, m := range s.Metrics {
		if m.N == 0 {
			continue
		}
		fmt.Fprintf(b, "Benchmark%s %d", benchName(m.Name), m.N)
		for _, name := range benchStats {
			v, unit := m.Stat(name).Value, m.Unit
			if m.Unit == "ms" {
				v, unit = math.Round(v*1e6), "ns"
			}
			fmt.Fprintf(b, " %s %s-%s", strconv.FormatFloat(v, 'f', -1, 64), name, unit)
		}
		fmt.Fprintln(b)
	}
	line := func(name string, n int64, v *float64, unit string) {
		if v != nil && n > 0 {
			fmt.Fprintf(b, "Benchmark%s %d %s %s\n", name, n, strconv.FormatFloat(*v, 'f', -1, 64), unit)
		}
	}
	t := &s.Throughput
	line("Requests", s.Requests.Successful, t.RequestsPerS, "requests/s")
	line("InputTokens", s.Requests.Successful-t.InputUncounted, t.InputTokensPerS, "tokens/s")
	line("OutputTokens", s.Requests.Successful-t.OutputUncounted, t.OutputTokensPerS, "tokens/s")
	line("Errors", s.Requests.Successful+s.Requests.Censored, s.ErrorRate, "error-share")
	if s.SLO != nil {
		for _, tier := range s.SLO.Tiers {
			if g := tier.Goodput; g != nil {
				line("Good/tier="+tierName(tier.Name), s.SLO.Requests, g.Share, "good-share")
			}
		}
	}
	return b.Flush()
}

// benchName turns ttft into TTFT and chunk_gap into ChunkGap.
func benchName(name string) string {
	short := map[string]bool{"ttft": true, "ttfo": true, "ttst": true, "itl": true, "tpot": true, "e2e": true, "osl1": true}
	var out strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if short[part] {
			part = strings.ToUpper(part)
		}
		out.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return out.String()
}

// tierName is a tier as part of a name, which ends at a space.
func tierName(name string) string { return strings.Join(strings.Fields(name), "_") }
