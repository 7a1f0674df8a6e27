package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A peersRun holds other load generators against reprise, on one mock server
// and one trace.
type peersRun struct {
	dir     string
	reprise string
	pairs   int
	seconds float64 // of a rung of a ladder
	most    float64 // requests/s, where ladders end
	tools   []tool
	skipped []string
	n       int // jobs so far
}

// A job's outcome, for the file of results.
type outcome struct {
	Tool     string  `json:"tool"`
	Rate     float64 `json:"rate_per_s"`
	Requests int     `json:"requests"`
	Tokens   int     `json:"tokens"`
	Spent    spent   `json:"spent"`
	Held     held    `json:"held"`
	Truth    *truth  `json:"truth,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// cpuShapes are the traces whose CPU is compared: streams, and short requests at
// a rate where waiting for the next one counts for less. The tools run the first ones of a
// trace and the whole trace, and the difference is what requests cost.
var cpuShapes = []shape{
	{rate: 50, requests: 800, tokens: 16},
	{rate: 200, requests: 1600, tokens: 1},
}

// cpuFirst of the requests are the small run.
const cpuFirst = 8

// jobLimit is how long one run of a tool may take.
const jobLimit = 2 * time.Minute

func peers(args []string) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	p := peersRun{}
	flags.StringVar(&p.reprise, "reprise", "bin/reprise", "the binary")
	aiperf := flags.String("aiperf", "", "AIPerf's program; empty skips it")
	version := flags.String("aiperf-version", "", "its version")
	inference := flags.String("inference-perf", "", "inference-perf's program; empty skips it")
	inferenceVersion := flags.String("inference-perf-version", "", "its version")
	tokenizer := flags.String("tokenizer", "", "directory with a tokenizer that both load")
	skipped := flags.String("skipped", "", "tools that are left out, with the reasons, separated by |")
	out := flags.String("out", "", "file for all samples, as JSON")
	flags.IntVar(&p.pairs, "pairs", 2, "pairs of runs, in turn")
	flags.Float64Var(&p.seconds, "seconds", 4, "length of a rung of the ladder of rates")
	flags.Float64Var(&p.most, "most", 16000, "highest rate of the ladder, requests/s")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *skipped != "" {
		p.skipped = strings.Split(*skipped, "|")
	}
	p.tools = []tool{replayTool(p.reprise)}
	if *aiperf != "" {
		p.tools = append(p.tools, aiperfTool(*aiperf, *version, *tokenizer))
	}
	if *inference != "" {
		p.tools = append(p.tools, inferencePerfTool(*inference, *inferenceVersion, *tokenizer))
	}
	dir, err := os.MkdirTemp("", "reprise-peers-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p.dir = dir
	all, err := p.all(os.Stdout)
	if *out != "" && err == nil {
		text, _ := json.MarshalIndent(map[string]any{"runs": all, "skipped": p.skipped}, "", " ")
		err = os.WriteFile(*out, text, 0o644)
	}
	return err
}

func (p *peersRun) all(w io.Writer) (all []outcome, err error) {
	p.probe()
	fmt.Fprintf(w, "%d CPUs, %s/%s; the mock runs beside the client. CPU: user and system of a tool and all its processes.\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	for _, s := range cpuShapes {
		runs, err := p.compareCPU(w, s)
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	fmt.Fprintf(w, "| highest rate held on time (p99 of \\|arrival - due\\| at most %g ms at the server; %g s, answers of one token) | requests/s | reached p99 | next rate tried | its p99 | arrived |\n| --- | --- | --- | --- | --- | --- |\n", onTime, p.seconds)
	var best []float64
	for i := range p.tools {
		runs := p.ladder(w, &p.tools[i])
		all = append(all, runs...)
		best = append(best, highest(runs))
	}
	fmt.Fprintln(w)
	for i, t := range p.tools[1:] {
		if best[i+1] > 0 {
			fmt.Fprintf(w, "reprise holds %.3g x the rate of %s (goal: at least 20 x).\n", best[0]/best[i+1], t.name)
		}
	}
	for _, s := range p.skipped {
		fmt.Fprintln(w, "skip", strings.TrimSpace(s))
	}
	return all, nil
}

// probe leaves out the tools that do not get through a short run.
func (p *peersRun) probe() {
	p.tools = slices.DeleteFunc(p.tools, func(t tool) bool {
		_, err := p.run(&t, shape{rate: 10, requests: 20, tokens: 2})
		if err != nil {
			p.skipped = append(p.skipped, err.Error())
		}
		return err != nil && t.name != p.tools[0].name
	})
}

// compareCPU runs every tool on the first part of a trace and on all of it, in
// turn.
func (p *peersRun) compareCPU(w io.Writer, s shape) (all []outcome, err error) {
	first := s
	first.requests /= cpuFirst
	slope := make([][]float64, len(p.tools)) // ms of CPU a request
	total := make([][]float64, len(p.tools))
	whole := make([][]outcome, len(p.tools))
	for pair := range p.pairs {
		for i, t := range p.tools {
			if t.pairs > 0 && pair >= t.pairs {
				continue
			}
			a, err := p.run(&p.tools[i], first)
			if err != nil {
				return nil, err
			}
			b, err := p.run(&p.tools[i], s)
			if err != nil {
				return nil, err
			}
			all = append(all, a, b)
			whole[i] = append(whole[i], b)
			slope[i] = append(slope[i], (b.Spent.CPU-a.Spent.CPU)/float64(s.requests-first.requests)*1e3)
			total[i] = append(total[i], b.Spent.CPU)
		}
	}
	fmt.Fprintf(w, "| %d requests at %g/s, prompts of %d tokens, %d tokens an answer, one a chunk, %v apart | CPU a request, start-up excluded | range | CPU of the whole run | p99 of \\|arrival - due\\| | TTFT error, p50 (p99) | ITL error, p50 (p99) |\n| --- | --- | --- | --- | --- | --- | --- |\n",
		s.requests, s.rate, promptTokens, s.tokens, step)
	for i, t := range p.tools {
		mid := func(of func(outcome) float64) float64 { return medianOf(whole[i], of) }
		itl := "n/a" // of one token
		if s.tokens > 1 {
			itl = fmt.Sprintf("%.1f us (%.1f)", mid(func(o outcome) float64 { return o.Truth.ITL }), mid(func(o outcome) float64 { return o.Truth.ITLP99 }))
		}
		fmt.Fprintf(w, "| %s %s | %.3g ms | %.3g to %.3g (n %d) | %.3g s | %.3g ms | %.0f us (%.0f) | %s |\n", t.name, t.version, quantile(slope[i], 0.5), slices.Min(slope[i]), slices.Max(slope[i]), len(slope[i]),
			quantile(total[i], 0.5), mid(func(o outcome) float64 { return o.Held.OffP99 }),
			mid(func(o outcome) float64 { return o.Truth.TTFT }), mid(func(o outcome) float64 { return o.Truth.TTFTP99 }),
			itl)
	}
	fmt.Fprintln(w)
	for i, t := range p.tools[1:] {
		fmt.Fprintf(w, "%s takes %.3g x the CPU a request (goal: at least 50 x), and %.3g x that of the whole run.\n", t.name,
			quantile(slope[i+1], 0.5)/quantile(slope[0], 0.5), quantile(total[i+1], 0.5)/quantile(total[0], 0.5))
	}
	fmt.Fprintln(w)
	return all, nil
}

// medianOf is the median of a figure over the runs.
func medianOf(runs []outcome, of func(outcome) float64) float64 {
	values := make([]float64, len(runs))
	for i, o := range runs {
		values[i] = of(o)
	}
	return quantile(values, 0.5)
}

// ladder raises the rate by steps of sqrt(2) until two rates in a row fail. One
// that fails is tried again, since the machine has hiccups of its own.
func (p *peersRun) ladder(w io.Writer, t *tool) (all []outcome) {
	var good, bad outcome
	for rate, failed := t.start, 0; failed < 2 && rate <= p.most*1.01; rate *= math.Sqrt2 {
		s := shape{rate: math.Round(rate), tokens: 1}
		s.requests = int(s.rate * p.seconds)
		var r outcome
		for try := 0; try < ladderTries && !r.Held.OnTime; try++ {
			var err error
			if r, err = p.run(t, s); err != nil { // as when it does not get through within the limit
				r.Error = err.Error()
			}
			all = append(all, r)
		}
		if r.Held.OnTime {
			good, bad, failed = r, outcome{}, 0
			continue
		}
		if failed++; failed == 1 {
			bad = r
		}
	}
	next := "none | |"
	if bad.Rate > 0 {
		next = fmt.Sprintf("%g | %.3g ms | %.4g/s", bad.Rate, bad.Held.OffP99, bad.Held.Rate)
	}
	fmt.Fprintf(w, "| %s %s | %g | %.3g ms | %s |\n", t.name, t.version, good.Rate, good.Held.OffP99, next)
	return all
}

// ladderTries is how often a rate is tried.
const ladderTries = 3

func highest(runs []outcome) (rate float64) {
	for _, r := range runs {
		if r.Held.OnTime {
			rate = max(rate, r.Rate)
		}
	}
	return rate
}

// lastWords is the end of a log.
func lastWords(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-800):]))
}

// run is one job against a fresh server. A run that cannot be compared is an
// error, and still has what was measured.
func (p *peersRun) run(t *tool, s shape) (o outcome, err error) {
	p.n++
	dir := filepath.Join(p.dir, fmt.Sprint("job-", p.n))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return o, err
	}
	o = outcome{Tool: t.name, Rate: s.rate, Requests: s.requests, Tokens: s.tokens}
	j := job{dir: dir, shape: s, jsonl: dir + ".jsonl"}
	if err := s.write(j.jsonl); err != nil {
		return o, err
	}
	if text, err := exec.Command(p.reprise, "trace", "import", j.jsonl, "-o", dir+".parquet").CombinedOutput(); err != nil {
		return o, fmt.Errorf("import: %w: %s", err, text)
	}
	server, err := startMock(p.reprise, dir)
	if err != nil {
		return o, err
	}
	j.url = server.url
	if t.prepare != nil {
		if err := t.prepare(j); err != nil {
			server.stop()
			return o, err
		}
	}
	o.Spent, err = t.spend(j, jobLimit)
	account, serr := server.stop()
	if err == nil {
		err = serr
	}
	o.Held = s.hold(account)
	if err != nil {
		return o, err
	}
	if len(account) != s.requests {
		return o, fmt.Errorf("%s: %d of %d requests were answered; its last words: %s", t.name, len(account), s.requests, lastWords(dir+".log"))
	}
	said, err := t.read(j)
	if err != nil {
		return o, err
	}
	truth, err := compareTruth(account, said)
	if err != nil {
		return o, fmt.Errorf("%s: %w", t.name, err)
	}
	o.Truth = &truth
	return o, nil
}
