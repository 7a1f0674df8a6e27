package protocol

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"reprise/replay/ledger"
	"reprise/trace/results"
)

// fuzzProtocol holds what must hold for any bytes: no panic, and the same
// account however the bytes are cut. Reads are a millisecond apart.
func fuzzProtocol(f *testing.F, p Protocol, seeds ...[]wireCase) {
	for _, cases := range seeds {
		for _, c := range cases {
			if c.p != nil && c.p != p {
				continue
			}
			if s := parseScript(c.body); len(s.body) < 10_000 {
				f.Add(s.body, uint16(200), uint64(0x0307010501020140))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, status uint16, cuts uint64) {
		whole := account(t, p, body, int(status), func(int) int { return len(body) })
		for _, cut := range []func(i int) int{
			func(int) int { return 1 },
			func(i int) int { return 1 + int(cuts>>(8*(i%8)))&0xff },
		} {
			if got := account(t, p, body, int(status), cut); got != whole {
				t.Fatalf("%q: the account depends on the cut\n one read: %s\n      cut: %s", body, whole, got)
			}
		}
	})
}

// account books a body and shows all that does not depend on time.
func account(t *testing.T, p Protocol, body []byte, status int, cut func(i int) int) string {
	r := NewResponse(p, true, 0)
	r.Account.Transcript = &ledger.Transcript{}
	r.Start(nil)
	r.Head(status, "")
	at := time.Duration(0)
	for i, rest := 0, body; len(rest) > 0; i++ {
		read := bytes.Clone(rest[:min(cut(i), len(rest))])
		rest = rest[len(read):]
		at += time.Millisecond
		if err := r.Feed(read, at); err != nil {
			t.Fatal(err)
		}
		clear(read)
	}
	s := r.Close(ledger.Ending{At: at})
	checkLedger(t, &s)
	if sum, known := results.LedgerTokens(s.Ledger); known && s.Difference.Known && s.Output.Value != sum+s.Difference.Value {
		t.Fatalf("OSL %d, ledger %d, difference %d", s.Output.Value, sum, s.Difference.Value)
	}
	return fmt.Sprint(s.Outcome, s.Cause, s.FinishReason, s.Note, s.Input, s.Cached, s.Output, s.OutputSource, s.Reasoning, s.Difference,
		showChunks(s.Ledger), showText(r.Account.Transcript))
}

func FuzzChat(f *testing.F)        { fuzzProtocol(f, Chat{}, chatCases, endingCases) }
func FuzzCompletions(f *testing.F) { fuzzProtocol(f, Completions{}, chatCases, endingCases) }
func FuzzMessages(f *testing.F)    { fuzzProtocol(f, Messages{}, otherCases) }
func FuzzResponses(f *testing.F)   { fuzzProtocol(f, Responses{}, otherCases) }
func FuzzTGI(f *testing.F)         { fuzzProtocol(f, TGI{}, otherCases) }
func FuzzSGLang(f *testing.F)      { fuzzProtocol(f, SGLang{}, otherCases) }
func FuzzOllama(f *testing.F)      { fuzzProtocol(f, Ollama{}, otherCases) }
func FuzzEmbeddings(f *testing.F)  { fuzzProtocol(f, Embeddings{}, otherCases) }
