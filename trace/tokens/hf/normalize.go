package hf

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"
)

// A normalizer rewrites text before it is split.
type normalizer func(string) string

func readNormalizer(raw json.RawMessage) (normalizer, error) {
	kind, err := component(raw)
	if err != nil || kind == "" {
		return nil, err
	}
	var c struct {
		Normalizers []json.RawMessage
		Prepend     string
		Pattern     pattern
		Content     string
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	switch kind {
	case "Sequence":
		return sequence(c.Normalizers)
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Prepend":
		return func(s string) string {
			if s == "" {
				return s
			}
			return c.Prepend + s
		}, nil
	case "Replace":
		return replace(c.Pattern, c.Content)
	}
	return nil, unknown(kind)
}

func sequence(raw []json.RawMessage) (normalizer, error) {
	var all []normalizer
	for _, r := range raw {
		n, err := readNormalizer(r)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return func(s string) string {
		for _, n := range all {
			s = n(s)
		}
		return s
	}, nil
}

// A pattern is a literal string or a regular expression of Oniguruma's Ruby
// syntax, which those in use share with .NET's.
type pattern struct {
	String *string
	Regex  *string
}

func replace(p pattern, content string) (normalizer, error) {
	switch {
	case p.String != nil && *p.String != "":
		return strings.NewReplacer(*p.String, content).Replace, nil
	case p.Regex != nil:
		re, err := regexp2.Compile(*p.Regex)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", *p.Regex, err)
		}
		return func(s string) string {
			var b strings.Builder
			done := 0
			for _, m := range matches(re, s) {
				b.WriteString(s[done:m[0]])
				b.WriteString(content)
				done = m[1]
			}
			b.WriteString(s[done:])
			return b.String()
		}, nil
	}
	return nil, unknown("Replace without a pattern")
}

// matches returns the byte ranges of all matches of re in s.
func matches(re *regexp2.Regexp, s string) [][]int {
	found, err := re.FindAllStringIndex(s, -1)
	if err != nil {
		panic("hf: a match cannot time out: " + err.Error())
	}
	return found
}
