package sse

import (
	"bytes"
	"strings"
	"testing"
)

const benchEvent = `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1767225600,"model":"llama-70b","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

// Time per event, for events that fit a read, that share one, and that span
// two. Allocations must be 0 in each.
func BenchmarkReader(b *testing.B) {
	for _, c := range []struct {
		name  string
		read  []byte // one read, repeated
		event int    // events per read, times two where an event spans two reads
		split bool
	}{
		{name: "one event per read", read: []byte(benchEvent), event: 1},
		{name: "eight events per read", read: bytes.Repeat([]byte(benchEvent), 8), event: 8},
		{name: "event over two reads", read: []byte(benchEvent), event: 1, split: true},
		{name: "crlf", read: []byte(strings.ReplaceAll(benchEvent, "\n", "\r\n")), event: 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			var r Reader
			n := 0
			emit := func(e Event) error { n += len(e.Data); return nil }
			b.ReportAllocs()
			b.SetBytes(int64(len(c.read) / c.event))
			for i := 0; i < b.N; i += c.event {
				half := 0
				if c.split {
					half = len(c.read) / 2
					_ = r.Feed(c.read[:half], 0, emit)
				}
				_ = r.Feed(c.read[half:], 0, emit)
			}
			if n == 0 && b.N > 8 {
				b.Fatal("no event came out")
			}
		})
	}
}

// The floor of the same work: counting line ends.
func BenchmarkCountLines(b *testing.B) {
	p := []byte(benchEvent)
	n := 0
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		n += bytes.Count(p, []byte("\n"))
	}
	if n == 0 {
		b.Fatal("nothing counted")
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	var r Reader
	p := bytes.Repeat([]byte(benchEvent), 4)
	n := 0
	emit := func(e Event) error { n++; return nil }
	allocs := testing.AllocsPerRun(200, func() {
		_ = r.Feed(p[:len(p)-100], 0, emit)
		_ = r.Feed(p[len(p)-100:], 0, emit)
	})
	if allocs != 0 || n < 800 {
		t.Errorf("%v allocations per 4 events, %d events", allocs, n)
	}
}
