package mapper

import (
	"bytes"
	"fmt"

	"reprise/trace"
)

// MaxNesting is how deep a YAML file may be nested.
const MaxNesting = 100

// CheckNesting refuses YAML that is nested deeper than MaxNesting: the parser takes time
// in the square of that, minutes for 100 KB of brackets. It counts brackets that are
// open, and the dashes and question marks that a line begins with.
func CheckNesting(name string, text []byte) error {
	open, line := 0, int64(0)
	for l := range bytes.Lines(text) {
		line++
		begins := 0
		for rest := bytes.TrimLeft(l, " "); len(rest) > 1 && (rest[0] == '-' || rest[0] == '?') && (rest[1] == ' ' || rest[1] == '\t'); rest = bytes.TrimLeft(rest[1:], " \t") {
			begins++
		}
		most := open + begins
		for _, b := range l {
			switch b {
			case '[', '{':
				open++
				most = max(most, open+begins)
			case ']', '}':
				open = max(0, open-1)
			}
		}
		if most > MaxNesting {
			return &trace.RowError{File: name, Line: line, Err: fmt.Errorf("nested deeper than %d levels", MaxNesting), Fix: "close what is open; nothing here is nested deeper than four levels"}
		}
	}
	return nil
}
