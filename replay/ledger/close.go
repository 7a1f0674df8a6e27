package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// An End says how the transport of a response ended.
type End uint8

// How a response can end. The zero value is a clean end.
const (
	EndClean     End = iota // the whole body was read, as its framing says
	EndReset                // the connection broke
	EndInvalid              // the bytes were not HTTP, or a bound was exceeded
	EndTimeout              // a limit of time ended it
	EndCancelled            // cancelled on purpose
	EndCut                  // still in flight when the run ended
	EndRefused              // no connection could be made
	EndUnsent               // never sent
)

// An Ending is what the transport knows about the end of a response.
type Ending struct {
	Kind   End
	Status int           // HTTP status; 0 if none was read
	Cause  string        // what went wrong, in words; "" for a clean end
	Body   []byte        // first bytes of the body of an error response
	At     time.Duration // since sent: end of the body, or when it was given up
}

// A Summary is a response booked and closed.
type Summary struct {
	Outcome      string // results.OutcomeOK, ...
	Status       trace.Optional[int32]
	Cause        trace.Optional[string]
	FinishReason trace.Optional[string] // of the choices that differ, joined with ","
	Note         trace.Optional[string] // doubts, joined with "; "

	FirstToken  trace.Optional[time.Duration] // since sent, whole microseconds (R6)
	FirstOutput trace.Optional[time.Duration]
	LastToken   trace.Optional[time.Duration]
	End         time.Duration // since sent

	Input        trace.Optional[int64] // prompt tokens that the server counted
	Cached       trace.Optional[int64]
	Output       trace.Optional[int64] // OSL (R5)
	OutputSource trace.Optional[results.Source]
	Reasoning    trace.Optional[int64]

	Ledger     []results.Entry       // the account's memory, until its Reset
	Difference trace.Optional[int64] // final usage less the ledger's sum

	Timings string // what the server measured itself, raw JSON; "" if nothing
}

// Close ends the account and says what the response was.
func (a *Account) Close(e Ending) (s Summary) {
	a.End(&e, &s)
	return s
}

// End is Close into s, an empty summary: the stack of a connection's goroutine
// has no room for copies.
func (a *Account) End(e *Ending, s *Summary) {
	s.End, s.Input, s.Cached, s.Ledger, s.Timings = e.At, a.usage.Input, a.usage.Cached, a.entries, a.timings
	if e.Status != 0 {
		s.Status = trace.Some(int32(e.Status))
	}
	s.Outcome, s.Cause = a.outcome(e)
	s.FinishReason = known(a.finishReason())

	s.FirstToken = optional(results.FirstToken(a.entries))
	s.FirstOutput = optional(results.FirstOutput(a.entries))
	s.LastToken = optional(results.FinalToken(a.entries))
	a.closeCounts(s)

	a.closingNotes(s, e)
	s.Note = known(strings.Join(a.notes, "; "))
}

func known(s string) trace.Optional[string] {
	return trace.Optional[string]{Value: s, Known: s != ""}
}

func optional[T any](v T, ok bool) trace.Optional[T] {
	return trace.Optional[T]{Value: v, Known: ok}
}

// outcome applies R9 and R10. An error ends everything; then a terminal signal
// makes the response complete, however the transport ended; then the transport
// decides.
func (a *Account) outcome(e *Ending) (string, trace.Optional[string]) {
	switch {
	case e.Kind == EndUnsent:
		return results.OutcomeUnsent, known(e.Cause)
	case e.Kind == EndRefused:
		return results.OutcomeRefused, known(e.Cause)
	case e.Status != 0 && (e.Status < 200 || e.Status > 299):
		return results.OutcomeFailed, known(a.statusCause(e))
	case a.failed:
		return results.OutcomeFailed, known(a.cause)
	case a.badFinish != "":
		return results.OutcomeFailed, known(fmt.Sprintf("finish_reason %q", a.badFinish))
	case e.Kind == EndInvalid:
		return results.OutcomeFailed, known(e.Cause)
	case a.chunks > 0 && a.complete() && !a.empty():
		if a.unasked {
			return results.OutcomeNotStreamed, trace.Optional[string]{}
		}
		return results.OutcomeOK, trace.Optional[string]{}
	}
	return a.incomplete(e)
}

