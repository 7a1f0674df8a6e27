package protocol

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A script is a response body in a small notation, with the times at which its
// bytes arrive. One line of the script is one line of the body; an empty line
// ends an event. "@120" before a line: this and what follows arrives 120 ms
// after the request was sent. A line "---" is a border between two reads at
// one time. \r, \n and \xHH stand for bytes; a line that ends with one of the
// first two, or that stands before a border, gets no line end of its own.
// Short forms:
//
//	CH(d)     an event with the delta d
//	CHU(d,n)  the same with a usage of n completion tokens
//	FIN(r)    an event with an empty delta and a finish reason
//	USE(n)    an event with usage and no choices
//	DONE      the end marker
type script struct {
	body   []byte
	at     []time.Duration // of each byte
	border []bool          // a read ends after this byte
}

var (
	timePrefix = regexp.MustCompile(`^@(\d+) *`)
	shortForm  = regexp.MustCompile(`^(?:(CHU?|FIN|USE)\(((?:"(?:[^"\\]|\\.)*"|[^()"])*)\)|(DONE))(?: +|$)`)
	byteEscape = regexp.MustCompile(`\\(?:r|n|x[0-9A-F]{2})`)
)

func parseScript(text string) *script {
	s := &script{}
	at := time.Duration(0)
	lines := strings.Split(strings.TrimPrefix(text, "\n"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		if m := timePrefix.FindStringSubmatch(line); m != nil {
			ms, _ := strconv.Atoi(m[1])
			at = time.Duration(ms) * time.Millisecond
			line = line[len(m[0]):]
			s.end()
		}
		if line == "---" {
			s.end()
			continue
		}
		if expanded, ok := expand(line); ok {
			s.add(expanded, at)
			continue
		}
		plain := byteEscape.ReplaceAllStringFunc(line, func(e string) string {
			b, err := strconv.Unquote(`"` + e + `"`)
			if err != nil {
				panic(err)
			}
			return b
		})
		open := i+1 < len(lines) && lines[i+1] == "---" || strings.HasSuffix(line, `\n`) || strings.HasSuffix(line, `\r`)
		if !open {
			plain += "\n"
		}
		s.add(plain, at)
	}
	s.end()
	return s
}

// expand writes out a line of short forms.
func expand(line string) (string, bool) {
	var out strings.Builder
	for line != "" {
		m := shortForm.FindStringSubmatch(line)
		if m == nil {
			return "", false
		}
		line = line[len(m[0]):]
		args, n := m[2], ""
		if m[1] == "CHU" {
			comma := strings.LastIndexByte(args, ',')
			args, n = args[:comma], usageOf(args[comma+1:])
		}
		switch {
		case m[3] == "DONE":
			out.WriteString("data: [DONE]\n\n")
		case m[1] == "FIN":
			fmt.Fprintf(&out, `data: {"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`+"\n\n", args)
		case m[1] == "USE":
			fmt.Fprintf(&out, `data: {"choices":[]%s}`+"\n\n", usageOf(args))
		default:
			fmt.Fprintf(&out, `data: {"choices":[{"index":0,"delta":%s,"finish_reason":null}]%s}`+"\n\n", args, n)
		}
	}
	return out.String(), out.Len() > 0
}

func usageOf(n string) string {
	count, err := strconv.Atoi(strings.TrimSpace(n))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`,"usage":{"prompt_tokens":9,"completion_tokens":%d,"total_tokens":%d}`, count, 9+count)
}

func (s *script) add(text string, at time.Duration) {
	for i := range len(text) {
		s.body = append(s.body, text[i])
		s.at = append(s.at, at)
		s.border = append(s.border, false)
	}
}

// end ends a read after what was added last.
func (s *script) end() {
	if n := len(s.border); n > 0 {
		s.border[n-1] = true
	}
}

// last is the time of the last byte.
func (s *script) last() time.Duration { return s.at[len(s.at)-1] }

// A read is what one network read returns.
type read struct {
	p  []byte
	at time.Duration
}

// reads cuts the body at its borders and wherever cut says so.
func (s *script) reads(cut func(i int) bool) (reads []read) {
	start := 0
	for i := range s.body {
		if s.border[i] || cut(i) || i == len(s.body)-1 {
			reads = append(reads, read{s.body[start : i+1], s.at[i]})
			start = i + 1
		}
	}
	return reads
}

// rewrite maps every line end of the body to to.
func (s *script) rewrite(to func(emptyLine bool) string) *script {
	out := &script{}
	empty := true
	for i, b := range s.body {
		switch {
		case b == '\r':
			if s.border[i] {
				out.end()
			}
			continue
		case b == '\n':
			out.add(to(empty), s.at[i])
			empty = true
		default:
			out.add(string([]byte{b}), s.at[i])
			empty = false
		}
		if s.border[i] {
			out.end()
		}
	}
	return out
}

// The five ways in which every case is read.
var cuts = []struct {
	name  string
	times bool // times are those of the script
	reads func(s *script) []read
}{
	{"as given", true, func(s *script) []read { return s.reads(func(int) bool { return false }) }},
	{"one byte per read", true, func(s *script) []read {
		step := 1 + len(s.body)/100_000 // the huge ones in larger steps
		return s.reads(func(i int) bool { return i%step == 0 })
	}},
	{"one read", false, func(s *script) []read { return []read{{bytes.Clone(s.body), s.last()}} }},
	{"crlf", true, func(s *script) []read {
		return s.rewrite(func(bool) string { return "\r\n" }).reads(func(int) bool { return false })
	}},
	{"comments between events", true, func(s *script) []read {
		out := s.rewrite(func(empty bool) string {
			if empty {
				return "\n: keep-alive\n"
			}
			return "\n"
		})
		return out.reads(func(int) bool { return false })
	}},
}
