package protocol

import (
	"bytes"
	"strconv"

	"reprise/trace"
)

// A cursor walks over one JSON text (RFC 8259) without building anything: the
// caller takes the members it knows and skips the rest. It accepts what
// encoding/json accepts. After an error every method returns nothing and bad
// stays set, so that loops end.
//
//	c.object()
//	for key, ok := c.key(); ok; key, ok = c.key() {
//		... take or skip one value ...
//	}
type cursor struct {
	b     []byte
	i     int
	depth int
	first bool // a container was just entered
	bad   bool
}

// deepest is the nesting that encoding/json allows.
const deepest = 10000

func (c *cursor) fail() bool {
	c.bad = true
	c.i = len(c.b)
	return false
}

func (c *cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// peek returns the first byte of the next value, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

// ended says whether the whole text was read and is valid.
func (c *cursor) ended() bool {
	c.space()
	return !c.bad && c.i == len(c.b)
}

// object enters an object; any other value is skipped, and false returned.
func (c *cursor) object() bool { return c.enter('{') }

// array enters an array; any other value is skipped, and false returned.
func (c *cursor) array() bool { return c.enter('[') }

func (c *cursor) enter(open byte) bool {
	if c.peek() != open {
		c.skip()
		return false
	}
	if c.depth++; c.depth > deepest {
		return c.fail()
	}
	c.i++
	c.first = true
	return true
}

// key returns the next key of the object that was entered, and leaves the
// object after its last member.
func (c *cursor) key() ([]byte, bool) {
	if !c.next('}') {
		return nil, false
	}
	if c.peek() != '"' {
		return nil, c.fail()
	}
	raw, _ := c.str()
	if c.peek() != ':' {
		return nil, c.fail()
	}
	c.i++
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = appendUnescaped(nil, raw)
	}
	return raw, !c.bad
}

// element says whether the array that was entered has another element, and
// leaves the array after the last one.
func (c *cursor) element() bool { return c.next(']') }

func (c *cursor) next(closing byte) bool {
	b := c.peek()
	if b == closing {
		c.i++
		c.depth--
		c.first = false
		return false
	}
	if c.first {
		c.first = false
		return b != 0 || c.fail()
	}
	if b != ',' {
		return c.fail()
	}
	c.i++
	return true
}

// str returns the bytes between the quotes of a string, escapes and all. Any
// other value is skipped, and false returned.
func (c *cursor) str() (raw []byte, ok bool) {
	if c.peek() != '"' {
		c.skip()
		return nil, false
	}
	start := c.i + 1
	for i := start; i < len(c.b); i++ {
		switch b := c.b[i]; {
		case b == '"':
			c.i = i + 1
			return c.b[start:i], true
		case b < 0x20:
			return nil, c.fail()
		case b == '\\':
			n := escape(c.b[i:])
			if n == 0 {
				return nil, c.fail()
			}
			i += n - 1
		}
	}
	return nil, c.fail()
}

// escape returns the length of the escape at the start of b, 0 if it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, h := range b[2:6] {
			if !(h >= '0' && h <= '9' || h >= 'a' && h <= 'f' || h >= 'A' && h <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// integer returns a whole number, however it is written (7, 7.0, 7e0). Any
// other value is skipped, and unknown returned.
func (c *cursor) integer() trace.Optional[int64] {
	raw := c.raw()
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return trace.Optional[int64]{}
	}
	var n int64
	for i, b := range raw {
		if b < '0' || b > '9' || i > 17 {
			f, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
				return trace.Optional[int64]{}
			}
			return trace.Some(int64(f))
		}
		n = n*10 + int64(b-'0')
	}
	return trace.Some(n)
}

// count returns a whole number that is not negative, as integer does.
func (c *cursor) count() trace.Optional[int64] {
	n := c.integer()
	if n.Value < 0 {
		return trace.Optional[int64]{}
	}
	return n
}

// length skips an array and returns the number of its elements; unknown for
// any other value.
func (c *cursor) length() trace.Optional[int32] {
	if !c.array() {
		return trace.Optional[int32]{}
	}
	var n int32
	for c.element() {
		c.skip()
		n++
	}
	return trace.Some(n)
}

// raw returns the bytes of the next value.
func (c *cursor) raw() []byte {
	c.space()
	start := c.i
	c.skip()
	if c.bad {
		return nil
	}
	return c.b[start:c.i]
}

// skip passes over the next value and checks it.
func (c *cursor) skip() {
	switch b := c.peek(); b {
	case '{':
		for c.object(); ; c.skip() {
			if _, ok := c.key(); !ok {
				return
			}
		}
	case '[':
		for c.array(); c.element(); {
			c.skip()
		}
	case '"':
		c.str()
	case 't':
		c.word("true")
	case 'f':
		c.word("false")
	case 'n':
		c.word("null")
	default:
		c.number()
	}
}

func (c *cursor) word(w string) {
	if len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		c.fail()
		return
	}
	c.i += len(w)
}

func (c *cursor) number() {
	if c.at('-') {
		c.i++
	}
	if c.at('0') {
		c.i++
	} else if !c.digits() {
		return
	}
	if c.at('.') {
		c.i++
		if !c.digits() {
			return
		}
	}
	if c.at('e') || c.at('E') {
		c.i++
		if c.at('+') || c.at('-') {
			c.i++
		}
		c.digits()
	}
}

func (c *cursor) at(b byte) bool { return c.i < len(c.b) && c.b[c.i] == b }

// digits passes over one digit or more.
func (c *cursor) digits() bool {
	start := c.i
	for c.i < len(c.b) && c.b[c.i] >= '0' && c.b[c.i] <= '9' {
		c.i++
	}
	return c.i > start || c.fail()
}
