package stats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A LawSpec is a Law as data, for a model file:
//
//	{"family": "gamma", "params": {"shape": 0.23, "scale": 1.7}}
//	{"family": "mixture", "weights": [0.3, 0.7], "laws": [LAW, LAW]}
//	{"family": "spliced", "params": {"threshold": 4096, "tail_share": 0.1}, "body": LAW, "tail": LAW}
//	{"family": "capped", "params": {"cap": 7437}, "of": LAW}
//	{"family": "empirical", "values": [1, 2], "counts": [7, 3]}
//
// Decoding is strict: a field that the family has not is an error, and so is one
// that is missing.
type LawSpec struct {
	Family  string             `json:"family"`
	Params  map[string]float64 `json:"params,omitempty"`
	Weights []float64          `json:"weights,omitempty"`
	Laws    []LawSpec          `json:"laws,omitempty"`
	Body    *LawSpec           `json:"body,omitempty"`
	Tail    *LawSpec           `json:"tail,omitempty"`
	Of      *LawSpec           `json:"of,omitempty"`
	Values  []float64          `json:"values,omitempty"`
	Counts  []int64            `json:"counts,omitempty"`
}

// SpecOf returns law as data. [LawSpec.Law] is its inverse.
func SpecOf(law Law) LawSpec {
	spec := LawSpec{Family: law.Name()}
	switch l := law.(type) {
	case Mixture:
		spec.Weights = l.Weights
		for _, part := range l.Laws {
			spec.Laws = append(spec.Laws, SpecOf(part))
		}
	case Spliced:
		body, tail := SpecOf(l.Body), SpecOf(l.Tail)
		spec.Body, spec.Tail = &body, &tail
		spec.Params = map[string]float64{"threshold": l.Threshold, "tail_share": l.TailShare}
	case Capped:
		of := SpecOf(l.Of)
		spec.Of, spec.Params = &of, map[string]float64{"cap": l.Cap}
	case Empirical:
		spec.Values, spec.Counts = l.sample.values, l.sample.counts
	default:
		spec.Params = map[string]float64{}
		for _, p := range law.Params() {
			spec.Params[p.Name] = p.Value
		}
	}
	return spec
}

// A lawFamily says how the simple laws are made from parameters by name.
type lawFamily struct {
	name   string
	params []string
	make   func(v []float64) Law // values in the order of params
}

var lawFamilies = []lawFamily{
	{"exponential", []string{"rate"}, func(v []float64) Law { return Exponential{v[0]} }},
	{"gamma", []string{"shape", "scale"}, func(v []float64) Law { return Gamma{v[0], v[1]} }},
	{"weibull", []string{"shape", "scale"}, func(v []float64) Law { return Weibull{v[0], v[1]} }},
	{"lognormal", []string{"mu", "sigma"}, func(v []float64) Law { return Lognormal{v[0], v[1]} }},
	{"hyperexponential", []string{"p", "rate1", "rate2"}, func(v []float64) Law { return Hyperexponential{v[0], v[1], v[2]} }},
	{"pareto", []string{"min", "alpha"}, func(v []float64) Law { return Pareto{v[0], v[1]} }},
	{"gpd", []string{"threshold", "xi", "beta"}, func(v []float64) Law { return GPD{v[0], v[1], v[2]} }},
	{"normal", []string{"mu", "sigma"}, func(v []float64) Law { return Normal{v[0], v[1]} }},
	{"uniform", []string{"low", "high"}, func(v []float64) Law { return Uniform{v[0], v[1]} }},
	{"geometric", []string{"p"}, func(v []float64) Law { return Geometric{v[0]} }},
	{"constant", []string{"value"}, func(v []float64) Law { return Constant{v[0]} }},
}

// Law returns the law that the data describe, checked.
func (s LawSpec) Law() (Law, error) {
	law, err := s.law()
	if err != nil {
		return nil, err
	}
	return law, CheckLaw(law)
}