// empty tells a stream in which the model did nothing: no text, no token and no
// finish reason, only an end marker.
func (a *Account) empty() bool {
	if a.body || a.usage.Output.Or(0) > 0 {
		return false
	}
	for i := range a.choices {
		if a.choices[i].finished {
			return false
		}
	}
	for i := range a.entries {
		if a.entries[i].Kind != results.KindNone {
			return false
		}
	}
	return true
}

// incomplete is the outcome of a response without a terminal signal.
func (a *Account) incomplete(e *Ending) (string, trace.Optional[string]) {
	switch e.Kind {
	case EndReset:
		return results.OutcomeReset, known(a.because(or(e.Cause, "connection broke")))
	case EndTimeout:
		return results.OutcomeTimeout, known(a.because(or(e.Cause, "timed out")))
	case EndCancelled:
		return results.OutcomeCancelled, known(e.Cause)
	case EndCut:
		return results.OutcomeCut, known(e.Cause)
	}
	if a.chunks == 0 || a.terminal && a.empty() {
		return results.OutcomeFailed, known(a.because("response without any model output"))
	}
	return results.OutcomeTruncated, known(a.because("stream ended without a terminal signal"))
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// because adds to a cause what of the response could not be read, which may
// explain it.
func (a *Account) because(cause string) string {
	if a.shown != "" {
		return cause + "; " + a.shown
	}
	return cause
}

// statusCause tells an error response: the status, and the error object of its
// body or the first bytes of the body.
func (a *Account) statusCause(e *Ending) string {
	text := a.cause
	if text == "" {
		text = shorten(string(e.Body[:min(len(e.Body), longestCause)]))
	}
	text = strings.TrimPrefix(text, strconv.Itoa(e.Status)+" ")
	if text == "" {
		text = e.Cause
	}
	if text == "" {
		return fmt.Sprintf("HTTP %d", e.Status)
	}
	return fmt.Sprintf("HTTP %d: %s", e.Status, text)
}

// complete says whether a terminal signal was seen: the end marker, a body, or
// the finish of every choice (R9).
func (a *Account) complete() bool {
	if a.terminal || a.body {
		return true
	}
	for i := range a.choices {
		if !a.choices[i].finished {
			return false
		}
	}
	return len(a.choices) >= max(a.Choices, 1)
}

func (a *Account) finishReason() string {
	var reasons []string
	for i := range a.choices {
		f := a.choices[i].finish
		if f != "" && (len(reasons) == 0 || reasons[len(reasons)-1] != f) {
			reasons = append(reasons, f)
		}
	}
	if len(reasons) == 1 {
		return reasons[0]
	}
	return strings.Join(reasons, ",")
}

// closingNotes adds the doubts that only the end shows.
func (a *Account) closingNotes(s *Summary, e *Ending) {
	if a.shown != "" {
		a.Note(a.shown)
		if a.malformed > 1 {
			a.Note(fmt.Sprintf("%d events are malformed", a.malformed))
		}
	}
	for i := range a.choices {
		if a.choices[i].repeat.pair() {
			a.Note(noteCumulative)
		}
	}
	if s.Outcome != results.OutcomeOK && s.Outcome != results.OutcomeNotStreamed {
		return
	}
	if s.Outcome == results.OutcomeOK && len(a.entries) > 0 && !s.FirstToken.Known {
		a.Note("no tokens")
	}
	if s.Outcome == results.OutcomeNotStreamed {
		a.Note("not streamed, although a stream was asked for")
	}
	if a.marker && !a.terminal && !a.body {
		a.Note("no end marker")
	}
	if len(a.choices) > 0 && a.finishReason() == "" {
		a.Note("no finish reason")
	}
	if e.Kind != EndClean {
		a.Note("after the terminal signal: " + or(e.Cause, "the transport did not end cleanly"))
	}
}
