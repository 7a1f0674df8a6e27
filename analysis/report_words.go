package analysis

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/trace"
)

// reportWidth is what text is wrapped to, in columns.
const reportWidth = 110

// decimals writes a time in ms with the digits that a reader needs: whole
// microseconds below 10 ms, whole milliseconds from a second on.
func decimals(v float64) string {
	switch size := math.Abs(v); {
	case size < 10:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case size < 100:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// plainNumber writes v with the digits it has and without an exponent.
func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// percent writes a share; only the whole is 100 %, and only none is 0 %.
func percent(share float64) string {
	v := 100 * share
	digits := 1
	if v < 10 {
		digits = 2
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	switch {
	case text == "100" && share < 1:
		text = "more than 99.9"
	case text == "0" && share > 0:
		text = "less than 0.01"
	}
	return text + " %"
}

// Grouped writes n with a comma between groups of three digits.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Counted writes a count with its noun, which is given in the singular: "1 request",
// "2,000 requests".
func Counted(n int64, noun string) string { return Grouped(n) + " " + trace.Nouns(n, noun) }

func countsText(list []Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.Name+" "+Grouped(c.N))
	}
	return strings.Join(parts, ", ")
}

// cell writes a stat; whole tokens without decimals.
func (m *Metric) cell(v trace.Optional[float64]) string {
	switch {
	case !v.Known:
		return "n/a"
	case m.Unit != unitMS && v.Value == math.Trunc(v.Value):
		return Grouped(int64(v.Value))
	}
	return decimals(v.Value)
}

// A printer writes lines of a name and a text, wrapped; it keeps the first
// error. One that records writes nothing and keeps parts.
type printer struct {
	w   io.Writer
	err error

	record bool
	parts  []Part
}

func (p *printer) line(text string) {
	if p.err == nil && !p.record {
		_, p.err = fmt.Fprintln(p.w, text)
	}
}

// nameWidth is the column in which the texts begin.
const nameWidth = 13

// pair writes name and text; a text of no words writes nothing.
func (p *printer) pair(name, text string) {
	if text != "" {
		p.wrap(fmt.Sprintf("%-*s", nameWidth, name), text, nameWidth)
	}
}

// glue keeps a number and its unit on one line.
var glue = strings.NewReplacer(" %", "\x00%", " ms", "\x00ms", "n - 1", "n\x00-\x001")

// printable undoes glue, and keeps control characters that a server put into a
// cause or a note away from the terminal.
func printable(r rune) rune {
	switch {
	case r == 0:
		return ' '
	case !unicode.IsPrint(r):
		return '?'
	}
	return r
}

// wrap writes head and text, and goes on in the column indent.
func (p *printer) wrap(head, text string, indent int) {
	if p.record {
		p.recordWords(head, text)
		return
	}
	line, empty := head, true
	for word := range strings.FieldsSeq(glue.Replace(text)) {
		word = strings.Map(printable, word)
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > reportWidth {
			p.line(line)
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	p.line(line)
}

func (p *printer) section(title string) {
	if p.record {
		p.parts = append(p.parts, Part{Heading: title})
		return
	}
	p.line("")
	p.line(title)
}
