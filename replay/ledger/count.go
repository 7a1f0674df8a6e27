package ledger

import (
	"fmt"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// A count is a number of tokens and where it came from.
type count struct {
	n      trace.Optional[int32]
	source results.Source
	parts  bool // each part is counted for itself (a local tokenizer)
}

// tokens counts the tokens of d by the order of trust of rule R4. total is the
// usage in the event; shareable says that it is the usage of d's choice alone.
func (a *Account) tokens(d *Delta, total trace.Optional[int64], shareable bool) count {
	if d.IDs.Known {
		a.count.booked += int64(d.IDs.Value)
		return count{n: d.IDs, source: results.SourceIDs}
	}
	if total.Known && shareable && a.count.used && a.count.fell(total.Value) {
		a.lose(total.Value)
	}
	switch n, ok := a.difference(d, total, shareable); {
	case a.count.lost:
		return count{source: results.SourceUsage}
	case ok:
		a.count.used = true
		a.seenLate(d, n)
		return count{n: trace.Some(n), source: results.SourceUsage}
	case d.Logprobs.Known && (d.Logprobs.Value > 0 || d.size() == 0):
		a.count.booked += int64(d.Logprobs.Value)
		return count{n: d.Logprobs, source: results.SourceLogprobs}
	case d.Format.Known:
		a.count.booked += int64(d.Format.Value)
		return count{n: d.Format, source: results.SourceFormat}
	case d.size() == 0:
		return count{n: trace.Some[int32](0), source: results.SourceFormat}
	case a.Tokenizer != nil:
		a.count.open = true
		return count{source: results.SourceLocal, parts: true}
	}
	a.count.open = true
	return count{source: results.SourceUnknown}
}

// difference returns how far the running usage rose with d, and false if that
// is not d's count:
//   - there is no usage, or it is the count of several choices;
//   - text before d was not counted, so that the rise covers that too;
//   - d has text and the count still stands at 0: the count is not running;
//   - d only ends its choice and the usage is the first: a final usage.
//
// A delta that only names the role has no tokens (R3); what the count rose by
// is left to the next delta. Any other delta without text takes the rise: the
// tokens were seen when the count was (decision 3 of the rules).
func (a *Account) difference(d *Delta, total trace.Optional[int64], shareable bool) (int32, bool) {
	c := &a.count
	if !total.Known || !shareable || c.open || c.lost {
		return 0, false
	}
	text := d.size() > 0
	rise := total.Value - c.base - c.booked
	switch {
	case rise < 0 || rise > 1<<30:
		return 0, false
	case d.Role && !text && len(d.Finish) == 0:
		c.hold = true
		return 0, true
	case !text && len(d.Finish) > 0 && !c.seen:
		return 0, false
	case text && total.Value == 0:
		c.open = true
		return 0, false
	}
	return int32(rise), true
}

// running follows the usage of a response: how much of it is on the ledger.
type running struct {
	seen   bool  // a usage has been seen
	used   bool  // a count was taken from it
	base   int64 // usage up to which the ledger is settled
	last   int64 // the last usage
	booked int64 // tokens booked from other sources since base
	open   bool  // text since base has no count
	hold   bool  // the rise of this event is left to the next
	lost   bool  // the count fell once
}

func (c *running) fell(total int64) bool { return c.seen && total < c.last }

// observe settles the ledger up to a usage.
func (c *running) observe(total int64) {
	c.last = total
	if c.hold {
		c.hold, c.seen = false, true
		return
	}
	// Text that came with a count of 0 is not covered by that count.
	c.open = c.open && total == 0 && c.base == 0
	c.seen, c.base, c.booked = true, total, 0
}

// lose ends counting by usage (R7): the count fell to total.
func (a *Account) lose(total int64) {
	if !a.count.lost {
		a.count.lost = true
		a.Note(fmt.Sprintf("running token count fell from %d to %d", a.count.last, total))
	}
}

// seenLate notes tokens that were counted while their text was held back, by a
// parser for example: more tokens than bytes of text.
func (a *Account) seenLate(d *Delta, n int32) {
	if int(n) > d.size() && len(d.Finish) == 0 {
		a.Note("tokens were counted before their text was sent")
	}
}

// book appends the entries of d and keeps its choice's state.
func (a *Account) book(s Stamp, d *Delta, n count) {
	c := a.choice(d.Choice)
	kinds, parts := d.parts()
	if parts == 0 {
		a.append(s, a.silentKind(c, d, n), d.Choice, n.n, n.source)
	}
	for i, kind := range kinds[:parts] {
		c.kind = kind
		tokens := n.n
		if n.parts {
			tokens = trace.Some(a.local(d, kind))
		} else if i < parts-1 {
			tokens = trace.Optional[int32]{} // the last part carries the event's count
		}
		a.append(s, kind, d.Choice, tokens, n.source)
	}
	if c.repeat.see(d.Content) {
		a.Note(noteCumulative)
	}
	a.finish(c, d.Finish)
	if a.Transcript != nil {
		a.Transcript.add(d)
	}
}

// silentKind returns the kind of a delta without text: none, unless it has
// tokens whose kind the event or the text before tells.
func (a *Account) silentKind(c *choice, d *Delta, n count) results.Kind {
	switch {
	case !n.n.Known || n.n.Value == 0:
		return results.KindNone
	case d.Kind != 0:
		return d.Kind
	}
	return c.kind
}

func (a *Account) append(s Stamp, kind results.Kind, choice int32, n trace.Optional[int32], source results.Source) {
	if len(a.entries) == cap(a.entries) {
		a.grow()
	}
	i := len(a.entries)
	a.entries = a.entries[:i+1]
	e := &a.entries[i] // field by field: a whole value would be written twice
	e.At, e.Tokens.Value, e.Tokens.Known, e.Choice = int64(s.At/time.Microsecond), n.Value, n.Known, choice
	e.Event, e.Kind, e.Source, e.SharedRead = int32(s.Event), kind, source, s.SharedRead
}

// A ledger begins with room for what is expected and a few entries without a token,
// and for no more than manyEntries.
const (
	fewEntries  = 2
	manyEntries = 64
)

// grow makes room for more entries: fourfold up to what is expected, for what
// moves leaves its place behind as garbage.
func (a *Account) grow() {
	n, expected := len(a.entries), a.Expected+fewEntries
	room := min(expected, max(4*n, manyEntries))
	if room <= n {
		room = n + max(n/2, manyEntries/4)
	}
	a.entries = append(make([]results.Entry, 0, room), a.entries...)
}

// local counts one part of d with the tokenizer.
func (a *Account) local(d *Delta, kind results.Kind) int32 {
	switch kind {
	case results.KindReasoning:
		return int32(a.Tokenizer(d.Reasoning))
	case results.KindContent:
		return int32(a.Tokenizer(d.Content))
	case results.KindRefusal:
		return int32(a.Tokenizer(d.Refusal))
	}
	n := 0
	for i := range d.Tools {
		n += a.Tokenizer(d.Tools[i].Name) + a.Tokenizer(d.Tools[i].Arguments)
	}
	return int32(n)
}

// wholeTokens counts the tokens of a delta that is a whole answer.
func (a *Account) wholeTokens(d *Delta) count {
	n := a.tokens(d, trace.Optional[int64]{}, false)
	if n.parts {
		kinds, parts := d.parts()
		for _, kind := range kinds[:parts] {
			n.n = trace.Some(n.n.Value + a.local(d, kind))
		}
	}
	return n
}

// summed is the sum of the tokens of a body's choices.
type summed struct {
	tokens int64
	any    bool // there is a choice
	gap    bool // a choice has no count
	source results.Source
}

func (w *summed) add(n count) {
	w.any = true
	w.gap = w.gap || !n.n.Known
	w.tokens += int64(n.n.Value)
	w.source = n.source
}
