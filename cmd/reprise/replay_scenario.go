package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/formats/mapper"
	"reprise/trace"
	"reprise/trace/results"
)

// A scenario is several phases of load, one after the other, each a run of its own.
type scenario struct {
	trace  string
	phases []scenarioPhase
}

// A scenarioPhase is a run with the flags of a replay.
type scenarioPhase struct {
	name string
	line int
	args []string
}

// phaseName is what a phase may be called: it names a directory.
var phaseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ofScenario are flags of replay that belong to the scenario as a whole, or to the
// command line.
var ofScenario = []string{"file", "output", "force", "dry-run", "json", "progress", "phase", "self-test", "scenario-schema", "help", "repeat"}

// readScenario reads a scenario file: YAML with trace, defaults and phases, where
// defaults and each phase have flags of reprise replay as keys. Errors name the line.
func readScenario(path string, flags []cli.Flag) (_ *scenario, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := mapper.CheckNesting(path, text); err != nil {
		return nil, err
	}
	defer func() { // the parser has panics for what is far from YAML
		if p := recover(); p != nil {
			err = trace.WithFix(fmt.Errorf("%s: not YAML: %v", path, p), scenarioForm)
		}
	}()
	file, err := parser.ParseBytes(bytes.TrimPrefix(text, []byte("\ufeff")), 0) // a byte order mark is part of no key
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := scenarioReader{path: path, flags: flags}
	if len(file.Docs) > 1 {
		return nil, trace.WithFix(fmt.Errorf("%s: %d YAML documents, and a scenario is one", path, len(file.Docs)), "write each to a file of its own")
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, trace.WithFix(fmt.Errorf("%s: no scenario in it", path), scenarioForm)
	}
	s := &scenario{}
	var defaults []string
	err = r.mapping(file.Docs[0].Body, func(key string, value ast.Node) (err error) {
		switch key {
		case "trace":
			s.trace, err = r.text(value)
		case "defaults":
			defaults, err = r.args(value, nil)
		case "phases":
			err = r.phases(value, s)
		default:
			err = r.at(value, "unknown key %q: it has trace, defaults and phases", key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(s.phases) == 0 {
		return nil, trace.WithFix(fmt.Errorf("%s: no phases", path), scenarioForm)
	}
	for i := range s.phases {
		s.phases[i].args = slices.Concat(without(defaults, s.phases[i].args), s.phases[i].args)
	}
	return s, nil
}

const scenarioForm = "write it like: {trace: prod.parquet, defaults: {url: http://127.0.0.1:8000}, phases: [{name: calm, arrivals: poisson:2, duration: 1m}, {name: peak, arrivals: poisson:20, duration: 1m}]}"

// without are the defaults that a phase does not set itself.
func without(defaults, args []string) (out []string) {
	set := map[string]bool{}
	for i := 0; i < len(args); i += 2 {
		set[args[i]] = true
	}
	for i := 0; i < len(defaults); i += 2 {
		if !set[defaults[i]] {
			out = append(out, defaults[i], defaults[i+1])
		}
	}
	return out
}

type scenarioReader struct {
	path  string
	flags []cli.Flag
}

func (r *scenarioReader) at(n ast.Node, format string, args ...any) error {
	return trace.WithFix(fmt.Errorf("%s:%d: %s", r.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)), "reprise replay --scenario-schema prints what a scenario may hold")
}

// mapping calls f with each key of a mapping. A key comes once.
func (r *scenarioReader) mapping(n ast.Node, f func(key string, value ast.Node) error) error {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return r.at(n, "want keys and values, got %s", n.Type())
	}
	for _, v := range values {
		if err := f(v.Key.GetToken().Value, v.Value); err != nil {
			return err
		}
	}
	return nil
}

func (r *scenarioReader) phases(n ast.Node, s *scenario) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.at(n, "phases is no list")
	}
	names := map[string]bool{}
	for _, item := range list.Values {
		p := scenarioPhase{line: item.GetToken().Position.Line}
		args, err := r.args(item, &p.name)
		switch {
		case err != nil:
			return err
		case !phaseName.MatchString(p.name):
			return r.at(item, "phase %q: a phase has a name of letters, digits, dots and dashes", p.name)
		case names[p.name]:
			return r.at(item, "two phases are called %q", p.name)
		}
		names[p.name] = true
		p.args = args
		s.phases = append(s.phases, p)
	}
	return nil
}

