// Package mapper reads tables, JSON lines and Parquet files of any layout by a
// mapping that a user writes: which column is which, in what unit, and what to
// make of values. [Propose] writes a first mapping by looking at the data.
package mapper

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"reprise/formats/rows"
	"reprise/trace"
)

// Version is the version of mapping files that this package reads.
const Version = 1

// Schema is the JSON Schema (draft 2020-12) of mapping files.
//
//go:embed schema.json
var Schema []byte

// A Mapping says how the columns of a source become canonical ones.
type Mapping struct {
	Version int             `yaml:"version"`
	Clock   string          `yaml:"clock"`  // trace.ClockTrace (the default) or trace.ClockSession: arrivals since the session's start
	Others  string          `yaml:"others"` // OthersKeep (the default) or OthersDrop: columns that no rule names
	Columns map[string]Rule `yaml:"columns"`

	name string // of the file
}

// Values of Mapping.Others.
const (
	OthersKeep = "attributes" // kept as attributes
	OthersDrop = "drop"
)

// A Rule says where the values of one canonical column come from. A rule that is
// only a text is the name of a column.
type Rule struct {
	Column   string            `yaml:"column"`   // name; in JSON and Parquet also a path such as usage.prompt_tokens
	Constant *string           `yaml:"constant"` // the value of all rows, instead of a column
	Unit     string            `yaml:"unit"`     // of times: s, ms, us, ns, or iso for calendar times
	Zone     string            `yaml:"zone"`     // offset from UTC of calendar times that name none
	Epoch    bool              `yaml:"epoch"`    // of arrival: the numbers are Unix times
	Since    string            `yaml:"since"`    // of lengths of time: the column holds a moment; the length is since "arrival"
	Base     int32             `yaml:"base"`     // of turn: the number of the first one
	Tokens   int32             `yaml:"tokens"`   // of block_ids: tokens of a block
	Values   map[string]string `yaml:"values"`   // value, range a..b of numbers, or * for any other, to what it stands for
	Default  *string           `yaml:"default"`  // for what is empty, or what Values does not have
	Unknown  []string          `yaml:"unknown"`  // values that mean unknown, beside empty ones
	Optional bool              `yaml:"optional"` // a source without the column is no error

	line int
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (r *Rule) UnmarshalYAML(n ast.Node) error {
	line := n.GetToken().Position.Line
	type fields Rule
	switch n.(type) {
	case ast.ScalarNode:
		if err := yaml.NodeToValue(n, &r.Column); err != nil {
			return err
		}
	default:
		if err := yaml.NodeToValue(n, (*fields)(r), yaml.Strict()); err != nil {
			return err
		}
	}
	r.line = line
	return nil
}

// Parse reads a mapping file. Errors say the line in name.
func Parse(name string, text []byte) (m *Mapping, err error) {
	defer func() { // the parser has panics for what is far from YAML
		if p := recover(); p != nil {
			m, err = nil, &trace.RowError{File: name, Err: fmt.Errorf("not YAML: %v", p), Fix: hint}
		}
	}()
	if err := CheckNesting(name, text); err != nil {
		return nil, err
	}
	m = &Mapping{}
	if err := yaml.UnmarshalWithOptions(text, m, yaml.Strict()); err != nil {
		return nil, located(name, err)
	}
	m.name = name
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

const hint = "see the README of formats/mapper, or: reprise trace map-init --schema"

func located(name string, err error) error {
	row := &trace.RowError{File: name, Err: err, Fix: hint}
	if at, ok := errors.AsType[yaml.Error](err); ok {
		row.Err = errors.New(at.GetMessage())
		if t := at.GetToken(); t != nil {
			row.Line = int64(t.Position.Line)
		}
	}
	return row
}

func (m *Mapping) bad(line int, column, format string, args ...any) error {
	return &trace.RowError{File: m.name, Line: int64(line), Field: column, Err: fmt.Errorf(format, args...), Fix: hint}
}

func (m *Mapping) check() error {
	switch {
	case m.Version != Version:
		return m.bad(0, "version", "%d, this program reads version %d", m.Version, Version)
	case m.Clock != "" && m.Clock != trace.ClockTrace && m.Clock != trace.ClockSession:
		return m.bad(0, "clock", "%q is neither trace nor session", m.Clock)
	case m.Others != "" && m.Others != OthersKeep && m.Others != OthersDrop:
		return m.bad(0, "others", "%q is neither attributes nor drop", m.Others)
	case len(m.Columns) == 0:
		return m.bad(0, "columns", "no column is mapped")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Columns)) {
		r := m.Columns[name]
		t, ok := targetOf(name)
		if !ok {
			return m.bad(r.line, name, "no canonical column; there are: %s", strings.Join(targetNames(), ", "))
		}
		if err := r.check(t); err != nil {
			return m.bad(r.line, name, "%w", err)
		}
	}
	if _, ok := m.Columns["session_id"]; !ok && m.Clock == trace.ClockSession {
		return m.bad(0, "clock", "session, but session_id is not mapped")
	}
	return nil
}

// check holds a rule against what its column can use.
func (r *Rule) check(t target) error {
	if (r.Column == "") == (r.Constant == nil) {
		return errors.New("names neither, or both, of column and constant")
	}
	for _, use := range []struct {
		field string
		set   bool
		kinds []kind
	}{
		{"unit", r.Unit != "", []kind{moment, length}},
		{"zone", r.Zone != "", []kind{moment, length}},
		{"epoch", r.Epoch, []kind{moment}},
		{"since", r.Since != "", []kind{length}},
		{"base", r.Base != 0, []kind{turn}},
		{"tokens", r.Tokens != 0, []kind{blocks}},
		{"values", len(r.Values) > 0, []kind{integer, text, flag, choice}},
	} {
		if use.set && !slices.Contains(use.kinds, t.kind) {
			return fmt.Errorf("has no use for %s", use.field)
		}
	}
	for key := range r.Values {
		if _, _, err := bounds(key); err != nil {
			return err
		}
	}
	if t.kind == choice {
		return r.checkChoice(t)
	}
	if t.kind == blocks && r.Tokens < 1 {
		return errors.New("tokens, the number of tokens of a block, is missing")
	}
	if t.kind == moment || t.kind == length {
		return r.checkTime()
	}
	return nil
}

func (r *Rule) checkTime() error {
	if r.Since != "" && r.Since != "arrival" {
		return fmt.Errorf("since %q: it can be since arrival", r.Since)
	}
	if _, err := rows.ParseZone(r.Zone); err != nil {
		return err
	}
	switch r.Unit {
	case "s", "ms", "us", "ns":
		if r.Zone != "" {
			return errors.New("zone is for unit iso")
		}
	case "iso":
	case "":
		return errors.New("unit is missing: s, ms, us, ns or iso")
	default:
		return fmt.Errorf("unit %q: it can be s, ms, us, ns or iso", r.Unit)
	}
	return nil
}

// checkChoice holds what a column of few values is given against these.
func (r *Rule) checkChoice(t target) error {
	given := slices.Collect(maps.Values(r.Values))
	for _, v := range []*string{r.Constant, r.Default} {
		if v != nil {
			given = append(given, *v)
		}
	}
	for _, v := range given {
		if !slices.Contains(t.choices, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(t.choices, ", "))
		}
	}
	return nil
}

// unit returns the length of a unit; 0 for calendar times.
func (r *Rule) unit() time.Duration {
	return map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}[r.Unit]
}
