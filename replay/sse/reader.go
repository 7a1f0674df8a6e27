// Package sse reads server-sent events, and lines of JSON, from the bytes of
// network reads.
//
// The framing is rule R1 of the project, which follows the event stream
// format of the HTML standard (section 9.2.6): lines end with LF, CRLF or CR,
// one blank after the colon is dropped, lines that start with a colon are
// comments, the data lines of an event are joined with LF, and a byte order
// mark at the very start is dropped. It differs from the standard in one
// point: an event with empty data is counted, not emitted.
//
// Readers are pushed to, not pulled from: the caller hands over what one read
// returned, with the time of that read, and gets the events it completed. The
// result does not depend on where the reads cut the stream, but for the times.
package sse

import (
	"bytes"
	"fmt"
	"time"
)

// DefaultLimit is the bound on the bytes of one event of a reader whose Limit
// is 0.
const DefaultLimit = 16 << 20

// keepBytes is the largest buffer that Reset keeps for the next response.
const keepBytes = 64 << 10

// An Event is one event of a stream. Name and Data are valid only during the
// call that hands it over.
type Event struct {
	Name       []byte        // value of the event field; empty if there was none
	Data       []byte        // data lines, joined with LF; never empty
	At         time.Duration // time of the read that completed the event (R2)
	Index      int           // 0-based ordinal of the event in the stream
	SharedRead bool          // the same read had completed an earlier event
}

// Counts says what a reader has seen.
type Counts struct {
	Events   int // events emitted
	Empty    int // events without data, or whose data was empty
	Comments int // comment lines
	Unknown  int // lines with a field the format does not know
}

// A LimitError reports an event over the bound.
type LimitError struct {
	Limit int // bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("event is longer than the bound of %d bytes", e.Limit)
}

// A Reader splits an event stream into events. The zero value is ready to use.
//
// It borrows from the caller's buffer and copies only the parts of an event
// that spans reads; in the steady state it does not allocate.
type Reader struct {
	// Limit bounds the bytes of one line and of the joined data of one event,
	// and with them the memory a reader holds; 0 means DefaultLimit.
	Limit int
	// Known, if not nil, is shown what begins where an event does, the event's
	// own lines and what follows them, with what the Event will say of it. It
	// returns how many bytes it took, for one whole event without a name and with
	// data, and with the empty line that ends it, by LF; 0 leaves the event to the
	// reader.
	Known func(p []byte, at time.Duration, index int, sharedRead bool) int

	counts  Counts
	unknown []byte // the first unknown line, its first bytes

	line    []byte // start of a line whose end has not been read
	one     []byte // only data line of the open event, borrowed during Feed
	data    []byte // data of the open event, copied
	name    []byte // event field of the open event
	hasData bool   // the open event has a data line
	fields  bool   // the open event has a line that is not a comment
	afterCR bool   // the last read ended with CR: an LF that follows belongs to it
	started bool   // the first line has been read
	inRead  int    // events emitted since the read at readAt began
	readAt  time.Duration
	err     error // what ended reading
}

// Reset makes r ready for the next stream and keeps its buffers, Limit and Known.
func (r *Reader) Reset() {
	*r = Reader{Limit: r.Limit, Known: r.Known, line: reuse(r.line), data: reuse(r.data), name: reuse(r.name), unknown: r.unknown[:0]}
}

func reuse(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b[:0]
}

// Counts returns what r has seen so far.
func (r *Reader) Counts() Counts { return r.counts }

// FirstUnknown returns the first bytes of the first line that is no field of
// the format, for an error message; it is empty if there was none.
func (r *Reader) FirstUnknown() string { return string(r.unknown) }

// Feed takes bytes of the network read made at at and calls emit for each event
// that they complete. Calls in a row with one at are one read: chunked framing
// hands over a read in pieces, most often an event each. It returns a [*LimitError] for an event over the
// bound, or the error of emit; either ends reading for good. p is not kept.
func (r *Reader) Feed(p []byte, at time.Duration, emit func(Event) error) error {
	if r.err == nil {
		if at != r.readAt {
			r.inRead, r.readAt = 0, at
		}
		if p = p[r.known(p, at):]; len(p) > 0 {
			r.err = r.feed(p, at, emit)
		}
	}
	return r.err
}