// args turns a mapping into flags. name takes the key name, if it is wanted.
func (r *scenarioReader) args(n ast.Node, name *string) (args []string, err error) {
	err = r.mapping(n, func(key string, value ast.Node) error {
		if key == "name" && name != nil {
			*name, err = r.text(value)
			return err
		}
		if i := slices.IndexFunc(r.flags, func(f cli.Flag) bool { return f.Names()[0] == key }); i < 0 || slices.Contains(ofScenario, key) {
			return r.at(value, "%q is no flag of reprise replay that a phase may set", key)
		}
		list, ok := value.(*ast.SequenceNode)
		if !ok {
			text, err := r.text(value)
			args = append(args, "--"+key, text)
			return err
		}
		for _, item := range list.Values {
			text, err := r.text(item)
			if err != nil {
				return err
			}
			args = append(args, "--"+key, text)
		}
		return nil
	})
	return args, err
}

// text is a scalar as it is written.
func (r *scenarioReader) text(n ast.Node) (string, error) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", r.at(n, "want one value, got %s", n.Type())
}

// command are the arguments of a phase's run.
func (s *scenario) command(p *scenarioPhase, more ...string) []string {
	args := []string{"reprise", "replay"}
	for i := 0; i < len(p.args); i += 2 {
		args = append(args, p.args[i]+"="+p.args[i+1])
	}
	args = append(args, "--phase="+p.name)
	args = append(args, more...)
	if s.trace != "" {
		args = append(args, s.trace)
	}
	return args
}

// replayScenario makes the runs of a scenario file, or with --dry-run prints their
// plans.
func replayScenario(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 0 {
		return misuse("name the trace in the file, as trace", "--file has the trace, but there is an argument too")
	}
	for _, f := range c.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(ofScenario, name) {
			return misuse("set it in the file, below defaults", "--%s does not go with --file", name)
		}
	}
	s, err := readScenario(c.String("file"), replayCommand().Flags)
	if err != nil {
		return misused{err, trace.Fix(err)}
	}
	own, cancel := context.WithCancelCause(context.Background()) // without the command that is in ctx: a phase is one of its own
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	if c.Bool("dry-run") {
		return s.plan(own, c)
	}
	return s.run(own, c)
}

// plan prints what the phases are going to send.
func (s *scenario) plan(ctx context.Context, c *cli.Command) error {
	var plans []plan
	for i := range s.phases {
		var out bytes.Buffer
		root := rootCommand(c.Root().Reader, &out, c.Root().ErrWriter)
		if err := root.Run(ctx, s.command(&s.phases[i], "--dry-run", "--json")); err != nil {
			return s.within(c, i, err)
		}
		var p plan
		if err := json.Unmarshal(out.Bytes(), &p); err != nil {
			return err
		}
		plans = append(plans, p)
	}
	if c.Bool("json") {
		named := map[string]plan{}
		for i, p := range plans {
			named[s.phases[i].name] = p
		}
		return writeJSON(c.Root().Writer, named)
	}
	w := tabwriter.NewWriter(c.Root().Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\trequests\tinput tokens\toutput tokens\tduration\tload")
	for i, p := range plans {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.phases[i].name, analysis.Grouped(p.Requests), plannedSum(p.InputTokens), plannedSum(p.OutputTokens), planLength(&p), p.Load)
	}
	return w.Flush()
}

func planLength(p *plan) string {
	if p.PeakRate == 0 {
		return "as the endpoint answers"
	}
	return time.Duration(p.DurationNS).Round(time.Millisecond).String()
}

func plannedSum(n *int64) string {
	if n == nil {
		return "not known"
	}
	return analysis.Grouped(*n)
}

