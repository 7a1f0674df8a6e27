package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// badValue is how the library says that a flag does not take a value.
var badValue = regexp.MustCompile(`^invalid value "((?s).*)" for flag --?([^:]+): ((?s).*)$`)

// valueError says in words of ours why a flag does not take a value; why are those of
// the parser.
func valueError(cmd *cli.Command, name, value, why string) error {
	what, fix := "no value that it takes", "see: "+cmd.FullName()+" --help"
	i := slices.IndexFunc(cmd.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i >= 0 {
		switch cmd.Flags[i].(type) {
		case *cli.IntFlag, *cli.Int64Flag, *cli.IntSliceFlag:
			what, fix = "no whole number", "give one such as 8"
		case *cli.Uint64Flag, *cli.UintFlag:
			what, fix = "no whole number of 0 or above", "give one such as 8"
		case *cli.FloatFlag:
			what, fix = "no number", "give one such as 2 or 0.5"
		case *cli.DurationFlag:
			what, fix = "no time", "give a number with its unit, such as 500ms, 30s or 2m"
		case *cli.BoolFlag:
			what, fix = "neither true nor false", fmt.Sprintf("write %s, or %s=false", dashed(name), dashed(name))
		}
	}
	if strings.HasSuffix(why, "out of range") {
		what = "too large a number"
	}
	return misused{fmt.Errorf("%s: %q is %s", dashed(name), value, what), fix}
}

// checkNumbers refuses what counts as a number for a parser and for nobody else.
func checkNumbers(ctx context.Context, c *cli.Command) (context.Context, error) {
	for _, f := range c.Flags {
		name := f.Names()[0]
		if _, ok := f.(*cli.FloatFlag); !ok || !c.IsSet(name) {
			continue
		}
		if v := c.Float(name); math.IsNaN(v) || math.IsInf(v, 0) {
			return ctx, valueError(c, name, strings.TrimPrefix(fmt.Sprint(v), "+"), "")
		}
	}
	return ctx, nil
}

// boundsFix is the way out of a value that lies outside its bounds, where an error names
// these and nothing else.
func boundsFix(text string) string {
	switch {
	case strings.HasSuffix(text, "must not be below 0"):
		return "give 0 or more, or leave it out"
	case strings.HasSuffix(text, "must be above 0"):
		return "give a value above 0"
	case outside.MatchString(text):
		return "give a value within these bounds"
	}
	return ""
}

var outside = regexp.MustCompile(`(not between|must be from) [0-9.e+-]+ (and|to) [0-9.e+-]+( starts per second)?$`)
