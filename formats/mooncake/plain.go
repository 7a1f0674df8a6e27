package mooncake

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"

	"reprise/formats/source"
	"reprise/trace"
	"reprise/trace/column"
)

// plain is an ordinary line: an object of timestamp, input_length, output_length
// and hash_ids, in any order and with any blanks, all numbers not below 0 and the
// lengths integers. These are read without a JSON parser; whatever else a line
// holds, it is left to the strict one, which gives the same for these.
type plain struct {
	has     [4]bool // by plainKeys
	at      time.Duration
	in, out int64
	ids     []uint64 // memory that the next line reuses
	shape   shape    // of the line before
}

// plainKeys are the keys that an ordinary line may have.
var plainKeys = [4]string{"timestamp", "input_length", "output_length", "hash_ids"}

const (
	keyTime = iota
	keyInput
	keyOutput
	keyIDs
)

// scan reads a line; false if it is not an ordinary one.
func (p *plain) scan(line []byte, unit time.Duration) bool {
	return p.again(line, unit) || p.scanKeys(line, unit)
}

// scanKeys reads a line whatever its shape.
func (p *plain) scanKeys(line []byte, unit time.Duration) bool {
	p.has, p.ids, p.shape.n, p.shape.known = [4]bool{}, p.ids[:0], 0, false
	i := blanks(line, 0)
	if i >= len(line) || line[i] != '{' {
		return false
	}
	expected := keyTime // keys come in this order, mostly
	for i++; ; i++ {
		key, next := plainKey(line, blanks(line, i), expected)
		if key < 0 || p.has[key] {
			return false
		}
		expected = key + 1
		p.has[key] = true
		if i = p.value(line, next, key, unit); i < 0 {
			return false
		}
		p.shape.add(key, next, i)
		if i = blanks(line, i); i >= len(line) {
			return false
		}
		if line[i] == '}' {
			if !p.has[keyInput] || blanks(line, i+1) != len(line) {
				return false
			}
			p.shape.keep(line, p.has)
			return true
		}
		if line[i] != ',' {
			return false
		}
	}
}

// plainKey reads a key and its colon, which of plainKeys is probably the one
// expected; key is -1 if it is none of them.
func plainKey(line []byte, i, expected int) (key, next int) {
	for k := range plainKeys {
		k = (k + expected) % len(plainKeys)
		name := plainKeys[k]
		end := i + len(name) + 2
		if end > len(line) || line[i] != '"' || line[end-1] != '"' || string(line[i+1:end-1]) != name {
			continue
		}
		if i = blanks(line, end); i >= len(line) || line[i] != ':' {
			return -1, 0
		}
		return k, blanks(line, i+1)
	}
	return -1, 0
}

// value reads the value of a key and returns where it ends; -1 if it is not an
// ordinary one.
func (p *plain) value(line []byte, i, key int, unit time.Duration) (end int) {
	switch key {
	case keyTime:
		return p.time(line, i, unit)
	case keyIDs:
		return p.list(line, i)
	}
	v, end := digits(line, i)
	if end < 0 || v > math.MaxInt64 || !ended(line, end) {
		return -1
	}
	if key == keyInput {
		p.in = int64(v)
	} else {
		p.out = int64(v)
	}
	return end
}

// time reads a timestamp that a duration holds exactly.
func (p *plain) time(line []byte, i int, unit time.Duration) (end int) {
	n, end := digits(line, i)
	if end < 0 {
		return -1
	}
	if hi, ns := bits.Mul64(n, uint64(unit)); hi == 0 && ns < 1<<53 && ended(line, end) {
		p.at = time.Duration(ns)
		return end
	}
	v := float64(n)
	if end < len(line) && line[end] == '.' {
		for end++; end < len(line) && line[end]-'0' <= 9; end++ {
		}
		f, err := strconv.ParseFloat(string(line[i:end]), 64)
		if err != nil || line[end-1] == '.' {
			return -1
		}
		v = f
	}
	ns := math.Round(v * float64(unit))
	if ns >= 1<<62 || float64(time.Duration(ns))/float64(unit) != v || !ended(line, end) {
		return -1
	}
	p.at = time.Duration(ns)
	return end
}

// list reads an array of ids.
func (p *plain) list(line []byte, i int) (end int) {
	if i >= len(line) || line[i] != '[' {
		return -1
	}
	if i = blanks(line, i+1); i < len(line) && line[i] == ']' {
		return i + 1
	}
	ids := p.ids
	for {
		if i+10 <= len(line) && line[i] != '0' {
			b := binary.LittleEndian.Uint64(line[i:])
			if n := digitsOf(b); n > 0 && line[i+n] == ',' {
				ids = append(ids, eightDigits(b<<(64-8*n)))
				ids, i = following(ids, line, i, n)
				continue
			}
		}
		v, end := digits(line, blanks(line, i))
		if end < 0 {
			return -1
		}
		ids = append(ids, v)
		if i = blanks(line, end); i >= len(line) {
			return -1
		}
		if line[i] == ']' {
			p.ids = ids
			return i + 1
		}
		if line[i] != ',' {
			return -1
		}
		i = blanks(line, i+1)
	}
}