// within says in which phase an error came.
func (s *scenario) within(c *cli.Command, i int, err error) error {
	named := fmt.Errorf("%s:%d: phase %s: %w", c.String("file"), s.phases[i].line, s.phases[i].name, err)
	if m, ok := errors.AsType[misused](err); ok {
		return misused{named, m.fix}
	}
	return named
}

// run makes the runs. One that could not be made ends the scenario; verdicts and
// gates do not.
func (s *scenario) run(ctx context.Context, c *cli.Command) error {
	dir := c.String("output")
	if dir == "" {
		return misuse("name one with -o, such as -o run/", "no directory to write")
	}
	var worst error
	w := tabwriter.NewWriter(c.Root().Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\tclient\trequests\tsuccessful\trequests/s\tttft p50, ms\tp95\ttpot p50, ms\tp95\tload")
	for i := range s.phases {
		p := &s.phases[i]
		out := filepath.Join(dir, strconv.Itoa(i+1)+"-"+p.name)
		args := []string{"--output=" + out, "--progress=" + c.String("progress")}
		if c.Bool("force") {
			args = append(args, "--force")
		}
		root := rootCommand(c.Root().Reader, io.Discard, c.Root().ErrWriter)
		err := root.Run(ctx, s.command(p, args...))
		v, judged := errors.AsType[verdict](err)
		if err != nil && !judged {
			w.Flush()
			return s.within(c, i, err)
		}
		if was, ok := errors.AsType[verdict](worst); judged && (!ok || was.code > v.code) { // 3 before 4
			worst = verdict{v.code, fmt.Errorf("phase %s: %w", p.name, v)}
		}
		if err := phaseRow(w, p.name, out); err != nil {
			return err
		}
	}
	return errors.Join(w.Flush(), worst)
}

func phaseRow(w io.Writer, name, dir string) error {
	opened, err := results.OpenRun(dir)
	if err != nil {
		return err
	}
	s, err := analysis.Summarize(context.Background(), opened)
	if err != nil {
		return err
	}
	cell := func(metric, stat string) string {
		if v, ok := s.Metrics.Get(metric).Stat(stat).Get(); ok {
			return analysis.NumberText(v)
		}
		return "n/a"
	}
	rate := "n/a"
	if r := s.Throughput.RequestsPerS; r != nil {
		rate = analysis.NumberText(*r)
	}
	_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, s.Verdict.Result, analysis.Grouped(s.Requests.Sent), analysis.Grouped(s.Requests.Successful), rate,
		cell("ttft", "p50"), cell("ttft", "p95"), cell("tpot", "p50"), cell("tpot", "p95"), s.Label)
	return err
}

// scenarioSchema is the JSON Schema of scenario files.
func scenarioSchema() map[string]any {
	flags := map[string]any{}
	for _, f := range replayCommand().Flags {
		name := f.Names()[0]
		if slices.Contains(ofScenario, name) {
			continue
		}
		one := map[string]any{"type": []string{"string", "number", "boolean"}}
		if d, ok := f.(cli.DocGenerationFlag); ok {
			one["description"] = d.GetUsage()
		}
		if _, many := f.(*cli.StringSliceFlag); many {
			one["type"] = []string{"string", "array"}
			one["items"] = map[string]any{"type": "string"}
		}
		flags[name] = one
	}
	phase := map[string]any{"name": map[string]any{"type": "string", "pattern": phaseName.String(), "description": "of the phase, its directory and its records"}}
	for name, f := range flags {
		phase[name] = f
	}
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Scenario of reprise replay --file", "type": "object", "additionalProperties": false, "required": []string{"phases"},
		"properties": map[string]any{
			"trace":    map[string]any{"type": "string", "description": "canonical trace; without one, input-tokens and output-tokens say what is sent"},
			"defaults": map[string]any{"type": "object", "additionalProperties": false, "properties": flags, "description": "flags of reprise replay for all phases"},
			"phases":   map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "object", "additionalProperties": false, "required": []string{"name"}, "properties": phase}},
		},
	}
}
