package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/trace"
)

// report prints err as errors are printed, and returns the exit code.
func report(ctx context.Context, err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[said](err); ok {
		return 1
	}
	if errors.Is(err, errInterrupted) || ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		fmt.Fprintln(stderr, "reprise: interrupted")
		return 130
	}
	code, fix := 1, trace.Fix(err)
	if m, ok := errors.AsType[misused](err); ok {
		code = 2
		if fix == "" {
			fix = m.fix
		}
		if fix == "" {
			fix = boundsFix(err.Error())
		}
	}
	if v, ok := errors.AsType[verdict](err); ok && !failedBeside(err) {
		code = v.code
	}
	for _, e := range apart(err) {
		fmt.Fprintf(stderr, "reprise: error: %s\n", strings.ReplaceAll(strings.TrimSpace(e.Error()), "\n", "\nreprise:   "))
	}
	if fix != "" {
		fmt.Fprintf(stderr, "reprise: hint: %s\n", fix)
	}
	return code
}

// A said is an error of a worker that its coordinator prints, to the same terminal.
type said struct{ error }

// apart lists what err joins; a verdict beside a failure is left out, since the report has
// said it, and the exit code is that of the failure.
func apart(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var texts []string
	for _, e := range joined.Unwrap() {
		texts = append(texts, e.Error())
	}
	if strings.Join(texts, "\n") != err.Error() { // by fmt.Errorf, with words of its own
		return []error{err}
	}
	failed := failedBeside(err)
	var out []error
	for _, e := range joined.Unwrap() {
		if _, ok := errors.AsType[verdict](e); !ok || !failed {
			out = append(out, apart(e)...)
		}
	}
	return out
}

// failedBeside says whether err joins a verdict with a failure, such as a run that
// was aborted: a failure goes before any verdict.
func failedBeside(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range joined.Unwrap() {
		if _, ok := errors.AsType[verdict](e); !ok {
			return true
		}
	}
	return false
}
