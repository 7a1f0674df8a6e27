package results

import (
	"iter"
	"time"

	"reprise/trace"
)

// A Chunk is what one event said of one choice: its ledger entries taken
// together.
//
// The count of an event with several parts (reasoning and content, say) is
// often known only for the event. It is then stored on the last part and the
// others are null, so that the tokens of a chunk are the sum of its known
// entries, as in SQL: sum(tokens) group by event, choice. They are unknown
// only if every entry is null.
type Chunk struct {
	At         time.Duration // since sent, whole microseconds
	Tokens     trace.Optional[int32]
	Choice     int32
	Event      int32
	Text       bool   // a part is not KindNone
	Output     bool   // a part that is not reasoning may have tokens
	Source     Source // of the count
	SharedRead bool
}

// HasTokens says whether the chunk holds a token: its count is above 0, or it
// is unknown and there is text, which takes at least one token.
func (c Chunk) HasTokens() bool {
	if c.Tokens.Known {
		return c.Tokens.Value > 0
	}
	return c.Text
}

// Chunks yields the chunks of a ledger in the order read.
func Chunks(ledger []Entry) iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		for i := 0; i < len(ledger); {
			n := 1
			for i+n < len(ledger) && ledger[i+n].Event == ledger[i].Event && ledger[i+n].Choice == ledger[i].Choice {
				n++
			}
			if !yield(fold(ledger[i : i+n])) {
				return
			}
			i += n
		}
	}
}

// fold makes a chunk of the entries of one event and choice.
func fold(parts []Entry) Chunk {
	p := &parts[0]
	c := Chunk{At: time.Duration(p.At) * time.Microsecond, Choice: p.Choice, Event: p.Event, Source: p.Source, SharedRead: p.SharedRead}
	for i := range parts {
		p := &parts[i]
		if p.Tokens.Known {
			c.Tokens = trace.Some(c.Tokens.Value + p.Tokens.Value)
		}
		c.Text = c.Text || p.Kind != KindNone
		output := p.Kind != KindNone && p.Kind != KindReasoning
		c.Output = c.Output || output && (!p.Tokens.Known || p.Tokens.Value > 0)
	}
	return c
}

// TokensKnown says whether the tokens of every chunk are known, which ITL
// needs. It is false for an empty ledger, and for a response whose running
// count fell.
func TokensKnown(r *Result) bool {
	_, ok := LedgerTokens(r.Ledger)
	return ok
}

// LedgerTokens returns the sum of a ledger's tokens, and false if it is empty
// or the tokens of a chunk are unknown.
func LedgerTokens(ledger []Entry) (sum int64, ok bool) {
	for c := range Chunks(ledger) {
		if !c.Tokens.Known {
			return 0, false
		}
		sum += int64(c.Tokens.Value)
	}
	return sum, len(ledger) > 0
}

// CountFell says whether the server's running count fell during the response
// (decision 2 of the booking rules): from there on the ledger has null tokens
// although their source is the usage. If only the closing usage fell, that is
// an entry of KindNone.
func CountFell(r *Result) bool {
	for c := range Chunks(r.Ledger) {
		if !c.Tokens.Known && c.Source == SourceUsage {
			return true
		}
	}
	return false
}

// LedgerSource returns the least trusted source among the counts of a ledger's
// chunks with tokens (R4), the label of what is computed from them; false if
// there is no such chunk.
func LedgerSource(ledger []Entry) (worst Source, ok bool) {
	for c := range Chunks(ledger) {
		if c.HasTokens() && (!ok || c.Source > worst) {
			worst, ok = c.Source, true
		}
	}
	return worst, ok
}

// SharedReads returns how many chunks with tokens there are and how many of
// them came with an earlier event in the same read. Gaps between those say
// nothing about the server (R2).
func SharedReads(ledger []Entry) (shared, chunks int) {
	for c := range Chunks(ledger) {
		if c.HasTokens() {
			chunks++
			if c.SharedRead {
				shared++
			}
		}
	}
	return shared, chunks
}

// A gap is a chunk with tokens and its distance to the previous one of its choice.
type gap struct {
	chunk Chunk
	gap   time.Duration
}

func gaps(ledger []Entry) iter.Seq[gap] {
	return func(yield func(gap) bool) {
		var last choices
		for c := range Chunks(ledger) {
			if !c.HasTokens() {
				continue
			}
			previous, seen := last.swap(c)
			if seen && !yield(gap{c, c.At - previous.At}) {
				return
			}
		}
	}
}

// choices keeps one chunk per choice. Nearly all responses have one choice,
// which costs no allocation.
type choices struct {
	few  [4]Chunk
	n    int
	more []Chunk
}

// swap puts c in the place of the last chunk of its choice, and returns that.
func (l *choices) swap(c Chunk) (previous Chunk, seen bool) {
	for _, list := range [][]Chunk{l.few[:l.n], l.more} {
		for i := range list {
			if list[i].Choice == c.Choice {
				previous, list[i] = list[i], c
				return previous, true
			}
		}
	}
	if l.n < len(l.few) {
		l.few[l.n] = c
		l.n++
	} else {
		l.more = append(l.more, c)
	}
	return Chunk{}, false
}

// A span is the time between first and last token, summed over choices.
type span struct {
	sum     time.Duration
	choices int64
	gaps    int
}

// spans also returns the tokens of the first chunks, and whether they are known.
func spans(ledger []Entry) (s span, first int64, known bool) {
	known = true
	var last choices
	for c := range Chunks(ledger) {
		if !c.HasTokens() {
			continue
		}
		if previous, seen := last.swap(c); seen {
			s.sum += c.At - previous.At
			s.gaps++
			continue
		}
		s.choices++
		first += int64(c.Tokens.Value)
		known = known && c.Tokens.Known
	}
	return s, first, known
}
