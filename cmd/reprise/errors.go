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
	}
	if v, ok := errors.AsType[verdict](err); ok && !failedBeside(err) {
		code = v.code
	}
	fmt.Fprintf(stderr, "reprise: error: %s\n", strings.TrimSpace(err.Error()))
	if fix != "" {
		fmt.Fprintf(stderr, "reprise: hint: %s\n", fix)
	}
	return code
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