// following reads on after the id of n digits, at most 8, that begins at i, with a
// comma behind it, as long as each id is the one before and 1: new blocks count up.
// Then the text differs in its last digit alone. It returns where the next id begins,
// or blanks before it.
func following(ids []uint64, line []byte, i, n int) ([]uint64, int) {
	const one = 1 << 56
	shift := 64 - 8*n
	text := binary.LittleEndian.Uint64(line[i:]) << shift
	id := ids[len(ids)-1]
	for last := text>>56 - '0'; ; last++ {
		if i += n + 1; i < len(line) && line[i] == ' ' {
			i++
		}
		text += one
		if last == 9 || i+10 > len(line) || binary.LittleEndian.Uint64(line[i:])<<shift != text || line[i+n] != ',' {
			return ids, i
		}
		id++
		ids = append(ids, id)
	}
}

// digits reads an integer as JSON writes it, without a sign; end is -1 if there
// is none or it has more than 64 bits.
func digits(line []byte, i int) (v uint64, end int) {
	if i+8 <= len(line) && line[i] != '0' {
		b := binary.LittleEndian.Uint64(line[i:])
		if n := digitsOf(b); n > 0 && n < 8 {
			return eightDigits(b << (64 - 8*n)), i + n
		} else if n == 8 {
			return moreDigits(line, i, eightDigits(b), i+8)
		}
		return 0, -1
	}
	return moreDigits(line, i, 0, i)
}

// moreDigits reads on at end an integer that begins at i and is v so far.
func moreDigits(line []byte, i int, v uint64, end int) (uint64, int) {
	for end < len(line) {
		d := uint64(line[end] - '0')
		if d > 9 {
			break
		}
		if end-i >= 19 && v > (math.MaxUint64-d)/10 {
			return 0, -1
		}
		v = v*10 + d
		end++
	}
	if end == i || end-i > 20 || line[i] == '0' && end-i > 1 {
		return 0, -1
	}
	return v, end
}

// digitsOf returns how many of 8 bytes are digits, from the first, which is the
// lowest, to the first that is none.
func digitsOf(b uint64) int {
	const high, zero = 0xf0f0f0f0f0f0f0f0, 0x3030303030303030
	other := (b&high ^ zero) | ((b+0x0606060606060606)&high ^ zero) // carries reach only bytes behind one that is no digit
	return bits.TrailingZeros64(other) / 8
}

// eightDigits reads 8 digits, the first in the lowest byte, all at once; a byte of 0
// is a digit 0.
func eightDigits(b uint64) uint64 {
	b = (b & 0x0f0f0f0f0f0f0f0f) * (1 + 10<<8) >> 8
	b = (b & 0x00ff00ff00ff00ff) * (1 + 100<<16) >> 16
	return (b & 0x0000ffff0000ffff) * (1 + 10_000<<32) >> 32
}

// ended says whether a number ends at i.
func ended(line []byte, i int) bool {
	return i < len(line) && (line[i] == ',' || line[i] == '}' || line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\n')
}

// blanks returns where the blanks at i end.
func blanks(line []byte, i int) int {
	for i < len(line) && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\n') {
		i++
	}
	return i
}

// row returns the line as the strict parser does.
func (p *plain) row() *row {
	r := &row{mode: trace.MessagesFull}
	r.req.Operation = trace.OpCompletion
	r.req.Arrival = trace.Optional[time.Duration]{Value: p.at, Known: p.has[keyTime]}
	r.req.InputTokens = trace.Some(p.in)
	r.req.OutputTokens = trace.Optional[int64]{Value: p.out, Known: p.has[keyOutput]}
	if !p.has[keyTime] {
		r.req.Arrival.Value = 0
	}
	if !p.has[keyOutput] {
		r.req.OutputTokens.Value = 0
	}
	if p.has[keyIDs] {
		r.req.Blocks = append(make([]uint64, 0, len(p.ids)), p.ids...)
	}
	return r
}

// addPlain is add for an ordinary line, straight into the columns.
func (s *state) addPlain(f *source.Source, line []byte, n int64) error {
	p, b := &s.plain, s.batch
	if p.has[keyIDs] {
		size, tail, err := s.fit(p.in, int64(len(p.ids)), 0)
		if err != nil {
			return s.bad(f.Name, n, string(line), err)
		}
		s.lengths(n, p.in, p.ids, size)
		ids := b.BlockIDs.Fields[0].(*column.Flat[uint64])
		copy(ids.Extend(len(p.ids)), p.ids)
		b.BlockIDs.EndRow(true)
		b.BlockTokens.Append(int32(size))
		b.BlockTail.Append(tail)
	} else {
		b.BlockIDs.EndRow(false)
		b.BlockTokens.AppendNull()
		b.BlockTail.AppendNull()
	}
	b.ID.Append(s.next)
	s.next++
	b.Operation.Append(trace.OpCompletion)
	if p.has[keyTime] {
		s.clock(p.at)
		b.ArrivalNS.Append(int64(p.at))
	} else {
		b.ArrivalNS.AppendNull()
	}
	b.InputTokens.Append(p.in)
	b.OutputTokens.AppendIf(p.out, p.has[keyOutput])
	b.SourceFile.Append(s.base)
	b.SourceRow.Append(n)
	s.dialect.lengths = true
	if b.Len() >= trace.BatchRows {
		return s.flush()
	}
	return nil
}
