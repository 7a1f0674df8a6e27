package sse

import (
	"bytes"
	"fmt"
	"time"
)

// NoteOpenMarker is the note of a stream that ended right after its end
// marker, without the empty line that completes an event.
const NoteOpenMarker = "end marker without an empty line after it"

// Finish ends the stream at at. An event that was left open is void by the
// format; a measuring client still takes an end marker [DONE] from it, and
// says so in note. Anything else is dropped, and note shows its first bytes.
// note is "" if nothing was open.
func (r *Reader) Finish(at time.Duration, emit func(Event) error) (note string, err error) {
	if r.err != nil {
		return "", r.err
	}
	line := r.line
	if !r.started {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	value, isData := field(line, "data")
	switch {
	case isMarker(r.data) && r.hasData && len(line) == 0:
		value = r.data
	case isMarker(value) && isData && !r.hasData:
		r.hasData = true
	case r.hasData && len(r.data) > 0:
		return dropped(r.data), nil
	case len(line) > 0 && line[0] != ':':
		return dropped(line), nil
	default:
		return "", nil
	}
	r.one, r.line, r.inRead = value, nil, 0
	if err := r.endEvent(at, emit); err != nil {
		r.err = err
		return "", err
	}
	return NoteOpenMarker, nil
}

func isMarker(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

func dropped(b []byte) string {
	return fmt.Sprintf("last event was cut off and dropped: %q", b[:min(len(b), 60)])
}
