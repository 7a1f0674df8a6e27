package trace

import (
	"errors"
	"fmt"
	"strings"
)

// A RowError reports a row that could not become a Request.
type RowError struct {
	File  string // as the user named it
	Line  int64  // 1-based; the row number in Parquet; 0 if the whole file is meant
	Field string // the source's own name for the field; "" for the whole row
	Err   error  // what is wrong, with the value
	Fix   string // what to do; "" if there is nothing to do

	Reason string // short class under which it is counted; "" = Field
	Raw    string // the row as it was read, if that is at hand
	Merged bool   // not bad: the row went into another one, which is kept
}

// Error returns file:line: field: what, without the fix.
func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Field != "" {
		b.WriteString(": ")
		b.WriteString(e.Field)
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

func (e *RowError) Unwrap() error { return e.Err }

// A FixError is an error with a way out, printed as a hint.
type FixError struct {
	Err error
	Fix string // what to do
}

func (e *FixError) Error() string { return e.Err.Error() }

func (e *FixError) Unwrap() error { return e.Err }

// WithFix attaches a way out to err; nil stays nil.
func WithFix(err error, fix string) error {
	if err == nil {
		return nil
	}
	return &FixError{Err: err, Fix: fix}
}

// Fix returns the way out that err carries, or "".
func Fix(err error) string {
	if row, ok := errors.AsType[*RowError](err); ok && row.Fix != "" {
		return row.Fix
	}
	if fix, ok := errors.AsType[*FixError](err); ok {
		return fix.Fix
	}
	return ""
}
