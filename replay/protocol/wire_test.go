package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/replay/ledger"
	"reprise/trace/results"
)

// A wireCase is one response and what must be booked for it. The names are
// those of the project's list of streaming cases.
type wireCase struct {
	name    string
	p       Protocol // nil means chat
	body    string   // as a stream, unless whole is set
	content string   // Content-Type; "" means text/event-stream
	whole   bool     // the body is one JSON text: comments and times do not apply
	status  int      // 0 means 200
	end     ledger.End
	choices int

	outcome string // class, ": " and cause, if there is one
	chunks  string // kind and tokens of every ledger entry; see showChunks
	times   string // TTFT TTFO | ITL | TPOT; - for absent
	osl     string // OSL, its source, ledger difference, reasoning tokens
	input   string // prompt tokens and cached ones; "" is not checked
	finish  string
	note    string // all notes
	text    string // content, then reasoning in <>, refusal in [], tools in {}
}

func (c *wireCase) check(t *testing.T, reads []read, times bool) {
	t.Helper()
	p := c.p
	if p == nil {
		p = Chat{}
	}
	r := NewResponse(p, true, 0)
	r.Account.Choices = c.choices
	r.Account.Transcript = &ledger.Transcript{}
	status := c.status
	if status == 0 {
		status = 200
	}
	content := c.content
	if content == "" {
		content = "text/event-stream"
	}
	r.Start(nil)
	r.Head(status, content)
	at := time.Duration(0)
	for _, read := range reads {
		at = read.at
		if err := r.Feed(append([]byte(nil), read.p...), at); err != nil {
			t.Fatal(err)
		}
	}
	s := r.Close(ledger.Ending{Kind: c.end, At: at})
	checkLedger(t, &s)

	row := results.Result{}
	s.Fill(&row)
	same(t, "outcome", strings.TrimSuffix(row.Outcome+": "+row.Cause.Value, ": "), c.outcome)
	same(t, "chunks", showChunks(row.Ledger), c.chunks)
	same(t, "OSL", showOSL(&row), c.osl)
	same(t, "finish reason", row.FinishReason.Value, c.finish)
	same(t, "note", row.Note.Value, c.note)
	if times {
		same(t, "times", showTimes(&row), c.times)
	}
	if c.input != "" {
		input := fmt.Sprint(row.CountedInputTokens.Value)
		if row.CachedTokens.Known {
			input += fmt.Sprint(" cached ", row.CachedTokens.Value)
		}
		same(t, "input", input, c.input)
	}
	if c.text != "" {
		same(t, "text", showText(r.Account.Transcript), c.text)
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// checkLedger holds what must hold for every response.
func checkLedger(t *testing.T, s *ledger.Summary) {
	t.Helper()
	last, event := int64(0), int32(0)
	for _, e := range s.Ledger {
		if e.At < last || e.Event < event || e.Tokens.Value < 0 || !e.Tokens.Known && e.Tokens.Value != 0 {
			t.Fatalf("ledger goes back: %+v", s.Ledger)
		}
		last, event = e.At, e.Event
	}
	if s.FirstOutput.Known && !(s.FirstToken.Known && s.FirstToken.Value <= s.FirstOutput.Value && s.FirstOutput.Value <= s.LastToken.Value) {
		t.Fatalf("TTFT %v, TTFO %v, last token %v", s.FirstToken, s.FirstOutput, s.LastToken)
	}
	if s.FirstToken.Known && s.LastToken.Value > s.End {
		t.Fatalf("last token %v after the end %v", s.LastToken, s.End)
	}
}

// showChunks writes every entry as kind (n none, r reasoning, c content,
// t tool, x refusal), tokens (? unknown) and, if it is not 0, /choice.
func showChunks(ledger []results.Entry) string {
	letters := map[results.Kind]string{results.KindNone: "n", results.KindReasoning: "r", results.KindContent: "c", results.KindTool: "t", results.KindRefusal: "x"}
	var out []string
	for _, e := range ledger {
		s := letters[e.Kind] + "?"
		if e.Tokens.Known {
			s = fmt.Sprint(letters[e.Kind], e.Tokens.Value)
		}
		if e.Choice != 0 {
			s += fmt.Sprint("/", e.Choice)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func showTimes(r *results.Result) string {
	var itl []string
	for d, n := range results.ITL(r) {
		s := fmt.Sprintf("%.4g", float64(d)/1e6)
		if n > 1 {
			s += fmt.Sprint("x", n)
		}
		itl = append(itl, s)
	}
	return show(results.TTFT(r)) + " " + show(results.TTFO(r)) + " | " + strings.Join(itl, " ") + " | " + show(results.TPOT(r))
}

func show(d time.Duration, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.4g", float64(d)/1e6)
}

func showOSL(r *results.Result) string {
	var out []string
	if r.OutputTokens.Known {
		out = append(out, fmt.Sprint(r.OutputTokens.Value, " ", r.OutputSource.Value))
	}
	if r.LedgerDifference.Known && r.LedgerDifference.Value != 0 {
		out = append(out, fmt.Sprint("difference ", r.LedgerDifference.Value))
	}
	if r.ReasoningTokens.Known {
		out = append(out, fmt.Sprint("reasoning ", r.ReasoningTokens.Value))
	}
	return strings.Join(out, " ")
}

func showText(t *ledger.Transcript) string {
	var out []string
	for _, c := range t.Choices {
		s := string(c.Content)
		if len(c.Reasoning) > 0 {
			s += "<" + string(c.Reasoning) + ">"
		}
		if len(c.Refusal) > 0 {
			s += "[" + string(c.Refusal) + "]"
		}
		for _, tool := range c.Tools {
			s += "{" + string(tool.Name) + " " + string(tool.Arguments) + "}"
		}
		out = append(out, s)
	}
	return strings.Join(out, " / ")
}

func TestWire(t *testing.T) {
	for _, cases := range [][]wireCase{chatCases, endingCases, otherCases} {
		for _, c := range cases {
			s := parseScript(c.body)
			for _, cut := range cuts {
				if c.whole && cut.name == "comments between events" {
					continue
				}
				t.Run(c.name+"/"+cut.name, func(t *testing.T) { c.check(t, cut.reads(s), cut.times) })
			}
		}
	}
}
