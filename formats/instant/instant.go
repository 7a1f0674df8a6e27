// Package instant reads times of foreign traces to the exact nanosecond: calendar
// times as CSV and JSON files write them, and decimal numbers of units.
package instant

import (
	"fmt"
	"math"
	"time"
)

// A Stamp is a calendar time as a text gave it.
type Stamp struct {
	NS     int64 // Unix time in nanoseconds; in UTC where the text names no zone
	Zoned  bool  // the text named a zone
	Digits int   // digits of the fraction of a second, 0 to 9
	T      bool  // date and time stand apart by T, not by a blank
}

// Years that fit into an int64 of nanoseconds.
const (
	firstYear = 1678
	lastYear  = 2261
)

// Parse reads YYYY-MM-DD, T or a blank, hh:mm:ss, a fraction of 0 to 9 digits, and
// Z, UTC, +hh:mm, +hhmm, +hh or nothing.
func Parse(text []byte) (Stamp, error) {
	var s Stamp
	year, month, day := digits(text, 0, 4), digits(text, 5, 2), digits(text, 8, 2)
	hour, minute, second := digits(text, 11, 2), digits(text, 14, 2), digits(text, 17, 2)
	if year < 0 || month < 0 || day < 0 || hour < 0 || minute < 0 || second < 0 || text[4] != '-' || text[7] != '-' ||
		text[10] != 'T' && text[10] != 't' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
		return s, fmt.Errorf("%q is no time such as 2023-11-16 18:17:03.9799600", clip(text))
	}
	if year < firstYear || year > lastYear || month < 1 || month > 12 || day < 1 || day > daysOf(year, month) || hour > 23 || minute > 59 || second > 59 {
		return s, fmt.Errorf("%q is not in the calendar", clip(text))
	}
	s.T = text[10] != ' '
	rest := text[19:]
	ns, rest, err := s.fraction(text, rest)
	if err != nil {
		return s, err
	}
	offset, ok := 0, true
	if len(rest) > 0 {
		s.Zoned = true
		offset, ok = zone(rest)
	}
	if !ok {
		return s, fmt.Errorf("%q: %q is no zone such as Z or +00:00", clip(text), clip(rest))
	}
	s.NS = (int64(daysSince1970(year, month, day))*86400+int64(hour*3600+minute*60+second-offset))*1e9 + ns
	return s, nil
}

// fraction reads the digits after the seconds.
func (s *Stamp) fraction(text, rest []byte) (ns int64, after []byte, err error) {
	if len(rest) == 0 || rest[0] != '.' && rest[0] != ',' {
		return 0, rest, nil
	}
	rest = rest[1:]
	for len(rest) > 0 && isDigit(rest[0]) {
		if s.Digits == 9 {
			return 0, nil, fmt.Errorf("%q has more than 9 digits of a second", clip(text))
		}
		ns = ns*10 + int64(rest[0]-'0')
		s.Digits++
		rest = rest[1:]
	}
	if s.Digits == 0 {
		return 0, nil, fmt.Errorf("%q has no digits after the point", clip(text))
	}
	for range 9 - s.Digits {
		ns *= 10
	}
	return ns, rest, nil
}

// Zone reads an offset from UTC, in seconds: Z, UTC, +hh:mm, +hhmm or +hh.
func Zone(text string) (seconds int, err error) {
	offset, ok := zone([]byte(text))
	if !ok {
		return 0, fmt.Errorf("%q is no zone such as UTC or +08:00", text)
	}
	return offset, nil
}

func zone(text []byte) (seconds int, ok bool) {
	if text[0] == ' ' && len(text) > 1 {
		text = text[1:]
	}
	switch string(text) {
	case "Z", "z", "UTC", "GMT":
		return 0, true
	}
	sign := 1
	switch text[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false
	}
	hours, minutes := digits(text, 1, 2), 0
	switch {
	case len(text) == 3:
	case len(text) == 5:
		minutes = digits(text, 3, 2)
	case len(text) == 6 && text[3] == ':':
		minutes = digits(text, 4, 2)
	default:
		return 0, false
	}
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	return sign * (hours*3600 + minutes*60), true
}

// digits reads n digits at from; -1 if they are not there.
func digits(text []byte, from, n int) (v int) {
	if len(text) < from+n {
		return -1
	}
	for _, c := range text[from : from+n] {
		if !isDigit(c) {
			return -1
		}
		v = v*10 + int(c-'0')
	}
	return v
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLeap(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

var monthDays = [12]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func daysOf(year, month int) int {
	if month == 2 && isLeap(year) {
		return 29
	}
	return monthDays[month-1]
}

// daysSince1970 counts days of the Gregorian calendar, with years that begin in
// March so that the leap day comes last.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year--
		month += 12
	}
	era := year / 400
	ofEra := year - era*400
	ofYear := (153*(month-3)+2)/5 + day - 1
	return era*146097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719468
}

// Units reads a decimal number of units (12, -0.5, 1.7e9) as a duration, exact
// where nanoseconds hold it and rounded half away from zero where not. The unit is
// a second, or a power of ten of it.
func Units(text []byte, unit time.Duration) (time.Duration, error) {
	n, err := parseDecimal(text)
	if err != nil {
		return 0, err
	}
	for u := time.Duration(1); u < unit; u *= 10 {
		n.exp++
	}
	ns, ok := n.integer()
	if !ok {
		return 0, fmt.Errorf("%s is out of range", clip(text))
	}
	return time.Duration(ns), nil
}

// A decimal is mantissa * 10^exp.
type decimal struct {
	negative bool
	mantissa uint64 // up to 19 digits; more only move exp
	exp      int
}

func parseDecimal(text []byte) (n decimal, err error) {
	bad := fmt.Errorf("%s is no number", clip(text))
	rest := text
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		n.negative = rest[0] == '-'
		rest = rest[1:]
	}
	any, point := false, false
	for len(rest) > 0 && (isDigit(rest[0]) || rest[0] == '.' && !point) {
		c := rest[0]
		rest = rest[1:]
		if c == '.' {
			point = true
			continue
		}
		any = true
		if n.mantissa >= math.MaxUint64/10-1 { // no room: the digit is below what nanoseconds show
			if !point {
				n.exp++
			}
			continue
		}
		n.mantissa = n.mantissa*10 + uint64(c-'0')
		if point {
			n.exp--
		}
	}
	if !any {
		return n, bad
	}
	if len(rest) == 0 {
		return n, nil
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return n, bad
	}
	e, err := exponent(rest[1:])
	if err != nil {
		return n, bad
	}
	n.exp += e
	return n, nil
}

func exponent(text []byte) (e int, err error) {
	sign := 1
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	if len(text) == 0 {
		return 0, fmt.Errorf("no exponent")
	}
	for _, c := range text {
		if !isDigit(c) {
			return 0, fmt.Errorf("no exponent")
		}
		e = min(e*10+int(c-'0'), 1000)
	}
	return sign * e, nil
}

// integer rounds half away from zero; ok is false beyond 2^62.
func (n decimal) integer() (v int64, ok bool) {
	m, exp := n.mantissa, n.exp
	for ; exp > 0 && m > 0; exp-- {
		if m > 1<<62/10 {
			return 0, false
		}
		m *= 10
	}
	up := false
	for ; exp < 0 && (m > 0 || up); exp++ {
		up = m%10 >= 5
		m /= 10
	}
	if up {
		m++
	}
	if m > 1<<62 {
		return 0, false
	}
	if n.negative {
		return -int64(m), true
	}
	return int64(m), true
}

func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "..."
	}
	return string(b)
}
