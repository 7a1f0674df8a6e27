package protocol

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"reprise/replay/ledger"
	"reprise/trace"
	"reprise/trace/results"
)

// A likeness remembers an event that was read in full, so that the next one,
// which most often differs in its text and its running counts alone, need not
// be: where all other bytes are equal, so is their meaning. What an event holds
// is never guessed: whatever is not equal byte for byte is read in full, and
// becomes the event that is remembered.
type likeness struct {
	armed   bool
	lines   bool // the event was more than one line
	counted bool // the event had a usage
	n       int8 // counts in use
	counts  [likeParts - 2]likeCount
	choice  int32
	parts   [likeParts]likePart // literal bytes: before the text, behind it, and around the counts
	used    ledger.Usage
	memory  []byte // of the event, between lineLead and lineEnd
}

// An event of one line, as most servers write it.
const (
	lineLead = "data: "
	lineEnd  = "\n\n"
)

// A likePart is from where to where a part is in the memory.
type likePart struct{ from, to int32 }

func (l *likeness) part(i int8) []byte { return l.memory[l.parts[i].from:l.parts[i].to] }

// likeParts is one part more than there are holes: the text and two counts.
const likeParts = 4

// likeCount says which count stands in a hole.
type likeCount uint8

const (
	likeTotal  likeCount = iota // total_tokens, which nothing is made of
	likeOutput                  // completion_tokens
)

// learn remembers an event of one choice with plain text, if it is such a one;
// else the one before stays. data is the event, of which content is a part.
func (l *likeness) learn(data []byte, deltas []ledger.Delta, p *payload) {
	if len(deltas) != 1 || p.err != nil || p.timings != nil {
		return
	}
	d := &deltas[0]
	if d.Kind != results.KindContent || len(d.Content) == 0 || d.Role || len(d.Reasoning)+len(d.Refusal)+len(d.Tools)+len(d.Finish) > 0 || d.IDs.Known || d.Logprobs.Known || d.Format.Known {
		return
	}
	at, ok := within(data, d.Content)
	if !ok || at == 0 || data[at-1] != '"' {
		return // an escape was undone: the text is not a part of the event
	}
	l.armed = false
	l.memory = append(append(append(l.memory[:0], lineLead...), data...), lineEnd...)
	l.lines = bytes.IndexByte(data, '\n') >= 0
	at += len(lineLead)
	end := at + len(d.Content)
	l.choice, l.used, l.counted, l.n = d.Choice, p.usage, p.usage != ledger.Usage{}, 0
	l.parts[0] = likePart{0, int32(at)}
	rest := end
	if l.counted && !l.holes(end, &rest) {
		return
	}
	l.parts[l.n+1] = likePart{int32(rest), int32(len(l.memory))}
	l.armed = true
}

// holes finds the running counts behind the text, in their order.
func (l *likeness) holes(from int, rest *int) bool {
	keys := [...]struct {
		key  []byte
		what likeCount
	}{{keyCompletion, likeOutput}, {keyTotal, likeTotal}}
	var at [len(keys)]int
	for i, k := range keys {
		at[i] = -1
		if bytes.Count(l.memory, k.key) != 1 {
			continue
		}
		if j := bytes.Index(l.memory[from:], k.key); j >= 0 {
			at[i] = from + j + len(k.key)
		}
	}
	first, second := 0, 1
	if at[1] >= 0 && (at[0] < 0 || at[1] < at[0]) {
		first, second = 1, 0
	}
	for _, i := range [...]int{first, second} {
		if at[i] < 0 {
			continue
		}
		value, width := digits(l.memory[at[i]:])
		if width == 0 {
			return false
		}
		if keys[i].what == likeOutput && l.used.Output != trace.Some(value) {
			return false // another count of that name was the one that counts
		}
		l.counts[l.n] = keys[i].what
		l.n++
		l.parts[l.n] = likePart{int32(*rest), int32(at[i])}
		*rest = at[i] + width
	}
	return true
}

var (
	keyCompletion = []byte(`"completion_tokens":`)
	keyTotal      = []byte(`"total_tokens":`)
)

