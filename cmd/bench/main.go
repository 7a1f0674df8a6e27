// Bench measures what the README claims about speed: each number is a ratio to a
// reference arm in the same run, or a bound that a whole command keeps.
//
//	go run ./cmd/bench [-pairs N] [-run REGEXP] [-out FILE]
//	go run ./cmd/bench peers [-aiperf PROGRAM ...]    # other load generators
//
// Every arm runs as a child process of its own, arms alternate, CPU time is what
// the child used (getrusage), and the ratio is that of the medians, with the
// range over the pairs. Absolute times say something of this machine alone.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Sample is what one run of an arm gave.
type Sample struct {
	Units float64            `json:"units"` // of work done
	CPU   float64            `json:"cpu_s"` // user and system, of the measured part
	Wall  float64            `json:"wall_s"`
	RSS   float64            `json:"rss_mb"` // peak of the process
	Extra map[string]float64 `json:"extra,omitempty"`
}

// An arm is one way to do the work.
type arm struct {
	name string
	run  func(b *work) error
}

// A measure is a benchmark: our arm, what it is held against, and the goal.
type measure struct {
	name   string
	unit   string // of work
	ours   arm
	refs   []reference
	bounds []bound
	pairs  int // 0 = as -pairs says
	setup  func(dir string) error
	server bool // arms need the paced server
	hidden bool // its arm is for others to start
	large  bool // only where -run names something
}

// A reference is another arm, and the goal for the ratio of costs.
type reference struct {
	arm
	goal float64 // ours / reference at most; below 1 means cheaper
	cost func(Sample) float64
	what string
}

// A bound is a limit that our arm keeps by itself.
type bound struct {
	what  string
	unit  string
	most  float64
	value func(Sample) float64
}

// published is the bound of a number that has no goal.
var published = math.Inf(1)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "arm" {
		if err := child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "peers" {
		if err := peers(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	pairs := flag.Int("pairs", 5, "runs of each arm, in turn")
	only := flag.String("run", "", "measures whose name this regular expression matches")
	out := flag.String("out", "", "file for the samples, as JSON")
	flag.Parse()
	if err := all(*pairs, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row is a line of the table that is printed.
type row struct {
	What    string  `json:"what"`
	Reached float64 `json:"reached"`
	Lo      float64 `json:"lo"`
	Hi      float64 `json:"hi"`
	Goal    float64 `json:"goal"` // 0 where there is none
	Unit    string  `json:"unit"`
	Pairs   int     `json:"pairs"`
	Kept    bool    `json:"kept"`
	Free    bool    `json:"no_goal,omitempty"`
}

func all(pairs int, only, out string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reprise-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []row
	var failed []error
	samples := map[string]map[string][]Sample{}
	fmt.Println("| what | reached | range | goal |\n| --- | --- | --- | --- |")
	for _, m := range measures {
		if m.hidden || m.large && only == "" || !match.MatchString(m.name) {
			continue
		}
		of, err := measured(m, pairs, dir)
		if err != nil { // a full disk, say; what else can be measured still is
			failed = append(failed, fmt.Errorf("%s: %w", m.name, err))
			fmt.Printf("| %s | | | **not measured**: %v |\n", m.name, err)
			continue
		}
		samples[m.name] = of
		for _, r := range m.rows(of) {
			rows = append(rows, r)
			r.print(os.Stdout)
		}
	}
	if out != "" {
		failed = append(failed, write(out, rows, samples))
	}
	return errors.Join(failed...)
}

func write(out string, rows []row, samples map[string]map[string][]Sample) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	e := json.NewEncoder(f)
	e.SetIndent("", " ")
	return e.Encode(map[string]any{"rows": rows, "samples": samples})
}

func (r *row) print(w io.Writer) {
	goal := fmt.Sprintf("at most %.3g: kept", r.Goal)
	switch {
	case r.Free:
		goal = "no goal"
	case !r.Kept:
		goal = fmt.Sprintf("at most %.3g: **not kept**", r.Goal)
	}
	fmt.Fprintf(w, "| %s | %.3g %s | %.3g to %.3g (n %d) | %s |\n", r.What, r.Reached, r.Unit, r.Lo, r.Hi, r.Pairs, goal)
}

// measured runs the arms of a measure, in turn.
func measured(m measure, pairs int, dir string) (map[string][]Sample, error) {
	if m.pairs > 0 {
		pairs = min(pairs, m.pairs)
	}
	home := filepath.Join(dir, strings.Map(plain, m.name))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	if m.setup != nil {
		if err := m.setup(home); err != nil {
			return nil, err
		}
	}
	address := ""
	if m.server {
		stop, at, err := startServer()
		if err != nil {
			return nil, err
		}
		defer stop()
		address = at
	}
	of := map[string][]Sample{}
	for range pairs {
		arms := []arm{m.ours}
		for _, r := range m.refs {
			if !slices.ContainsFunc(arms, func(a arm) bool { return a.name == r.name }) {
				arms = append(arms, r.arm)
			}
		}
		for _, a := range arms {
			s, err := runChild(m.name, a.name, home, address)
			if err != nil {
				return nil, fmt.Errorf("arm %s: %w", a.name, err)
			}
			of[a.name] = append(of[a.name], s)
		}
	}
	return of, nil
}

func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

func runChild(measure, arm, dir, address string) (s Sample, err error) {
	cmd := exec.Command(os.Args[0], "arm", measure, arm, dir, address)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// rows are the ratios and bounds of a measure.
func (m *measure) rows(of map[string][]Sample) []row {
	var rows []row
	for _, r := range m.refs {
		ratios := make([]float64, len(of[m.ours.name]))
		for i, s := range of[m.ours.name] {
			ratios[i] = r.cost(s) / r.cost(of[r.name][i])
		}
		reached := median(of[m.ours.name], r.cost) / median(of[r.name], r.cost)
		rows = append(rows, row{What: m.name + ": " + r.what, Reached: reached, Lo: slices.Min(ratios), Hi: slices.Max(ratios), Goal: r.goal, Unit: "x", Pairs: len(ratios), Kept: reached <= r.goal})
	}
	for _, b := range m.bounds {
		var values []float64
		for _, s := range of[m.ours.name] {
			values = append(values, b.value(s))
		}
		reached := median(of[m.ours.name], b.value)
		rows = append(rows, row{What: m.name + ": " + b.what, Reached: reached, Lo: slices.Min(values), Hi: slices.Max(values), Goal: b.most, Unit: b.unit, Pairs: len(values), Kept: reached <= b.most, Free: b.most == published})
		if last := &rows[len(rows)-1]; last.Free {
			last.Goal = 0 // JSON has no infinity
		}
	}
	return rows
}

func median(list []Sample, of func(Sample) float64) float64 {
	values := make([]float64, len(list))
	for i, s := range list {
		values[i] = of(s)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func cpuPerUnit(s Sample) float64 { return s.CPU / s.Units }
func wall(s Sample) float64       { return s.Wall }
func rss(s Sample) float64        { return s.RSS }
