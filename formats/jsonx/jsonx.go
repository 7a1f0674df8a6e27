// Package jsonx reads JSON rows of foreign traces field by field: numbers as
// people write them (6758.0, 1e3), ids of 64 bits, and what is unknown kept as
// it is.
package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"reprise/trace"
)

// A Row is one JSON object. Take removes what it returns, so that the rest is
// what nobody knows.
type Row map[string]json.RawMessage

// Parse reads one object.
func Parse(line []byte) (Row, error) {
	var r Row
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, readable(err)
	}
	if r == nil {
		return nil, fmt.Errorf("null instead of an object")
	}
	return r, nil
}

func readable(err error) error {
	switch e := err.(type) {
	case *json.SyntaxError:
		return fmt.Errorf("not valid JSON at byte %d: %w", e.Offset, e)
	case *json.UnmarshalTypeError:
		return fmt.Errorf("a JSON %s instead of an object", e.Value)
	}
	return err
}

// A FieldError says what is wrong with one field.
type FieldError struct {
	Field string
	Err   error
	Fix   string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// Bad returns a FieldError.
func Bad(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// Take returns and removes a field under the first of its names that is there
// and not null.
func (r Row) Take(names ...string) (name string, raw json.RawMessage, ok bool) {
	for _, n := range names {
		v, has := r[n]
		if !has || string(v) == "null" {
			continue
		}
		delete(r, n)
		return n, v, true
	}
	return names[0], nil, false
}

// Int takes an integer that is not below 0.
func (r Row) Int(names ...string) (trace.Optional[int64], error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return trace.Optional[int64]{}, nil
	}
	n, err := Int(raw)
	if err != nil {
		return trace.Optional[int64]{}, &FieldError{Field: name, Err: err}
	}
	if n < 0 {
		return trace.Optional[int64]{}, Bad(name, "%d is below 0", n)
	}
	return trace.Some(n), nil
}

// Int reads an integer, also one written as 6758.0 or 1e3.
func Int(raw []byte) (int64, error) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<62 {
		return 0, fmt.Errorf("%s is no integer", clip(raw))
	}
	return int64(f), nil
}

// Float takes a finite number.
func (r Row) Float(names ...string) (v float64, ok bool, err error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return 0, false, nil
	}
	v, perr := strconv.ParseFloat(string(raw), 64)
	if perr != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false, Bad(name, "%s is no number", clip(raw))
	}
	return v, true, nil
}

// Time takes a number of units.
func (r Row) Time(unit time.Duration, names ...string) (t trace.Optional[time.Duration], v float64, err error) {
	name := names[0]
	for _, n := range names {
		if _, has := r[n]; has {
			name = n
			break
		}
	}
	v, ok, err := r.Float(names...)
	if err != nil || !ok {
		return t, v, err
	}
	ns := math.Round(v * float64(unit))
	if math.Abs(ns) >= 1<<62 {
		return t, v, Bad(name, "%v is out of range", v)
	}
	return trace.Some(time.Duration(ns)), v, nil
}

// String takes a string; a number is taken as its text.
func (r Row) String(names ...string) (trace.Optional[string], error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return trace.Optional[string]{}, nil
	}
	if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return trace.Some(string(raw)), nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return trace.Optional[string]{}, Bad(name, "%s is no string", clip(raw))
	}
	return trace.Some(s), nil
}

// Array takes a JSON array as text, without insignificant blanks.
func (r Row) Array(names ...string) (trace.Optional[string], error) { return r.compact('[', names...) }

// Object takes a JSON object as text, without insignificant blanks.
func (r Row) Object(names ...string) (trace.Optional[string], error) { return r.compact('{', names...) }

func (r Row) compact(first byte, names ...string) (trace.Optional[string], error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return trace.Optional[string]{}, nil
	}
	kind := map[byte]string{'[': "array", '{': "object"}[first]
	if len(raw) == 0 || raw[0] != first {
		return trace.Optional[string]{}, Bad(name, "%s is no %s", clip(raw), kind)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return trace.Optional[string]{}, Bad(name, "%v", err)
	}
	return trace.Some(b.String()), nil
}

// IDs takes an array of 64-bit ids; nil if the field is not there, never if it
// is empty.
func (r Row) IDs(names ...string) ([]uint64, error) {
	name, raw, ok := r.Take(names...)
	if !ok {
		return nil, nil
	}
	var numbers []json.Number
	if err := json.Unmarshal(raw, &numbers); err != nil {
		return nil, Bad(name, "%s is no array of integers", clip(raw))
	}
	ids := make([]uint64, 0, len(numbers))
	for i, n := range numbers {
		id, err := strconv.ParseUint(string(n), 10, 64)
		if err != nil {
			v, ierr := Int([]byte(n))
			if ierr != nil || v < 0 || v > 1<<53 {
				return nil, Bad(name, "%s at position %d is no id from 0 to 2^64-1", n, i)
			}
			id = uint64(v)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Attributes returns what is left, values as compact JSON text; nil if nothing.
func (r Row) Attributes() map[string]string {
	if len(r) == 0 {
		return nil
	}
	out := make(map[string]string, len(r))
	for k, v := range r {
		var b bytes.Buffer
		if json.Compact(&b, v) == nil {
			out[k] = b.String()
		}
	}
	return out
}

func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "..."
	}
	return string(b)
}

// Valid returns s in UTF-8: other bytes become U+FFFD, as encoding/json reads them.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// Quote returns s as a JSON string, < and > as they are.
func Quote(s string) string {
	s = Valid(s)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string always encodes
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// StringOnly takes a string and nothing else; unknown if the field is not there,
// null or empty JSON.
func (r Row) StringOnly(name string) (trace.Optional[string], error) {
	raw, ok := r[name]
	if !ok || len(raw) == 0 || string(raw) == "null" {
		return trace.Optional[string]{}, nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return trace.Optional[string]{}, Bad(name, "%s is no string", clip(raw))
	}
	delete(r, name)
	return trace.Some(s), nil
}
