package sse

import (
	"bytes"
	"time"
)

// Lines splits a stream of JSON lines (application/x-ndjson) into events, one
// per line that is not blank. Lines end with LF or CRLF. The zero value is
// ready to use.
type Lines struct {
	// Limit bounds the bytes of one line; 0 means DefaultLimit.
	Limit int

	counts  Counts
	line    []byte // start of a line whose end has not been read
	started bool   // the first line has been read
	inRead  int    // events emitted since the read at readAt began
	readAt  time.Duration
	err     error // what ended reading
}

// Reset makes l ready for the next stream and keeps its buffer and Limit.
func (l *Lines) Reset() { *l = Lines{Limit: l.Limit, line: reuse(l.line)} }

// Counts returns what l has seen so far; Empty counts blank lines.
func (l *Lines) Counts() Counts { return l.counts }

// Feed takes bytes of the network read made at at and calls emit for each line
// that they complete; calls in a row with one at are one read. Errors are those of [Reader.Feed].
func (l *Lines) Feed(p []byte, at time.Duration, emit func(Event) error) error {
	if l.err == nil {
		if at != l.readAt {
			l.inRead, l.readAt = 0, at
		}
		l.err = l.feed(p, at, emit)
	}
	return l.err
}

func (l *Lines) feed(p []byte, at time.Duration, emit func(Event) error) error {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		line := p[:end]
		p = p[end+1:]
		if len(l.line)+len(line) > l.limit() {
			return &LimitError{Limit: l.limit()}
		}
		if len(l.line) > 0 {
			line = append(l.line, line...)
			l.line = line[:0]
		}
		if err := l.endLine(line, at, emit); err != nil {
			return err
		}
	}
	if len(l.line)+len(p) > l.limit() {
		return &LimitError{Limit: l.limit()}
	}
	l.line = append(l.line, p...)
	return nil
}

func (l *Lines) limit() int {
	if l.Limit > 0 {
		return l.Limit
	}
	return DefaultLimit
}

func (l *Lines) endLine(line []byte, at time.Duration, emit func(Event) error) error {
	if !l.started {
		l.started = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		l.counts.Empty++
		return nil
	}
	e := Event{Data: line, At: at, Index: l.counts.Events, SharedRead: l.inRead > 0}
	l.counts.Events++
	l.inRead++
	return emit(e)
}

// Finish ends the stream at at and emits a last line that has no line end:
// whether it is whole is for its reader to see, since JSON ends itself.
func (l *Lines) Finish(at time.Duration, emit func(Event) error) error {
	if l.err != nil || len(l.line) == 0 {
		return l.err
	}
	line := l.line
	l.line, l.inRead = nil, 0
	l.err = l.endLine(line, at, emit)
	return l.err
}
