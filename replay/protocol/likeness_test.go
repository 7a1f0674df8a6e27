package protocol

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"reprise/replay/ledger"
	"reprise/replay/sse"
)

// likeEvents are events that differ from one another in one thing each: whatever
// of them is remembered, the others must be read for what they are.
var likeEvents = []string{
	`{"id":"a","choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}]}`,
	`{"id":"a","choices":[{"index":0,"delta":{"content":" wor\"ld"},"finish_reason":null}]}`,
	`{"id":"a","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`,
	`{"id":"a","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`,
	`{"id":"a","choices":[{"index":1,"delta":{"content":" hello"},"finish_reason":null}]}`,
	`{"id":"a","choices":[{"index":0,"delta":{"content":" hello","content":"again"},"finish_reason":null}]}`,
	`{"id":"a","choices":[{"index":0,"delta":{"reasoning":" hello"},"finish_reason":null}]}`,
	`{"id":"a","choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}]} `,
	`{"id":"a","choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}]}x`,
	`{"id":"a","choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}]`,
	"{\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\tb\"},\"finish_reason\":null}]}",
	`{"choices":[{"index":0,"delta":{"content":" a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"completion_tokens":012,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"completion_tokens":1.5,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"completion_tokens":-1,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"completion_tokens":1e2,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"completion_tokens":99999999999999999999,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"prompt_tokens":9,"total_tokens":21,"completion_tokens":13}}`,
	`{"choices":[{"index":0,"delta":{"content":" c"}}],"usage":{"prompt_tokens":9,"total_tokens":22,"completion_tokens":14}}`,
	`{"usage":{"prompt_tokens":9,"completion_tokens":15,"total_tokens":21},"choices":[{"index":0,"delta":{"content":" b"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":{"completion_tokens":3},"x":{"completion_tokens":4}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"}}],"usage":null}`,
	`{"choices":[{"index":0,"text":" b"}],"usage":null}`,
	`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":15,"total_tokens":21}}`,
	`{"choices":[{"index":0,"delta":{"content":" b"},"logprobs":{"content":[{"token":"b"}]}}]}`,
	`{"error":{"message":"no"}}`,
	`[DONE]`,
}

// booked reads events, one at a time, and returns what an account says of them.
func booked(d *openAI, events []string, forget bool) (ledger.Summary, []ledger.Speech) {
	var said ledger.Transcript
	a := ledger.Account{Transcript: &said}
	a.Reset(nil)
	for i, e := range events {
		if forget {
			d.like = likeness{}
		}
		d.Event(sse.Event{Data: []byte(e), Index: i}, &a)
	}
	return a.Close(ledger.Ending{}), said.Choices
}

// TestLikenessIsExact reads every pair and triple of events with and without
// what was remembered of the ones before.
func TestLikenessIsExact(t *testing.T) {
	check := func(events ...string) {
		got, said := booked(&openAI{stream: true}, events, false)
		want, spoken := booked(&openAI{stream: true}, events, true)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(said, spoken) {
			t.Fatalf("%s\nremembered %+v\nread       %+v", strings.Join(events, "\n"), got, want)
		}
	}
	for _, a := range likeEvents {
		for _, b := range likeEvents {
			check(a, b)
			for _, c := range likeEvents {
				check(a, b, c)
			}
		}
	}
}

// TestLikenessMatches makes sure that the usual stream is not read in full.
func TestLikenessMatches(t *testing.T) {
	for _, pair := range [][2]string{{likeEvents[0], strings.Replace(likeEvents[0], "hello", "w\xc3\xb6rld", 1)}, {likeEvents[11], likeEvents[12]}, {likeEvents[18], likeEvents[19]}} {
		d := &openAI{stream: true}
		booked(d, pair[:1], false)
		if _, ok := d.like.match([]byte(pair[1])); !ok {
			t.Errorf("%s\nis not like\n%s", pair[1], pair[0])
		}
	}
}

// FuzzLikeness changes an event in one place.
func FuzzLikeness(f *testing.F) {
	for i, e := range likeEvents {
		f.Add(e, likeEvents[(i+1)%len(likeEvents)], 40, []byte(`"`))
	}
	f.Fuzz(func(t *testing.T, first, second string, at int, put []byte) {
		edited := []byte(first)
		if at >= 0 && at < len(edited) {
			edited = bytes.Join([][]byte{edited[:at], put, edited[min(len(edited), at+len(put)):]}, nil)
		}
		events := []string{first, string(edited), second, first}
		got, said := booked(&openAI{stream: true}, events, false)
		want, spoken := booked(&openAI{stream: true}, events, true)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(said, spoken) {
			t.Fatalf("%q\nremembered %+v\nread       %+v", events, got, want)
		}
	})
}
