package protocol

import (
	"bytes"

	"reprise/replay/ledger"
	"reprise/replay/sse"
)

// scratch is the memory of a decoder for one event.
type scratch struct {
	deltas []ledger.Delta
	tools  []ledger.Tool
	text   []byte // unescaped strings
}

func (d *scratch) clear() {
	d.deltas, d.tools, d.text = d.deltas[:0], d.tools[:0], d.text[:0]
}

// str takes a string from c as text; nil for any other value. The text is
// valid until the next event.
func (d *scratch) str(c *cursor) []byte {
	raw, ok := c.str()
	if !ok {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	start := len(d.text)
	d.text = appendUnescaped(d.text, raw)
	return d.text[start:len(d.text):len(d.text)]
}

// begin does what all protocols do with an event: it books the end marker and
// named errors. more is false if nothing is left to read.
func begin(e sse.Event, a *ledger.Account) (s ledger.Stamp, data []byte, more bool) {
	s = ledger.Stamp{At: e.At, Event: e.Index, SharedRead: e.SharedRead}
	data = bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		return s, nil, false
	case string(data) == "[DONE]":
		a.Done()
		return s, nil, false
	case a.Ended():
		a.Note("events after the end marker")
	}
	if string(e.Name) == "error" {
		a.Error(errorCause(data))
		return s, nil, false
	}
	return s, data, true
}

// notObject books a body that is no JSON object.
func notObject(body []byte, a *ledger.Account) {
	a.Error("response is not a JSON object: " + quoteStart(bytes.TrimSpace(body)))
}

// noAnswer books a body that is JSON, but no answer of this protocol.
func noAnswer(body []byte, a *ledger.Account) {
	a.Error("response holds no answer: " + quoteStart(bytes.TrimSpace(body)))
}
