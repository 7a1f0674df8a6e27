// Package ledger books one response: every chunk and every token, each with
// where its count came from, and how the response ended. It follows the
// project's booking rules R3 to R11.
//
// A protocol's decoder says what an event holds ([Delta], [Usage]); the
// [Account] decides what that means. [Account.Close] gives the [Summary], whose
// instants come from the stored entries by the functions of package results.
package ledger

import (
	"fmt"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// An Account books one response. The zero value is ready to use. The exported
// fields are set before the response, the rest is Reset between responses.
type Account struct {
	// Choices is how many choices were asked for; 0 means 1. A stream is
	// complete without an end marker only when all of them have finished.
	Choices int
	// Tokenizer counts the tokens of a text, for chunks for which the server
	// sent no count; nil leaves them unknown. Counts are labelled local.
	Tokenizer func(text []byte) int
	// Transcript, if not nil, collects what the server said.
	Transcript *Transcript
	// Expected is how many tokens are asked for; 0 if that is not known. The
	// ledger begins with room for them, within bounds.
	Expected int

	entries []results.Entry
	choices []choice
	count   running
	usage   Usage

	chunks   int  // events or bodies with a delta for a choice
	terminal bool // the end marker was seen
	marker   bool // this protocol has an end marker
	body     bool // the response came as one body
	unasked  bool // ... although a stream was asked for
	whole    summed

	failed    bool   // an error object was seen (R10)
	cause     string // of the failure, the first error's words
	badFinish string // a finish reason that means failure
	malformed int    // events that could not be read
	shown     string // the first of them
	timings   string // what the server measured itself, raw JSON
	notes     []string
}

// A choice is the state of one choice of the response.
type choice struct {
	index    int32
	kind     results.Kind // of its last text
	finish   string       // "" if none was given
	finished bool
	repeat   repeat
}

// Reset makes a ready for the next response. It keeps the exported fields and
// takes slab, which may be nil, as memory for the entries.
func (a *Account) Reset(slab []results.Entry) {
	*a = Account{
		Choices: a.Choices, Tokenizer: a.Tokenizer, Transcript: a.Transcript, Expected: a.Expected,
		entries: slab[:0], choices: a.choices[:0], notes: a.notes[:0],
	}
	if a.Transcript != nil {
		a.Transcript.reset()
	}
}

// Entries returns what has been booked so far.
func (a *Account) Entries() []results.Entry { return a.entries }

// A Stamp says when and where in a response something was read.
type Stamp struct {
	At         time.Duration // since sent; stored in whole microseconds, rounded down
	Event      int           // 0-based ordinal of the event
	SharedRead bool          // the read had completed an earlier event
}

var noUsage Usage

// Chunk books an event that holds deltas. u is the usage of the same event; nil
// or a zero Usage means that there was none.
func (a *Account) Chunk(s Stamp, deltas []Delta, u *Usage) {
	if u == nil {
		u = &noUsage
	}
	if len(deltas) == 0 {
		a.Usage(s, u)
		return
	}
	a.chunks++
	for i := range deltas {
		a.choice(deltas[i].Choice)
	}
	shareable := len(a.choices) == 1
	if u.Output.Known && !shareable {
		a.Note("running usage cannot be shared among several choices")
	}
	for i := range deltas {
		d := &deltas[i]
		a.book(s, d, a.tokens(d, u.Output, shareable))
	}
	if u.Output.Known {
		a.count.observe(u.Output.Value)
	}
	a.usage.merge(u)
}

// Text is Chunk of one delta that holds content, which is not empty, and nothing else.
func (a *Account) Text(s Stamp, choice int32, content []byte, u *Usage) {
	if len(a.choices) != 1 || a.choices[0].index != choice || u != nil || a.count.lost || a.Tokenizer != nil || a.Transcript != nil {
		a.Chunk(s, []Delta{{Choice: choice, Kind: results.KindContent, Content: content}}, u)
		return
	}
	a.chunks++
	a.count.open = true
	c := &a.choices[0]
	c.kind = results.KindContent
	a.append(s, results.KindContent, choice, trace.Optional[int32]{}, results.SourceUnknown)
	if c.repeat.see(content) {
		a.Note(noteCumulative)
	}
}

// Usage books a usage that came in an event of its own. It never makes a chunk
// (R3): tokens that only it knows of stay out of the ledger and appear as the
// difference.
func (a *Account) Usage(s Stamp, u *Usage) {
	if u.Output.Known {
		if a.count.fell(u.Output.Value) && a.count.used {
			a.lose(u.Output.Value)
			a.append(s, results.KindNone, 0, trace.Optional[int32]{}, results.SourceUsage)
		}
		a.count.observe(u.Output.Value)
	}
	a.usage.merge(u)
}

// Body books a response that came as one body. It has no chunks, so no TTFT
// and no gaps; asked says whether one body is what was asked for.
func (a *Account) Body(deltas []Delta, u Usage, asked bool) {
	a.body, a.unasked = true, !asked
	if len(deltas) > 0 {
		a.chunks++
	}
	for i := range deltas {
		d := &deltas[i]
		c := a.choice(d.Choice)
		a.whole.add(a.wholeTokens(d))
		a.finish(c, d.Finish)
		if a.Transcript != nil {
			a.Transcript.add(d)
		}
	}
	a.usage.merge(&u)
}

// Answered says that a body was a whole answer though it holds no choices
// (embeddings).
func (a *Account) Answered(u Usage) {
	a.body = true
	a.chunks++
	a.usage.merge(&u)
}

// Done books the protocol's end marker or end event (R9).
func (a *Account) Done() { a.terminal = true }

// Ended says whether the end marker has been seen.
func (a *Account) Ended() bool { return a.terminal }

// ExpectMarker says that streams of this protocol close with an end marker;
// a stream that ends without it, but with all finish reasons, gets a note.
func (a *Account) ExpectMarker() { a.marker = true }

// Error books an error object: the response has failed, whatever follows. The
// first cause is kept.
func (a *Account) Error(cause string) {
	if !a.failed {
		a.failed, a.cause = true, shorten(cause)
	}
}

// Malformed books an event that is not what the protocol says. The first one
// is shown.
func (a *Account) Malformed(s Stamp, data []byte) {
	a.malformed++
	if a.malformed == 1 {
		a.shown = fmt.Sprintf("event %d is malformed: %q", s.Event, data[:min(len(data), 60)])
	}
}

// Timings keeps the server's own measurements, as raw JSON, apart from client
// times.
func (a *Account) Timings(raw []byte) { a.timings = string(raw) }

// Note keeps a doubt about the response, once.
func (a *Account) Note(note string) {
	for _, n := range a.notes {
		if n == note {
			return
		}
	}
	a.notes = append(a.notes, note)
}

// choice returns the state of the choice with that index.
func (a *Account) choice(index int32) *choice {
	for i := range a.choices {
		if a.choices[i].index == index {
			return &a.choices[i]
		}
	}
	a.choices = append(a.choices, choice{index: index, kind: results.KindNone})
	return &a.choices[len(a.choices)-1]
}

// finish books a finish reason. An empty one is not terminal; "error", "abort"
// and "cancelled" mean that the response failed; any other is kept as given.
func (a *Account) finish(c *choice, reason []byte) {
	if len(reason) == 0 {
		return
	}
	c.finish, c.finished = intern(reason), true
	switch c.finish {
	case "error", "abort", "cancelled":
		a.badFinish = c.finish
	}
}

// intern returns reason as a string, without allocation if it is a usual one.
func intern(reason []byte) string {
	switch string(reason) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "end_turn":
		return "end_turn"
	case "eos_token":
		return "eos_token"
	}
	return string(reason)
}

// merge takes what u knows.
func (all *Usage) merge(u *Usage) {
	if u.Input.Known {
		all.Input = u.Input
	}
	if u.Cached.Known {
		all.Cached = u.Cached
	}
	if u.Output.Known {
		all.Output = u.Output
	}
	if u.Reasoning.Known {
		all.Reasoning = u.Reasoning
	}
}

// longestCause bounds the text of a cause in bytes.
const longestCause = 500

func shorten(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > longestCause {
		s = strings.ToValidUTF8(s[:longestCause], "") + "..."
	}
	return s
}
