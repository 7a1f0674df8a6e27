package mooncake

import (
	"bytes"
	"time"
)

// A shape is how a line is written around its values: which keys it has, in which
// order and with which blanks. The lines of a file mostly have one, so that their keys
// are compared at once and not read.
type shape struct {
	known bool
	n     int8 // values
	keys  [len(plainKeys)]int8
	has   [len(plainKeys)]bool
	at    [len(plainKeys)]struct{ from, to int32 } // of the values, in line
	line  []byte
}

// longestShape bounds the line that is remembered, bytes.
const longestShape = 1 << 20

// add notes the next value and where it is.
func (s *shape) add(key, from, to int) {
	s.keys[s.n], s.at[s.n].from, s.at[s.n].to = int8(key), int32(from), int32(to)
	s.n++
}

// keep takes the line whose values were added.
func (s *shape) keep(line []byte, has [len(plainKeys)]bool) {
	if s.known = len(line) <= longestShape; s.known {
		s.line, s.has = append(s.line[:0], line...), has
	}
}

// again reads a line that has the shape of the one before; false if it has not, or is
// no ordinary one.
func (p *plain) again(line []byte, unit time.Duration) bool {
	s := &p.shape
	if !s.known {
		return false
	}
	p.has, p.ids = s.has, p.ids[:0]
	i, from := 0, int32(0)
	for k := range s.n {
		before := s.line[from:s.at[k].from]
		if !bytes.HasPrefix(line[i:], before) {
			return false
		}
		if i = p.value(line, i+len(before), int(s.keys[k]), unit); i < 0 {
			return false
		}
		from = s.at[k].to
	}
	return bytes.Equal(line[i:], s.line[from:])
}
