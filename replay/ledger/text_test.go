package ledger

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/results"
)

// TestTextIsChunk books many streams twice: events of nothing but content by Text, and
// by Chunk. The accounts must be one in all that they hold.
func TestTextIsChunk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	usage := func(total int64) *Usage {
		switch r.IntN(6) {
		case 0:
			return &Usage{Output: trace.Some(total)}
		case 1:
			return &Usage{Output: trace.Some(total / 2)} // it falls
		}
		return nil
	}
	for range 20_000 {
		var by, want Account
		if r.IntN(8) == 0 {
			by.Tokenizer = func(text []byte) int { return len(text) }
			want.Tokenizer = by.Tokenizer
		}
		by.Reset(nil)
		want.Reset(nil)
		text, total := "", int64(0)
		for n := range 1 + r.IntN(12) {
			s := Stamp{At: time.Duration(n) * time.Millisecond, Event: n, SharedRead: n%2 > 0}
			total += int64(r.IntN(3))
			d, u := Delta{Choice: int32(r.IntN(20) / 19)}, usage(total)
			switch more := " word"[:1+r.IntN(5)]; r.IntN(9) {
			case 0:
				d.Role = true
			case 1:
				d.Reasoning = []byte(more)
			case 2: // nothing
			default:
				d.Kind, d.Content = results.KindContent, []byte(more)
				if text += strings.Repeat(more, 1+r.IntN(9)); r.IntN(2) == 0 {
					d.Content = []byte(text) // it is cumulative
				}
				by.Text(s, d.Choice, d.Content, u)
				want.Chunk(s, []Delta{d}, u)
				continue
			}
			by.Chunk(s, []Delta{d}, u)
			want.Chunk(s, []Delta{d}, u)
		}
		by.Tokenizer, want.Tokenizer = nil, nil // functions are not compared
		if !reflect.DeepEqual(by, want) {
			t.Fatalf("by Text  %+v\nby Chunk %+v", by, want)
		}
	}
}

// TestRepeatSeesAsItCompares holds the short way against the long one.
func TestRepeatSeesAsItCompares(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for range 50_000 {
		var by, want repeat
		text := ""
		for range 1 + r.IntN(8) {
			piece := strings.Repeat("ab "[r.IntN(3):], r.IntN(12))
			if text += piece; r.IntN(2) == 0 {
				piece = text
			}
			if got, want := by.see([]byte(piece)), want.compare([]byte(piece)); got != want {
				t.Fatalf("%q after %q: %v, want %v", piece, text, got, want)
			}
			if by != want {
				t.Fatalf("%+v, want %+v", by, want)
			}
		}
	}
}