func (r *Reader) feed(p []byte, at time.Duration, emit func(Event) error) error {
	pos := 0
	if r.afterCR && len(p) > 0 {
		r.afterCR = false
		if p[0] == '\n' {
			pos = 1
		}
	}
	lf, cr := -1, -1 // next LF and CR at or after pos; each byte is searched once
	for pos < len(p) {
		if lf < pos {
			lf = indexFrom(p, pos, '\n')
		}
		if cr < pos {
			cr = indexFrom(p, pos, '\r')
		}
		end := min(lf, cr)
		if end == len(p) {
			break
		}
		line := p[pos:end]
		pos = end + 1
		if end == cr {
			if pos == len(p) {
				r.afterCR = true
			} else if p[pos] == '\n' {
				pos++
			}
		}
		if len(r.line) > 0 {
			if len(r.line)+len(line) > r.limit() {
				return &LimitError{Limit: r.limit()}
			}
			line = append(r.line, line...)
			r.line = line[:0] // its bytes stay valid until keep
		}
		if err := r.endLine(line, at, emit); err != nil {
			return err
		}
		pos += r.known(p[pos:], at)
	}
	return r.keep(p[pos:])
}

// known passes over the events that Known takes, and returns how long they are.
func (r *Reader) known(p []byte, at time.Duration) (n int) {
	if r.Known == nil || r.fields || len(r.line) > 0 || r.afterCR || !r.started {
		return 0
	}
	for n < len(p) {
		k := r.Known(p[n:min(len(p), n+r.limit())], at, r.counts.Events, r.inRead > 0)
		if k == 0 {
			break
		}
		r.counts.Events++
		r.inRead++
		n += k
	}
	return n
}

// indexFrom returns the index of the first c at or after pos, or len(p).
func indexFrom(p []byte, pos int, c byte) int {
	if i := bytes.IndexByte(p[pos:], c); i >= 0 {
		return pos + i
	}
	return len(p)
}

// keep copies what the next read must find: the data line of an open event and
// the start of a line.
func (r *Reader) keep(rest []byte) error {
	if r.one != nil {
		r.data = append(r.data[:0], r.one...)
		r.one = nil
	}
	if len(r.line)+len(rest) > r.limit() {
		return &LimitError{Limit: r.limit()}
	}
	r.line = append(r.line, rest...)
	return nil
}

func (r *Reader) limit() int {
	if r.Limit > 0 {
		return r.Limit
	}
	return DefaultLimit
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

func (r *Reader) endLine(line []byte, at time.Duration, emit func(Event) error) error {
	if len(line) > r.limit() {
		return &LimitError{Limit: r.limit()}
	}
	if !r.started {
		r.started = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) == 0 {
		return r.endEvent(at, emit)
	}
	if value, ok := field(line, "data"); ok {
		return r.dataLine(value)
	}
	if line[0] == ':' {
		r.counts.Comments++
		return nil
	}
	if value, ok := field(line, "event"); ok {
		r.fields = true
		r.name = append(r.name[:0], value...)
		return nil
	}
	if isField(line, "id") || isField(line, "retry") {
		r.fields = true
		return nil
	}
	if r.counts.Unknown == 0 {
		r.unknown = append(r.unknown[:0], line[:min(len(line), 60)]...)
	}
	r.counts.Unknown++
	return nil
}

// field returns the value of a line that holds the named field.
func field(line []byte, name string) ([]byte, bool) {
	if !isField(line, name) {
		return nil, false
	}
	value := line[len(name):]
	if len(value) > 0 {
		value = value[1:] // the colon
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return value, true
}

func isField(line []byte, name string) bool {
	n := len(name)
	return len(line) >= n && string(line[:n]) == name && (len(line) == n || line[n] == ':')
}

func (r *Reader) dataLine(value []byte) error {
	r.fields = true
	if !r.hasData {
		r.hasData = true
		r.data = r.data[:0]
		r.one = value
		return nil
	}
	if r.one != nil {
		r.data = append(r.data, r.one...)
		r.one = nil
	}
	if len(r.data)+1+len(value) > r.limit() {
		return &LimitError{Limit: r.limit()}
	}
	r.data = append(r.data, '\n')
	r.data = append(r.data, value...)
	return nil
}

func (r *Reader) endEvent(at time.Duration, emit func(Event) error) error {
	data := r.one
	if data == nil {
		data = r.data
	}
	switch {
	case r.hasData && len(data) > 0:
		e := Event{Name: r.name, Data: data, At: at, Index: r.counts.Events, SharedRead: r.inRead > 0}
		r.counts.Events++
		r.inRead++
		if err := emit(e); err != nil {
			return err
		}
	case r.fields:
		r.counts.Empty++
	}
	r.one, r.data, r.name = nil, r.data[:0], r.name[:0]
	r.hasData, r.fields = false, false
	return nil
}