// match returns the text of the event that data is if that is like the one remembered,
// and whether it is. The usage is then that of the event.
func (l *likeness) match(data []byte) (text []byte, ok bool) {
	if !l.armed {
		return nil, false
	}
	before := l.part(0)[len(lineLead):]
	if !bytes.HasPrefix(data, before) {
		return nil, false
	}
	text, rest, end := l.matchFrom(data[len(before):])
	return text, text != nil && len(rest) == len(end)-len(lineEnd) && bytes.HasPrefix(end, rest)
}

// matchLine returns the text of the event whose line and the empty line behind it p begins
// with if that is like the one remembered, and the length of both; 0 if it is not. The
// usage is then that of the event.
func (l *likeness) matchLine(p []byte) (text []byte, length int) {
	before := l.part(0)
	if !l.armed || !bytes.HasPrefix(p, before) {
		return nil, 0
	}
	text, rest, end := l.matchFrom(p[len(before):])
	if text == nil {
		return nil, 0
	}
	if bytes.HasPrefix(rest, end) {
		return text, len(p) - len(rest) + len(end)
	}
	const other = "\r\n\r\n"
	end = end[:len(end)-len(lineEnd)]
	if bytes.HasPrefix(rest, end) && len(rest) >= len(end)+len(other) && string(rest[len(end):len(end)+len(other)]) == other {
		return text, len(p) - len(rest) + len(end) + len(other)
	}
	return nil, 0
}

// matchFrom matches the text and what is between it and the last part, end, which is not
// compared yet with the rest. The text is nil if they are not alike.
func (l *likeness) matchFrom(p []byte) (text, rest, end []byte) {
	n := plainText(p)
	if n <= 0 {
		return nil, nil, nil
	}
	text, rest, end = p[:n:n], p[n:], l.part(1)
	for i := range l.n {
		if !bytes.HasPrefix(rest, end) {
			return nil, nil, nil
		}
		rest = rest[len(end):]
		value, width := digits(rest)
		if width == 0 {
			return nil, nil, nil
		}
		if l.counts[i] == likeOutput {
			l.used.Output.Value = value
		}
		rest, end = rest[width:], l.part(i+2)
	}
	return text, rest, end
}

// usage is that of the event that was learned or matched; nil if it has none.
func (l *likeness) usage() *ledger.Usage {
	if !l.counted {
		return nil
	}
	return &l.used
}

// plainText returns the length of the text before the quote that ends it; -1 if
// there is an escape, or a byte that must be escaped, before.
func plainText(b []byte) int {
	const each = 0x0101010101010101
	for i := 0; i < len(b); i++ {
		if i+8 <= len(b) { // eight bytes at once
			v := binary.LittleEndian.Uint64(b[i:])
			quote, escape := v^each*'"', v^each*'\\'
			ends := ((quote-each)&^quote | (escape-each)&^escape | (v-each*' ')&^v) & (each << 7)
			if ends == 0 {
				i += 7
				continue
			}
			i += bits.TrailingZeros64(ends) / 8 // the first is exact: a borrow goes upward
		}
		switch c := b[i]; {
		case c == '"':
			return i
		case c == '\\' || c < ' ':
			return -1
		}
	}
	return -1
}

// digits reads a whole number of JSON without a sign; width 0 if there is none,
// or one that is not written that way, or larger than any count.
func digits(b []byte) (value int64, width int) {
	for width < len(b) && b[width]-'0' <= 9 {
		value = value*10 + int64(b[width]-'0')
		if width++; width > 18 {
			return 0, 0
		}
	}
	if width > 1 && b[0] == '0' || width < len(b) && (b[width] == '.' || b[width]|0x20 == 'e') {
		return 0, 0
	}
	return value, width
}

// within returns where part, which was sliced from whole, begins in it.
func within(whole, part []byte) (int, bool) {
	at := cap(whole) - cap(part)
	if at < 0 || at+len(part) > len(whole) || len(part) == 0 || &whole[at] != &part[0] {
		return 0, false
	}
	return at, true
}
