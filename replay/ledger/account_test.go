package ledger

import (
	"fmt"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

func content(text string) []Delta { return []Delta{{Content: []byte(text)}} }

func usage(n int64) *Usage { return &Usage{Output: trace.Some(n)} }

func at(us int, event int) Stamp {
	return Stamp{At: time.Duration(us) * time.Microsecond, Event: event}
}

// Instants on the ledger are whole microseconds, rounded down, and so are those
// of the summary: what a reader computes from the file is what we print.
func TestInstantsAreThoseOfTheLedger(t *testing.T) {
	var a Account
	a.Chunk(Stamp{At: 1999999, Event: 0}, content("a"), usage(1))
	a.Chunk(Stamp{At: 2999999, Event: 1}, []Delta{{Content: []byte("b"), Finish: []byte("stop")}}, usage(2))
	s := a.Close(Ending{At: 3 * time.Millisecond})
	if s.Ledger[0].At != 1999 || s.FirstToken.Value != 1999*time.Microsecond || s.LastToken.Value != 2999*time.Microsecond {
		t.Errorf("entry %d, first %v, last %v", s.Ledger[0].At, s.FirstToken, s.LastToken)
	}
	r := results.Result{Sent: trace.Some(time.Second)}
	s.Fill(&r)
	ttft, _ := results.TTFT(&r)
	if r.FirstToken.Value-r.Sent.Value != ttft || r.End.Value != time.Second+3*time.Millisecond {
		t.Errorf("first token %v, TTFT %v, end %v", r.FirstToken, ttft, r.End)
	}
	r = results.Result{}
	s.Fill(&r)
	if r.FirstToken.Known || r.End.Known {
		t.Error("instants of the run without a time of sending")
	}
}

func TestResetForgets(t *testing.T) {
	a := Account{Choices: 2, Transcript: &Transcript{}}
	a.Chunk(at(1, 0), content("a"), usage(5))
	a.Error("boom")
	a.Note("doubt")
	a.Malformed(at(2, 1), []byte("x"))
	a.Done()
	slab := make([]results.Entry, 3, 8)
	a.Reset(slab)
	if got, fresh := fmt.Sprintf("%+v", a.Close(Ending{})), fmt.Sprintf("%+v", (&Account{}).Close(Ending{})); got != fresh {
		t.Errorf("after Reset\n got %s\nwant %s", got, fresh)
	}
	a.Chunk(at(1, 0), content("a"), usage(1))
	if a.Choices != 2 || len(a.Transcript.Choices) != 1 || &a.Entries()[0] != &slab[0] {
		t.Error("Reset lost what was set before, or the memory")
	}
}

// Running usage with several choices belongs to none of them.
func TestUsageOfSeveralChoices(t *testing.T) {
	var a Account
	a.Chunk(at(1, 0), []Delta{{Content: []byte("a")}, {Choice: 1, Content: []byte("x")}}, usage(2))
	a.Chunk(at(2, 1), []Delta{{Choice: 1, Content: []byte("y"), Finish: []byte("stop")}}, usage(1))
	a.Chunk(at(3, 2), []Delta{{Finish: []byte("stop")}}, usage(3))
	s := a.Close(Ending{})
	if s.Ledger[0].Tokens.Known || s.Ledger[2].Tokens.Known || s.Output.Value != 3 || s.Outcome != results.OutcomeOK || s.FinishReason.Value != "stop" {
		t.Errorf("%+v", s)
	}
	if s.Note.Value != "running usage cannot be shared among several choices" {
		t.Errorf("note %q", s.Note.Value)
	}
}

// Without usage OSL is the sum of the counts, under the least trusted label,
// and unknown if one of them is.
func TestOSLWithoutUsage(t *testing.T) {
	for _, c := range []struct {
		deltas []Delta
		want   string
	}{
		{[]Delta{{Content: []byte("a"), IDs: trace.Some[int32](1)}, {Content: []byte("b"), Logprobs: trace.Some[int32](2)}}, "3 logprobs"},
		{[]Delta{{Content: []byte("a"), IDs: trace.Some[int32](1)}, {Content: []byte("b")}}, "unknown"},
		{[]Delta{{Role: true}}, "unknown"},
	} {
		var a Account
		for i := range c.deltas {
			a.Chunk(at(i, i), c.deltas[i:i+1], nil)
		}
		a.Done()
		s := a.Close(Ending{})
		got := "unknown"
		if s.Output.Known {
			got = fmt.Sprint(s.Output.Value, " ", s.OutputSource.Value)
		}
		if got != c.want {
			t.Errorf("OSL %s, want %s", got, c.want)
		}
	}
}

// Repeated words are no sign of cumulative text.
func TestRepeatedWords(t *testing.T) {
	for _, texts := range [][]string{{" the", " the", " the"}, {" the", " the the", " the"}, {"\n", "\n\n"}, {"1", "12", "3"}} {
		var a Account
		for i, text := range texts {
			a.Chunk(at(i, i), content(text), nil)
		}
		a.Done()
		if s := a.Close(Ending{}); s.Note.Value != "no finish reason" {
			t.Errorf("%q: %s", texts, s.Note.Value)
		}
	}
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		e    Ending
		want string
	}{
		{Ending{Kind: EndUnsent, Cause: "run ended"}, "unsent run ended"},
		{Ending{Kind: EndRefused, Cause: "connection refused"}, "refused connection refused"},
		{Ending{Kind: EndCancelled}, "cancelled "},
		{Ending{Kind: EndCut}, "cut "},
		{Ending{Kind: EndInvalid, Cause: "bad chunk size"}, "failed bad chunk size"},
		{Ending{Status: 500}, "failed HTTP 500"},
		{Ending{Status: 307, Cause: "redirect"}, "failed HTTP 307: redirect"},
		{Ending{Status: 200}, "failed response without any model output"},
		{Ending{Kind: EndTimeout, Cause: "no token within 5s"}, "timeout no token within 5s"},
	} {
		var a Account
		s := a.Close(c.e)
		if got := s.Outcome + " " + s.Cause.Value; got != c.want {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}
