package protocol

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/replay/ledger"
	"reprise/replay/sse"
)

// framings are lines around an event.
var framings = [][2]string{
	{"data: ", "\n\n"}, {"data: ", "\r\n\r\n"}, {"data:", "\n\n"}, {"data: ", "\r\r"}, {"data: ", "\n"}, {"data: ", "\n\r\n"}, {"data: ", "\r\n"},
	{"data: ", "\n\n\n: ping\n\n"}, {"event: error\ndata: ", "\n\n"}, {"event:\ndata: ", "\n\n"}, {"id: 7\ndata: ", "\n\n"}, {"data:  ", " \n\n"}, {"data: {\ndata: ", "\n\n"}, {"datum: ", "\n\n"},
}

// streamed is all that is made of a stream.
type streamed struct {
	summary ledger.Summary
	said    []ledger.Speech
	counts  sse.Counts
	unknown string
	err     string
}

// stream books a stream that is cut into reads, with what is known of the events
// before, or with every event read in full.
func stream(body []byte, cut func(i int) int, limit int, forget, transcript bool) streamed {
	r := NewResponse(Chat{}, true, limit)
	said := &ledger.Transcript{}
	if transcript {
		r.Account.Transcript = said
	}
	if d := r.decoder.(*openAI); forget {
		r.events.Known = nil
		emit := r.emit
		r.emit = func(e sse.Event) error {
			d.like = likeness{}
			return emit(e)
		}
	}
	r.Start(nil)
	r.Head(200, "text/event-stream")
	out, at := streamed{}, time.Duration(0)
	for i, rest := 0, body; len(rest) > 0 && out.err == ""; i++ {
		read := bytes.Clone(rest[:min(cut(i), len(rest))])
		rest = rest[len(read):]
		if at += time.Millisecond; i%3 == 0 {
			at -= time.Millisecond // a read in pieces
		}
		if err := r.Feed(read, at); err != nil {
			out.err = err.Error()
		}
		clear(read)
	}
	out.summary = r.Close(ledger.Ending{At: at})
	out.said, out.counts, out.unknown = said.Choices, r.events.Counts(), r.events.FirstUnknown()
	return out
}

// checkKnown streams a body in several cuts.
func checkKnown(t *testing.T, body string, limit int, cuts uint64) {
	t.Helper()
	for _, cut := range []func(i int) int{
		func(int) int { return len(body) },
		func(i int) int { return 1 + int(cuts>>(8*(i%8)))&0xff },
	} {
		for _, transcript := range []bool{false, true} {
			got, want := stream([]byte(body), cut, limit, false, transcript), stream([]byte(body), cut, limit, true, transcript)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q\nknown %+v\nread  %+v", body, got, want)
			}
		}
	}
}

// TestKnownEventsAreExact streams triples of events, in every framing, with and
// without what is known of the one before.
func TestKnownEventsAreExact(t *testing.T) {
	for _, f := range framings {
		for i, a := range likeEvents {
			for k, b := range likeEvents {
				c := likeEvents[(i+k)%len(likeEvents)]
				for _, events := range [][]string{{f[0] + a + f[1], "data: " + b + "\n\n", f[0] + a + f[1]}, {"data: " + a + "\n\n", f[0] + b + f[1], "data: " + c + "\n\n"}} {
					body := strings.Join(events, "")
					checkKnown(t, body, 0, 0x10f0ffff80402030)
				}
			}
		}
		checkKnown(t, strings.Repeat(f[0]+likeEvents[0]+f[1], 9), len(likeEvents[0])+len(f[0]), 0xffffffffffffffff)
	}
}

// TestKnownEventsInOddPlaces puts what is known where it is no event.
func TestKnownEventsInOddPlaces(t *testing.T) {
	event := "data: " + likeEvents[0] + "\n\n"
	long := strings.Replace(event, "hello", strings.Repeat("hello", 9), 1)
	checkKnown(t, event+long+event, len(event)+10, 0xffffffffffffffff) // over the bound
	for _, lead := range []string{": a comment that goes on with ", "da", "data: ", "event: x\n", "\r", "\xEF\xBB\xBF"} {
		n := 0
		cut := func(int) int { n++; return []int{len(event), len(lead), len(event), 1 << 20}[(n-1)%4] }
		body := []byte(event + lead + event + event)
		got, want := stream(body, cut, 0, false, false), stream(body, cut, 0, true, false)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after %q\nknown %+v\nread  %+v", lead, got, want)
		}
	}
	lines := strings.Replace(likeEvents[0], ",", ",\n", 1)
	checkKnown(t, "data: "+strings.Replace(lines, "\n", "\ndata: ", 1)+"\n\ndata: "+lines+"\n\n"+event, 0, 0xffffffffffffffff)
}

// TestKnownEventsAreTaken makes sure that the usual stream is taken whole, with its
// framing.
func TestKnownEventsAreTaken(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r\n"} {
		r := NewResponse(Chat{}, true, 0)
		taken, known := 0, r.events.Known
		r.events.Known = func(p []byte, at time.Duration, index int, shared bool) int {
			n := known(p, at, index, shared)
			if n > 0 {
				taken++
			}
			return n
		}
		r.Start(nil)
		for _, e := range []string{likeEvents[0], likeEvents[3], likeEvents[0], likeEvents[0]} {
			if err := r.Feed([]byte("data: "+e+end), 0); err != nil {
				t.Fatal(err)
			}
		}
		if taken != 2 || len(r.Account.Entries()) != 4 {
			t.Errorf("%q: %d events of 4 are taken, %d booked", end, taken, len(r.Account.Entries()))
		}
	}
}

// FuzzKnown streams any bytes after, and around, an event that is known.
func FuzzKnown(f *testing.F) {
	for i, e := range likeEvents {
		frame := framings[i%len(framings)]
		f.Add("data: "+e+"\n\n", frame[0]+e+frame[1], 0, uint64(0x10f0ffff80402030))
	}
	f.Fuzz(func(t *testing.T, first, second string, limit int, cuts uint64) {
		if limit != 0 {
			limit = 1 + int(uint(limit)%512)
		}
		checkKnown(t, first+second+first, limit, cuts)
		checkKnown(t, first+first+second, limit, cuts)
	})
}