func (s LawSpec) law() (Law, error) {
	if s.Family == "" {
		return nil, errors.New("a law has no family")
	}
	switch s.Family {
	case "mixture":
		return s.mixture()
	case "spliced":
		return s.spliced()
	case "capped":
		return s.capped()
	case "empirical":
		if err := s.only("values", "counts"); err != nil {
			return nil, err
		}
		sample, err := CountedSample(s.Values, s.Counts)
		if err != nil {
			return nil, fmt.Errorf("empirical law: %w", err)
		}
		return NewEmpirical(sample)
	}
	for _, f := range lawFamilies {
		if f.name == s.Family {
			if err := s.only("params"); err != nil {
				return nil, err
			}
			values, err := s.values(f.params...)
			if err != nil {
				return nil, err
			}
			return f.make(values), nil
		}
	}
	return nil, fmt.Errorf("no law is called %q", s.Family)
}

// values returns the named parameters, all of them and no other.
func (s LawSpec) values(names ...string) ([]float64, error) {
	values := make([]float64, len(names))
	for i, name := range names {
		v, ok := s.Params[name]
		if !ok {
			return nil, fmt.Errorf("%s law: params has no %s", s.Family, name)
		}
		values[i] = v
	}
	extra := ""
	for name := range s.Params {
		if !slices.Contains(names, name) && (extra == "" || name < extra) {
			extra = name
		}
	}
	if extra != "" {
		return nil, fmt.Errorf("%s law: params has %s, which the law has not", s.Family, extra)
	}
	return values, nil
}

// only returns an error if a field beside the family and these is set.
func (s LawSpec) only(fields ...string) error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"params", s.Params != nil}, {"weights", s.Weights != nil}, {"laws", s.Laws != nil},
		{"body", s.Body != nil}, {"tail", s.Tail != nil}, {"of", s.Of != nil},
		{"values", s.Values != nil}, {"counts", s.Counts != nil},
	} {
		if f.set && !slices.Contains(fields, f.name) {
			return fmt.Errorf("%s law: it has %s, which the law has not", s.Family, f.name)
		}
	}
	return nil
}

func (s LawSpec) mixture() (Law, error) {
	if err := s.only("weights", "laws"); err != nil {
		return nil, err
	}
	m := Mixture{Weights: s.Weights}
	for i, part := range s.Laws {
		law, err := part.law()
		if err != nil {
			return nil, fmt.Errorf("mixture law: part %d: %w", i+1, err)
		}
		m.Laws = append(m.Laws, law)
	}
	return m, nil
}

func (s LawSpec) spliced() (Law, error) {
	if err := s.only("params", "body", "tail"); err != nil {
		return nil, err
	}
	v, err := s.values("threshold", "tail_share")
	if err != nil {
		return nil, err
	}
	body, err := s.part("body", s.Body)
	if err != nil {
		return nil, err
	}
	tail, err := s.part("tail", s.Tail)
	if err != nil {
		return nil, err
	}
	return Spliced{Threshold: v[0], TailShare: v[1], Body: body, Tail: tail}, nil
}

func (s LawSpec) capped() (Law, error) {
	if err := s.only("params", "of"); err != nil {
		return nil, err
	}
	v, err := s.values("cap")
	if err != nil {
		return nil, err
	}
	of, err := s.part("of", s.Of)
	if err != nil {
		return nil, err
	}
	return Capped{Of: of, Cap: v[0]}, nil
}

// part returns the law of one field.
func (s LawSpec) part(name string, spec *LawSpec) (Law, error) {
	if spec == nil {
		return nil, fmt.Errorf("%s law: it has no %s", s.Family, name)
	}
	law, err := spec.law()
	if err != nil {
		return nil, fmt.Errorf("%s law: %s: %w", s.Family, name, err)
	}
	return law, nil
}

// UnmarshalJSON refuses fields that no law has.
func (s *LawSpec) UnmarshalJSON(data []byte) error {
	type plain LawSpec // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var p plain
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("law: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("law: data after its end")
	}
	*s = LawSpec(p)
	return nil
}
